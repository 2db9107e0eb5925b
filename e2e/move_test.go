package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

// halfDone is a team file whose last task fails until there is a file go. Before that ann has
// committed in her worktree.
const halfDone = `name: demo
facts: [a.txt]
members: [{name: ann, isolation: worktree}, {name: bob}]
tasks:
- {id: one, owner: ann, run: "echo hers >>a.txt; git commit -qam hers"}
- {id: two, owner: bob, run: "test -e go && echo done >two.txt"}
`

// moving creates a world with a team that has work in a worktree, some of it not committed, and an
// unfinished task.
func moving(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.repository()
	w.write("a.txt", "one\n")
	w.write("teams/demo.yaml", halfDone)
	w.git("add", "-A")
	w.git("commit", "-qm", "team")
	if r := w.cadre("run", "teams/demo.yaml"); r.code != 1 || !strings.Contains(r.out, "1 of 2 tasks done") {
		t.Fatalf("exit status %d\n%s%s", r.code, r.out, r.err)
	}
	if err := os.WriteFile(filepath.Join(w.home, "teams", "demo", "worktrees", "ann", "b.txt"), []byte("more\n"),
		0o644); err != nil {
		t.Fatal(err)
	}
	return w
}

// moves renames the project, and changes to it.
func (w *world) moves(to string) {
	w.t.Helper()
	to = filepath.Join(w.root, to)
	if err := os.Rename(w.dir, to); err != nil {
		w.t.Fatal(err)
	}
	w.dir = to
}

// put creates an empty file, with its parent folders.
func put(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

func (w *world) seq() int64 { return read[struct{ Seq int64 }](w, "status", "demo").Seq }

// goesOn checks that the team finishes with the work of both members, wherever it is now.
func (w *world) goesOn(args ...string) {
	w.t.Helper()
	w.write("go", "")
	if said := w.must(args...); !strings.Contains(said, "2 of 2 tasks done") {
		w.t.Fatalf("it says\n%s", said)
	}
	w.must("consolidate", "demo", "--only", "two.txt")
	if got := w.gitSays("show", "HEAD:a.txt", "HEAD:b.txt", "HEAD:two.txt"); got != "one\nhers\nmore\ndone" {
		w.t.Errorf("committed is %q", got)
	}
	if trees := w.gitSays("worktree", "list", "--porcelain"); strings.Count(trees, "worktree ") != 1 {
		w.t.Errorf("got the worktrees %s, want only the project's own", trees)
	}
}

// TestMovedProject checks that every command notices a moved project before anything starts. The
// team continues where the user says that the project is.
func TestMovedProject(t *testing.T) {
	t.Parallel()
	w := moving(t)
	old, seq := w.dir, w.seq()
	w.moves("moved")
	missed := []string{old + " does not exist", "cadre resume demo --dir DIR"}
	w.refused(w.cadre("resume", "demo"), 2, missed...)
	w.refused(w.cadre("resume", "demo", "--take-over"), 2, missed...)
	w.refused(w.cadre("run", "teams/demo.yaml"), 2, old+" does not exist", w.dir+" may be that project",
		"cadre resume demo --dir "+w.dir)
	r := w.cadre("run", "teams/demo.yaml", "--dry-run")
	if r.code != 2 || !strings.Contains(r.out, w.dir+" may be that project") {
		t.Errorf("a dry run ends with %d and says\n%s%s", r.code, r.out, r.err)
	}
	w.refused(w.cadre("host", "demo"), 2, missed...)
	w.refused(w.cadre("spawn", "demo", "eve"), 2, missed...)
	if said := w.must("probe", "demo"); !strings.Contains(said, "! "+old+" does not exist") {
		t.Errorf("it says\n%s", said)
	}
	found := read[struct {
		Place []struct{ What, Path string }
	}](w, "probe", "demo")
	if len(found.Place) != 1 || found.Place[0].What != "directory" || found.Place[0].Path != old {
		t.Errorf("probe found %+v, want the missing directory %s", found, old)
	}

	// Another directory is not accepted as the project.
	other := filepath.Join(w.root, "other")
	w.git("init", "-q", "-b", "main", other)
	w.git("-C", other, "commit", "-q", "--allow-empty", "-m", "other")
	clone := filepath.Join(w.root, "clone")
	w.git("clone", "-q", w.dir, clone)
	w.refused(w.cadre("resume", "demo", "--dir", filepath.Join(w.root, "user")), 2, "is not the project of team demo")
	w.refused(w.cadre("resume", "demo", "--dir", other), 2, "is not the repository of team demo: it has neither "+
		"the commit")
	w.refused(w.cadre("resume", "demo", "--dir", clone), 2, "cannot be resumed: the worktree of ann",
		"has no such worktree")
	w.refused(w.cadre("resume", "demo", "--dir", filepath.Join(w.root, "nowhere")), 2,
		"does not exist. Create it, or name another one")
	w.refused(w.cadre("resume", "demo", "--dir", "a.txt"), 2, "is not a directory")
	if now := w.seq(); now != seq {
		t.Errorf("it has %d records, want %d", now, seq)
	}
	if _, err := os.Stat(old); err == nil {
		t.Errorf("%s exists again", old)
	}

	if r := w.cadre("resume", "demo", "--dir", "teams/.."); r.code != 1 ||
		!strings.Contains(r.err, "the worktree of ann is linked to the repository again") {
		t.Fatalf("exit status %d\n%s%s", r.code, r.out, r.err)
	}
	if said := w.must("log", "demo"); strings.Count(said, "the project was moved from "+old+" to "+w.dir) != 1 {
		t.Errorf("it says\n%s", said)
	}
	if said := w.must("probe", "demo"); !strings.Contains(said, "✓ facts: 1, unchanged") {
		t.Errorf("it says\n%s", said)
	}
	w.refused(w.cadre("resume", "demo", "--dir", clone), 2, "which still exists", "cadre resume demo")
	w.goesOn("run", "teams/demo.yaml") // the same file, which has moved with the project
}

// TestNotTheProject checks that a different directory in the project's place is refused: an empty
// mount point, another repository, or a repository around it.
func TestNotTheProject(t *testing.T) {
	t.Parallel()
	w := moving(t)
	old := w.dir
	w.moves("unmounted")
	for name, c := range map[string]struct {
		make func()
		says string
	}{
		"an empty mount point": {func() { put(t, filepath.Join(old, ".keep")) }, "holds no git repository any more"},
		"another repository": {func() {
			w.git("init", "-q", "-b", "main", old)
			w.git("-C", old, "commit", "-q", "--allow-empty", "-m", "other")
		}, "is in another repository"},
		"a file":  {func() { put(t, old) }, "is not a directory"},
		"a clone": {func() { w.git("clone", "-q", w.dir, old) }, "the worktree of ann: "},
		"a link to where it is now": {func() {
			if err := os.Symlink(w.dir, old); err != nil {
				t.Fatal(err)
			}
		}, "is now a link to " + w.dir},
	} {
		c.make()
		w.refused(w.cadre("resume", "demo"), 2, "team demo cannot be resumed", c.says)
		w.refused(w.cadre("run", filepath.Join(w.dir, "teams/demo.yaml"), "--dir", w.dir), 2)
		if err := os.RemoveAll(old); err != nil {
			t.Fatal(name, err)
		}
	}
	w.moves(filepath.Base(old)) // mounted again
	w.goesOn("resume", "demo")
}

// TestMovedHome checks that a moved home, alone or with the project, connects its worktrees with
// the repository again.
func TestMovedHome(t *testing.T) {
	t.Parallel()
	for name, project := range map[string]string{"alone": "project", "with the project": "moved"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := moving(t)
			w.movesHome("home")
			if project == "project" {
				w.goesOn("resume", "demo")
				return
			}
			w.moves(project)
			w.goesOn("resume", "demo", "--dir", ".")
		})
	}
}

// TestKilledMove kills the command that records where the project is, at any moment. The next call
// succeeds, the team records the move once, and no work is lost.
func TestKilledMove(t *testing.T) {
	t.Parallel()
	w := moving(t)
	kills := 12
	if testing.Short() {
		kills = 4
	}
	for i := range kills {
		w.moves("moved" + string(rune('a'+i)))
		p := w.start("resume", "demo", "--dir", ".")
		time.AfterFunc(time.Duration(rand.Int64N(int64(120*time.Millisecond))),
			func() { syscall.Kill(p.Process.Pid, syscall.SIGKILL) })
		<-p.gone
		if r := w.cadre("resume", "demo", "--dir", "."); r.code != 1 || !strings.Contains(r.out, "1 of 2 tasks done") {
			t.Fatalf("exit status %d\n%s%s", r.code, r.out, r.err)
		}
		tree := filepath.Join(w.home, "teams", "demo", "worktrees", "ann")
		if status := w.gitSays("-C", tree, "status", "--porcelain", "--branch"); !strings.HasPrefix(status,
			"## cadre/demo@ann\n?? b.txt") {
			t.Fatalf("in the worktree: %s", status)
		}
		if said := w.must("log", "demo"); strings.Count(said, "the project was moved from ") != i+1 {
			t.Fatalf("it says\n%s", said)
		}
	}
	w.goesOn("resume", "demo")
}

// TestGoneWorktree checks a worktree that is missing, or has something else in its place. The team
// is refused before anything starts, and no member works in the main checkout.
func TestGoneWorktree(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		does func(w *world, tree string)
		says string
		try  string // the command that helps
	}{
		"gone": {func(w *world, tree string) {}, "does not exist any more, and its uncommitted work is lost with it",
			"worktree remove --force "},
		"a link to the main checkout": {func(w *world, tree string) {
			if err := os.Symlink(w.dir, tree); err != nil {
				w.t.Fatal(err)
			}
		}, "is a symbolic link", ""},
		"a folder": {func(w *world, tree string) { put(w.t, filepath.Join(tree, "x")) }, "without the file .git", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := moving(t)
			tree := filepath.Join(w.home, "teams", "demo", "worktrees", "ann")
			if err := os.RemoveAll(tree); err != nil {
				t.Fatal(err)
			}
			c.does(w, tree)
			seq := w.seq()
			w.refused(w.cadre("resume", "demo"), 2, "team demo cannot be resumed: the worktree of ann: "+tree, c.says, c.try)
			if now := w.seq(); now != seq {
				t.Errorf("it has %d records, want %d", now, seq)
			}
			// A host that finds this refuses the member, with the same text.
			w.must("task", "add", "demo", "three", "--run", "pwd >>where", "--owner", "ann")
			w.start("host", "demo")
			rep, why := w.replica("demo"), ""
			eventually(t, "ann has failed", func() bool {
				if err := rep.Refresh(t.Context()); err != nil {
					t.Fatal(err)
				}
				var m team.Member
				rep.View(func(s *team.State) { m, _ = s.Member("ann") })
				why = m.Summary
				return m.Status == team.Failed
			})
			if !strings.Contains(why, c.says) || has(w.dir, "where") {
				t.Errorf("ann failed because %s", why)
			}
		})
	}
}

// TestCleanupOfMoved checks the cleanup of a team whose project is missing. Uncommitted work is
// kept and named, and so are the branches that cannot be checked.
func TestCleanupOfMoved(t *testing.T) {
	t.Parallel()
	w := moving(t)
	old, seq := w.dir, w.seq()
	w.moves("moved")
	for _, args := range [][]string{{"cleanup", "demo", "--yes"}, {"cleanup", "demo", "--branches", "--yes"}} {
		w.refused(w.cadre(args...), 2, "team demo is not removed: "+old+" does not exist",
			"cadre resume demo --dir DIR", "cadre cleanup demo --force")
	}
	if now := w.seq(); now != seq || !has(w.home, "teams", "demo", "worktrees", "ann", "b.txt") {
		t.Errorf("it has %d records, want %d", now, seq)
	}
	r := w.cadre("cleanup", "demo", "--force", "--branches")
	kept := filepath.Join(w.home, "stranded", "demo-1", "ann")
	if r.code != 0 || !strings.Contains(r.err, "kept in "+filepath.Dir(kept)) {
		t.Fatalf("exit status %d\n%s%s", r.code, r.out, r.err)
	}
	order(t, r.out, "team demo is removed", "cadre/demo@ann", "unknown: "+old+" does not exist", "cadre/demo ",
		"unknown: "+old+" does not exist",
		"to remove those that are there, in the project: cadre cleanup demo --branches")
	if has(w.home, "teams", "demo") {
		t.Error("its folder is still there")
	}
	w.git("worktree", "repair", kept)
	if status := w.gitSays("-C", kept, "status", "--porcelain", "--branch"); status != "## cadre/demo@ann\n?? b.txt" {
		t.Errorf("in the worktree: %s", status)
	}
	w.refused(w.cadre("cleanup", "demo", "--force"), 2, "nothing is left to remove")
}

// TestKilledCleanup kills cleanup --branches at git commands. The next cleanup removes everything
// that belongs to the team and nothing else. The test tries every third git command, or all of them
// with CADRE_TEST_AT_GIT_EVERY=1.
func TestKilledCleanup(t *testing.T) {
	t.Parallel()
	w := moving(t)
	w.git("branch", "cadre/demo@eve")
	// The user has this worktree on a volume that is not mounted.
	w.git("worktree", "add", "-q", "--detach", filepath.Join(w.root, "theirs"))
	if err := os.RemoveAll(filepath.Join(w.root, "theirs")); err != nil {
		t.Fatal(err)
	}
	before := filepath.Join(w.root, "before")
	for _, dir := range []string{w.home, w.dir} {
		copied(t, dir, filepath.Join(before, filepath.Base(dir)))
	}
	every := soak.Of(7, 1)
	tries := 0
	try := func(when, at string) (killed bool) {
		for _, dir := range []string{w.home, w.dir} {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			copied(t, filepath.Join(before, filepath.Base(dir)), dir)
		}
		tries++
		killed = w.killedAtGit(when, at, "cleanup", "demo", "--force", "--branches")
		if r := w.cadre("cleanup", "demo", "--force", "--branches"); r.code != 0 {
			w.refused(r, 2, "nothing is left to remove") // the first one came to its end
		}
		if left := w.gitSays("branch", "--list", "cadre/demo*"); left != "cadre/demo@eve" {
			t.Errorf("killed %s %q of git; left: %s", when, at, left)
		}
		trees := w.gitSays("worktree", "list", "--porcelain")
		if strings.Count(trees, "worktree ") != 2 || !strings.Contains(trees, "/theirs\n") ||
			has(w.home, "teams", "demo") {
			t.Errorf("killed %s %q of git; left: %s", when, at, trees)
		}
		return killed
	}
	for _, when := range []string{"before", "after"} {
		// The worktree is gone, but git still believes that the branch is checked out there.
		if !try(when, "worktree remove") {
			t.Errorf("no worktree was removed")
		}
		for n := 1; try(when, strconv.Itoa(n)); n += every {
		}
	}
	if tries < 8 {
		t.Errorf("it was killed only %d times", tries)
	}
	if r := w.cadre("run", "teams/demo.yaml"); r.code != 1 {
		t.Fatalf("exit status %d\n%s", r.code, r.err)
	}
}

// copied copies a folder and its contents.
func copied(t *testing.T, from, to string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cp", "-Rp", from, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// fatalGit is git, but kills the program before or after one command: the command with that number,
// or the first with these words.
const fatalGit = `#!/bin/sh
echo >> "$CADRE_TEST_AT_GIT_COUNT"
case "$(wc -l < "$CADRE_TEST_AT_GIT_COUNT" | tr -d ' ') $*" in
"$CADRE_TEST_AT_GIT "* | *" $CADRE_TEST_AT_GIT "*) ;;
*) exec %[1]q "$@" ;;
esac
[ "$CADRE_TEST_AT_GIT_WHEN" = before ] || %[1]q "$@"
kill -s KILL "$(cat "$CADRE_TEST_AT_GIT_COUNT.pid")"
`

// killedAtGit calls the program, and kills it at that git command. It reports whether there was
// such a command.
func (w *world) killedAtGit(when, at string, args ...string) bool {
	w.t.Helper()
	bin := w.t.TempDir()
	git, err := exec.LookPath("git")
	if err == nil {
		err = os.WriteFile(filepath.Join(bin, "git"), fmt.Appendf(nil, fatalGit, git), 0o700)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	count := filepath.Join(bin, "count")
	// The shell execs the program, so that its pid is the program's.
	c := exec.Command("sh", append([]string{"-c", `echo $$ > "$CADRE_TEST_AT_GIT_COUNT.pid"; exec "$@"`, "sh",
		cadre}, args...)...)
	c.Dir, c.Env = w.dir, append(slices.Clip(w.env), "PATH="+bin+":"+os.Getenv("PATH"), "CADRE_TEST_AT_GIT="+at,
		"CADRE_TEST_AT_GIT_WHEN="+when, "CADRE_TEST_AT_GIT_COUNT="+count)
	out, err := c.CombinedOutput()
	if err != nil && c.ProcessState.ExitCode() >= 0 {
		w.t.Fatalf("cadre %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return err != nil
}

// TestMovedToACopy checks that another clone is refused as the moved project, because the work of
// the team is missing there.
func TestMovedToACopy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repository()
	w.write("demo.yaml", "name: demo\nmembers: [{name: bob}]\ntasks:\n- {id: one, run: echo one >one.txt}\n- {id: "+
		"two, run: test -e go, blockedBy: [one]}\n")
	w.git("add", "-A")
	w.git("commit", "-qm", "team")
	if r := w.cadre("run", "demo.yaml"); r.code != 1 {
		t.Fatalf("exit status %d\n%s", r.code, r.err)
	}
	clone := filepath.Join(w.root, "clone")
	w.git("clone", "-q", "--no-local", "--single-branch", "--branch", "main", w.dir, clone)
	w.moves("moved")
	w.refused(w.cadre("resume", "demo", "--dir", clone), 2, "it lacks the work of task one",
		"cadre resume demo --from-git")
	if r := w.cadre("resume", "demo", "--dir", "."); r.code != 1 || !strings.Contains(r.out, "1 of 2 tasks done") {
		t.Fatalf("exit status %d\n%s%s", r.code, r.out, r.err)
	}
}
