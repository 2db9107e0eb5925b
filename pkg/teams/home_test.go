package teams_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cadre/internal/testkit/soak"
	"cadre/pkg/teams"
)

// repository creates a project with one commit, and returns options for teams in it.
func repository(t *testing.T) (teams.Options, func(args ...string) string) {
	t.Helper()
	root := t.TempDir()
	project := filepath.Join(root, "project")
	ok(t, os.Mkdir(project, 0o700))
	git := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("git", append([]string{"-C", project}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q", "-b", "main")
	git("config", "user.name", "Ann")
	git("config", "user.email", "ann@example.org")
	git("commit", "-q", "--allow-empty", "-m", "first")
	return teams.Options{Home: filepath.Join(root, "home"), ClaudeHome: filepath.Join(root, "claude"), Dir: project,
		NoSettingsHooks: true}, git
}

// TestListAndView checks the views of teams that other processes own. Viewing changes nothing.
func TestListAndView(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	o := folders(t)
	m := manage(t, o)
	team, err := m.CreateTeam(limited(t), teams.TeamConfig{Name: "led", Goal: "look",
		Liveness: teams.Liveness{Offline: time.Hour},
		Members:  []teams.MemberConfig{{Name: "ann", Agent: teams.External, PlanApproval: true}},
		Tasks: []teams.TaskConfig{{Subject: "one"}, {Subject: "two", BlockedBy: []string{"1"},
			Priority: teams.PriorityHigh}}})
	ok(t, err)
	_, err = as(t, team, "ann").SubmitPlan(limited(t), "look around")
	ok(t, err)
	first := manage(t, o)
	_, err = first.CreateTeam(limited(t), teams.TeamConfig{Name: "damaged"})
	ok(t, err)
	ok(t, first.Close())
	journals, err := filepath.Glob(filepath.Join(o.Home, "teams", "damaged", "journal", "*.jsonl"))
	ok(t, err)
	ok(t, os.WriteFile(journals[0], []byte("nothing\n"), 0o600))
	os.Remove(filepath.Join(o.Home, "teams", "damaged", "state.json"))

	other := manage(t, o)
	all, err := other.Teams(limited(t))
	ok(t, err)
	equal(t, "teams", len(all), 2)
	if d := all[0]; d.Team.Name != "damaged" || !errors.Is(d.Err, teams.ErrDamaged) {
		t.Errorf("the damaged team is %+v", d)
	}
	l := all[1]
	if l.Team.Name != "led" || !l.Hosted || l.Pending != 2 || l.Teammates != 1 || l.Err != nil ||
		l.Team.Liveness.Offline != time.Hour || l.Team.Liveness.Beat != 30*time.Second {
		t.Errorf("the team is %+v", l)
	}
	equal(t, "waiting", l.Attention[0].Kind, teams.AttentionPlan)
	waiting, err := other.AwaitAttention(limited(t))
	ok(t, err)
	var named []string
	for _, item := range waiting {
		named = append(named, strings.TrimSpace(item.Team+" "+item.Member))
	}
	equal(t, "waiting in", strings.Join(named, ", "), "damaged, led ann")
	same, err := other.Attention(limited(t))
	ok(t, err)
	equal(t, "items", len(same), len(waiting))

	before, err := os.ReadDir(filepath.Join(o.Home, "teams", "led", "journal"))
	ok(t, err)
	ok(t, other.View(limited(t), "led", func(v *teams.View) error {
		equal(t, "lead", v.Lead(), "lead")
		tasks, err := v.Tasks().List(limited(t), teams.TaskFilter{Unblocked: true})
		ok(t, err)
		equal(t, "unblocked", len(tasks), 1)
		events := 0
		for e, err := range v.EventsAfter(limited(t), 0) {
			ok(t, err)
			if events++; e.Seq == 5 {
				break
			}
		}
		p, err := v.Probe(limited(t))
		ok(t, err)
		equal(t, "pending", p.Pending, 2)
		i := slices.IndexFunc(p.Members, func(m teams.MemberLife) bool { return m.Name == "ann" })
		equal(t, "ann", p.Members[i].Life, teams.LifeOutside)
		_, err = v.Review(limited(t))
		want(t, err, teams.ErrNotReady)
		return nil
	}))
	after, err := os.ReadDir(filepath.Join(o.Home, "teams", "led", "journal"))
	ok(t, err)
	equal(t, "files of the journal", len(after), len(before))
	want(t, other.View(limited(t), "nobody", func(*teams.View) error { return nil }), teams.ErrNotFound)
	no := errors.New("no")
	if err := other.View(limited(t), "led", func(*teams.View) error { return no }); !errors.Is(err, no) {
		t.Errorf("the error of the view: %v", err)
	}

	h, err := other.CheckTeam(limited(t), "led")
	ok(t, err)
	equal(t, "healthy", h.Healthy && h.Records > 3, true)
	h, err = other.CheckTeam(limited(t), "damaged")
	ok(t, err)
	equal(t, "problems", h.Healthy || len(h.Problems) == 0, false)
	if h, err = other.MendTeam(limited(t), "damaged"); len(h.Aside) == 0 {
		t.Errorf("MendTeam moved nothing away: %+v, %v", h, err)
	}
	want(t, err, teams.ErrFinished) // there was only one record

	in := manage(t, teams.Options{})
	create(t, in, "memory")
	all, err = in.Teams(limited(t))
	ok(t, err)
	equal(t, "teams in memory", len(all), 1)
	_, err = in.Attention(limited(t))
	want(t, err, teams.ErrInvalid)
}

// TestHookCommands checks that every process that works in a team asks the hooks of its config. A
// task that failed because of its command succeeds with another command.
func TestHookCommands(t *testing.T) {
	o := folders(t)
	m := manage(t, o)
	team, err := m.CreateTeam(limited(t), teams.TeamConfig{Name: "core",
		Members: []teams.MemberConfig{{Name: "ann", Agent: teams.Shell}},
		Hooks: []teams.HookCommand{{Event: teams.HookTaskCreated, Timeout: 5 * time.Second,
			Command: "grep -q secret && { echo no secrets >&2; exit 2; }; true"}}})
	ok(t, err)
	_, err = team.Tasks().Create(limited(t), teams.TaskConfig{Subject: "a secret"})
	want(t, err, teams.ErrRejected)
	equal(t, "feedback", strings.Contains(err.Error(), "no secrets"), true)
	task, err := team.Tasks().Create(limited(t), teams.TaskConfig{Subject: "look", Run: "false"})
	ok(t, err)
	first(t, team, func(f teams.TaskFailed) bool { return f.Task == task.ID })
	_, err = team.Tasks().Update(limited(t), task.ID, teams.TaskUpdate{Run: new("echo seen")})
	ok(t, err)
	equal(t, "result", strings.TrimSpace(first(t, team, func(f teams.TaskCompleted) bool {
		return f.Task == task.ID
	}).Result), "seen")
	r := m.HookResults()
	equal(t, "who rejected", r[0].Hook, teams.SettingsHooks)
	equal(t, "rejected", r[0].Rejected, true)
}

// TestTaskFilters checks that each field of the filter excludes tasks, and that claimable matches
// ClaimNext.
func TestTaskFilters(t *testing.T) {
	team := create(t, manage(t, teams.Options{}), "core", "ann", "bob")
	for _, c := range []teams.TaskConfig{{Subject: "for ann", Owner: "ann"}, {Subject: "for a reader", Role: "reader"},
		{Subject: "after", BlockedBy: []string{"1"}}, {Subject: "first", Priority: teams.PriorityCritical}} {
		_, err := team.Tasks().Create(limited(t), c)
		ok(t, err)
	}
	ids := func(f teams.TaskFilter) string {
		t.Helper()
		tasks, err := team.Tasks().List(limited(t), f)
		ok(t, err)
		var all []string
		for _, task := range tasks {
			all = append(all, task.ID)
		}
		return strings.Join(all, " ")
	}
	equal(t, "all", ids(teams.TaskFilter{}), "1 2 3 4")
	equal(t, "unblocked", ids(teams.TaskFilter{Unblocked: true}), "4 1 2")
	equal(t, "claimable by ann", ids(teams.TaskFilter{ClaimableBy: "ann"}), "4 1")
	equal(t, "claimable by bob", ids(teams.TaskFilter{ClaimableBy: "bob"}), "4")
	equal(t, "of ann", ids(teams.TaskFilter{Owner: "ann"}), "1")
	equal(t, "for readers", ids(teams.TaskFilter{Role: "reader"}), "2")
	_, err := team.Tasks().List(limited(t), teams.TaskFilter{ClaimableBy: "cat"})
	want(t, err, teams.ErrNotFound)
	claim, err := as(t, team, "ann").Tasks().ClaimNext(limited(t))
	ok(t, err)
	equal(t, "the next for ann", claim.ID, "4")
	equal(t, "in progress", ids(teams.TaskFilter{Status: teams.TaskStatusInProgress}), "4")
	ok(t, as(t, team, "ann").Tasks().Fail(limited(t), claim, "no", ""))
	equal(t, "out of retries", ids(teams.TaskFilter{OutOfRetries: true}), "4")
	_, err = team.Tasks().Patch(limited(t), "1")
	want(t, err, teams.ErrNoTask)
}

// TestHooksAtRunTime checks that hooks can be added and removed while a team works, and that their
// answers are kept.
func TestHooksAtRunTime(t *testing.T) {
	m := manage(t, teams.Options{Hooks: []teams.Hook{{Event: teams.HookTaskCreated,
		Ask: func(context.Context, teams.HookEvent) error { return errors.New("cannot judge") }}}})
	team := create(t, m, "core")
	no := teams.Hook{Name: "no", Event: teams.HookTaskCreated, Ask: func(context.Context, teams.HookEvent) error {
		return teams.Reject("not now")
	}}
	ok(t, m.AddHook(no))
	want(t, m.AddHook(no), teams.ErrNameTaken)
	want(t, m.AddHook(teams.Hook{Event: "Stop", Ask: no.Ask}), teams.ErrInvalid)
	want(t, m.AddHook(teams.Hook{Event: teams.HookTaskCreated, Name: "empty"}), teams.ErrInvalid)
	_, err := team.Tasks().Create(limited(t), teams.TaskConfig{Subject: "look"})
	want(t, err, teams.ErrRejected)
	equal(t, "hooks", len(m.Hooks()), 2)
	ok(t, m.RemoveHook("no"))
	want(t, m.RemoveHook("no"), teams.ErrNotFound)
	_, err = team.Tasks().Create(limited(t), teams.TaskConfig{Subject: "look"})
	ok(t, err)
	var answers []string
	for _, r := range m.HookResults() {
		answer := "allowed"
		if r.Err != nil {
			answer = r.Err.Error()
		} else if r.Rejected {
			answer = r.Feedback
		}
		answers = append(answers, r.Hook+": "+answer)
		equal(t, "subject", r.Event.Subject, "look")
	}
	equal(t, "answers", strings.Join(answers, "; "),
		"TaskCreated: cannot judge; no: not now; TaskCreated: cannot judge")
	_, err = teams.New(teams.Options{Hooks: []teams.Hook{no, no}, Memory: new(teams.Memory)})
	want(t, err, teams.ErrNameTaken)
}

const file = `
name: port
goal: Say hello
checks: [{name: said, run: test -f said}]
facts: [{name: readme, path: README}]
liveness: {offline: 20m}
hooks:
  TaskCompleted: [{hooks: [{type: command, command: 'true'}]}]
members: [{name: ann, agent: shell}]
tasks:
  - {id: say, run: echo hello >said}
  - {id: again, run: cat said, blockedBy: [say]}
`

// TestTeamFile checks that a team file creates the same team as cadre run. The team continues to
// one commit, its review and its end.
func TestTeamFile(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	o, git := repository(t)
	path := filepath.Join(o.Dir, "port.yaml")
	ok(t, os.WriteFile(path, []byte(file), 0o600))
	ok(t, os.WriteFile(filepath.Join(o.Dir, "README"), []byte("read me\n"), 0o600))
	git("add", ".")
	git("commit", "-q", "-m", "second")
	f, err := teams.LoadTeamFile(path)
	ok(t, err)
	m := manage(t, o)
	team, err := m.CreateTeam(limited(t), f.Config)
	ok(t, err)
	checks, err := team.Checks(limited(t))
	ok(t, err)
	equal(t, "checks", checks[0], teams.CheckState{Check: teams.Check{Name: "said", Command: "test -f said"}})
	_, err = team.Run(limited(t), f.Run)
	ok(t, err)
	info, err := team.Info(limited(t))
	ok(t, err)
	equal(t, "it waits for its checks", info.Status, teams.TeamStatusConsolidating)
	equal(t, "offline", info.Liveness.Offline, 20*time.Minute)
	report, err := os.ReadFile(filepath.Join(o.Dir, "port-report.md"))
	ok(t, err)
	equal(t, "report", strings.Contains(string(report), "hello"), true)

	c, err := team.Checkpoint(limited(t))
	ok(t, err)
	if !strings.Contains(c.Place, "cadre/port") || c.Commit == "" || c.NotInRepo != "" {
		t.Errorf("the checkpoint is %+v", c)
	}
	there, err := m.Checkpoints(limited(t), o.Dir)
	ok(t, err)
	if len(there) != 1 || there[0].Team != "port" || !there[0].Here || there[0].Completed != 2 {
		t.Errorf("the checkpoints are %+v", there)
	}
	patch, err := team.Tasks().Patch(limited(t), "1")
	ok(t, err)
	equal(t, "patch", strings.Contains(string(patch), "+hello"), true)

	ok(t, os.WriteFile(filepath.Join(o.Dir, "README"), []byte("changed\n"), 0o600))
	facts, err := team.Facts(limited(t))
	ok(t, err)
	equal(t, "facts", facts[0].Name+" "+facts[0].State, "readme changed")
	ok(t, team.RecordFacts(limited(t), teams.SharedFact{Name: "said", Path: "said"}))
	facts, err = team.Facts(limited(t))
	ok(t, err)
	equal(t, "facts", len(facts), 2)
	equal(t, "stale", facts[0].Stale || facts[1].Stale, false)
	git("checkout", "README")

	var staged, checked []string
	record, err := team.Consolidate(limited(t), teams.ConsolidateOptions{Message: "Say hello",
		OnStaged: func(changes []string) { staged = changes }, OnCheck: func(name string) {
			checked = append(checked,
				name)
		}})
	ok(t, err)
	equal(t, "commit", git("rev-parse", "HEAD"), record.Commit)
	equal(t, "message", git("log", "-1", "--format=%s"), "Say hello")
	equal(t, "checked", strings.Join(checked, " "), "said")
	if !slices.ContainsFunc(staged, func(one string) bool { return strings.HasSuffix(one, "said") }) {
		t.Errorf("the staged files are %q", staged)
	}
	r, err := team.Review(limited(t))
	ok(t, err)
	if len(r.Tasks) != 2 || r.Consolidated == nil || r.Consolidated.Commit != record.Commit || !r.Intact {
		t.Errorf("the review is %+v", r)
	}
	_, err = m.RemoveTeam(limited(t), "port", teams.RemoveOptions{})
	want(t, err, teams.ErrNotReady)
	ok(t, m.Close())
	m = manage(t, o)
	left, err := m.RemoveTeam(limited(t), "port", teams.RemoveOptions{})
	ok(t, err)
	equal(t, "branches", len(left), 1)
	equal(t, "checkpoints", left[0].Name+" "+left[0].Commit, "cadre/port "+git("rev-parse", "cadre/port"))

	back, err := m.RestoreTeam(limited(t), "port", teams.RestoreOptions{})
	ok(t, err)
	equal(t, "restored", back.Restored, true)
	_, err = m.RestoreTeam(limited(t), "port", teams.RestoreOptions{})
	want(t, err, teams.ErrNameTaken)
	left, err = m.RemoveTeam(limited(t), "port", teams.RemoveOptions{Branches: true, Force: true})
	ok(t, err)
	equal(t, "removed", left[0].Removed, true)
	equal(t, "branches", git("branch", "--list", "cadre/*"), "")
	_, err = m.RestoreTeam(limited(t), "port", teams.RestoreOptions{})
	want(t, err, teams.ErrNotFound)

	ok(t, os.WriteFile(path, []byte("name: port\nmembers: 3\n"), 0o600))
	_, err = teams.LoadTeamFile(path)
	want(t, err, teams.ErrInvalid)
	equal(t, "where", strings.Contains(err.Error(), "port.yaml:2:"), true)
}

// TestRunConsolidates checks that a run commits the team's work where the options say so, and that
// the result of the run stays where a check fails. The next run then finishes only what is left.
func TestRunConsolidates(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	o, git := repository(t)
	m := manage(t, o)
	check := filepath.Join(t.TempDir(), "mended")
	team, err := m.CreateTeam(limited(t), teams.TeamConfig{Name: "core", Checks: []teams.Check{
		{Name: "mended", Command: "test -f " + check}}, Members: []teams.MemberConfig{{Name: "ann",
		Agent: teams.Shell}},
		Tasks: []teams.TaskConfig{{Subject: "say", Run: "echo hello >said"}}})
	ok(t, err)
	how := teams.RunOptions{Consolidate: &teams.ConsolidateOptions{Message: "Say hello"}}
	head := git("rev-parse", "HEAD")
	r, err := team.Run(limited(t), how)
	want(t, err, teams.ErrNotReady)
	if r.Completed != 1 || r.Consolidated != nil || !strings.Contains(err.Error(), "mended") {
		t.Errorf("with a failed check it ended with %+v, %v", r, err)
	}
	equal(t, "HEAD", git("rev-parse", "HEAD"), head)
	ok(t, os.WriteFile(check, nil, 0o600))
	r, err = team.Run(limited(t), how)
	ok(t, err)
	if r.Completed != 1 || r.Consolidated == nil || r.Consolidated.Commit != git("rev-parse", "HEAD") ||
		r.Team.Status != teams.TeamStatusComplete {
		t.Errorf("it ended with %+v", r)
	}
	equal(t, "message", git("log", "-1", "--format=%s"), "Say hello")
}

// TestConsolidationTakenBack checks a rollback: the team continues, a failed check commits nothing,
// and a task is reassigned.
func TestConsolidationTakenBack(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts hosts or runs git many times; not with -short")
	}
	t.Parallel()
	o, git := repository(t)
	m := manage(t, o)
	team, err := m.CreateTeam(limited(t), teams.TeamConfig{Name: "port",
		Checks:  []teams.Check{{Name: "never", Command: "echo it is broken; false"}},
		Members: []teams.MemberConfig{{Name: "ann", Agent: teams.External}, {Name: "bob", Agent: teams.External}},
		Tasks:   []teams.TaskConfig{{Subject: "look"}}})
	ok(t, err)
	claim, err := as(t, team, "ann").Tasks().ClaimNext(limited(t))
	ok(t, err)
	_, err = team.Reassign(limited(t), teams.Reassignment{Task: "1", To: "bob"})
	want(t, err, teams.ErrNotReady) // it is unknown whether ann is alive
	task, err := team.Reassign(limited(t), teams.Reassignment{Task: "1", To: "bob", Force: true})
	ok(t, err)
	equal(t, "owner", task.Owner, "bob")
	_, err = as(t, team, "ann").Tasks().Complete(limited(t), claim, "")
	want(t, err, teams.ErrConflict)
	_, err = team.Reassign(limited(t), teams.Reassignment{Task: "1", To: "zork", Force: true})
	want(t, err, teams.ErrNotFound)
	_, err = team.Reassign(limited(t), teams.Reassignment{Task: "7", To: "bob"})
	want(t, err, teams.ErrNotFound)
	_, err = team.Resend(limited(t), "bob")
	want(t, err, teams.ErrNoTask) // no message is late
	seqs, err := team.Resend(limited(t), "bob", await1(t, team, "bob"))
	ok(t, err)
	equal(t, "sent again", len(seqs), 1)

	ok(t, team.WindDown(limited(t)))
	ok(t, team.RollBackConsolidation(limited(t), "there is more"))
	info, err := team.Info(limited(t))
	ok(t, err)
	equal(t, "status", info.Status, teams.TeamStatusActive)
	want(t, team.RollBackConsolidation(limited(t), ""), teams.ErrNoTask)

	_, err = team.Tasks().Complete(limited(t), teams.Claim{ID: "1"}, "looked")
	ok(t, err)
	for _, name := range []string{"ann", "bob"} {
		_, err := team.RequestShutdown(limited(t), teams.ShutdownRequest{Member: name})
		ok(t, err)
		_, err = team.AwaitEnd(limited(t), name)
		ok(t, err)
	}
	ok(t, os.WriteFile(filepath.Join(o.Dir, "made"), []byte("by the team\n"), 0o600))
	head := git("rev-parse", "HEAD")
	_, err = team.Consolidate(limited(t), teams.ConsolidateOptions{})
	if err == nil || !strings.Contains(err.Error(), "never") {
		t.Fatalf("with a failing check: %v", err)
	}
	want(t, err, teams.ErrNotReady)
	equal(t, "HEAD", git("rev-parse", "HEAD"), head)
	checks, err := team.Checks(limited(t))
	ok(t, err)
	equal(t, "the check", checks[0].Result, teams.CheckFailed)

	in := create(t, manage(t, teams.Options{}), "memory")
	_, err = in.Consolidate(limited(t), teams.ConsolidateOptions{})
	want(t, err, teams.ErrNotReady)
	_, err = in.Checkpoint(limited(t))
	want(t, err, teams.ErrNotReady)
}

// await1 returns the seq of the message that waits for the member.
func await1(t *testing.T, team *teams.Team, name string) int64 {
	t.Helper()
	mail, err := as(t, team, name).Mail().Peek(limited(t))
	ok(t, err)
	return mail[0].Seq
}

// TestConsolidateOptions checks that the options decide what is committed.
func TestConsolidateOptions(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	for name, c := range map[string]struct {
		checks  []teams.Check
		options teams.ConsolidateOptions
		files   string // in the commit; "" for none
		code    teams.Code
		names   string // in the error
	}{
		"all":       {files: "made other"},
		"no commit": {options: teams.ConsolidateOptions{NoCommit: true}},
		"only":      {options: teams.ConsolidateOptions{Only: []string{"made"}}, files: "made"},
		"mine":      {options: teams.ConsolidateOptions{Include: []string{"mine"}}, files: "made mine other"},
		"a check that changes a file": {checks: []teams.Check{{Name: "stamp", Command: "echo stamped >made"}},
			code: teams.ErrNotReady, names: "made"},
		"with what a check changes": {checks: []teams.Check{{Name: "stamp", Command: "echo stamped >made"}},
			options: teams.ConsolidateOptions{WithCheckChanges: true}, files: "made other"},
		"a check that needs what is not committed": {checks: []teams.Check{{Name: "mine", Command: "test -f mine"}},
			options: teams.ConsolidateOptions{CleanCheckout: true}, code: teams.ErrNotReady, names: "check mine"},
	} {
		t.Run(name, func(t *testing.T) {
			o, git := repository(t)
			ok(t, os.WriteFile(filepath.Join(o.Dir, "mine"), []byte("of the person\n"), 0o600))
			m := manage(t, o)
			team, err := m.CreateTeam(limited(t), teams.TeamConfig{Name: "port", Checks: c.checks,
				Members: []teams.MemberConfig{{Name: "ann", Agent: teams.External}},
				Tasks:   []teams.TaskConfig{{Subject: "make"}}})
			ok(t, err)
			_, err = team.Tasks().Complete(limited(t), teams.Claim{ID: "1"}, "made")
			ok(t, err)
			_, err = team.RequestShutdown(limited(t), teams.ShutdownRequest{Member: "ann"})
			ok(t, err)
			_, err = team.AwaitEnd(limited(t), "ann")
			ok(t, err)
			for _, file := range []string{"made", "other"} {
				ok(t, os.WriteFile(filepath.Join(o.Dir, file), []byte("by the team\n"), 0o600))
			}
			head := git("rev-parse", "HEAD")
			if name == "with what a check changes" {
				_, err := team.TryChecks(limited(t), teams.ConsolidateOptions{})
				want(t, err, teams.ErrNotReady)
				passed, err := team.TryChecks(limited(t), teams.ConsolidateOptions{WithCheckChanges: true})
				if ok(t, err); !slices.Equal(passed, []string{"stamp"}) {
					t.Errorf("%v passed", passed)
				}
			}
			record, err := team.Consolidate(limited(t), c.options)
			if c.code != "" {
				want(t, err, c.code)
				if !strings.Contains(err.Error(), c.names) {
					t.Errorf("the error is %v", err)
				}
				equal(t, "HEAD", git("rev-parse", "HEAD"), head)
				return
			}
			ok(t, err)
			equal(t, "commit", git("rev-parse", "HEAD") == head, c.files == "")
			equal(t, "recorded", record.Commit == "", c.files == "")
			if c.files != "" {
				files := strings.Fields(git("show", "--name-only", "--format=", "HEAD"))
				equal(t, "files", strings.Join(files, " "), c.files)
			}
			info, err := team.Info(limited(t))
			ok(t, err)
			equal(t, "status", info.Status, teams.TeamStatusComplete)
		})
	}
}

// TestNamesOfProjects: the managers of two projects may have teams of one name. A manager outside
// both is told which teams the name stands for, and opens, views and removes one by its id.
func TestNamesOfProjects(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	o := folders(t)
	var made []teams.Candidate
	for range 2 {
		in := o
		in.Dir = t.TempDir()
		m := manage(t, in)
		team := create(t, m, "release")
		made = append(made, teams.Candidate{ID: team.ID(), Dir: in.Dir})
		ok(t, m.Close())
	}
	for _, one := range made {
		in := o
		in.Dir = one.Dir
		ok(t, manage(t, in).View(limited(t), "release", func(v *teams.View) error {
			equal(t, "team", v.ID(), one.ID)
			return nil
		}))
	}
	o.Dir = t.TempDir()
	outside := manage(t, o)
	_, err := outside.OpenTeam(limited(t), "release")
	want(t, err, teams.ErrInvalid)
	ambiguous, is := errors.AsType[*teams.AmbiguousError](err)
	if !is || ambiguous.Name != "release" || !slices.Equal(ambiguous.Teams, made) ||
		!strings.Contains(err.Error(), made[1].ID+" in "+made[1].Dir) {
		t.Fatalf("the error is %v", err)
	}
	_, err = outside.CreateTeam(limited(t), teams.TeamConfig{Name: "release", Dir: made[0].Dir})
	want(t, err, teams.ErrNameTaken)
	_, err = outside.RemoveTeam(limited(t), made[1].ID, teams.RemoveOptions{})
	ok(t, err)
	_, err = outside.RemoveTeam(limited(t), "release", teams.RemoveOptions{Force: true})
	want(t, err, teams.ErrNotFound)
	team, err := outside.OpenTeam(limited(t), "release") // the only one that is left
	ok(t, err)
	equal(t, "team", team.ID(), made[0].ID)
}
