package consolidate

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

// TestTry checks that the checks alone change and record nothing, and that the team can be
// consolidated afterwards.
func TestTry(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := newLab(t)
	l.found(team.Check{Name: "new", Command: "test -f new.txt"})
	l.write("new.txt", "the team's\n")
	before, seq := l.scene(), l.replica.Seq()
	trial, err := Try(l.ctx, l.options())
	if err != nil || len(trial.Checks) != 1 || trial.Checks[0].Name != "new" || len(trial.Branches) > 0 {
		t.Fatalf("%+v, %v", trial, err)
	}
	if after := l.scene(); after != before || l.replica.Seq() != seq {
		t.Errorf("it was\n%s\nand is\n%s\nwith %d records, not %d", before, after, l.replica.Seq(), seq)
	}
	l.tidy()
	l.run()
	l.want(l.committed(), "A:new.txt")
	if _, err := Try(l.ctx, l.options()); team.CodeOf(err) == "" {
		t.Errorf("after the end: %v", err)
	}
}

// TestTryWorktrees checks that the checks see the work of members in worktrees, committed or not,
// together with the team's files. Members and branches stay, and no task is created.
func TestTryWorktrees(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := newLab(t)
	l.found(team.Check{Name: "all", Command: "cat new.txt hers.txt his.txt && ! test -f .git/index.lock"})
	l.write("new.txt", "the team's\n")
	l.isolate("eve", "hers.txt")
	l.isolate("bob", "his.txt")
	l.git("-C", l.folder+"/worktrees/bob", "add", "-A")
	l.git("-C", l.folder+"/worktrees/bob", "commit", "-q", "-m", "his")
	before, refs, seq := l.scene(), l.git("for-each-ref"), l.replica.Seq()
	trial, err := Try(l.ctx, l.options())
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(trial.Branches, " "); !strings.Contains(got, "cadre/demo@eve") ||
		!strings.Contains(got, "cadre/demo@bob") {
		t.Errorf("merged: %s", got)
	}
	if l.scene() != before || l.git("for-each-ref") != refs || l.replica.Seq() != seq {
		t.Errorf("it was\n%s\nand is\n%s", before, l.scene())
	}
	l.tidy()
	l.run()
	l.want(l.committed(), "A:hers.txt", "A:his.txt", "A:new.txt")
}

// TestTryChecksThatWrite checks that files that checks write do not stay, and that a trial refuses
// what a consolidation refuses.
func TestTryChecksThatWrite(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := newLab(t)
	l.write("a.txt", "the person's\n")
	l.found(team.Check{Name: "gen", Command: "echo generated > b.txt; echo made > made.txt; rm new.txt"})
	l.write("new.txt", "the team's\n")
	before, seq := l.scene(), l.replica.Seq()
	same := func() {
		t.Helper()
		if after := l.scene(); after != before || l.replica.Seq() != seq {
			t.Errorf("it was\n%s\nand is\n%s\nwith %d records, not %d", before, after, l.replica.Seq(), seq)
		}
		l.tidy()
	}
	_, err := Try(l.ctx, l.options())
	if team.CodeOf(err) != team.NotReady || !strings.Contains(told(err), "the checks changed b.txt, new.txt, or") ||
		!strings.Contains(told(err), "keep_check_changes") {
		t.Errorf("%+v", err)
	}
	same()

	l = newLab(t)
	l.found(team.Check{Name: "gen", Command: "echo generated > b.txt; echo made > made.txt"})
	l.write("new.txt", "the team's\n")
	before, seq = l.scene(), l.replica.Seq()
	o := l.options()
	o.Changes = true
	var ran []string
	o.Checking = func(check string) { ran = append(ran, check) }
	if trial, err := Try(l.ctx, o); err != nil || len(trial.Checks) != 1 || len(ran) != 2 {
		t.Errorf("%+v, %v after %v", trial, err, ran)
	}
	same()

	l = newLab(t)
	l.found(team.Check{Name: "count", Command: "echo again >> b.txt"})
	before, seq = l.scene(), l.replica.Seq()
	o = l.options()
	o.Changes = true
	if _, err := Try(l.ctx, o); err == nil || !strings.Contains(err.Error(), "on every run: b.txt") {
		t.Errorf("%+v", err)
	}
	same()
}

// TestTryArtefacts checks that an untracked file that a check makes is not in a later commit.
func TestTryArtefacts(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := newLab(t)
	l.found(team.Check{Name: "make", Command: "test -e made.txt && exit 1; cat new.txt > made.txt"})
	l.write("new.txt", "the team's\n")
	before := l.scene()
	for range 2 {
		if _, err := Try(l.ctx, l.options()); err != nil {
			t.Fatal(err)
		}
	}
	if after := l.scene(); after != before {
		t.Errorf("it was\n%s\nand is\n%s", before, after)
	}
	l.run()
	l.want(l.committed(), "A:new.txt")
}

// TestTryWithoutCommit checks a trial in a repository without a commit, and one outside any.
func TestTryWithoutCommit(t *testing.T) {
	t.Parallel()
	for _, repository := range []bool{true, false} {
		l := newLab(t)
		if err := os.RemoveAll(filepath.Join(l.project, ".git")); err != nil {
			t.Fatal(err)
		}
		if repository {
			l.git("init", "-q")
		}
		l.found(team.Check{Name: "new", Command: "test -f new.txt"})
		l.write("new.txt", "the team's\n")
		trial, err := Try(l.ctx, l.options())
		if repository && (err == nil || !strings.Contains(err.Error(), "there is no commit yet")) ||
			!repository && (err != nil || len(trial.Checks) != 1) {
			t.Errorf("repository %t: %+v, %v", repository, trial, err)
		}
	}
}

// TestTryRefusals checks that a failed check, a conflict and open work are errors that change
// nothing.
func TestTryRefusals(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newLab(t)
	l.found(team.Check{Name: "no", Command: "echo reason; exit 3"})
	seq := l.replica.Seq()
	_, err := Try(l.ctx, l.options())
	failed, ok := errors.AsType[*FailedCheck](err)
	if !ok || !strings.Contains(failed.Output, "reason") || !strings.Contains(err.Error(), "the team stays as it is; "+
		"it ran in a temporary checkout of what would be committed, which has no ignored files") {
		t.Errorf("%+v", err)
	}
	l.isolate("eve", "a.txt")
	l.write("a.txt", "the team's own\n")
	_, err = Try(l.ctx, l.options())
	if team.CodeOf(err) != team.NotReady || !strings.Contains(err.Error(), "the branch cadre/demo@eve does not merge") {
		t.Errorf("%+v", err)
	}
	if l.replica.Seq() != seq+1 { // eve joined
		t.Errorf("%d records, not %d", l.replica.Seq(), seq+1)
	}
	l.do("lead", &team.CreateTask{Subject: "more"})
	if _, err = Try(l.ctx, l.options()); team.CodeOf(err) != team.NotReady ||
		!strings.Contains(err.Error(), "is open") {
		t.Errorf("%+v", err)
	}
}
