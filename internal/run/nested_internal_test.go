package run

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cadre/internal/agent"
	"cadre/internal/agent/worker"
	"cadre/internal/engine"
	"cadre/internal/layout"
	"cadre/internal/team"
)

// seat is what the session of a member has of its team.
type seat struct {
	*engine.Team
	member string
}

func (s seat) Do(ctx context.Context, body team.Body) (*team.Record, error) {
	r, err := s.Team.Do(ctx, team.Command{Actor: s.member, Body: body})
	return r.Record, err
}

// childOf returns the child team for the task that the member sub of a new team has in progress.
func childOf(t *testing.T, n *team.Nested, template Template) *child {
	t.Helper()
	root := t.TempDir()
	e := (&engine.Engine{Home: layout.Home{Root: filepath.Join(root, "home"), Claude: filepath.Join(root, "claude")},
		Log: func(text string) { t.Log(text) }}).In(root)
	var commands []team.Command
	for _, body := range []team.Body{&team.CreateTeam{TeamID: "up-1", Name: "up", Dir: root, MaxDepth: 1},
		&team.SpawnMember{Name: "sub", Agent: team.NestedTeam, Nested: n}, &team.CreateTask{Subject: "Build it"}} {
		commands = append(commands, engine.Command(team.User, body))
	}
	if err := e.Create("up", commands); err != nil {
		t.Fatal(err)
	}
	up, err := e.Open(t.Context(), "up")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { up.Close() })
	its := seat{up, "sub"}
	for _, one := range []team.Command{{Actor: team.Host("h"), Body: &team.AttachMember{Member: "sub"}},
		{Actor: team.Host("h"), Body: &team.ReportStarted{Member: "sub", Session: "s"}},
		{Actor: "sub", Body: &team.ClaimTask{}}} {
		if _, err := up.Do(t.Context(), one); err != nil {
			t.Fatalf("%T: %v", one.Body, err)
		}
	}
	c := &child{nested: nested{of: up, template: template,
		host: engine.HostOptions{Agent: func(string) agent.Agent { return nil }}},
		session: &worker.Session{Spec: agent.Spec{Team: "up", Member: "sub"}, Team: its, Hurry: t.Context()}}
	up.View(func(s *team.State) { c.task, _ = s.Task("1") })
	return c
}

func inner(string, string) (Source, error) {
	return Source{Text: []byte("name: inner\nmembers: [{name: w, agent: external}]\ntasks: [{id: a}]\n"),
		Called: "inner.yaml", Origin: TemplateOrigin + "inner"}, nil
}

// TestChildNameIsTaken: a child team whose name another team took before it was made gets the next
// name, and does not become that team.
func TestChildNameIsTaken(t *testing.T) {
	t.Parallel()
	c := childOf(t, &team.Nested{Template: "inner"}, inner)
	dir := c.of.Team().Dir
	o, _, err := c.options(t.Context(), dir)
	if err != nil || o.File.Name != "up-sub" {
		t.Fatalf("%+v, %v", o.File, err)
	}
	for _, name := range []string{"up-sub", "up-sub-2"} { // of the same origin, as that of another member would be
		if err := c.of.Engine().In(dir).Create(name, []team.Command{engine.Command(team.User, &team.CreateTeam{
			TeamID: name + "-other", Name: name, Dir: dir, Origin: o.Path, OriginDigest: o.File.Digest()})}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	o.Saw = nil
	done := make(chan struct{})
	go func() { // it has nothing to do by itself
		defer close(done)
		c.of.Wait(ctx, c.of.Seq())
		cancel()
	}()
	r, err := c.run(ctx, o, dir)
	cancel()
	<-done
	var link team.Child
	c.of.View(func(s *team.State) { link, _ = s.ChildOf("1") })
	if link.Name != "up-sub-3" || err == nil && r.Team.ID != link.Team {
		t.Errorf("the child is %+v; the run ended with %+v, %v", link, r.Team, err)
	}
}

// TestGoalOfAChildIsItsOwn: a team of the user has no say in who leads a child team, whatever its
// name is.
func TestGoalOfAChildIsItsOwn(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // no agent is installed
	c := childOf(t, &team.Nested{Goal: "Build it"}, nil)
	e := c.of.Engine().In(c.of.Team().Dir)
	if err := e.Create("nested", []team.Command{engine.Command(team.User, &team.CreateTeam{TeamID: "nested-1",
		Name: "nested", Dir: e.Home.Dir})}); err != nil {
		t.Fatal(err)
	}
	_, _, err := c.options(t.Context(), e.Home.Dir)
	if !errors.Is(err, engine.ErrNoAgent) || strings.Contains(err.Error(), team.External) {
		t.Errorf("got %v, want %v", err, engine.ErrNoAgent)
	}
}

// TestChildTakesNoBranches: a child team does not get the name of one that left branches of members
// in the repository, because its own members would begin with that work.
func TestChildTakesNoBranches(t *testing.T) {
	t.Parallel()
	c := childOf(t, &team.Nested{Template: "inner"}, inner)
	dir := c.of.Team().Dir
	for _, args := range [][]string{{"init", "-q"}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q",
		"--allow-empty", "-m", "first"}, {"branch", "cadre/up-sub@a"}, {"branch", "cadre/up-sub-3@a"}} {
		if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	o, _, err := c.options(t.Context(), dir)
	if err != nil || o.File.Name != "up-sub-2" {
		t.Errorf("%+v, %v", o.File, err)
	}
}

// TestChildOfAnotherMember: a child team in the worktree of a member that has ended is ended too,
// and the member that takes the task begins with a new team in its own worktree.
func TestChildOfAnotherMember(t *testing.T) {
	t.Parallel()
	c := childOf(t, &team.Nested{Template: "inner"}, inner)
	dir := c.of.Team().Dir
	o, _, err := c.options(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	old := c.link
	err = c.of.Engine().In(dir).Create(old.Name, []team.Command{engine.Command(team.User, &team.CreateTeam{TeamID: old.Team,
		Name: old.Name, Dir: filepath.Join(dir, "gone"), Depth: 1, OriginDigest: o.File.Digest(),
		Parent: team.Parent{Team: "up-1", Name: "up", Member: "sub", Task: "1", Worktree: true}})})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []team.Command{{Actor: "sub", Body: &team.FailTask{Task: "1", Fence: c.task.Fence, Reason: "no"}},
		{Actor: team.User, Body: &team.ReleaseTask{Task: "1"}},
		{Actor: team.User, Body: &team.SpawnMember{Name: "two", Agent: team.NestedTeam,
			Nested: &team.Nested{Template: "inner"}}},
		{Actor: team.Host("h"), Body: &team.AttachMember{Member: "two"}},
		{Actor: team.Host("h"), Body: &team.ReportStarted{Member: "two", Session: "s2"}},
		{Actor: "two", Body: &team.ClaimTask{}}} {
		if _, err := c.of.Do(t.Context(), one); err != nil {
			t.Fatalf("%T: %v", one.Body, err)
		}
	}
	two := &child{nested: c.nested, session: &worker.Session{Spec: agent.Spec{Team: "up", Member: "two"},
		Team: seat{c.of, "two"}, Hurry: t.Context()}}
	c.of.View(func(s *team.State) { two.task, _ = s.Task("1") })
	if o, _, err = two.options(t.Context(), dir); err != nil || o.Resume || two.link.Team == old.Team {
		t.Fatalf("resume %t, %+v, %v", o.Resume, two.link, err)
	}
	before, err := (&child{nested: c.nested, link: old}).now(t.Context())
	if err != nil || before.Status != team.TeamAborted {
		t.Errorf("the earlier team is %s, %v", before.Status, err)
	}
}
