package worktree_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cadre/internal/git/worktree"
	"cadre/internal/testkit/soak"
)

// moved renames a folder.
func (r *repository) moved(from, to string) {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Rename(from, to); err != nil {
		r.t.Fatal(err)
	}
}

func (r *repository) look() (worktree.State, error) {
	r.t.Helper()
	return worktree.Look(r.ctx, r.procs, r.place)
}

// refusedAs checks that both look and Add refuse the place in those words, and that Add has changed
// nothing there.
func (r *repository) refusedAs(words ...string) {
	r.t.Helper()
	before := r.tree()
	_, looked := r.look()
	_, added := worktree.Add(r.ctx, r.procs, r.place)
	for _, err := range []error{looked, added} {
		if broken := (*worktree.BrokenError)(nil); !errors.As(err, &broken) {
			r.t.Fatalf("it ends with %v", err)
		}
		for _, word := range words {
			if !strings.Contains(err.Error(), word) {
				r.t.Errorf("%q is not in: %v", word, err)
			}
		}
	}
	if after := r.tree(); after != before {
		r.t.Errorf("it was\n%s\nand is\n%s", before, after)
	}
}

// tree returns what is in the place, and the repository's records of worktrees.
func (r *repository) tree() string {
	r.t.Helper()
	var all strings.Builder
	for _, top := range []string{filepath.Dir(r.place.Dir), filepath.Join(r.place.Repo, ".git", "worktrees"),
		filepath.Join(r.place.Repo, ".git", "refs", "heads")} {
		filepath.Walk(top, func(path string, info os.FileInfo, err error) error {
			if err == nil {
				fmt.Fprintln(&all, path, info.Mode(), info.Size(), info.ModTime())
			}
			return nil
		})
	}
	return all.String()
}

// TestMoved checks that a worktree is reconnected with its repository after one of them or both
// were moved. Uncommitted work is still there, and can be merged.
func TestMoved(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	for name, move := range map[string]func(r *repository){
		"the repository": func(r *repository) { r.movesRepo("elsewhere") },
		"the worktree":   func(r *repository) { r.movesTrees("other") },
		"both":           func(r *repository) { r.movesRepo("elsewhere"); r.movesTrees("other") },
		"both, and something new stands where the repository was": func(r *repository) {
			old := r.place.Repo
			r.movesRepo("elsewhere")
			r.movesTrees("other")
			r.git("clone", "-q", r.place.Repo, old)
		},
		"a kill when the link to the repository was written": func(r *repository) {
			r.movesRepo("elsewhere")
			r.write(r.place.Dir, ".git", "")
		},
		"a kill when the link to the worktree was written": func(r *repository) {
			r.movesTrees("other")
			r.write(r.place.Repo, ".git/worktrees/ann/gitdir", "")
		},
		"the repository, to where a link leads": func(r *repository) {
			r.movesRepo("elsewhere")
			link := filepath.Join(r.t.TempDir(), "link")
			if err := os.Symlink(r.place.Repo, link); err != nil {
				r.t.Fatal(err)
			}
			r.place.Repo = link
		},
	} {
		for _, how := range []string{"Add", "Repair"} {
			t.Run(how+", "+name, func(t *testing.T) {
				t.Parallel()
				r := newRepository(t)
				r.commit("a.txt", "one\n")
				dir := r.add()
				r.write(dir, "a.txt", "ann's\n")
				r.git("-C", dir, "commit", "-qam", "hers")
				r.write(dir, "b.txt", "ann's, not committed\n")
				move(r)
				if state, err := r.look(); state != worktree.Moved || err != nil {
					t.Fatalf("it is %d, %v", state, err)
				}
				if how == "Add" {
					if dir := r.add(); dir != r.place.Dir {
						t.Errorf("work continues in %s", dir)
					}
				} else if err := worktree.Repair(r.ctx, r.procs, r.place); err != nil {
					t.Fatal(err)
				}
				if state, err := r.look(); state != worktree.Whole || err != nil {
					t.Fatalf("it is %d, %v", state, err)
				}
				if status := r.git("-C", r.place.Dir, "status", "--porcelain"); status != "?? b.txt" {
					t.Errorf("in the worktree: %s", status)
				}
				if err := worktree.Repair(r.ctx, r.procs, r.place); err != nil {
					t.Errorf("repaired once more: %v", err)
				}
				r.git("worktree", "prune")
				on := r.keep().Commit
				if got := r.git("show", on+":a.txt", on+":b.txt"); got != "ann's\nann's, not committed" {
					t.Errorf("on the branch is %q", got)
				}
			})
		}
	}
}

func (r *repository) movesRepo(to string) {
	r.t.Helper()
	old := r.place.Repo
	r.place.Repo = filepath.Join(filepath.Dir(old), to)
	r.moved(old, r.place.Repo)
}

func (r *repository) movesTrees(to string) {
	r.t.Helper()
	old := filepath.Dir(r.place.Dir)
	trees := filepath.Join(filepath.Dir(old), to)
	r.moved(old, trees)
	r.place.Dir = filepath.Join(trees, "ann")
}

// TestNotAWorktree checks that no session starts in anything else in the place of a worktree, and
// that it stays unchanged.
func TestNotAWorktree(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	for name, c := range map[string]struct {
		does func(r *repository)
		says []string
	}{
		"it was removed": {func(r *repository) { r.remove(r.place.Dir) },
			[]string{"does not exist any more", "remove its record"}},
		"a file": {func(r *repository) {
			r.remove(r.place.Dir)
			r.write(filepath.Dir(r.place.Dir), "ann",
				"x")
		}, []string{"is a file"}},
		"a link to the main checkout": {func(r *repository) {
			r.git("worktree", "remove", r.place.Dir)
			r.git("checkout", "-q", r.place.Branch)
			if err := os.Symlink(r.place.Repo, r.place.Dir); err != nil {
				r.t.Fatal(err)
			}
		}, []string{"is a symbolic link"}},
		"a folder": {func(r *repository) {
			r.remove(r.place.Dir)
			r.write(r.place.Dir, "notes.txt", "x")
		}, []string{"without the file .git"}},
		"a repository of its own": {func(r *repository) {
			r.remove(r.place.Dir)
			r.git("init", "-q", "-b", r.place.Branch, r.place.Dir)
			r.git("-C", r.place.Dir, "-c", "user.name=ann", "-c", "user.email=ann@example.org", "commit", "-q",
				"--allow-empty", "-m", "own")
			r.git("worktree", "prune")
		}, []string{"has a .git that is not the one of a worktree"}},
		"a pipe": {func(r *repository) {
			r.git("worktree", "remove", r.place.Dir)
			r.write(r.place.Dir, "notes.txt", "x")
			if err := syscall.Mkfifo(filepath.Join(r.place.Dir, ".git"), 0o600); err != nil {
				r.t.Fatal(err)
			}
		}, []string{"has a .git that is not the one of a worktree"}},
		"a worktree of another repository": {func(r *repository) {
			r.git("worktree", "remove", r.place.Dir)
			other := filepath.Join(r.t.TempDir(), "other")
			r.git("clone", "-q", r.place.Repo, other)
			r.git("-C", other, "worktree", "add", "-q", "-b", r.place.Branch, r.place.Dir)
		}, []string{"is a worktree of another repository", "/other/.git"}},
		"a worktree of a repository that is gone": {func(r *repository) {
			r.git("worktree", "remove", r.place.Dir)
			other := filepath.Join(r.t.TempDir(), "other")
			r.git("clone", "-q", r.place.Repo, other)
			r.git("-C", other, "worktree", "add", "-q", "-b", r.place.Branch, r.place.Dir)
			r.remove(other)
		}, []string{"/other/.git, which is not there", "name the directory"}},
		"a copy": {func(r *repository) {
			old := r.place.Dir
			r.place.Dir = filepath.Join(r.t.TempDir(), "ann")
			if err := os.CopyFS(r.place.Dir, os.DirFS(old)); err != nil {
				r.t.Fatal(err)
			}
		}, []string{"is a copy of a worktree"}},
		"it is on another branch": {func(r *repository) { r.git("-C", r.place.Dir, "checkout", "-q", "-b", "mine") },
			[]string{"is on the branch mine, and not on cadre/demo@ann", "Check that branch out"}},
		"it is on no branch": {func(r *repository) { r.git("-C", r.place.Dir, "checkout", "-q", "--detach") },
			[]string{"is on no branch, and not on cadre/demo@ann", "Check that branch out"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepository(t)
			r.commit("a.txt", "one\n")
			r.add()
			c.does(r)
			r.refusedAs(c.says...)
		})
	}
}

// TestGivenUp checks that a person who gives up a lost worktree gets a new one with the commits.
func TestGivenUp(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	r := newRepository(t)
	r.commit("a.txt", "one\n")
	dir := r.add()
	r.write(dir, "b.txt", "ann's\n")
	r.git("-C", dir, "add", "-A")
	r.git("-C", dir, "commit", "-qm", "hers")
	r.remove(dir)
	_, err := worktree.Add(r.ctx, r.procs, r.place)
	broken, is := errors.AsType[*worktree.BrokenError](err)
	if want := (worktree.Fix{Does: worktree.RemoveRecord, Dir: r.place.Repo}); !is || broken.Fix != want {
		t.Fatalf("it ends with %v, %+v", err, broken)
	}
	r.git("worktree", "remove", "--force", broken.Dir)
	r.add()
	if text, err := os.ReadFile(filepath.Join(dir, "b.txt")); string(text) != "ann's\n" {
		t.Errorf("b.txt is %q, %v", text, err)
	}
}

// TestAddForgetsNoOther checks that other records stay in the repository, such as the person's
// worktrees on a volume that is not mounted.
func TestAddForgetsNoOther(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	r := newRepository(t)
	r.commit("a.txt", "one\n")
	theirs := filepath.Join(t.TempDir(), "volume")
	r.git("worktree", "add", "-q", "-b", "theirs", theirs)
	r.moved(theirs, theirs+"-unmounted")
	r.add()
	r.keep()
	r.moved(theirs+"-unmounted", theirs)
	if branch := r.git("-C", theirs, "symbolic-ref", "--short", "HEAD"); branch != "theirs" {
		t.Errorf("it is on %s", branch)
	}
}

// TestAddAfterTheHomeIsLost checks that the lost worktree of a team whose folder is lost does not
// block its branch.
func TestAddAfterTheHomeIsLost(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	r := newRepository(t)
	r.commit("a.txt", "one\n")
	dir := r.add()
	r.write(dir, "b.txt", "ann's\n")
	r.git("-C", dir, "add", "-A")
	r.git("-C", dir, "commit", "-qm", "hers")
	r.remove(filepath.Dir(dir))
	r.place.Dir = filepath.Join(t.TempDir(), "home", "ann")
	r.add()
	if text, err := os.ReadFile(filepath.Join(r.place.Dir, "b.txt")); string(text) != "ann's\n" {
		t.Errorf("b.txt is %q, %v", text, err)
	}
}

// TestLockedByItsMember checks that a worktree which its member has locked is removed all the same.
func TestLockedByItsMember(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	r := newRepository(t)
	r.commit("a.txt", "one\n")
	dir := r.add()
	r.write(dir, "b.txt", "ann's\n")
	r.git("worktree", "lock", dir)
	if kept := r.keep(); kept.Commit == "" {
		t.Errorf("%+v", kept)
	}
	if trees := r.git("worktree", "list"); strings.Contains(trees, "\n") {
		t.Errorf("the worktrees: %s", trees)
	}
}

// TestKilledAdd kills git at any moment while it makes a worktree. The next Add completes it, and
// no missing file counts as deleted by the member.
func TestKilledAdd(t *testing.T) {
	if testing.Short() {
		t.Skip("many kills")
	}
	t.Parallel()
	r := newRepository(t)
	for i := range 10 { // each takes its time to be checked out
		r.write(r.place.Repo, fmt.Sprintf("f%03d.slow", i), "text\n")
	}
	r.write(r.place.Repo, ".gitattributes", "*.slow filter=slow\n")
	r.git("config", "filter.slow.smudge", "sleep 0.02; cat")
	r.git("config", "filter.slow.clean", "cat")
	r.commit("a.txt", "one\n")
	began := time.Now()
	r.add()
	whole := time.Since(began)
	r.keep()
	const kills = 10
	halves := 0
	for i := range kills {
		c := exec.Command("git", "-C", r.place.Repo, "worktree", "add", "-q", "-b", r.place.Branch, r.place.Dir)
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(whole * time.Duration(i+1) / kills)
		syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		c.Wait()
		if state, err := r.look(); err != nil {
			t.Fatal(err)
		} else if state == worktree.Partial {
			halves++
		}
		dir := r.add()
		if status := r.git("-C", dir, "status", "--porcelain"); status != "" {
			t.Fatalf("after a kill at %s of %s: %.300s", whole*time.Duration(i+1)/kills, whole, status)
		}
		r.keep()
	}
	if halves == 0 {
		t.Error("no kill left a part of a worktree")
	}
}
