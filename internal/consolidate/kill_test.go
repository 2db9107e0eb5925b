package consolidate

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cadre/internal/team"
	"cadre/internal/worktree"
)

// prepared is a project in which everything has a part: files of the person, staged or not, work of the team, a worktree, two checks.
func prepared(t *testing.T) (l *lab, mine string) {
	l = newLab(t)
	l.write("notes.txt", "the person's\n")
	l.write("b.txt", "the person's change\n")
	l.write("staged.txt", "the person's, staged\n")
	l.git("add", "staged.txt")
	l.write(".git/info/exclude", "ran\n")
	l.found(team.Check{Name: "build", Command: "echo build >> ran"}, team.Check{Name: "test", Command: "echo test >> ran"})
	l.do("lead", &team.SpawnMember{Name: "eve", Agent: "claude", Isolation: team.Worktree})
	dir, err := worktree.Add(l.ctx, l.procs, worktree.Place{Repo: l.project, Dir: filepath.Join(l.folder, "worktrees", "eve"), Branch: "cadre/demo@eve"})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "hers.txt"), []byte("hers\n"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	l.git("rm", "-q", "--cached", "staged.txt") // a merge wants the index clean; it is staged again below
	l.write("new.txt", "the team's\n")
	l.remove("a.txt")
	return l, l.git("ls-files", "--stage", "b.txt", "notes.txt")
}

// right checks what a consolidation is to come to, however often it was interrupted.
func right(l *lab, mine string) {
	l.Helper()
	l.want(l.committed(), "D:a.txt", "A:new.txt")
	if subjects := l.git("log", "--first-parent", "--format=%s"); subjects != "Work of team demo: Port the parser\nWork of eve in team demo\nfirst" {
		l.Errorf("the commits are\n%s", subjects)
	}
	if now := l.git("ls-files", "--stage", "b.txt", "notes.txt"); now != mine {
		l.Errorf("the person's index was\n%s\nand is\n%s", mine, now)
	}
	if status := l.git("status", "--porcelain"); status != " M b.txt\n?? notes.txt\n?? staged.txt" {
		l.Errorf("the status is\n%s", status)
	}
	if text, err := os.ReadFile(filepath.Join(l.project, "b.txt")); string(text) != "the person's change\n" || err != nil {
		l.Errorf("b.txt is %q, %v", text, err)
	}
	if s := l.desk.Team(); s.Status != team.TeamComplete || s.Consolidation.Commit != l.git("rev-parse", "HEAD") {
		l.Errorf("the team is %+v", s)
	}
	if r, err := Sealed(l.folder); r == nil || err != nil {
		l.Errorf("the record: %+v, %v", r, err)
	}
	l.tidy()
	if out, err := l.try("fsck", "--strict", "--no-dangling"); err != nil {
		l.Errorf("%v: %s", err, out)
	}
}

// consolidating starts a process that consolidates the team, and ends itself at the nth point; it returns what the process printed.
func (l *lab) consolidating(n int) (points []string, killed bool) {
	l.Helper()
	cmd := exec.CommandContext(l.ctx, os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", victim, n, l.folder))
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState.ExitCode() >= 0 {
		l.Fatalf("the process failed: %v\n%s", err, out)
	}
	return strings.Fields(string(out)), err != nil
}

// Killed at each point, it is finished by the next one as if nothing had happened: one commit, the right files, each check once.
func TestKilledAtEachPoint(t *testing.T) {
	var seen []string
	for n := 0; ; n++ {
		done := false
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			l, mine := prepared(t)
			points, killed := l.consolidating(n)
			done = !killed
			seen = points
			r := l.run()
			right(l, mine)
			if r.Attempts != 1 {
				t.Errorf("after %v it was attempt %d that was finished", points, r.Attempts)
			}
			ran, err := os.ReadFile(filepath.Join(l.project, "ran"))
			if want := "build\ntest\n"; err != nil || string(ran) != want {
				t.Errorf("after %v the checks ran as\n%s", points, ran)
			}
		})
		if done || t.Failed() {
			break
		}
	}
	want := []string{"began", "checkpoint", "home", "merged", "tree", "staged", "check", "check", "commit", "made", "head", "index", "done"}
	if !slices.Equal(seen, want) {
		t.Errorf("the points are %v, not %v", seen, want)
	}
}

// Killed at each point and given up, all is as it was when the worktrees were home; or it is committed already, and stays so.
func TestRolledBackAtEachPoint(t *testing.T) {
	for n := range 13 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			l, mine := prepared(t)
			points, _ := l.consolidating(n)
			before := l.scene()
			if err := l.desk.Refresh(l.ctx); err != nil {
				t.Fatal(err)
			}
			err := RollBack(l.ctx, l.options(), "enough")
			last := points[len(points)-1]
			if committed := slices.Contains([]string{"head", "index", "done"}, last); committed {
				if err == nil {
					t.Errorf("after %s it was rolled back", last)
				}
				l.run()
				right(l, mine)
				return
			}
			if err != nil {
				t.Fatalf("after %s: %v", last, err)
			}
			if after := l.scene(); after != before {
				t.Errorf("after %s the scene was\n%s\nand is\n%s", last, before, after)
			}
			if s := l.desk.Team(); s.Status != team.TeamActive || s.Consolidation.Reason != "enough" {
				t.Errorf("the team is %+v", s)
			}
			l.run()
			right(l, mine)
		})
	}
}

// Killed at any moment, with all that it started, several times: what comes after finishes, or begins again, and there is one commit.
func TestKilledAnywhere(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 2))
	rounds := 20
	if testing.Short() {
		rounds = 4
	}
	for round := range rounds {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			l, mine := prepared(t)
			for range 3 {
				cmd := exec.CommandContext(l.ctx, os.Args[0])
				cmd.Env = append(os.Environ(), fmt.Sprintf("%s=1000 %s", victim, l.folder))
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				kill := time.AfterFunc(time.Duration(random.IntN(400_000))*time.Microsecond, func() { cmd.Process.Kill() })
				cmd.Wait()
				kill.Stop()
			}
			for _, lock := range []string{"HEAD.lock", "packed-refs.lock", "refs/heads/main.lock"} { // of a git that was killed itself, which it says
				os.Remove(filepath.Join(l.project, ".git", lock))
			}
			if err := l.desk.Refresh(l.ctx); err != nil {
				t.Fatal(err)
			}
			l.run()
			right(l, mine)
		})
	}
}

// A lock of the index that a kill left is known to be ours; one of another git command is waited for, and nothing is given up.
func TestLockOfTheIndex(t *testing.T) {
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

// Two at once: one consolidates, the other is told.
func TestTwoAtOnce(t *testing.T) {
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

// What somebody did while nobody consolidated is seen: work that was staged and changed since, and a HEAD that moved.
func TestChangedAfterAKill(t *testing.T) {
	for name, c := range map[string]struct {
		change func(l *lab)
		says   string
	}{
		"a file":            {func(l *lab) { l.write("new.txt", "other\n") }, "new.txt was changed before the checks were through"},
		"HEAD":              {func(l *lab) { l.git("commit", "-q", "--allow-empty", "-m", "mine") }, "HEAD was moved"},
		"the tree is swept": {func(l *lab) { l.git("gc", "-q", "--prune=now") }, "the tree that was staged is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			l, mine := prepared(t)
			l.consolidating(5) // staged
			c.change(l)
			if err := l.desk.Refresh(l.ctx); err != nil {
				t.Fatal(err)
			}
			l.refused(c.says)
			if s := l.desk.Team(); s.Status != team.TeamActive {
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
