package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"cadre/internal/team"
)

// gated creates a team that has finished its work, in a repository with files of the person. ann
// worked in a worktree of her own, bob in the directory.
func gated(t *testing.T, checks ...string) *world {
	t.Helper()
	w := newWorld(t)
	w.repository()
	w.write("mine.txt", "the person's\n")
	w.write("README.md", "# Changed by the person\n")
	w.write("staged.txt", "the person's, staged\n")
	w.git("add", "staged.txt")
	args := []string{"create", "demo", "--goal", "Two files"}
	for _, c := range checks {
		args = append(args, "--check", c)
	}
	w.must(args...)
	w.must("spawn", "demo", "ann", "--agent", "shell", "--isolation", "worktree")
	w.must("spawn", "demo", "bob", "--agent", "shell")
	w.must("task", "add", "demo", "Hers", "--owner", "ann", "--run", "echo hers > hers.txt")
	w.must("task", "add", "demo", "His", "--owner", "bob", "--run", "echo his > his.txt; echo more >> docs/guide.md")
	rep := w.replica("demo")
	eventually(t, "all members are idle", func() bool {
		idle := false
		if err := rep.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		rep.View(func(s *team.State) {
			idle = s.Count(team.Completed) == 2
			for _, m := range s.Members() {
				idle = idle && (m.Agent == team.External || m.Status == team.Idle ||
					m.Status == team.Spawning && m.Host == "")
			}
		})
		return idle
	})
	return w
}

// consolidated checks that the team's work is committed once, and that the person's files are
// unchanged.
func (w *world) consolidated() {
	w.t.Helper()
	if got, want := w.gitSays("log", "--first-parent", "--format=%s", "-2"),
		"Work of team demo: Two files\nedition 5"; got != want {
		w.t.Errorf("the commits are\n%s", got)
	}
	if got, want := w.gitSays("diff", "--name-status", "HEAD^", "HEAD"),
		"M\tdocs/guide.md\nA\thers.txt\nA\this.txt"; got != want {
		w.t.Errorf("the commit contains\n%s", got)
	}
	// gitSays trims the first space.
	if got, want := w.gitSays("status", "--porcelain"), "M README.md\nA  staged.txt\n?? mine.txt"; got != want {
		w.t.Errorf("the status is\n%s", got)
	}
	if got := w.gitSays("log", "--format=%s", "HEAD^2", "--not", "HEAD^"); got != "Task 1 (ann, team demo)" {
		w.t.Errorf("hers is\n%s", got)
	}
	w.git("fsck", "--strict", "--no-dangling")
	if trees := w.gitSays("worktree", "list"); strings.Contains(trees, "\n") {
		w.t.Errorf("got the worktrees %s, want only the project's own", trees)
	}
	if !has(w.home, "teams", "demo", "COMPLETED") {
		w.t.Error("the team has no file COMPLETED")
	}
	review := w.must("review", "demo")
	if !strings.Contains(review, "team demo is complete: commit "+w.gitSays("rev-parse", "HEAD")[:12]+
		", 3 files; 2 tasks by 2 members") || strings.Contains(review, "is not the one") {
		w.t.Errorf("the review is\n%s", review)
	}
}

// TestConsolidationIsResumed kills the consolidating process in the middle of a check. cadre resume
// says what was staged and what was checked, and finishes.
func TestConsolidationIsResumed(t *testing.T) {
	t.Parallel()
	mark := mark()
	w := gated(t, "first: echo first >> $HOME/ran", fmt.Sprintf("second: echo second >> $HOME/ran; test -e $HOME/go "+
		"|| exec sleep %s", mark))
	p := w.start("consolidate", "demo")
	ran := func() []string {
		text, _ := os.ReadFile(filepath.Join(w.root, "user", "ran"))
		return strings.Fields(string(text))
	}
	eventually(t, "the second check runs", func() bool { return len(ran()) == 2 })
	head := w.gitSays("rev-parse", "HEAD")
	w.refused(w.cadre("run", w.write("../again.yaml", "name: demo\nmembers: [{name: w}]\ntasks: [{id: a, run: "+
		"'true'}]\n")), 1, "is being consolidated")
	w.refused(w.cadre("consolidate", "demo"), 1, "by another process")
	p.kill()
	noneLeft(t, mark)
	if w.gitSays("rev-parse", "HEAD") != head {
		t.Errorf("HEAD is %s, want it unmoved at %s", w.gitSays("rev-parse", "HEAD"), head)
	}
	if state := w.gitSays("show", "cadre/demo:.claude/teams/demo/state.json"); !strings.Contains(state,
		`"status": "consolidating"`) {
		t.Errorf("the checkpoint says\n%s", state)
	}
	if err := os.WriteFile(filepath.Join(w.root, "user", "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out := w.must("resume", "demo")
	for _, words := range []string{"! consolidation 1, started by user, is not finished",
		"! staged: 3 files, on " + head[:12] + ", with cadre/demo@ann", "    A hers.txt",
		"! checks that passed: first; that are left: second", "✓ check second", "team demo is complete"} {
		if !strings.Contains(out, words) {
			t.Errorf("resume does not print %q:\n%s", words, out)
		}
	}
	if got := strings.Join(ran(), " "); got != "first second second" {
		t.Errorf("the checks ran as %s", got)
	}
	w.consolidated()
}

// TestConsolidationIsTakenBack checks a rollback after the kill: nothing is committed. The team
// continues, and can be consolidated again.
func TestConsolidationIsTakenBack(t *testing.T) {
	t.Parallel()
	mark := mark()
	w := gated(t, fmt.Sprintf("only: test -e $HOME/go || { touch $HOME/began; exec sleep %s; }", mark))
	before := w.gitSays("rev-parse", "HEAD") + w.gitSays("status", "--porcelain") + w.gitSays("ls-files", "--stage")
	p := w.start("consolidate", "demo")
	eventually(t, "the check runs", func() bool { return has(w.root, "user", "began") })
	if !has(w.dir, "hers.txt") {
		t.Error("the check does not see hers.txt, which ann made")
	}
	p.kill()
	noneLeft(t, mark)
	w.must("consolidate", "demo", "--rollback")
	if after := w.gitSays("rev-parse", "HEAD") + w.gitSays("status", "--porcelain") + w.gitSays("ls-files",
		"--stage"); after != before {
		t.Errorf("changed from\n%s\nto\n%s", before, after)
	}
	if s := read[struct{ Status string }](w, "status", "demo").Status; s != "active" {
		t.Errorf("the team is %s", s)
	}
	if err := os.WriteFile(filepath.Join(w.root, "user", "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.must("consolidate", "demo")
	w.consolidated()
}

// TestConsolidationIsAborted aborts the team while a check runs. The check ends, nothing is
// committed, and ann's work is on her branch only. The same holds if the consolidating process was
// killed before.
func TestConsolidationIsAborted(t *testing.T) {
	t.Parallel()
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprint("killed ", killed), func(t *testing.T) {
			mark := mark()
			w := gated(t, fmt.Sprintf("only: touch $HOME/began; exec sleep %s", mark))
			before := w.gitSays("rev-parse", "HEAD") + w.gitSays("status", "--porcelain") +
				w.gitSays("ls-files", "--stage")
			p := w.start("consolidate", "demo")
			eventually(t, "the check runs", func() bool { return has(w.root, "user", "began") })
			if killed {
				p.kill()
			}
			w.must("abort", "demo", "--yes")
			noneLeft(t, mark)
			<-p.gone
			if after := w.gitSays("rev-parse", "HEAD") + w.gitSays("status", "--porcelain") + w.gitSays("ls-files",
				"--stage"); after != before {
				t.Errorf("changed from\n%s\nto\n%s", before, after)
			}
			w.git("show", "cadre/demo@ann:hers.txt")
			if s := read[struct{ Status string }](w, "status", "demo").Status; s != "aborted" {
				t.Errorf("the team is %s", s)
			}
		})
	}
}

// held matches the refusal to remove a lock. Only a person can know that the git command that made
// it was killed.
var held = regexp.MustCompile(`another git command holds (\S+\.lock); if none is running there, remove that file`)

// persist repeats the command until it succeeds. It follows the advice of the command if a git lock
// is in the way.
func (w *world) persist(args ...string) {
	w.t.Helper()
	for range 5 {
		r := w.cadre(args...)
		if r.code == 0 {
			return
		}
		said := held.FindStringSubmatch(r.err)
		if r.code != 1 || said == nil || !strings.HasPrefix(said[1], filepath.Join(w.dir, ".git")) {
			w.t.Fatalf("cadre %s: exit status %d: %s", strings.Join(args, " "), r.code, r.err)
		}
		if err := os.Remove(said[1]); err != nil {
			w.t.Fatal(err)
		}
	}
	w.t.Fatalf("a lock blocks cadre %s every time", strings.Join(args, " "))
}

// TestConsolidationGoesOnAfterKills kills a consolidation and its children again and again, at any
// moment. It still ends with one commit.
func TestConsolidationGoesOnAfterKills(t *testing.T) {
	t.Parallel()
	rounds := 6
	if testing.Short() {
		rounds = 2
	}
	for round := range rounds {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			w := gated(t, "first: sleep 0.05", "second: sleep 0.05")
			for range 3 {
				p := w.start("consolidate", "demo")
				select {
				case <-p.gone:
				case <-time.After(time.Duration(rand.IntN(500)) * time.Millisecond):
				}
				p.kill()
			}
			w.persist("consolidate", "demo")
			w.consolidated()
		})
	}
}
