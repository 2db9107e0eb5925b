package teams_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"cadre/internal/consolidate"
	"cadre/internal/engine"
	"cadre/internal/layout"
	"cadre/internal/team"
	"cadre/pkg/teams"
)

// TestResumeTeam checks that a team without processes can continue. Obstacles are reported before
// anything of it runs.
func TestResumeTeam(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts hosts or runs git many times; not with -short")
	}
	t.Parallel()
	o, git := repository(t)
	m := manage(t, o)
	_, err := m.CreateTeam(limited(t), teams.TeamConfig{Name: "port", Members: []teams.MemberConfig{
		{Name: "ann", Agent: teams.Shell}}, Tasks: []teams.TaskConfig{
		{Subject: "wait", Run: "until test -f go; do sleep 0.05; done; echo gone"}}})
	ok(t, err)
	ok(t, m.Close())

	second := manage(t, o)
	_, _, err = second.ResumeTeam(limited(t), "nobody", teams.ResumeOptions{})
	want(t, err, teams.ErrNotFound)
	team, found, err := second.ResumeTeam(limited(t), "port", teams.ResumeOptions{})
	ok(t, err)
	equal(t, "it continues", found.Continues, teams.ContinueByHand)
	equal(t, "what was found of ann", found.Members[slices.IndexFunc(found.Members, func(m teams.MemberLife) bool {
		return m.Name == "ann"
	})].Life, teams.LifePaused)
	_, _, err = second.ResumeTeam(limited(t), "port", teams.ResumeOptions{})
	want(t, err, teams.ErrNotReady) // the manager has a team

	// The team has a lead, so another manager has to take it over.
	ran := make(chan error, 1)
	go func() { _, err := team.Run(limited(t), teams.RunOptions{}); ran <- err }()
	first(t, team, func(e teams.TaskClaimed) bool { return e.Member == "ann" })
	third := manage(t, o)
	_, found, err = third.ResumeTeam(limited(t), "port", teams.ResumeOptions{})
	want(t, err, teams.ErrNotReady)
	equal(t, "alive", found.Lead.Alive, true)
	refused, _ := errors.AsType[*teams.Error](err)
	if !slices.ContainsFunc(refused.Hints, func(h teams.Hint) bool { return h.Action == teams.ActTakeOver }) {
		t.Errorf("the hints are %+v", refused.Hints)
	}
	taken, _, err := third.ResumeTeam(limited(t), "port", teams.ResumeOptions{TakeOver: true})
	ok(t, err)
	if err := next(t, ran); err == nil {
		t.Error("the old lead ends without an error")
	}
	ok(t, second.Close())
	ok(t, os.WriteFile(filepath.Join(o.Dir, "go"), nil, 0o600))
	_, err = taken.Run(limited(t), teams.RunOptions{})
	ok(t, err)
	ok(t, third.Close())
	ok(t, os.Remove(filepath.Join(o.Dir, "go")))

	// Move the project.
	fourth := manage(t, o)
	_, err = fourth.CreateTeam(limited(t), teams.TeamConfig{Name: "moved",
		Members: []teams.MemberConfig{{Name: "bob", Agent: teams.External}}})
	ok(t, err)
	ok(t, fourth.Close())
	there := o.Dir + "-moved"
	ok(t, os.Rename(o.Dir, there))
	fifth := manage(t, o)
	_, _, err = fifth.ResumeTeam(limited(t), "moved", teams.ResumeOptions{})
	want(t, err, teams.ErrInvalid)
	team, _, err = fifth.ResumeTeam(limited(t), "moved", teams.ResumeOptions{Dir: there})
	ok(t, err)
	equal(t, "directory", team.Dir(), there)
	ok(t, fifth.Close())
	ok(t, os.Rename(there, o.Dir))

	// This machine hands the team over, and pulls it back.
	remote := filepath.Join(t.TempDir(), "remote.git")
	git("init", "-q", "--bare", remote)
	git("remote", "add", "origin", remote)
	sixth := manage(t, o)
	_, err = sixth.CreateTeam(limited(t), teams.TeamConfig{Name: "pushed",
		Members: []teams.MemberConfig{{Name: "bob", Agent: teams.External}}})
	ok(t, err)
	ok(t, sixth.Close())
	seventh := manage(t, o)
	_, err = seventh.PushTeam(limited(t), "pushed", teams.PushOptions{Release: true,
		Agree: func(string) bool { return true }})
	ok(t, err)
	_, _, err = seventh.ResumeTeam(limited(t), "pushed", teams.ResumeOptions{})
	if err == nil {
		t.Fatal("a team that this machine handed over is resumed")
	}
	want(t, err, teams.ErrDenied)
	team, _, err = seventh.ResumeTeam(limited(t), "pushed", teams.ResumeOptions{TakeBack: true})
	ok(t, err)
	add(t, team.Tasks(), "it changes again")
	as, err := teams.New(teams.Options{Home: o.Home, ClaudeHome: o.ClaudeHome, As: "ann"})
	ok(t, err)
	_, _, err = as.ResumeTeam(limited(t), "port", teams.ResumeOptions{})
	want(t, err, teams.ErrDenied)
	ok(t, as.Close())
}

// beside acts in a team as another process of the user, without a manager. It sends these commands
// in turn; each is made from the current team.
func beside(t *testing.T, o teams.Options, name string, commands ...func(team.Team) team.Body) {
	t.Helper()
	e := &engine.Engine{Home: layout.Home{Root: o.Home, Claude: o.ClaudeHome}, NoSettingsHooks: true}
	of, err := e.Open(limited(t), name)
	ok(t, err)
	for _, command := range commands {
		_, err = of.Do(limited(t), team.Command{Actor: team.User, Body: command(of.Team())})
		ok(t, err)
	}
	ok(t, of.Close())
}

// TestResumeLostLead checks that resuming a team that lost its lead gives it a lead again. A team
// that only needs its consolidation is left as it is.
func TestResumeLostLead(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts hosts or runs git many times; not with -short")
	}
	t.Parallel()
	machine, err := os.Hostname()
	ok(t, err)
	lost := []func(team.Team) team.Body{
		func(team.Team) team.Body { return &team.AttachLead{Session: "gone", Machine: machine} },
		func(of team.Team) team.Body { return &team.LoseLead{Session: "gone", Since: of.LeadSince} },
	}
	begun := func(team.Team) team.Body { return &team.Consolidate{} }
	for name, open := range map[string]bool{"led": false, "consolidating": true} {
		t.Run(name, func(t *testing.T) {
			o, _ := repository(t)
			m := manage(t, o)
			create(t, m, "port", "ann")
			ok(t, m.Close())
			commands := lost
			if open {
				commands = append(slices.Clone(lost), begun)
			}
			beside(t, o, "port", commands...)

			second := manage(t, o)
			of, found, err := second.ResumeTeam(limited(t), "port", teams.ResumeOptions{})
			ok(t, err)
			equal(t, "it continues", found.Continues, map[bool]teams.Continuation{false: teams.ContinueByHand,
				true: teams.ContinueByConsolidation}[open])
			equal(t, "who led", found.Lead.Session, "gone")
			equal(t, "it was lost", !found.Lead.Lost.IsZero(), true)
			now, err := of.Probe(limited(t))
			ok(t, err)
			if !open {
				equal(t, "who leads, and is lost", now.Lead.Session+" "+leadLost(now), team.User+" false false")
				return
			}
			equal(t, "who led, and is lost", now.Lead.Session+" "+leadLost(now), "gone true true")
			ok(t, of.RollBackConsolidation(limited(t), "there is more to do"))
		})
	}
}

// TestResumeGoesAsFarAsTheCommand checks that the result names the next step of cadre resume, and
// that this step is one call: a run to the end, or a consolidation, even if only its record is
// missing. If a running session leads, its teammates are hosted beside it.
func TestResumeGoesAsFarAsTheCommand(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it runs many hosts; not with -short")
	}
	o, _ := repository(t)
	file := filepath.Join(t.TempDir(), "team.yaml")
	ok(t, os.WriteFile(file, []byte("name: port\nmembers:\n  - name: ann\n    agent: shell\n"+
		"tasks:\n  - id: say\n    subject: say it\n    run: echo said >said\n"), 0o600))
	f, err := teams.LoadTeamFile(file)
	ok(t, err)
	m := manage(t, o)
	_, err = m.CreateTeam(limited(t), f.Config)
	ok(t, err)
	ok(t, m.Close())

	resume := func(name string) (*teams.Team, teams.Resumed) {
		t.Helper()
		m := manage(t, o)
		of, found, err := m.ResumeTeam(limited(t), name, teams.ResumeOptions{})
		ok(t, err)
		return of, found
	}
	of, found := resume("port")
	equal(t, "made by a team file, it continues", found.Continues, teams.ContinueByRun)
	result, err := of.Run(limited(t), f.Run)
	ok(t, err)
	equal(t, "completed", result.Completed, 1)
	record, err := of.Consolidate(limited(t), teams.ConsolidateOptions{})
	ok(t, err)
	sealed := filepath.Join(o.Home, "teams", "port", consolidate.RecordFile)
	ok(t, os.Remove(sealed))
	of, found = resume("port")
	equal(t, "without its record, it continues", found.Continues, teams.ContinueByConsolidation)
	again, err := of.Consolidate(limited(t), teams.ConsolidateOptions{})
	ok(t, err)
	equal(t, "its commit", again.Commit, record.Commit)
	_, err = os.Stat(sealed)
	ok(t, err)

	m = manage(t, o)
	create(t, m, "led", "ann")
	ok(t, m.Close())
	e := &engine.Engine{Home: layout.Home{Root: o.Home, Claude: o.ClaudeHome}, NoSettingsHooks: true}
	led, err := e.Open(limited(t), "led")
	ok(t, err)
	defer led.Close()
	leads, end := make(chan struct{}), make(chan struct{})
	over := make(chan error, 1)
	go func() {
		over <- led.Attend(limited(t), "", o.Dir, func(context.Context, *engine.Outside) error {
			close(leads)
			<-end
			return nil
		})
	}()
	<-leads
	beside(t, o, "led", func(team.Team) team.Body { return &team.SpawnMember{Name: "kim", Agent: team.Shell} })
	of, found = resume("led")
	equal(t, "beside its lead, it continues", found.Continues, teams.ContinueBeside)
	for e, err := range of.EventsAfter(limited(t), 0) {
		ok(t, err)
		if started, is := e.Fact.(teams.MemberStarted); is && started.Member == "kim" {
			break
		}
	}
	close(end)
	ok(t, <-over)
}

// leadLost says whether the lead is lost, and whether a person has to act.
func leadLost(p teams.Probe) string {
	waits := slices.ContainsFunc(p.Attention, func(a teams.Attention) bool { return a.Kind == teams.AttentionLeadLost })
	return fmt.Sprint(!p.Lead.Lost.IsZero(), " ", waits)
}
