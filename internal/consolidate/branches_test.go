package consolidate

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/coord"
	"cadre/internal/team"
)

// A check that fails sees what members did in worktrees of their own, and leaves nothing of it but on their branches: not in HEAD, the index or the work tree.
func TestFailedCheckOfBranches(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.write("c.txt", "one\n")
	l.git("add", "c.txt")
	l.git("commit", "-qm", "second")
	l.write("b.txt", "the person's\n")
	l.found(team.Check{Name: "sees", Command: `test -f deep/hers.txt && ! test -e c.txt && test -n "$(GIT_INDEX_FILE=$CADRE_INDEX git ls-files deep/hers.txt)"`},
		team.Check{Name: "bad", Command: "echo out > out; test -f pass"})
	l.isolate("eve", "hers.txt")
	l.hers("eve", "deep/hers.txt", "hers\n")
	l.hers("eve", "c.txt", "")
	l.write("pass.not", "the team's\n")
	before := l.scene()
	err := l.refused("the check bad failed", "nothing was committed, and the team goes on", "the work of eve stays on the branch cadre/demo@eve")
	if failed := (*FailedCheck)(nil); !errors.As(err, &failed) || failed.Name != "bad" {
		t.Fatal(err)
	}
	l.remove("out")
	if after := l.scene(); after != before {
		t.Errorf("it was\n%s\nand is\n%s", before, after)
	}
	if got := l.git("show", "cadre/demo@eve:deep/hers.txt"); got != "hers" {
		t.Errorf("on her branch is %q", got)
	}
	var mail []team.Message
	l.desk.View(func(s *team.State) { mail = s.Inbox("lead") })
	if len(mail) == 0 || !strings.Contains(mail[len(mail)-1].Body, "The work of eve stays on the branch cadre/demo@eve") {
		t.Errorf("the lead has %+v", mail)
	}
	l.tidy()

	l.write("pass", "")
	r := l.run()
	l.want(l.committed(), "D:c.txt", "A:deep/hers.txt", "A:hers.txt", "A:pass", "A:pass.not")
	if parents := l.git("rev-parse", "HEAD^@"); !strings.HasPrefix(parents, r.Parent+"\n") || strings.Count(parents, "\n") != 1 || l.git("log", "-1", "--format=%s", "HEAD^2") != "Work of eve in team demo" {
		t.Errorf("the parents are\n%s", parents)
	}
	if message := l.git("log", "-1", "--format=%B"); !strings.Contains(message, "Members: lead (external), ann (external), eve (claude)\n") || !strings.Contains(message, "Cadre-Consolidation: 2") {
		t.Errorf("the message is\n%s", message)
	}
	if branches := l.git("branch", "--list", "cadre/demo@*"); branches != "" {
		t.Errorf("left: %s", branches)
	}
}

// Where all of the work is on branches there is one commit of it all the same, and the checks find an index of it.
func TestBranchesAlone(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.found(team.Check{Name: "index", Command: `GIT_INDEX_FILE="$CADRE_INDEX" git diff --cached --name-only HEAD > .git/saw; test -s "$CADRE_INDEX"`})
	l.isolate("eve", "hers.txt")
	l.isolate("dan", "his.txt")
	if r := l.run(); r.Files != 2 || r.Commit != l.git("rev-parse", "HEAD") || len(strings.Fields(l.git("rev-parse", "HEAD^@"))) != 3 {
		t.Errorf("%+v", r)
	}
	l.want(l.committed(), "A:hers.txt", "A:his.txt")
	if saw := l.git("cat-file", "-p", l.git("hash-object", "-w", ".git/saw")); saw != "hers.txt\nhis.txt" {
		t.Errorf("the check saw\n%s", saw)
	}
	if status := l.git("status", "--porcelain"); status != "" {
		t.Errorf("the status is\n%s", status)
	}
	l.tidy()
}

// CADRE_INDEX is an index also where nothing is to be committed.
func TestIndexOfNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.found(team.Check{Name: "index", Command: `test -z "$(GIT_INDEX_FILE="$CADRE_INDEX" git diff --cached --name-only HEAD)" && test -s "$CADRE_INDEX"`})
	if r := l.run(); r.Commit != "" {
		t.Errorf("%+v", r)
	}
}

// What others changed in the work tree is merged with what a branch brings, and what is in its way, somebody's or the same, is not written over: that is the lead's to solve.
func TestInTheWay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after func(l *lab)
		says          string
	}{
		"the person's": {before: func(l *lab) { l.write("hers.txt", "the person's\n") }, says: "not committed, and not the team's: hers.txt"},
		"the same":     {before: func(l *lab) { l.write("hers.txt", "eve's\n") }, says: "not committed, and not the team's: hers.txt"},
		"ignored": {before: func(l *lab) { l.write(".git/info/exclude", "hers.txt\n") }, after: func(l *lab) {
			l.git("-C", filepath.Join(l.folder, "worktrees", "eve"), "add", "--force", "hers.txt")
			l.write("hers.txt", "built\n")
		}, says: "not committed, and not the team's: hers.txt"},
		"an ignored folder": {before: func(l *lab) { l.write(".git/info/exclude", "hers.txt/\n") }, after: func(l *lab) { l.write("hers.txt/x", "built\n") }, says: "not committed, and not the team's: hers.txt"},
		"a link to elsewhere": {before: func(l *lab) {
			if err := os.Symlink(l.folder, filepath.Join(l.project, "deep")); err != nil {
				l.Fatal(err)
			}
		}, after: func(l *lab) { l.hers("eve", "deep/file", "hers\n") }, says: "deep"},
		"the team's, in conflict": {after: func(l *lab) { l.write("hers.txt", "the team's\n") }, says: "conflicts in hers.txt"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			if c.before != nil {
				c.before(l)
			}
			l.found()
			l.isolate("eve", "hers.txt")
			if c.after != nil {
				c.after(l)
			}
			before := l.scene()
			l.refused("task 2 (Merge the branch cadre/demo@eve) is open")
			if after := l.scene(); after != before {
				t.Errorf("it was\n%s\nand is\n%s", before, after)
			}
			l.desk.View(func(s *team.State) {
				if task, _ := s.Task("2"); !strings.Contains(task.Description, c.says) {
					t.Errorf("the task is %q", task.Description)
				}
			})
			l.tidy()
		})
	}

	l := newLab(t)
	l.write("both.txt", "1\n2\n3\n4\n5\n6\n7\n")
	l.write("dir/was", "a folder\n")
	l.git("add", "-A")
	l.git("commit", "-qm", "second")
	l.found(team.Check{Name: "both", Command: `test "$(echo $(cat both.txt))" = "one 2 3 4 5 6 seven"`})
	l.isolate("eve", "hers.txt")
	l.hers("eve", "dir/was", "")
	l.hers("eve", "dir", "a file now\n")
	l.hers("eve", "both.txt", "1\n2\n3\n4\n5\n6\nseven\n")
	l.write("both.txt", "one\n2\n3\n4\n5\n6\n7\n")
	l.run()
	l.want(l.committed(), "M:both.txt", "A:dir", "D:dir/was", "A:hers.txt")
	if status := l.git("status", "--porcelain"); status != "" {
		t.Errorf("the status is\n%s", status)
	}
}

// What somebody changed, or committed, of what had come in from a branch stays when that is taken out again.
func TestChangedWhileItWasThere(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		check  string
		status string
	}{
		"changed":   {"echo more >> hers.txt; exit 1", "?? hers.txt"},
		"committed": {"git add hers.txt && git -c core.hooksPath=/dev/null commit -qm mine; exit 1", ""},
		"removed":   {"rm hers.txt; exit 1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.found(team.Check{Name: "bad", Command: c.check})
			l.isolate("eve", "hers.txt")
			l.hers("eve", "other.txt", "hers\n")
			l.refused("the check bad failed")
			if status := l.git("status", "--porcelain"); status != c.status {
				t.Errorf("the status is\n%s", status)
			}
			l.tidy()
		})
	}
}

// With --no-commit nothing is merged: the branches are the lead's.
func TestBranchesWithoutACommit(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.found()
	l.isolate("eve", "hers.txt")
	before := l.scene()
	o := l.options()
	o.NoCommit = true
	if _, err := Run(l.ctx, o); err == nil || !strings.Contains(err.Error(), "task 2 (Merge the branch cadre/demo@eve) is open") {
		t.Fatal(err)
	}
	if after := l.scene(); after != before {
		t.Errorf("it was\n%s\nand is\n%s", before, after)
	}
	l.git("merge", "-q", "cadre/demo@eve")
	l.do("lead", &team.CompleteTask{Task: "2"})
	if r, err := Run(l.ctx, o); err != nil || r.Commit != "" {
		t.Errorf("%+v, %v", r, err)
	}
}

// What members did in worktrees of their own comes home first; what conflicts is a task for the lead, and nothing is committed before that is done.
func TestWorktrees(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.found(team.Check{Name: "build", Command: "test -f hers.txt"})
	l.isolate("eve", "hers.txt")
	l.write("new.txt", "the team's\n")
	l.isolate("dan", "a.txt") // conflicts
	l.write("a.txt", "somebody else's\n")
	l.refused("Merge the branch cadre/demo@dan", "is open")
	if s := l.desk.Team(); s.Status != team.TeamActive || coord.Worktree(l.folder, "eve") || coord.Worktree(l.folder, "dan") {
		t.Errorf("%+v", s)
	}
	if got := l.git("show", "cadre/demo@dan:a.txt"); got != "dan's" {
		t.Errorf("on his branch a.txt is %q", got)
	}
	for _, name := range []string{"eve", "dan"} {
		l.desk.View(func(s *team.State) {
			if m, _ := s.Member(name); m.Status != team.Stopped {
				t.Errorf("%s is %s", name, m.Status)
			}
		})
	}
	l.do("lead", &team.CompleteTask{Task: "2", Result: "merged by hand"})
	l.run()
	l.want(l.committed(), "M:a.txt", "A:hers.txt", "A:new.txt")
	if branches := l.git("branch", "--format=%(refname:short)"); branches != "cadre/demo\ncadre/demo@dan\nmain" {
		t.Errorf("the branches are\n%s", branches)
	}
}

// What a member that failed has in its worktree is half a work: it is left on its branch, and a task says so.
func TestHalfAWork(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.found()
	l.isolate("eve", "half.txt")
	l.do(team.User, &team.ReportFailed{Member: "eve", Reason: "it died"})
	l.refused("Merge the branch cadre/demo@eve", "is open")
	if got := l.git("show", "cadre/demo@eve:half.txt"); got != "eve's" || l.commits() != 1 || coord.Worktree(l.folder, "eve") {
		t.Errorf("on her branch is %q", got)
	}
}
