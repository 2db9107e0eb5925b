package consolidate

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"cadre/internal/host"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

func (l *lab) merge() host.Merged {
	l.Helper()
	before := l.scene()
	m, err := Merge(l.ctx, l.options())
	if err != nil {
		l.Fatal(err)
	}
	if after := l.scene(); after != before {
		l.Errorf("what is checked out was\n%s\nand is\n%s", before, after)
	}
	return m
}

// worked commits a member's work to its branch and removes its worktree, as at the end of its
// session.
func (l *lab) worked(name string) {
	l.Helper()
	if err := host.LeaveWork(l.ctx, l.replica, l.procs, l.folder, name,
		func(text string) { l.Error(text) }); err != nil {
		l.Fatal(err)
	}
}

// files returns the files of the merged worktree, with the first line of each.
func (l *lab) files(dir string) string {
	l.Helper()
	var all []string
	for _, name := range strings.Split(l.git("-C", dir, "ls-files"), "\n") {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			l.Fatal(err)
		}
		first, _, _ := strings.Cut(string(text), "\n")
		all = append(all, name+"="+first)
	}
	return strings.Join(all, " ")
}

// TestMerge checks the merged worktree: HEAD, the team's files in its directory, and the work on
// all branches. It does not change what is checked out, and does not have the user's uncommitted
// changes.
func TestMerge(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := newLab(t)
	l.write("mine.txt", "the person's\n")
	l.write("b.txt", "the person's\n")
	l.found()
	if m := l.merge(); m.Dir != "" {
		t.Errorf("no member has a worktree, and %s exists", m.Dir)
	}
	l.isolate("eve", "hers.txt")
	l.isolate("dan", "a.txt")
	l.write("team.txt", "the team's\n")
	l.worked("eve")
	m := l.merge() // dan has committed nothing yet
	if got := l.files(m.Dir); got != "a.txt=one b.txt=one hers.txt=eve's team.txt=the team's" ||
		m.Dir != filepath.Join(l.folder, "merged") {
		t.Errorf("in %s is %s", m.Dir, got)
	}
	l.worked("dan")
	if err := os.WriteFile(filepath.Join(m.Dir, "own.txt"), []byte("the lead's\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l.remove("team.txt")
	l.write("more.txt", "the team's\n")
	if got := l.files(l.merge().Dir); got != "a.txt=dan's b.txt=one hers.txt=eve's more.txt=the team's" {
		t.Errorf("there is %s", got)
	}
	if status := l.git("-C", m.Dir, "status", "--porcelain", "--branch"); status != "## HEAD (no branch)" {
		t.Errorf("its status is %s", status)
	}
	l.remove("more.txt")
	l.write("b.txt", "one\n")
	l.run()
	if _, err := os.Lstat(m.Dir); err == nil {
		t.Error("it exists after the consolidation")
	}
	if trees := l.git("worktree", "list"); strings.Contains(trees, "\n") {
		t.Errorf("the worktrees: %s", trees)
	}
	l.tidy()
}

// TestMergeWithConflicts checks that a conflicting branch is left out, and that the lead is asked
// once for each commit, however often the work is merged. Once the conflict is resolved, the branch
// is merged.
func TestMergeWithConflicts(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := newLab(t)
	l.found()
	l.isolate("eve", "both.txt")
	l.isolate("dan", "both.txt")
	l.worked("eve")
	l.worked("dan")
	for range 2 {
		m := l.merge()
		if got := l.files(m.Dir); got != "a.txt=one b.txt=one both.txt=eve's" || len(m.Out) != 1 ||
			m.Out[0].Member != "dan" {
			t.Errorf("there is %s, without %v", got, m.Out)
		}
	}
	l.do("lead", &team.CompleteTask{Task: "2", Result: "I could not"})
	l.merge()
	if n := l.tasks(); n != 2 {
		t.Fatalf("there are %d tasks", n)
	}
	l.follow(strings.ReplaceAll(l.ask("dan"), "cadre task done demo 2", "true")) // the task was completed too early
	l.worked("dan")
	if m := l.merge(); len(m.Out) != 0 || l.files(m.Dir) != "a.txt=one b.txt=one both.txt=dan's" {
		t.Errorf("there is %s, without %v", l.files(m.Dir), m.Out)
	}
	if n := l.tasks(); n != 2 {
		t.Errorf("there are %d tasks", n)
	}
}

func (l *lab) tasks() (n int) {
	l.replica.View(func(s *team.State) {
		for range s.Tasks() {
			n++
		}
	})
	return n
}

// TestKilledMerge kills the merge before or after any git command. The next merge gives the same
// result, and removing the worktree leaves nothing.
func TestKilledMerge(t *testing.T) {
	if testing.Short() {
		t.Skip("a process is killed many times")
	}
	t.Parallel()
	l := newLab(t)
	l.write("mine.txt", "the person's\n")
	l.found()
	l.isolate("eve", "both.txt")
	l.isolate("dan", "both.txt")
	l.write("team.txt", "the team's\n")
	l.worked("eve")
	l.worked("dan")
	before, kills := l.scene(), 0
	for n := 1; ; n += soak.Of(7, 1) {
		killed := l.killedDoing("merge", []string{"before", "after"}[n%2], strconv.Itoa(n))
		if after := l.scene(); after != before {
			t.Fatalf("killed at command %d, what is checked out was\n%s\nand is\n%s", n, before, after)
		}
		m := l.merge()
		if got := l.files(m.Dir); got != "a.txt=one b.txt=one both.txt=eve's team.txt=the team's" || l.tasks() != 2 {
			t.Fatalf("killed at command %d, there is %s, with %d tasks", n, got, l.tasks())
		}
		if left, _ := filepath.Glob(filepath.Join(l.folder, mergeScratch)); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
		l.tidy()
		if !killed {
			break
		}
		if kills++; n%3 == 0 { // otherwise the next merge updates it
			if err := host.KeepWork(l.ctx, l.folder, l.project, func(text string) { l.Log(text) }); err != nil {
				t.Fatal(err)
			}
			if trees := l.git("worktree", "list"); strings.Contains(trees, "\n") {
				t.Errorf("the worktrees: %s", trees)
			}
		}
	}
	if kills < soak.Of(3, 20) {
		t.Errorf("it was killed %d times", kills)
	}
}
