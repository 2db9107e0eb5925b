package consolidate

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"cadre/internal/git"
	"cadre/internal/host"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// TestFailedCheckOfBranches checks that a failing check sees the work of members in worktrees.
// Afterwards this work is only on their branches: not in HEAD, the index or the work tree.
func TestFailedCheckOfBranches(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := newLab(t)
	l.write("c.txt", "one\n")
	l.git("add", "c.txt")
	l.git("commit", "-qm", "second")
	l.write("b.txt", "the person's\n")
	l.found(team.Check{Name: "sees",
		Command: `test -f deep/hers.txt && ! test -e c.txt && test -n "$(GIT_INDEX_FILE=$CADRE_INDEX git ls-files deep/hers.txt)"`},
		team.Check{Name: "bad", Command: "echo out > out; test -f pass"})
	l.isolate("eve", "hers.txt")
	l.hers("eve", "deep/hers.txt", "hers\n")
	l.hers("eve", "c.txt", "")
	l.write("pass.not", "the team's\n")
	before := l.scene()
	err := l.refused("the check bad failed", "nothing was committed, and the team stays active",
		"the work of eve stays on the branch cadre/demo@eve")
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
	l.replica.View(func(s *team.State) { mail = s.Inbox("lead") })
	if len(mail) == 0 || !strings.Contains(mail[len(mail)-1].Body,
		"The work of eve stays on the branch cadre/demo@eve") {
		t.Errorf("the lead has %+v", mail)
	}
	l.tidy()

	l.write("pass", "")
	r := l.run()
	l.want(l.committed(), "D:c.txt", "A:deep/hers.txt", "A:hers.txt", "A:pass", "A:pass.not")
	if parents := l.git("rev-parse", "HEAD^@"); !strings.HasPrefix(parents, r.Parent+"\n") ||
		strings.Count(parents, "\n") != 1 || l.git("log", "-1", "--format=%s", "HEAD^2") != "Work of eve in team demo" {
		t.Errorf("the parents are\n%s", parents)
	}
	if message := l.git("log", "-1", "--format=%B"); !strings.Contains(message, "Members: lead (external), ann "+
		"(external), eve (claude)\n") || !strings.Contains(message, "Cadre-Consolidation: 2") {
		t.Errorf("the message is\n%s", message)
	}
	if branches := l.git("branch", "--list", "cadre/demo@*"); branches != "" {
		t.Errorf("left: %s", branches)
	}
}

// TestBranchesAlone checks that there is one commit even if all work is on branches, and that the
// checks find an index of it.
func TestBranchesAlone(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := newLab(t)
	l.found(team.Check{Name: "index",
		Command: `GIT_INDEX_FILE="$CADRE_INDEX" git diff --cached --name-only HEAD > .git/saw; test -s "$CADRE_INDEX"`})
	l.isolate("eve", "hers.txt")
	l.isolate("dan", "his.txt")
	if r := l.run(); r.Files != 2 || r.Commit != l.git("rev-parse", "HEAD") ||
		len(strings.Fields(l.git("rev-parse", "HEAD^@"))) != 3 {
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

// TestIndexOfNothing checks that CADRE_INDEX names an index even if there is nothing to commit.
func TestIndexOfNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := newLab(t)
	l.found(team.Check{Name: "index",
		Command: `test -z "$(GIT_INDEX_FILE="$CADRE_INDEX" git diff --cached --name-only HEAD)" && test -s "$CADRE_INDEX"`})
	if r := l.run(); r.Commit != "" {
		t.Errorf("%+v", r)
	}
}

// TestInTheWay checks that changes in the work tree are merged with those of a branch. A file of
// the user in the way, even one with the same content, is refused by name. It is not overwritten,
// and the next attempt merges the branch if the file is gone. Anything else is a task of the lead.
func TestInTheWay(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	for name, c := range map[string]struct {
		before, after func(l *lab)
		says          string // in the task of the lead; "" for a refusal
	}{
		"the person's": {before: func(l *lab) { l.write("hers.txt", "the person's\n") }},
		"the same":     {before: func(l *lab) { l.write("hers.txt", "eve's\n") }},
		"ignored": {before: func(l *lab) { l.write(".git/info/exclude", "hers.txt\n") }, after: func(l *lab) {
			l.git("-C", filepath.Join(l.folder, "worktrees", "eve"), "add", "--force", "hers.txt")
			l.write("hers.txt", "built\n")
		}},
		"an ignored folder": {before: func(l *lab) { l.write(".git/info/exclude", "hers.txt/\n") },
			after: func(l *lab) { l.write("hers.txt/x", "built\n") }},
		"a link to elsewhere": {before: func(l *lab) {
			if err := os.Symlink(l.folder, filepath.Join(l.project, "deep")); err != nil {
				l.Fatal(err)
			}
		}, after: func(l *lab) { l.hers("eve", "deep/file", "hers\n") }, says: "deep"},
		"the team's, in conflict": {after: func(l *lab) { l.write("hers.txt", "the team's\n") },
			says: "conflicts with the team's changes in "},
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
			before, refusal := l.scene(), "a file of yours is in the way of the branch cadre/demo@eve in "+l.project+
				": hers.txt. Commit, move or stash it"
			if c.says != "" {
				refusal = "task 2 (Merge the branch cadre/demo@eve) is open"
			}
			err := l.refused(refusal)
			if after := l.scene(); after != before {
				t.Errorf("it was\n%s\nand is\n%s", before, after)
			}
			l.tidy()
			if c.says == "" {
				p, planned := Preview(l.ctx, l.options())
				if planned != nil || p.Obstacle != err.Error() {
					t.Errorf("the plan has the obstacle %q, %v", p.Obstacle, planned)
				}
				if err := os.RemoveAll(filepath.Join(l.project, "hers.txt")); err != nil {
					t.Fatal(err)
				}
				l.run()
				l.want(l.committed(), "A:hers.txt")
				return
			}
			l.replica.View(func(s *team.State) {
				if task, _ := s.Task("2"); !strings.Contains(task.Description, c.says) {
					t.Errorf("the task is %q", task.Description)
				}
			})
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

// TestChangedWhileItWasThere checks that a branch's file that a person changed or committed in the
// work tree stays when the branch's changes are taken out.
func TestChangedWhileItWasThere(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
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

// TestBranchesWithoutACommit checks that --no-commit merges nothing, creates no task, and names the
// branches that are not merged.
func TestBranchesWithoutACommit(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := newLab(t)
	l.found()
	l.isolate("eve", "hers.txt")
	before := l.scene()
	o := l.options()
	o.NoCommit = true
	var advice []team.Advice
	o.Advise = func(n team.Advice) { advice = append(advice, n) }
	if r, err := Run(l.ctx, o); err != nil || r.Commit != "" {
		t.Fatalf("%+v, %v", r, err)
	}
	if after := l.scene(); after != before {
		t.Errorf("it was\n%s\nand is\n%s", before, after)
	}
	if tasks := l.tasks(); tasks != 1 {
		t.Errorf("the team has %d tasks", tasks)
	}
	if len(advice) != 1 || !strings.Contains(advice[0].Text, "work of eve stays on the branch cadre/demo@eve") ||
		len(advice[0].Hints) != 1 || advice[0].Hints[0].Action != team.ActMergeBranch {
		t.Errorf("the advice is %+v", advice)
	}
}

// TestConflicts checks that a conflict becomes a task for the lead, and that nothing is committed
// before it is resolved. The test follows the task's own words: its commands touch nothing that is
// checked out, and their result is merged.
func TestConflicts(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	for name, c := range map[string]struct {
		before, after func(l *lab)
		with          string // the other side that the task names
		text          string // content of both.txt in the commit
	}{
		"what is checked out": {
			after: func(l *lab) {
				l.write("both.txt", "main's\n")
				l.git("add", "-A")
				l.git("commit",
					"-qm", "main's")
			},
			with: "conflicts with what is checked out in %s (main) in both.txt", text: "dan's\nmain's",
		},
		"no branch is checked out": {
			after: func(l *lab) {
				l.git("checkout", "-q", "--detach")
				l.write("both.txt", "main's\n")
				l.git("add", "-A")
				l.git("commit", "-qm", "main's")
			},
			with: "conflicts with what is checked out in %s", text: "dan's\nmain's",
		},
		"the team's directory": {
			after: func(l *lab) { l.write("both.txt", "team's\n"); l.write("more.txt", "team's\n") },
			with:  "conflicts with the team's changes in %s in both.txt", text: "dan's\nteam's",
		},
		"another branch": {
			before: func(l *lab) { l.isolate("eve", "both.txt") },
			with:   "conflicts with the branch cadre/demo@eve in both.txt", text: "dan's\neve's",
		},
		"all of them": {
			before: func(l *lab) { l.isolate("eve", "both.txt") },
			after: func(l *lab) {
				l.write("one.txt", "main's\n")
				l.git("add", "one.txt")
				l.git("commit", "-qm", "main's")
				l.write("two.txt", "team's\n")
				l.hers("dan", "one.txt", "dan's\n")
				l.hers("dan", "two.txt", "dan's\n")
			},
			with: "conflicts with the team's changes in %s in one.txt, two.txt and conflicts with the branch " +
				"cadre/demo@eve in both.txt", text: "dan's\neve's",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.found(team.Check{Name: "no marks", Command: "! grep -r '<<<<' --include='*.txt' ."})
			if c.before != nil {
				c.before(l)
			}
			l.isolate("dan", "both.txt")
			if c.after != nil {
				c.after(l)
			}
			l.refused("(Merge the branch cadre/demo@dan) is open")
			before := l.scene()
			words := l.ask("dan")
			l.says(words, "The work of dan is on the branch cadre/demo@dan, which ",
				strings.Replace(c.with, "%s", l.project, 1))
			l.follow(words)
			if after := l.scene(); after != before {
				t.Errorf("the commands changed\n%s\nto\n%s", before, after)
			}
			l.write("later.txt", "the team's, since\n")
			l.replica.View(func(s *team.State) {
				if open := s.Count(team.Pending) + s.Count(team.InProgress); open != 0 {
					t.Errorf("after the commands %d tasks are open", open)
				}
			})
			l.run()
			if got := l.git("show", "HEAD:both.txt"); got != c.text {
				t.Errorf("both.txt is %q", got)
			}
			if files := l.git("ls-tree", "--name-only", "HEAD"); !strings.Contains(files, "later.txt") {
				t.Errorf("committed are\n%s", files)
			}
			if status := l.git("status", "--porcelain"); status != "" {
				t.Errorf("the status is\n%s", status)
			}
			if trees := l.git("worktree", "list"); strings.Contains(trees, "\n") {
				t.Errorf("the worktrees: %s", trees)
			}
			if left := l.member("dan").Left; left != (team.Left{}) || l.git("branch", "--list", "cadre/demo@*") != "" {
				t.Errorf("left: %+v", left)
			}
			l.tidy()
		})
	}
}

// TestConflictThatStays checks that the lead is asked again about an unresolved conflict, and that
// a resolved but uncommitted one is committed. If the lead deletes the task, the branch is left out
// and this is logged.
func TestConflictThatStays(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := newLab(t)
	l.found()
	l.isolate("eve", "hers.txt")
	l.isolate("dan", "a.txt")
	l.write("a.txt", "somebody else's\n")
	l.refused("task 2 (Merge the branch cadre/demo@dan) is open")
	l.do("lead", &team.CompleteTask{Task: "2", Result: "I did nothing"})
	l.refused("task 3 (Merge the branch cadre/demo@dan) is open")
	l.follow(strings.ReplaceAll(l.ask("dan"), "git add --all\n    git commit --no-edit", "true"))
	l.refused("task 4 (Merge the branch cadre/demo@dan) is open") // it is committed, but not merged
	l.do("lead", &team.DeleteTask{Task: "4"})
	var said []string
	o := l.options()
	o.Log = func(text string) { said = append(said, text) }
	if _, err := Run(l.ctx, o); err != nil {
		t.Fatal(err)
	}
	l.want(l.committed(), "M:a.txt", "A:hers.txt")
	if branches := l.git("branch", "--format=%(refname:short)"); branches != "cadre/demo\ncadre/demo@dan\nmain" {
		t.Errorf("the branches are\n%s", branches)
	}
	if !strings.Contains(strings.Join(said, "\n"), "the branch cadre/demo@dan is left out") {
		t.Errorf("the log is %q", said)
	}
}

// TestForgedTask checks that a task that a member created and completed is no proof: the work is
// merged.
func TestForgedTask(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := newLab(t)
	l.found()
	l.isolate("eve", "hers.txt")
	l.git("-C", filepath.Join(l.folder, "worktrees", "eve"), "add", "-A")
	l.git("-C", filepath.Join(l.folder, "worktrees", "eve"), "commit", "-qm", "hers")
	tip := json.RawMessage(strconv.Quote(l.git("rev-parse", "cadre/demo@eve")))
	for _, meta := range []map[string]json.RawMessage{nil, {"commit": tip}} {
		l.do("ann", &team.CreateTask{Subject: "Merge the branch cadre/demo@eve", Owner: "lead", Metadata: meta})
	}
	l.do("ann", &team.CreateTask{Subject: "look at it"})
	subject, owner := "Merge the branch cadre/demo@eve", "ann"
	for _, id := range []string{"2", "3", "4"} {
		l.do("ann", &team.UpdateTask{Task: id, Subject: &subject, Owner: &owner, Metadata: map[string]json.RawMessage{
			"commit": tip}})
		l.do("ann", &team.ClaimTask{Task: id})
	}
	l.do("ann", &team.CompleteTask{Task: "2"})
	l.do("ann", &team.DeleteTask{Task: "3"})
	l.do("ann", &team.CompleteTask{Task: "4"})
	l.run()
	l.want(l.committed(), "A:hers.txt")
}

// ask returns the text of the task that asks the lead to merge the member's branch.
func (l *lab) ask(member string) string {
	l.Helper()
	var task team.Task
	l.replica.View(func(s *team.State) { task, _ = s.Task(l.member(member).Left.Task) })
	return task.Description
}

func (l *lab) member(name string) (m team.Member) {
	l.replica.View(func(s *team.State) { m, _ = s.Member(name) })
	return m
}

func (l *lab) says(text string, parts ...string) {
	l.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			l.Errorf("it does not say %q:\n%s", part, text)
		}
	}
}

// follow runs the commands in a task's text, and resolves conflicts by taking both sides in order.
func (l *lab) follow(words string) {
	l.Helper()
	script := fmt.Sprintf("set -x\ncadre() { %s=%s %s \"$@\"; }\n", completes, sanitize.Quote(l.folder),
		sanitize.Quote(os.Args[0]))
	for line := range strings.SplitSeq(words, "\n") {
		command, ok := strings.CutPrefix(line, "    ")
		if !ok {
			continue
		}
		if _, files, ok := strings.Cut(command, "in these files: "); ok {
			command = "for f in " + strings.ReplaceAll(files, ",", "") +
				"; do sed '/^[<=>][<=>][<=>]/d' $f >$f.new && mv $f.new $f; done"
		}
		script += command + "\n"
	}
	cmd := exec.CommandContext(l.ctx, "sh", "-c", script)
	cmd.Dir, cmd.Env = l.project, git.Local(os.Environ())
	if out, err := cmd.CombinedOutput(); err != nil {
		l.Fatalf("the commands end with %v:\n%s", err, out)
	}
	if err := l.replica.Refresh(l.ctx); err != nil {
		l.Fatal(err)
	}
}

// TestHalfAWork checks that the unfinished work of a failed member is left on its branch, and that
// a task says so.
func TestHalfAWork(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := newLab(t)
	l.found()
	l.isolate("eve", "half.txt")
	l.do(team.User, &team.ReportFailed{Member: "eve", Reason: "it died"})
	l.refused("Merge the branch cadre/demo@eve", "is open")
	if got := l.git("show", "cadre/demo@eve:half.txt"); got != "eve's" || l.commits() != 1 ||
		host.Worktree(l.folder, "eve") {
		t.Errorf("on her branch is %q", got)
	}
}
