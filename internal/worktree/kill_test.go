package worktree_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/git"
	"cadre/internal/worktree"
)

// What a merge that was killed left behind is no hindrance to the next one, and what the person has not committed is as it was.
func TestKilledMerge(t *testing.T) {
	if testing.Short() {
		t.Skip("many merges")
	}
	t.Parallel()
	for name, left := range map[string]func(r *repository){
		"the work tree was half written": func(r *repository) {
			r.write(r.place.Repo, "new.txt", "ann's\n")
			r.write(r.place.Repo, "a.txt", "ann's\n")
		},
		"the index was written too": func(r *repository) {
			r.write(r.place.Repo, "new.txt", "ann's\n")
			r.write(r.place.Repo, "a.txt", "ann's\n")
			r.git("add", "new.txt", "a.txt")
		},
		"the index was held": func(r *repository) {
			ours, lock := filepath.Join(r.place.Repo, ".git", "cadre-index-merge"), filepath.Join(r.place.Repo, ".git", "index.lock")
			r.write(r.place.Repo, ".git/cadre-index-merge", "")
			if err := os.Link(ours, lock); err != nil {
				r.t.Fatal(err)
			}
		},
		"the worktree was locked": func(r *repository) {
			r.write(r.git("-C", r.place.Dir, "rev-parse", "--path-format=absolute", "--git-dir"), "index.lock", "")
			r.write(filepath.Join(r.place.Repo, ".git", "refs", "heads", "cadre"), "demo@ann.lock", "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepository(t)
			r.commit("b.txt", "one\n")
			r.commit("a.txt", "one\n")
			dir := r.add()
			r.write(dir, "a.txt", "ann's\n")
			r.write(dir, "new.txt", "ann's\n")
			r.write(r.place.Repo, "b.txt", "the person's\n")
			r.write(r.place.Repo, "staged.txt", "the person's\n")
			r.git("add", "staged.txt")
			left(r)
			if result := r.finish(); !result.Merged || result.Left != "" {
				t.Errorf("%+v", result)
			}
			if status := r.git("status", "--porcelain"); status != "M b.txt\nA  staged.txt" { // without its first space
				t.Errorf("the work tree: %s", status)
			}
			if got := r.git("show", "HEAD:a.txt", "HEAD:new.txt", "HEAD:b.txt"); got != "ann's\nann's\none" {
				t.Errorf("merged is %q", got)
			}
			if locks, _ := filepath.Glob(filepath.Join(r.place.Repo, ".git", "*index*")); len(locks) != 1 {
				t.Errorf("left: %v", locks)
			}
		})
	}
}

// Killed while the worktree goes, it is gone after the next one, whatever was left of it; and work that was not merged is told of.
func TestKilledRemoval(t *testing.T) {
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
				result := r.finish()
				if merged != (result.Left == "") {
					t.Errorf("%+v", result)
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

// A lock that a git which was killed left in the person's repository is named, with what to do; and once that was done, all goes on.
func TestLocked(t *testing.T) {
	for _, name := range []string{"HEAD.lock", "packed-refs.lock"} { // each takes the time that another git command is given
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepository(t)
			r.commit("a.txt", "one\n")
			r.write(r.add(), "new.txt", "ann's\n")
			r.write(r.place.Repo, "mine.txt", "the person's\n")
			r.git("pack-refs", "--all")
			lock := filepath.Join(r.place.Repo, ".git", filepath.FromSlash(name))
			r.write(r.place.Repo, ".git/"+name, "")
			_, err := worktree.Finish(r.ctx, r.procs, r.place, "Work of ann")
			if locked := (*git.LockedError)(nil); !errors.As(err, &locked) || locked.File != lock || !strings.Contains(err.Error(), "remove that file") {
				t.Fatalf("it ends with %v", err)
			}
			if status := r.git("status", "--porcelain"); status != "?? mine.txt" {
				t.Errorf("the work tree: %s", status)
			}
			r.remove(lock)
			if result := r.finish(); result.Left != "" {
				t.Errorf("%+v", result)
			}
			if got := r.git("show", "HEAD:new.txt"); got != "ann's" || r.git("branch", "--list", r.place.Branch) != "" {
				t.Errorf("new.txt is %q", got)
			}
		})
	}
}
