package worktree_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/git"
	"cadre/internal/git/worktree"
)

// TestKilledRemoval kills the removal of a worktree. The next removal finishes it, whatever was
// left, and reports work that was not merged.
func TestKilledRemoval(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	for name, kill := range map[string]func(r *repository, gone string){
		"before anything was removed": func(*repository, string) {},
		"half of it is removed":       func(r *repository, gone string) { r.remove(filepath.Join(gone, ".git")) },
		"it is removed":               func(r *repository, gone string) { r.remove(gone) },
		"git has forgotten it":        func(r *repository, gone string) { r.remove(gone); r.git("worktree", "prune") },
		"what is in it is read-only":  func(r *repository, gone string) { r.readOnly(filepath.Join(gone, "cache")) },
	} {
		for _, merged := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", merged ", merged), func(t *testing.T) {
				t.Parallel()
				r := newRepository(t)
				r.commit("a.txt", "one\n")
				dir := r.add()
				r.write(dir, "a.txt", "ann's\n")
				r.git("-C", dir, "commit", "-qam", "hers")
				if merged {
					r.git("merge", "-q", r.place.Branch)
				}
				r.write(r.place.Repo, ".git/cadre.lock", "")
				gone := filepath.Join(filepath.Dir(dir), ".ann")
				if err := os.Rename(dir, gone); err != nil {
					t.Fatal(err)
				}
				kill(r, gone)
				kept := r.keep()
				if merged != (kept.Commit == "") {
					t.Errorf("%+v", kept)
				}
				if branch := r.git("branch", "--list", r.place.Branch); (branch == "") != merged {
					t.Errorf("the branches: %s", branch)
				}
				if trees := r.git("worktree", "list"); strings.Contains(trees, "\n") {
					t.Errorf("the worktrees: %s", trees)
				}
				for _, path := range []string{gone, filepath.Join(r.place.Repo, ".git", "cadre.lock")} {
					if _, err := os.Lstat(path); err == nil {
						t.Errorf("left: %s", path)
					}
				}
			})
		}
	}
}

// TestKilledCommit checks that the locks which a killed git left in the worktree and on its branch
// are taken over: the member has ended.
func TestKilledCommit(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	r := newRepository(t)
	r.commit("a.txt", "one\n")
	r.write(r.add(), "new.txt", "ann's\n")
	r.write(r.git("-C", r.place.Dir, "rev-parse", "--path-format=absolute", "--git-dir"), "index.lock", "")
	r.write(filepath.Join(r.place.Repo, ".git", "refs", "heads", "cadre"), "demo@ann.lock", "")
	r.keep()
	if got := r.git("show", r.place.Branch+":new.txt"); got != "ann's" {
		t.Errorf("new.txt is %q", got)
	}
}

// TestAddAfterAKilledCommit checks that a worktree is free of a killed git's locks before its
// member starts again.
func TestAddAfterAKilledCommit(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits seconds for a lock; not with -short")
	}
	t.Parallel()
	r := newRepository(t)
	r.commit("a.txt", "one\n")
	r.write(r.add(), "new.txt", "ann's\n")
	own := r.git("-C", r.place.Dir, "rev-parse", "--path-format=absolute", "--git-dir")
	r.write(own, "index.lock", "")
	r.write(own, "HEAD.lock", "")
	r.write(filepath.Join(r.place.Repo, ".git", "refs", "heads", "cadre"), "demo@ann.lock", "")
	r.add()
	r.git("-C", r.place.Dir, "add", "new.txt")
	r.git("-C", r.place.Dir, "commit", "-q", "-m", "hers")
}

// TestKeepAfterAKilledRemoval checks that a killed git's lock on the member's branch delays nothing
// for long if the worktree is gone already.
func TestKeepAfterAKilledRemoval(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits seconds for a lock; not with -short")
	}
	t.Parallel()
	r := newRepository(t)
	r.commit("a.txt", "one\n")
	r.add()
	r.keep()
	r.git("branch", r.place.Branch)
	r.write(filepath.Join(r.place.Repo, ".git", "refs", "heads", "cadre"), "demo@ann.lock", "")
	r.keep()
	if branch := r.git("branch", "--list", r.place.Branch); branch != "" {
		t.Errorf("the branch %s is left", branch)
	}
}

// TestLocked checks that a lock which a killed git left in the person's repository is named, with
// what to do. After that everything works.
func TestLocked(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	r := newRepository(t)
	r.commit("a.txt", "one\n")
	r.add()
	r.git("pack-refs", "--all")
	lock := filepath.Join(r.place.Repo, ".git", "packed-refs.lock")
	r.write(r.place.Repo, ".git/packed-refs.lock", "")
	_, err := worktree.Keep(r.ctx, r.procs, r.place, "Work of ann") // there is nothing on the branch, so it is to go
	if locked := (*git.LockedError)(nil); !errors.As(err, &locked) || locked.File != lock ||
		!strings.Contains(err.Error(), "remove that file") {
		t.Fatalf("it ends with %v", err)
	}
	r.remove(lock)
	if kept := r.keep(); kept != (worktree.Kept{}) || r.git("branch", "--list", r.place.Branch) != "" {
		t.Errorf("%+v", kept)
	}
}
