package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"cadre/internal/agent/agenttest"
)

// TestWorktrees checks two teammates in worktrees and on branches of their own, with an agent as
// lead. Nothing that is checked out changes before the checks pass, and here they fail.
func TestWorktrees(t *testing.T) {
	t.Parallel()
	s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
		me := who(r)
		id, calls := task(r)
		switch {
		case me != "lead" && id != "" && len(calls) == 0: // ann commits her work, bob does not
			command := "pwd > where-$ME; git branch --show-current >> where-$ME; echo $ME > shared"
			if me == "ann" {
				command += "; git add -A; git commit -qm 'work of ann'"
			}
			return agenttest.Use("Bash", map[string]any{"command": "ME=" + me + "; " + command, "description": "work"})
		case me != "lead":
			return complete(r)
		case id != "" && called(calls, "TaskUpdate") == 0:
			return use(r, "TaskUpdate", map[string]any{"taskId": id, "status": "completed",
				"result": "left for a person"})
		case reports(r):
			return agenttest.Say("One work is in, one is on its branch.")
		}
		names := []string{"ann", "bob"}
		switch n, m := called(all(r), "SpawnTeammate"), called(all(r), "TaskCreate"); {
		case n < 2:
			return use(r, "SpawnTeammate", map[string]any{"name": names[n], "agent": "claude", "prompt": "You work.",
				"isolation": "worktree"})
		case m < 2:
			return use(r, "TaskCreate", map[string]any{"subject": "Write", "description": "it", "owner": names[m]})
		}
		return agenttest.Say("I wait.")
	}, "claude")
	before := s.gitSays("rev-parse", "HEAD") + s.gitSays("status", "--porcelain", "--", ":!trees-report.md")
	r := s.run("write it twice", "--agent", "claude", "--name", "trees", "--permission-mode", "bypassPermissions",
		"--check", "false")
	s.ended(r, 0)
	if !strings.Contains(r.out, "not committed yet: work on cadre/trees@ann, cadre/trees@bob; to check and commit "+
		"it: cadre consolidate trees") {
		t.Errorf("it says\n%s", r.out)
	}
	merged := filepath.Join(s.home, "teams/trees/merged")
	asked := "is merged for you to look at in " + merged
	if !slices.ContainsFunc(s.of("lead"), func(r *agenttest.Request) bool { return r.Has(asked) }) {
		t.Errorf("the lead was not told where to review:\n%s", s.model.Story())
	}
	if text, err := os.ReadFile(filepath.Join(merged, "shared")); string(text) != "ann\n" {
		t.Errorf("the review has %q, %v", text, err)
	}
	merge := read[struct{ Subject, Description, Status string }](s.world, "task", "show", "trees", "3")
	if merge.Subject != "Merge the branch cadre/trees@bob" || !strings.Contains(merge.Description,
		"conflicts with the branch cadre/trees@ann in shared") || merge.Status != "completed" {
		t.Errorf("the task of the lead is %+v", merge)
	}
	// Nothing was merged.
	if r := s.cadre("consolidate", "trees"); r.code != 1 ||
		!strings.Contains(r.err, "task 4 (Merge the branch cadre/trees@bob) is open") {
		t.Errorf("got %+v, want status 1 because task 4 is open", r)
	}
	s.must("task", "rm", "trees", "4")
	if r := s.cadre("consolidate", "trees"); r.code != 1 || !strings.Contains(r.err, "the check false failed") ||
		!strings.Contains(r.err, "the branch cadre/trees@bob is left out") {
		t.Errorf("got %+v, want status 1 because the check failed, with the branch left out", r)
	}
	if after := s.gitSays("rev-parse", "HEAD") + s.gitSays("status", "--porcelain", "--",
		":!trees-report.md"); after != before {
		t.Errorf("HEAD and status changed from\n%s\nto\n%s", before, after)
	}
	for _, name := range []string{"ann", "bob"} {
		where := filepath.Join(s.home, "teams/trees/worktrees", name) + "\ncadre/trees@" + name
		if got := s.gitSays("show", "cadre/trees@"+name+":shared",
			"cadre/trees@"+name+":where-"+name); got != name+"\n"+where {
			t.Errorf("the branch of %s has %q", name, got)
		}
	}
	if got := s.gitSays("log", "--all", "--grep=work of ann", "--format=%s"); got != "work of ann" {
		t.Errorf("ann's own commit is %q", got)
	}
	s.must("abort", "trees", "--yes")
	if trees := s.gitSays("worktree", "list", "--porcelain"); strings.Count(trees, "worktree ") != 1 {
		t.Errorf("worktrees are left:\n%s", trees)
	}
	if !strings.Contains(s.report(r), "one is on its branch") {
		t.Errorf("the report is\n%s", s.report(r))
	}
}

// TestNoWorktree checks that no member can have a worktree without a repository. The lead gets
// git's reason, and continues with other teammates.
func TestNoWorktree(t *testing.T) {
	t.Parallel()
	s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
		switch {
		case who(r) != "lead":
			return complete(r)
		case reports(r):
			return agenttest.Say("Done without a worktree.")
		case called(all(r), "SpawnTeammate") == 0:
			return use(r, "SpawnTeammate", map[string]any{"name": "ann", "agent": "claude", "prompt": "You work.",
				"isolation": "worktree"})
		case called(all(r), "TaskCreate") == 0:
			return use(r, "TaskCreate", map[string]any{"subject": "Write", "description": "it"})
		case r.Has("not a git repository") && called(all(r), "SpawnTeammate") == 1:
			return use(r, "SpawnTeammate", map[string]any{"name": "bob", "agent": "claude", "prompt": "You work."})
		}
		return agenttest.Say("I wait.")
	}, "claude")
	if err := os.RemoveAll(filepath.Join(s.dir, ".git")); err != nil {
		t.Fatal(err)
	}
	r := s.run("write it", "--agent", "claude", "--name", "bare", "--permission-mode", "bypassPermissions")
	s.ended(r, 0)
	told := "No teammate was added: ann cannot have a worktree of its own: " + s.dir +
		" is not in a git repository: git rev-parse: fatal: not a git repository"
	if !slices.ContainsFunc(s.of("lead"), func(r *agenttest.Request) bool { return r.Has(told) }) {
		t.Errorf("the lead was not told why:\n%s", s.model.Story())
	}
	if s.of("ann") != nil {
		t.Error("ann worked without her worktree")
	}
}

// TestWorktreeOfAFailedTeammate checks that the work of a teammate that fails is on its branch, and
// not in the project. If a person leads, the run says what is left to do. In the next run another
// member continues.
func TestWorktreeOfAFailedTeammate(t *testing.T) {
	t.Parallel()
	var mended atomic.Bool
	s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
		if who(r) == "bob" || mended.Load() {
			return complete(r)
		}
		if id, calls := task(r); id != "" && len(calls) == 0 {
			return agenttest.Use("Bash", map[string]any{"command": "echo half > half", "description": "begin"})
		}
		return agenttest.Fail(401, "the key was taken back")
	}, "claude")
	s.env = append(s.env, "CLAUDE_CODE_MAX_RETRIES=1")
	file := s.file("name: failed\npermissions: {mode: bypassPermissions}\nmembers: [{name: ann, agent: claude, role: " +
		"careful, isolation: worktree}, {name: bob, agent: claude}]\n" +
		"tasks: [{id: one, role: careful}, {id: two, owner: bob}]\n")
	r := s.run(file)
	s.ended(r, 1)
	for _, part := range []string{"ann has trouble: API error: 401", "ann FAILED", "claude auth login",
		"not finished: 1 task could not be done; task 3 waits for you: Merge the branch cadre/failed@ann; ",
		"To look at task 3: cadre task show failed 3"} {
		if !strings.Contains(r.out+r.err, part) {
			t.Errorf("the run does not print %q:\n%s%s", part, r.out, r.err)
		}
	}
	if got := s.gitSays("show", "cadre/failed@ann:half"); got != "half" || s.text("half") != "" {
		t.Errorf("the branch has %q, the project %q", got, s.text("half"))
	}
	s.must("task", "done", "failed", "3", "--result", "dropped")
	mended.Store(true)
	r = s.run(file)
	s.ended(r, 0)
	if done := read[struct{ CompletedBy string }](s.world, "task", "show", "failed",
		"1"); done.CompletedBy != "ann-again-2" {
		t.Errorf("task 1 was completed by %q", done.CompletedBy)
	}
}

// TestWorktreeIsKept checks that the work in a worktree is kept however its teammate ends. A forced
// removal of the team leaves the branch, with the uncommitted changes.
func TestWorktreeIsKept(t *testing.T) {
	t.Parallel()
	s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
		if called(all(r), "Bash") == 0 {
			return shells["claude"]("echo gold > precious")
		}
		return agenttest.Say("It is written.")
	}, "claude")
	s.must("create", "kept", "--permission-mode", "bypassPermissions")
	for _, name := range []string{"ann", "bob", "eve"} {
		s.must("spawn", "kept", name, "--agent", "claude", "--isolation", "worktree", "--prompt", "write it")
	}
	for _, name := range []string{"ann", "bob", "eve"} {
		s.waitFor(name+" wrote it", func() bool { return has(s.home, "teams/kept/worktrees", name, "precious") })
	}
	s.must("shutdown", "kept", "ann", "--deadline", "0s")
	s.must("cleanup", "kept", "--force")
	for _, name := range []string{"ann", "bob", "eve"} {
		if got := s.gitSays("show", "cadre/kept@"+name+":precious"); got != "gold" {
			t.Errorf("what %s wrote is %q", name, got)
		}
	}
	if trees := s.gitSays("worktree", "list", "--porcelain"); strings.Count(trees, "worktree ") != 1 {
		t.Errorf("worktrees are left:\n%s", trees)
	}
	s.waitFor("nothing is left", func() bool { return len(s.processes()) == 0 })
}
