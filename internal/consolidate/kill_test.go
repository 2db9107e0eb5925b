package consolidate

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"cadre/internal/git"
	"cadre/internal/journal/store/filestore"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

// prepared returns a project in which every part is involved: files of the user, staged or not,
// work of the team, two checks, and, if isolated, a worktree in which files were made, changed and
// removed.
func prepared(t *testing.T, isolated bool) (l *lab, mine string) {
	l = newLab(t)
	l.isolated = isolated
	l.write("c.txt", "one\n")
	l.write("gone/c.txt", "one\n")
	l.git("add", "-A")
	l.git("commit", "-qm", "second")
	l.write("notes.txt", "the person's\n")
	l.write("b.txt", "the person's change\n")
	l.write("staged.txt", "the person's, staged\n")
	l.git("add", "staged.txt")
	l.write(".git/info/exclude", "ran\n")
	l.found(team.Check{Name: "build", Command: "echo build >> ran"},
		team.Check{Name: "test", Command: "echo test >> ran"})
	if isolated {
		l.isolate("eve", "hers.txt")
		l.hers("eve", "c.txt", "changed\n")
		l.hers("eve", "gone/c.txt", "")
		l.hers("eve", "deep/er/hers.txt", "hers\n")
	}
	l.write("new.txt", "the team's\n")
	l.remove("a.txt")
	return l, l.git("ls-files", "--stage", "b.txt", "notes.txt", "staged.txt")
}

// right checks the expected result of a consolidation, however often it was interrupted.
func right(l *lab, mine string) {
	l.Helper()
	if l.isolated {
		l.want(l.committed(), "D:a.txt", "M:c.txt", "A:deep/er/hers.txt", "D:gone/c.txt", "A:hers.txt", "A:new.txt")
		l.want(strings.Split(l.git("log", "--format=%s", "HEAD^2", "--not", "HEAD^"), "\n"), "Work of eve in team demo")
	} else {
		l.want(l.committed(), "D:a.txt", "A:new.txt")
	}
	l.want(strings.Split(l.git("log", "--first-parent", "--format=%s"), "\n"), "Work of team demo: Port the parser",
		"second", "first")
	if now := l.git("ls-files", "--stage", "b.txt", "notes.txt", "staged.txt"); now != mine {
		l.Errorf("the user's index was\n%s\nand is\n%s", mine, now)
	}
	if status := l.git("status", "--porcelain"); status != " M b.txt\nA  staged.txt\n?? notes.txt" {
		l.Errorf("the status is\n%s", status)
	}
	if text, err := os.ReadFile(filepath.Join(l.project, "b.txt")); string(text) != "the person's change\n" ||
		err != nil {
		l.Errorf("b.txt is %q, %v", text, err)
	}
	if s := l.replica.Team(); s.Status != team.TeamComplete || s.Consolidation.Commit != l.git("rev-parse", "HEAD") {
		l.Errorf("the team is %+v", s)
	}
	if r, err := Sealed(l.ctx, filestore.Team(l.folder)); r == nil || err != nil {
		l.Errorf("the record: %+v, %v", r, err)
	}
	l.tidy()
	if branches := l.git("branch", "--format=%(refname:short)"); branches != "cadre/demo\nmain" {
		l.Errorf("the branches are\n%s", branches)
	}
	if trees := l.git("worktree", "list"); strings.Contains(trees, "\n") {
		l.Errorf("the worktrees are\n%s", trees)
	}
	if out, err := l.try("fsck", "--strict", "--no-dangling"); err != nil {
		l.Errorf("%v: %s", err, out)
	}
}

// consolidating starts a process that consolidates the team, and kills itself when it first reaches
// the point. It returns the points that it reached.
func (l *lab) consolidating(point string) (points []string, killed bool) {
	l.Helper()
	cmd := exec.CommandContext(l.ctx, os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s", victim, point, l.folder))
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState.ExitCode() >= 0 {
		l.Fatalf("the process failed: %v\n%s", err, out)
	}
	return strings.Fields(string(out)), err != nil
}

// killedAt has a process consolidate the team, and kills it at that git command.
func (l *lab) killedAt(when, at string) { l.Helper(); l.killedDoing("never", when, at) }

// killedDoing has a process merge or consolidate the team's work, and kills it at that git command.
// It reports whether the process was killed.
func (l *lab) killedDoing(what, when, at string) (killed bool) {
	l.Helper()
	counted := filepath.Join(l.folder, "counted")
	if err := os.RemoveAll(counted); err != nil {
		l.Fatal(err)
	}
	cmd := exec.CommandContext(l.ctx, os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s", victim, what, l.folder), "PATH="+fatal+":"+os.Getenv("PATH"),
		atGit+"="+at, atGit+"_WHEN="+when, atGit+"_COUNT="+counted)
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState.ExitCode() >= 0 {
		l.Fatalf("the process failed: %v\n%s", err, out)
	}
	if err := l.replica.Refresh(l.ctx); err != nil {
		l.Fatal(err)
	}
	return err != nil
}

// TestKilledAtEachPoint kills the process at one point after the other. The result is as without a
// kill: one attempt, one commit, the right files, each check once.
func TestKilledAtEachPoint(t *testing.T) {
	if testing.Short() {
		t.Skip("a process is killed many times")
	}
	t.Parallel()
	l, mine := prepared(t, true)
	for _, point := range []string{"began", "checkpoint", "home", "merged", "tree", "staged", "removed", "written",
		"written", "written", "landed", "check", "check", "commit", "made", "head", "index", "branch", "done"} {
		if points, killed := l.consolidating(point); !killed || points[len(points)-1] != point {
			t.Fatalf("it was to be killed at %s; it was: %t, after %v", point, killed, points)
		}
	}
	if points, killed := l.consolidating("never"); killed || len(points) > 0 {
		t.Errorf("after the end it continued with %v", points)
	}
	if err := l.replica.Refresh(l.ctx); err != nil {
		t.Fatal(err)
	}
	right(l, mine)
	if c := l.replica.Team().Consolidation; c.Attempt != 1 {
		t.Errorf("it is %+v", c)
	}
	if ran, err := os.ReadFile(filepath.Join(l.project, "ran")); err != nil || string(ran) != "build\ntest\n" {
		t.Errorf("the checks ran as\n%s", ran)
	}
}

// TestRolledBackAtEachStep kills the process at each step and rolls back. HEAD, the index and the
// work tree are as before, and the work of members is on their branches; or the work is committed
// already, and stays committed.
func TestRolledBackAtEachStep(t *testing.T) {
	if testing.Short() {
		t.Skip("a process is killed many times")
	}
	t.Parallel()
	steps := []string{"began", "home", "merged", "staged", "removed", "written", "landed", "check", "made", "head"}
	if !soak.Wanted() { // each run tries others; a soak tries all, also those of a run that failed
		rand.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
		steps = steps[:5]
	}
	for _, last := range steps {
		t.Run(last, func(t *testing.T) {
			t.Parallel()
			l, mine := prepared(t, true)
			before := l.scene()
			l.consolidating(last)
			if err := l.replica.Refresh(l.ctx); err != nil {
				t.Fatal(err)
			}
			err := RollBack(l.ctx, l.options(), "enough")
			if last == "head" {
				if err == nil {
					t.Error("it was rolled back")
				}
				l.run()
				right(l, mine)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if after := l.scene(); after != before {
				t.Errorf("the scene was\n%s\nand is\n%s", before, after)
			}
			if _, err := os.Lstat(filepath.Join(l.project, "deep")); err == nil {
				t.Error("an empty folder is left")
			}
			l.tidy()
			if s := l.replica.Team(); s.Status != team.TeamActive || s.Consolidation.Reason != "enough" {
				t.Errorf("the team is %+v", s)
			}
			l.run()
			right(l, mine)
		})
	}
}

// TestKilledAnywhere kills the process before or after any git command, and twice more during the
// recovery. The next process finishes, and there is one commit.
func TestKilledAnywhere(t *testing.T) {
	if testing.Short() {
		t.Skip("a process is killed many times")
	}
	t.Parallel()
	const commands = 80 // roughly
	for round := range soak.Of(2, 2*commands) {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			l, mine := prepared(t, true)
			when := []string{"before", "after"}[round/commands%2^round%2]
			for _, at := range []int{round*23%commands + 1, round*7%20 + 1, round*5%9 + 1} {
				l.killedAt(when, strconv.Itoa(at))
			}
			l.run()
			right(l, mine)
		})
	}
}

// TestCommittedOnTop checks that a commit that the user made on top, before the index was updated,
// stays as it is.
func TestCommittedOnTop(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := newLab(t)
	l.found()
	l.write("new.txt", "the team's\n")
	l.write("other.txt", "the team's\n")
	l.consolidating("head")
	l.write("new.txt", "the person's\n")
	l.git("commit", "-qm", "on top", "--only", "new.txt")
	if err := l.replica.Refresh(l.ctx); err != nil {
		t.Fatal(err)
	}
	r := l.run()
	if status := l.git("status", "--porcelain"); status != "" || l.git("rev-parse", "HEAD^") != r.Commit {
		t.Errorf("%+v, and the status is\n%s", r, status)
	}
}

// TestStrays checks that the next process ends what a check had started in a session of its own, if
// cadre was killed before it could.
func TestStrays(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip(err)
	}
	l := newLab(t)
	pid := filepath.Join(l.folder, "pid")
	l.found(team.Check{Name: "test", Command: fmt.Sprintf("test -e %[1]s || { setsid sleep 600 & echo $! > %[1]s; "+
		"kill -s KILL $PPID; exec sleep 600; }", pid)})
	if _, killed := l.consolidating("never"); !killed {
		t.Fatal("it was not killed")
	}
	text, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	stray, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.replica.Refresh(l.ctx); err != nil {
		t.Fatal(err)
	}
	l.run()
	if start, err := proc.StartTime(stray); err == nil && proc.Alive(stray, start) {
		syscall.Kill(stray, syscall.SIGKILL)
		t.Error("the process is still running")
	}
}

// TestLocksOfGit checks that a lock that a killed git left is named, with what to do. Nothing is
// abandoned, and after that the consolidation continues.
func TestLocksOfGit(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	for _, name := range []string{"index.lock", "HEAD.lock", "refs/heads/main.lock"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.found(team.Check{Name: "test", Command: "true"})
			l.write("new.txt", "the team's\n")
			l.write(".git/"+name, "")
			o := l.options()
			o.patience = 100 * time.Millisecond
			_, err := Run(l.ctx, o)
			lock := filepath.Join(l.project, ".git", filepath.FromSlash(name))
			if locked := (*git.LockedError)(nil); !errors.As(err, &locked) || locked.File != lock ||
				!strings.Contains(err.Error(), "remove that file") {
				t.Fatalf("it ends with %v", err)
			}
			if c := l.replica.Team().Consolidation; c.Step != team.Made {
				t.Errorf("it is %+v", c)
			}
			if err := os.Remove(lock); err != nil {
				t.Fatal(err)
			}
			if r := l.run(); r.Attempts != 1 || l.commits() != 2 {
				t.Errorf("%+v", r)
			}
			l.want(l.committed(), "A:new.txt")
			l.tidy()
		})
	}
}

// TestLockOfTheIndex checks that a lock of the index that a kill left is recognized as ours. A lock
// of another git command is waited for, and nothing is abandoned.
func TestLockOfTheIndex(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := newLab(t)
	l.found()
	l.write("new.txt", "the team's\n")
	ours, lock := filepath.Join(l.project, ".git", "cadre-index-T1"), filepath.Join(l.project, ".git", "index.lock")
	if err := os.WriteFile(ours, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(ours, lock); err != nil {
		t.Fatal(err)
	}
	l.run()
	l.want(l.committed(), "A:new.txt")
	l.tidy()

	l = newLab(t)
	l.found()
	l.write("new.txt", "the team's\n")
	lock = filepath.Join(l.project, ".git", "index.lock")
	o := l.options()
	released := make(chan struct{})
	o.at = func(point string) {
		if point == "head" {
			if err := os.WriteFile(lock, nil, 0o600); err != nil {
				t.Error(err)
			}
			time.AfterFunc(200*time.Millisecond, func() { os.Remove(lock); close(released) })
		}
	}
	if _, err := Run(l.ctx, o); err != nil {
		t.Fatal(err)
	}
	<-released
	l.want(l.committed(), "A:new.txt")
	if status := l.git("status", "--porcelain"); status != "" {
		t.Errorf("the status is\n%s", status)
	}
	l.tidy()
}

// TestTwoAtOnce checks that of two processes one consolidates, and the other gets an error.
func TestTwoAtOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := newLab(t)
	l.found(team.Check{Name: "test", Command: "true"})
	o := l.options()
	o.Checking = func(string) {
		l.refused("by another process")
	}
	if _, err := Run(l.ctx, o); err != nil {
		t.Fatal(err)
	}
}

// TestBranchChangedAfterAKill checks that a branch's file that a person changed after a kill stays.
func TestBranchChangedAfterAKill(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	for _, last := range []string{"staged", "landed"} {
		t.Run(last, func(t *testing.T) {
			t.Parallel()
			l, _ := prepared(t, true)
			l.consolidating(last)
			l.write("hers.txt", "somebody's\n")
			if err := l.replica.Refresh(l.ctx); err != nil {
				t.Fatal(err)
			}
			l.refused("hers.txt was changed before the checks were through")
			if status := l.git("status", "--porcelain"); status != " D a.txt\n M b.txt\nA  staged.txt\n?? "+
				"hers.txt\n?? new.txt\n?? notes.txt" {
				t.Errorf("the status is\n%s", status)
			}
			if text, err := os.ReadFile(filepath.Join(l.project, "hers.txt")); string(text) != "somebody's\n" ||
				err != nil {
				t.Errorf("it is %q, %v", text, err)
			}
			l.refused("Merge the branch cadre/demo@eve") // the lead has to resolve it
		})
	}
}

// TestChangedAfterAKill checks changes that a person made after a kill: staged work that was
// changed, and a HEAD that moved.
func TestChangedAfterAKill(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	for name, c := range map[string]struct {
		change func(l *lab)
		says   string
	}{
		"a file": {func(l *lab) { l.write("new.txt", "other\n") }, "new.txt was changed before the checks " +
			"were through"},
		"HEAD": {func(l *lab) { l.git("commit", "-q", "--allow-empty", "-m", "mine") }, "HEAD was moved"},
		"the tree is swept": {func(l *lab) {
			l.git("branch", "-q", "-D", "cadre/demo") // its checkpoint has the same tree
			l.git("gc", "-q", "--prune=now")
		}, "git has removed the staged tree"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, mine := prepared(t, false)
			l.consolidating("staged")
			c.change(l)
			if err := l.replica.Refresh(l.ctx); err != nil {
				t.Fatal(err)
			}
			l.refused(c.says)
			if s := l.replica.Team(); s.Status != team.TeamActive {
				t.Errorf("the team is %+v", s)
			}
			l.run()
			if name != "HEAD" {
				right(l, mine)
			}
			l.want(l.committed(), "D:a.txt", "A:new.txt")
		})
	}
}
