package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

// TestPatchOfAFailedTask: only the work of completed tasks is recorded, and the refusal says where
// the rest is.
func TestPatchOfAFailedTask(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.create(&team.SpawnMember{Name: "ann", Agent: team.Shell}, &team.CreateTask{Name: "lexer", Subject: "lexer"})
	of := l.open()
	l.do(of, team.Host("host-1"), &team.AttachMember{Member: "ann"})
	l.do(of, team.Host("host-1"), &team.ReportStarted{Member: "ann", Session: "ann"})
	l.do(of, "ann", &team.ClaimTask{Task: "1"})
	l.do(of, "ann", &team.FailTask{Task: "1", Fence: 1, Reason: "exit status 1"})
	_, err := of.Patch(within(t), "lexer")
	if want := "Only the work of completed tasks is recorded. Uncommitted changes of this one may be in " +
		l.project + "."; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v does not say %q", err, want)
	}
}

// TestChanges: what is changed for a task is shown as it is now in its owner's worktree, with new
// files and what was committed since the task began, and without secrets. Without a worktree it is
// what was saved.
func TestChanges(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newLab(t)
	l.create(&team.SpawnMember{Name: "ann", Agent: team.Shell, Isolation: team.Worktree},
		&team.SpawnMember{Name: "bob", Agent: team.Shell}, &team.CreateTask{Name: "lexer", Subject: "lexer"},
		&team.CreateTask{Name: "docs", Subject: "docs"})
	of := l.open()
	for i, name := range []string{"ann", "bob"} {
		l.do(of, team.Host("host-1"), &team.AttachMember{Member: name})
		l.do(of, team.Host("host-1"), &team.ReportStarted{Member: name, Session: name})
		l.do(of, name, &team.ClaimTask{Task: []string{"1", "2"}[i]})
	}
	if _, err := of.Changes(within(t), "lexer"); err == nil || !strings.Contains(err.Error(), "no work on task lexer") {
		t.Errorf("without a worktree: %v", err)
	}
	work := filepath.Join(of.Dir, "worktrees", "ann")
	l.git("worktree", "add", "-q", "-b", team.BranchOf("demo", "ann"), work)
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(work, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("new.go", "package lexer\n")
	write("env", "GITHUB_TOKEN=ghp_"+strings.Repeat("a1B2", 9)+"\n")
	c, err := of.Changes(within(t), "lexer")
	if err != nil {
		t.Fatal(err)
	}
	if c.Dir != work || c.Member != "ann" || !strings.Contains(c.Patch, "+package lexer") {
		t.Errorf("the changes are %+v", c)
	}
	if strings.Contains(c.Patch, "ghp_") {
		t.Errorf("a secret is shown:\n%s", c.Patch)
	}
	write("new.go", "package lexer // more\n")
	if c, err = of.Changes(within(t), "#1"); err != nil || !strings.Contains(c.Patch, "+package lexer // more") {
		t.Errorf("later the changes are %+v, %v", c, err)
	}
	if patch, err := of.Patch(within(t), "lexer"); err != nil || !strings.Contains(string(patch),
		"+package lexer // more") {
		t.Errorf("the patch of the command line is %s, %v", patch, err)
	}
	if _, err := of.Changes(within(t), "docs"); err == nil || !strings.Contains(err.Error(), "bob works on it in") {
		t.Errorf("of a member in the shared directory: %v", err)
	}
	l.do(of, team.Host("host-1"), &team.SaveWork{Task: "2", Saved: team.Saved{Member: "bob",
		Diff: "diff --git a/README b/README\n--- a/README\n+++ b/README\n@@ -1 +1 @@\n-a\n+saved\n", At: 1}})
	if c, err = of.Changes(within(t), "docs"); err != nil || c.Dir != "" || !strings.Contains(c.Patch, "+saved") {
		t.Errorf("the saved changes are %+v, %v", c, err)
	}
}
