package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/engine"
	"cadre/internal/engine/transfer"
	"cadre/internal/git/checkpoint"
	"cadre/internal/hook"
	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/team"
	"cadre/internal/testkit/hosttest"
	"cadre/internal/testkit/soak"
)

var ann = &team.SpawnMember{Name: "ann", Agent: team.Shell}

// TestAHost: a host of a program does what a host of the command line does. It ends the sessions of
// dead hosts, shows the team while it runs, and makes checkpoints.
func TestAHost(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newLab(t)
	l.create(ann, &team.CreateTask{Subject: "say hello", Run: "echo hello >said"})
	of := l.open()
	dead := filepath.Join(of.Hosts(), "dead")
	if err := os.MkdirAll(dead, 0o700); err != nil {
		t.Fatal(err)
	}
	h := l.host(of, engine.HostOptions{})
	if _, err := os.Stat(dead); err == nil {
		t.Error("the folder of a dead host is still there")
	}
	until(t, of, completed("1"))
	eventually(t, "Claude Code's folder shows that the task is done, while the host runs", func() bool {
		var task struct{ Status string }
		text, _ := os.ReadFile(filepath.Join(l.Home.Claude, "tasks", "demo", "1.json"))
		return json.Unmarshal(text, &task) == nil && task.Status == "completed"
	})
	if err := h.End(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if left := names(of.Hosts()); len(left) > 0 {
		t.Errorf("it left %v", left)
	}
	if state := l.git("show", "cadre/demo:.claude/teams/demo/state.json"); !strings.Contains(state, `"completed_count": 1`) {
		t.Errorf("the last checkpoint has\n%s", state)
	}
	commits := strings.Fields(l.git("rev-list", "--parents", "-n", "1", "cadre/demo"))
	if said := l.git("show", commits[len(commits)-1]+":said"); said != "hello" {
		t.Errorf("the work in it is %q", said)
	}
	of.View(func(s *team.State) {
		if m, _ := s.Member("ann"); m.Host != "" {
			t.Errorf("ann is still on %s", m.Host)
		}
	})
}

// TestVariablesOfACheck: the check of a task knows the task, its item, the tasks before it and the
// values that its command has, once and in each of its rounds.
func TestVariablesOfACheck(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	const say = `echo "$CADRE_TASK_NAME $CADRE_ITEM $CADRE_RESULT_FIND $CADRE_FAILED_TASKS $CADRE_EVENT_MEMBER" >>said`
	for name, c := range map[string]struct {
		check team.TaskCheck
		runs  int
	}{
		"check": {team.TaskCheck{Run: say}, 1},
		"until": {team.TaskCheck{Run: say + `; test $(wc -l <said) -ge 2`, Rounds: 3}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.create(ann, &team.CreateTask{Name: "find", Subject: "find", Run: "echo found"},
				&team.CreateTask{Name: "lint", Subject: "lint", Run: "false"},
				&team.CreateTask{Name: "gate", Subject: "gate", Run: "true", BlockedBy: []string{"lint"}, When: team.Always},
				&team.CreateTask{Name: "each", Subject: "each", Run: "true", BlockedBy: []string{"find", "gate"},
					ForEach: &team.ForEach{Items: []json.RawMessage{team.TextItem("a b")}}, Check: &c.check})
			of := l.open()
			defer l.host(of, engine.HostOptions{}).End()
			until(t, of, completed("4"))
			said, err := os.ReadFile(filepath.Join(l.project, "said"))
			if want := strings.Repeat("each-1 a b found lint ann\n", c.runs); string(said) != want || err != nil {
				t.Errorf("the check saw %q, want %q (%v)", said, want, err)
			}
		})
	}
}

// TestHooksOfAHost: a running host starts the hooks of settings files, which its register marks as
// the user's. The functions of a program are called after them.
func TestHooksOfAHost(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newLab(t)
	settings := filepath.Join(l.Home.Claude, "settings.json")
	if err := errors.Join(os.MkdirAll(l.Home.Claude, 0o700), os.WriteFile(settings, []byte(`{"hooks": {"TaskCreated":
		[{"hooks": [{"type": "command", "command": "echo asked >>`+filepath.Join(l.project, "asked")+`"}]}]}}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	var ran []int
	l.Hooks = func(settings replica.Hooks) replica.Hooks {
		return func(ctx context.Context, of team.Team, e hook.Event) (hook.Verdict, error) {
			v, err := settings(ctx, of, e)
			ran = append(ran, v.Ran)
			return v, err
		}
	}
	l.create()
	of := l.open()
	l.do(of, "lead", &team.CreateTask{Subject: "before there is a host"})
	h := l.host(of, engine.HostOptions{})
	l.do(of, "lead", &team.CreateTask{Subject: "while there is one"})
	h.End()
	l.do(of, "lead", &team.CreateTask{Subject: "after it"})
	asked, _ := os.ReadFile(filepath.Join(l.project, "asked"))
	if string(asked) != "asked\nasked\nasked\n" || len(ran) != 3 || ran[0]*ran[1]*ran[2] != 1 {
		t.Errorf("the hook was asked %q, and the function saw %v", asked, ran)
	}
	l.NoSettingsHooks = true
	l.do(l.open(), "lead", &team.CreateTask{Subject: "without those of files"})
	if len(ran) != 4 || ran[3] != 0 {
		t.Errorf("without those of files it saw %v", ran)
	}
}

// TestRefusedHosts: a team that may not run is refused before anything starts, and the attempt
// leaves nothing behind.
func TestRefusedHosts(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	for name, c := range map[string]struct {
		before func(l *lab)
		is     func(error) bool
	}{
		"this machine released it": {func(l *lab) {
			l.do(l.open(), team.User, &team.ReleaseTeam{Machine: "desk"})
		}, func(err error) bool { return team.CodeOf(err) == team.Denied && hinted(err, team.ActTakeBack) }},
		"its directory is gone": {func(l *lab) {
			if err := os.RemoveAll(l.project); err != nil {
				l.t.Fatal(err)
			}
		}, func(err error) bool { return team.CodeOf(err) == team.Invalid && hinted(err, team.ActMove) }},
		// The records that the host here made after its last checkpoint make a second history.
		"it continued elsewhere": {(*lab).continuesElsewhere, func(err error) bool {
			return errors.Is(err, checkpoint.ErrForked)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.create(ann, &team.CreateTask{Subject: "never", Run: "echo never >ran"})
			c.before(l)
			of := l.open()
			h, err := of.Host(within(t), engine.HostOptions{Agent: hosttest.Shells})
			if err == nil {
				h.End()
			}
			if !c.is(err) {
				t.Errorf("it is %v", err)
			}
			if left := names(of.Hosts()); len(left) > 0 {
				t.Errorf("it left %v", left)
			}
			if _, err := os.Stat(filepath.Join(l.project, "ran")); err == nil {
				t.Error("a session ran")
			}
		})
	}
}

// continuesElsewhere continues the team in another home, from its checkpoints, and makes a
// checkpoint there.
func (l *lab) continuesElsewhere() {
	of := l.open()
	l.host(of, engine.HostOptions{}).End()
	other := *l
	other.Engine = &engine.Engine{Home: layout.Home{Root: filepath.Join(l.t.TempDir(), "other"), Claude: l.Home.Claude}}
	if _, err := transfer.Adopt(within(l.t), transfer.Options{Home: other.Home, Team: "demo", Dir: l.project,
		Named: true}); err != nil {
		l.t.Fatal(err)
	}
	there := other.open()
	other.do(there, team.User, &team.CreateTask{Subject: "only there"})
	other.host(there, engine.HostOptions{}).End()
}

// TestAHostOfAnEndedTeam: a team that has ended has no sessions, so it can be opened and hosted
// anywhere.
func TestAHostOfAnEndedTeam(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.create()
	l.do(l.open(), "lead", &team.SetStatus{Status: team.TeamComplete})
	if err := os.RemoveAll(l.project); err != nil {
		t.Fatal(err)
	}
	h := l.host(l.open(), engine.HostOptions{})
	if <-h.Done(); h.Err() != nil {
		t.Errorf("it ended with %v", h.Err())
	}
}

// TestUntilIdle: with UntilIdle a host ends by itself when no member has a session.
func TestUntilIdle(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newLab(t)
	l.create(ann)
	of := l.open()
	h := l.host(of, engine.HostOptions{UntilIdle: true})
	until(t, of, func(s *team.State) bool { m, _ := s.Member("ann"); return m.Status == team.Idle })
	l.do(of, "lead", &team.RequestShutdown{Member: "ann"})
	if <-h.Done(); h.Err() != nil {
		t.Errorf("it ended with %v", h.Err())
	}
}

// TestClaim: one process at a time has the right to lead, on disk and in memory.
func TestClaim(t *testing.T) {
	t.Parallel()
	for name, memory := range map[string]*engine.Memory{"disk": nil, "memory": new(engine.Memory)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.Memory = memory
			l.create()
			one, two := l.open(), l.open()
			lease, err := one.Claim(within(t))
			if err != nil {
				t.Fatal(err)
			}
			l.do(one, "lead", &team.CreateTask{Subject: "of the first lead"})
			if _, err := two.Claim(within(t)); team.CodeOf(err) != team.NotReady || !hinted(err, team.ActFollowLog) {
				t.Errorf("the second claim: %v", err)
			}
			lease.Release()
			lease, err = two.Claim(within(t))
			if err != nil {
				t.Fatal(err)
			}
			defer lease.Release()
			if one, two := one.Seq(), two.Seq(); one != two {
				t.Errorf("who leads now knows of %d records, and who led of %d", two, one)
			}
		})
	}
}

// TestMemory: a team in memory has a folder while it is open, and no checkpoints and no
// projections.
func TestMemory(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newLab(t)
	l.Memory = new(engine.Memory)
	l.create(ann, &team.CreateTask{Subject: "say hello", Run: "echo hello"})
	one, err := l.Open(within(t), "demo")
	if err != nil {
		t.Fatal(err)
	}
	two := l.open()
	h := l.host(one, engine.HostOptions{})
	until(t, two, completed("1"))
	if err := errors.Join(h.End(), one.Close()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(two.Dir); err != nil {
		t.Errorf("the folder went with the first: %v", err)
	}
	if refs := l.git("for-each-ref", "--format=%(refname)", "refs/heads/cadre"); refs != "" {
		t.Errorf("a team in memory has made checkpoints: %s", refs)
	}
	if shown := names(filepath.Join(l.Home.Claude, "teams")); len(shown) > 0 {
		t.Errorf("a team in memory is shown: %v", shown)
	}
	l.do(two, team.User, &team.CleanUp{Force: true})
	if err := errors.Join(two.Close(), two.Remove(within(t))); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Dir(two.Dir)); err == nil {
		t.Errorf("%s is still there", filepath.Dir(two.Dir))
	}
	if _, err := l.Open(within(t), "demo"); team.CodeOf(err) != team.NotFound {
		t.Errorf("once it is removed: %v", err)
	}
}
