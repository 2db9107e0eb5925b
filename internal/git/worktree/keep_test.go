package worktree_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/git/worktree"
	"cadre/internal/testkit/soak"
)

// TestKeep checks that a member's work is only on its branch, and that Keep may be killed and
// called again.
func TestKeep(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	r := newRepository(t)
	r.commit("a.txt", "one\n")
	head := r.git("rev-parse", "HEAD")
	r.write(r.add(), "new.txt", "ann's\n")
	for range 2 {
		if _, err := worktree.Keep(r.ctx, r.procs, r.place, "Work of ann"); err != nil {
			t.Fatal(err)
		}
	}
	tip, err := worktree.Ahead(r.ctx, r.procs, r.place.Repo, r.place.Branch)
	if err != nil || tip != r.git("rev-parse", r.place.Branch) || r.git("show", tip+":new.txt") != "ann's" ||
		r.git("rev-parse", "HEAD") != head || r.git("status", "--porcelain") != "" {
		t.Errorf("%q, %v", tip, err)
	}
	if trees := r.git("worktree", "list"); strings.Contains(trees, "\n") {
		t.Errorf("the worktrees: %s", trees)
	}
	r.git("merge", "-q", r.place.Branch)
	if tip, err := worktree.Ahead(r.ctx, r.procs, r.place.Repo, r.place.Branch); tip != "" || err != nil {
		t.Errorf("%q is ahead, %v", tip, err)
	}
	if tip, err := worktree.Tip(r.ctx, r.procs, r.place.Repo, "none"); tip != "" || err != nil {
		t.Errorf("%q, %v", tip, err)
	}
	if _, err := worktree.Ahead(r.ctx, r.procs, r.place.Dir, "none"); err == nil {
		t.Error("where there is no repository, nothing is ahead")
	}

	r.add() // HEAD has everything on it
	if _, err := worktree.Keep(r.ctx, r.procs, r.place, "Work of ann"); err != nil ||
		r.git("branch", "--list", r.place.Branch) != "" {
		t.Errorf("the branch stays: %v", err)
	}
}

// TestJoin checks that the way for a git before 2.38 makes the same tree of two commits, finds the
// same conflicts, and touches nothing.
func TestJoin(t *testing.T) {
	soak.Long(t)
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	old := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\ncase \" $* \" in *\" merge-tree --write-tree \"*) echo 'usage: git merge-tree "+
		"<base-tree> <branch1> <branch2>' >&2; exit 129;; esac\nexec %q \"$@\"\n", git)
	if err := os.WriteFile(filepath.Join(old, "git"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	path := os.Getenv("PATH")
	r := newRepository(t)
	r.commit("both.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n")
	r.commit("gone.txt", "one\n")
	r.commit("dir/kept.txt", "one\n")
	r.git("checkout", "-qb", "topic")
	r.write(r.place.Repo, "both.txt", "1\n2\n3\n4\n5\n6\n7\n8\nnine\n")
	r.git("rm", "-q", "gone.txt")
	r.commit("new/deep.txt", "topic's\n")
	r.git("checkout", "-qb", "clash", "main")
	r.commit("dir/kept.txt", "another\n")
	r.git("checkout", "-q", "main")
	r.write(r.place.Repo, "both.txt", "one\n2\n3\n4\n5\n6\n7\n8\n9\n")
	r.commit("dir/kept.txt", "main's\n")
	r.git("checkout", "-q", "--orphan", "stranger")
	r.commit("other.txt", "x\n")
	r.git("checkout", "-q", "main")
	r.write(r.place.Repo, "both.txt", "not committed\n")
	before := r.git("status", "--porcelain") + r.git("ls-files", "--stage")
	trees := map[string]string{}
	for _, age := range []string{"new", "old"} {
		t.Setenv("PATH", path)
		if age == "old" {
			t.Setenv("PATH", old+":"+path)
		}
		tree, left, err := worktree.Join(r.ctx, r.procs, r.place.Repo, "main", "topic")
		if tree == "" || !left.None() || err != nil {
			t.Fatalf("%s: %q, %q, %v", age, tree, left, err)
		}
		trees[age] = tree
		if files := r.git("ls-tree", "-r", "--name-only", tree); files != "both.txt\ndir/kept.txt\nnew/deep.txt" {
			t.Errorf("%s: %s", age, files)
		}
		if text := r.git("cat-file", "-p", tree+":both.txt"); text != "one\n2\n3\n4\n5\n6\n7\n8\nnine" {
			t.Errorf("%s: both.txt is %q", age, text)
		}
		if tree, left, err := worktree.Join(r.ctx, r.procs, r.place.Repo, "main", "clash"); tree != "" ||
			left.String() != "conflicts in dir/kept.txt" || err != nil {
			t.Errorf("%s: %q, %q, %v", age, tree, left, err)
		}
		if tree, left, err := worktree.Join(r.ctx, r.procs, r.place.Repo, "main", "stranger"); tree != "" ||
			left.Why == "" || err != nil {
			t.Errorf("%s: %q, %q, %v", age, tree, left, err)
		}
		if now := r.git("status", "--porcelain") + r.git("ls-files", "--stage"); now != before {
			t.Errorf("%s: it was\n%s\nand is\n%s", age, before, now)
		}
	}
	if trees["old"] != trees["new"] {
		t.Errorf("the trees differ: %v", trees)
	}
}
