package worktree_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cadre/internal/git/worktree"
	"cadre/internal/testkit/soak"
)

func everything(string) (bool, string) { return false, "" }

func (r *repository) shots() *worktree.Snapshots {
	r.t.Helper()
	s, err := worktree.OpenSnapshots(r.ctx, r.procs, r.place.Repo, r.t.TempDir())
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

func (r *repository) take(s *worktree.Snapshots, parent string, except worktree.Exception) worktree.Snapshot {
	r.t.Helper()
	snap, err := s.Take(r.ctx, parent, "a snapshot\n", except)
	if err != nil {
		r.t.Fatal(err)
	}
	return snap
}

// paths returns the paths in a commit.
func (r *repository) paths(commit string) string {
	return r.git("ls-tree", "-r", "--name-only", commit)
}

func TestSnapshots(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	r := newRepository(t)
	s := r.shots()
	r.write(r.place.Repo, "first", "one\n")
	unborn := r.take(s, "", everything)
	if got := r.paths(unborn.Commit); unborn.Head != "" || got != "first" {
		t.Errorf("before the first commit: %+v has %q", unborn, got)
	}
	r.commit("kept", "one\n")
	r.write(r.place.Repo, ".gitignore", "out/\n*.log\n")
	r.git("add", "-A")
	r.git("commit", "-q", "-m", "ignore")
	head := r.git("rev-parse", "HEAD")
	clean := r.take(s, "", everything)
	if clean.Commit != head || clean.Head != head || clean.Left != nil {
		t.Errorf("nothing differs from %s: %+v", head, clean)
	}

	r.write(r.place.Repo, "kept", "two\n")
	r.write(r.place.Repo, "new dir/ä\nb", "new\n")
	r.write(r.place.Repo, "staged", "three\n")
	r.git("add", "staged")
	r.write(r.place.Repo, "out/made", "ignored\n")
	r.write(r.place.Repo, "large", strings.Repeat("x", 5<<20+1))
	r.write(r.place.Repo, "mine", "a person's\n")
	if err := os.Mkdir(filepath.Join(r.place.Repo, "nested"), 0o700); err != nil {
		t.Fatal(err)
	}
	r.git("-C", "nested", "init", "-q")
	r.remove(filepath.Join(r.place.Repo, "first"))
	status := r.git("status", "--porcelain")
	index, _ := os.ReadFile(filepath.Join(r.place.Repo, ".git", "index"))
	except := func(path string) (bool, string) { return filepath.Base(path) == "mine", "a person's" }
	snap := r.take(s, head, except)
	// the order of trees
	if got := r.git("diff", "--name-status", "--no-renames", "-z", head, snap.Commit); got != "M\x00kept\x00A\x00new "+
		"dir/ä\nb\x00A\x00staged\x00D\x00first\x00" &&
		got != "D\x00first\x00M\x00kept\x00A\x00new dir/ä\nb\x00A\x00staged\x00" {
		t.Errorf("it differs by %q", got)
	}
	left := slices.Sorted(slices.Values(snap.Left))
	if want := []string{"large (5.1 MiB; up to 5 MiB are kept)", "mine (a person's)",
		"nested/ (a repository of its own)"}; !slices.Equal(left, want) {
		t.Errorf("left out: %q", left)
	}
	if parent := r.git("rev-parse", snap.Commit+"^"); parent != head {
		t.Errorf("it stands on %s", parent)
	}
	if now, _ := os.ReadFile(filepath.Join(r.place.Repo, ".git", "index")); string(now) != string(index) ||
		r.git("status", "--porcelain") != status {
		t.Error("the person's index is another one")
	}
	if all, err := s.TakeAll(r.ctx, head, "a snapshot\n", except); err != nil ||
		!slices.Equal(all.Ignored, []string{"out/"}) || all.Commit != snap.Commit {
		t.Errorf("ignored: %q, %v", all.Ignored, err)
	}

	if again := r.take(s, head, except); again.Commit != snap.Commit {
		t.Errorf("the same once more is %s, not %s", again.Commit, snap.Commit)
	}
	if base := r.take(s, "", except); base.Commit != snap.Commit {
		t.Errorf("the next task starts from %s, not from %s", base.Commit, snap.Commit)
	}
	if other := r.take(r.shots(), snap.Commit, except); other.Commit != snap.Commit {
		t.Errorf("with an index of its own it is %s, not %s", other.Commit, snap.Commit)
	}
	r.write(r.place.Repo, "kept", "3\n")
	next := r.take(s, snap.Commit, except)
	if got := r.git("diff", "--name-only", snap.Commit, next.Commit); got != "kept" {
		t.Errorf("the next task changed %q", got)
	}
	if r.write(r.place.Repo, "kept", "two\n"); r.take(s, snap.Commit, except).Commit != snap.Commit {
		t.Error("what was undone is a change")
	}
	// A file of the person's that the team had changed is as it was.
	r.write(r.place.Repo, "mine", "and the team's\n")
	changed := r.take(s, "", everything)
	if !strings.Contains(r.paths(changed.Commit), "mine") {
		t.Error("what the team changed is missing")
	}
	if back := r.take(s, "", except); strings.Contains(r.paths(back.Commit), "mine") {
		t.Error("what is the person's again is in it")
	}
}

// TestSnapshotsOfOtherKinds checks a path that changes its kind: a file, a folder, a link.
func TestSnapshotsOfOtherKinds(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	for _, name := range []string{"file", "dir/a", "dir/b", "linked/a", "emptied"} {
		r.write(r.place.Repo, name, name+"\n")
	}
	r.git("add", "-A")
	r.git("commit", "-q", "-m", "first")
	s := r.shots()
	base := r.take(s, "", everything).Commit
	at := func(name string) string { return filepath.Join(r.place.Repo, name) }
	for _, name := range []string{"file", "dir", "linked", "emptied"} {
		r.remove(at(name))
	}
	r.write(r.place.Repo, "file/below", "now a folder\n")
	r.write(r.place.Repo, "dir", "now a file\n")
	r.write(r.place.Repo, "elsewhere/a", "behind the link\n")
	if err := os.Symlink("elsewhere", at("linked")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(at("emptied"), 0o700); err != nil {
		t.Fatal(err)
	}
	snap := r.take(s, base, everything)
	if got := strings.ReplaceAll(r.paths(snap.Commit), "\n", " "); got != "dir elsewhere/a file/below linked" ||
		len(snap.Left) > 0 {
		t.Errorf("it has %q, and not %q", got, snap.Left)
	}
	if os.Getuid() != 0 {
		r.write(r.place.Repo, "secret", "?\n")
		if err := os.Chmod(at("secret"), 0); err != nil {
			t.Fatal(err)
		}
		if snap := r.take(s, base, everything); !slices.Equal(snap.Left, []string{"secret (cannot be read)"}) {
			t.Errorf("left out: %q", snap.Left)
		}
	}
}

func TestNoSnapshotOutsideARepository(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	if _, err := worktree.OpenSnapshots(r.ctx, r.procs, t.TempDir(), t.TempDir()); err != worktree.ErrNoRepository {
		t.Error(err)
	}
}

// TestKeepCommits checks that commits without a branch survive git gc, even if several processes
// keep commits at once, and that they are dropped with the reference.
func TestKeepCommits(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	r := newRepository(t)
	r.commit("kept", "one\n")
	s := r.shots()
	ref := worktree.WorkRef("demo")
	var commits []string
	for i := range 8 {
		r.write(r.place.Repo, "kept", fmt.Sprint(i))
		commits = append(commits, r.take(s, "", everything).Commit)
	}
	errs := make(chan error)
	for _, c := range commits {
		go func() {
			_, err := worktree.KeepCommits(context.WithoutCancel(r.ctx), r.procs, r.place.Repo, ref, "", "keep\n", c)
			errs <- err
		}()
	}
	for range commits {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	r.git("gc", "-q", "--prune=now")
	for _, c := range commits {
		r.git("merge-base", "--is-ancestor", c, ref)
	}
	if all := r.git("branch", "--all"); all != "* main" {
		t.Errorf("the branches are %q", all)
	}
	if err := worktree.DropCommits(r.ctx, r.procs, r.place.Repo, ref); err != nil {
		t.Fatal(err)
	}
	r.git("gc", "-q", "--prune=now")
	if _, code := r.run("cat-file", "-e", commits[0]); code == 0 {
		t.Error("the commit is still there")
	}
}

// TestCommit checks that a member's uncommitted work is committed while the member may be working.
func TestCommit(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	r := newRepository(t)
	r.commit("kept", "one\n")
	if _, err := worktree.Add(r.ctx, r.procs, r.place); err != nil {
		t.Fatal(err)
	}
	head := r.git("rev-parse", "HEAD")
	commit := func() (string, []string) {
		t.Helper()
		c, left, err := worktree.Commit(r.ctx, r.procs, r.place, "Task 1 (ann)\n")
		if err != nil {
			t.Fatal(err)
		}
		return c, left
	}
	if c, left := commit(); c != head || left != nil {
		t.Errorf("nothing was done: %s, %q", c, left)
	}
	r.write(r.place.Dir, "kept", "two\n")
	r.write(r.place.Dir, "new", "new\n")
	c, left := commit()
	if left != nil || r.git("rev-parse", r.place.Branch) != c || r.git("log", "-1", "--format=%s",
		c) != "Task 1 (ann)" || r.git("diff", "--name-only", head, c) != "kept\nnew" {
		t.Errorf("%s, %q", c, left)
	}
	if again, _ := commit(); again != c {
		t.Errorf("once more it is %s", again)
	}
	// In the middle of a merge the member continues by itself.
	r.git("-C", r.place.Dir, "checkout", "-q", "-b", "other", "HEAD^")
	r.write(r.place.Dir, "kept", "three\n")
	r.git("-C", r.place.Dir, "commit", "-q", "-am", "other")
	if _, code := r.run("-C", r.place.Dir, "merge", "-q", r.place.Branch); code == 0 {
		t.Fatal("it merged")
	}
	m, left := commit()
	if m != r.git("rev-parse", "other") || len(left) != 2 || !strings.Contains(left[0], "in the middle of a merge") ||
		!strings.Contains(left[1], "has other checked out") {
		t.Errorf("%s, %q", m, left)
	}
	r.git("-C", r.place.Dir, "merge", "--abort")
	r.git("worktree", "remove", "--force", r.place.Dir)
	if tip, left := commit(); tip != c || left != nil {
		t.Errorf("without the worktree: %s, %q", tip, left)
	}
	r.git("branch", "-q", "-D", r.place.Branch)
	if _, _, err := worktree.Commit(r.ctx, r.procs, r.place, "x\n"); err == nil || !strings.Contains(err.Error(),
		"neither the worktree") {
		t.Error(err)
	}
}

// TestChangeWithinTheIndexesSecond checks that a change of a file that keeps its size is found,
// even in the second in which the index was written. Our copy of the index has the time of the
// original, by which git knows that it must read the file.
func TestChangeWithinTheIndexesSecond(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	file, index, then := filepath.Join(r.place.Repo, "a.txt"), filepath.Join(r.place.Repo, ".git", "index"),
		time.Now().Add(-time.Hour)
	r.git("config", "core.trustctime", "false") // else git may see it by the time of the test
	r.git("config", "core.checkStat", "minimal")
	r.write(r.place.Repo, "a.txt", "one\n")
	if err := os.Chtimes(file, then, then); err != nil {
		t.Fatal(err)
	}
	r.git("add", "a.txt")
	r.git("commit", "-qm", "one")
	r.write(r.place.Repo, "a.txt", "two\n")
	if err := errors.Join(os.Chtimes(file, then, then), os.Chtimes(index, then, then)); err != nil {
		t.Fatal(err)
	}
	if e, err := worktree.Diff(r.ctx, r.procs, r.place.Repo, nobodys); err != nil ||
		!strings.Contains(string(e.Patch), "+two") {
		t.Errorf("the patch is %q, %v", e.Patch, err)
	}
	s, err := worktree.OpenSnapshots(r.ctx, r.procs, r.place.Repo, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	snap, err := s.Take(r.ctx, "", "now", func(string) (bool, string) { return false, "" })
	if err != nil || r.git("show", snap.Commit+":a.txt") != "two" {
		t.Errorf("the snapshot is %+v, %v", snap, err)
	}
}
