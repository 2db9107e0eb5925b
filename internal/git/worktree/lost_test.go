package worktree_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/git/worktree"
	"cadre/internal/testkit/soak"
)

// TestForgetLost checks that a worktree that was lost with its team's folder can be made again, and
// that nothing that git still has of it is lost.
func TestForgetLost(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	r := newRepository(t)
	r.commit("a.txt", "one\n")
	if saved, err := worktree.ForgetLost(r.ctx, r.procs, r.place); saved != "" || err != nil {
		t.Fatalf("without one: %q, %v", saved, err)
	}
	dir := r.add()
	r.write(dir, "a.txt", "committed\n")
	r.git("-C", dir, "commit", "-qam", "hers")
	if saved, err := worktree.ForgetLost(r.ctx, r.procs, r.place); saved != "" || err != nil {
		t.Fatalf("while it is there: %q, %v", saved, err)
	}
	if state, err := r.look(); state != worktree.Whole || err != nil {
		t.Fatalf("it is %d, %v", state, err)
	}
	r.write(dir, "b.txt", "staged\n")
	r.git("-C", dir, "add", "b.txt")
	r.remove(dir)
	saved, err := worktree.ForgetLost(r.ctx, r.procs, r.place)
	if err != nil || saved == "" {
		t.Fatalf("it was saved as %q, %v", saved, err)
	}
	if dir = r.add(); r.git("-C", dir, "show", "HEAD:a.txt", "HEAD:b.txt") != "committed\nstaged" {
		t.Errorf("the branch has %s", r.git("-C", dir, "show", "HEAD:a.txt", "HEAD:b.txt"))
	}
	r.remove(dir)
	if saved, err := worktree.ForgetLost(r.ctx, r.procs, r.place); saved != "" || err != nil {
		t.Errorf("with nothing staged: %q, %v", saved, err)
	}
	r.add()
}

// TestForgetLostRefuses checks that a record is kept if only it refers to some commit or tree of
// the lost worktree.
func TestForgetLostRefuses(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	for name, c := range map[string]struct {
		does func(r *repository, dir string)
		says string
		fix  worktree.Remedy
	}{
		"a commit on no branch": {func(r *repository, dir string) {
			r.git("-C", dir, "checkout", "-q", "--detach")
			r.write(dir, "a.txt", "hers\n")
			r.git("-C", dir, "commit", "-qam", "hers")
		}, "is on no branch. ", worktree.KeepCommit},
		"staged on no branch": {func(r *repository, dir string) {
			r.git("-C", dir, "checkout", "-q", "--detach")
			r.write(dir, "a.txt", "hers\n")
			r.git("-C", dir, "add", "a.txt")
		}, "are on no branch. ", worktree.ListFiles},
		"locked": {func(r *repository, dir string) { r.git("worktree", "lock", dir) }, "is locked. ",
			worktree.Unlock},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepository(t)
			r.commit("a.txt", "one\n")
			dir := r.add()
			c.does(r, dir)
			r.remove(dir)
			_, err := worktree.ForgetLost(r.ctx, r.procs, r.place)
			if broken := (*worktree.BrokenError)(nil); !errors.As(err, &broken) ||
				!strings.Contains(err.Error(), c.says) || broken.Fix.Does != c.fix || broken.Fix.Dir != r.place.Repo {
				t.Errorf("it says %v, %+v", err, broken)
			}
			if entries, err := os.ReadDir(filepath.Join(r.place.Repo, ".git", "worktrees")); err != nil ||
				len(entries) != 1 {
				t.Errorf("the record is gone: %v", err)
			}
		})
	}
}
