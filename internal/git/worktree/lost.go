package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"cadre/internal/sys/proc"
)

// ForgetLost removes the repository's record of a worktree that was lost together with its team's
// folder, so that Add can make it again. It first commits what was staged there to the worktree's
// branch, and returns that commit; "" if nothing was staged. Commits stay on their branches.
// ForgetLost does nothing if the worktree exists or has no record. If removing the record would
// lose something, it returns a [BrokenError] and changes nothing.
func ForgetLost(ctx context.Context, procs *proc.Register, p Place) (saved string, err error) {
	g := in(procs, p.Repo)
	common, unlock, err := g.lock(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	own := entryOf(common, p.Dir)
	if _, err := os.Lstat(p.Dir); own.dir == "" || err == nil {
		return "", nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if exists(filepath.Join(own.dir, "locked")) && !own.partial() {
		return "", &BrokenError{p.Dir, "does not exist, and its record in the repository is locked",
			"Bring it back, or unlock its record.", Fix{Does: Unlock, Dir: p.Repo}}
	}
	if !own.partial() {
		if saved, err = g.staged(ctx, p, own); err != nil {
			return "", err
		}
	}
	return saved, g.drop(ctx, p.Dir)
}

// staged commits what the lost worktree has staged to the branch that it has checked out.
func (f folder) staged(ctx context.Context, p Place, own entry) (commit string, err error) {
	lost := folder{f.With("GIT_DIR=" + own.dir)}
	head, err := lost.reference(ctx, "HEAD")
	if err != nil || head == "" {
		return "", err
	}
	elsewhere, err := f.Text(ctx, "rev-list", "--count", "--max-count=1", head, "--not", "--branches")
	if err != nil {
		return "", err
	}
	if elsewhere != "0" {
		return "", &BrokenError{p.Dir, fmt.Sprintf("does not exist any more, and the commit %.12s that it had checked "+
			"out is on no branch", head), "Put that commit on a branch.", Fix{KeepCommit, p.Repo, head}}
	}
	if !exists(filepath.Join(own.dir, "index")) {
		return "", nil
	}
	tree, err := lost.Text(ctx, "write-tree")
	if err != nil { // an unfinished merge, whose sides are commits of branches
		return "", ctx.Err()
	}
	before, err := f.Text(ctx, "rev-parse", head+"^{tree}")
	if err != nil || tree == before {
		return "", err
	}
	branch, err := lost.Text(ctx, "symbolic-ref", "--quiet", "HEAD")
	if err != nil {
		return "", &BrokenError{p.Dir, fmt.Sprintf("does not exist any more, and the files that were staged there, "+
			"tree %.12s, are on no branch", tree), "Save what you need of them.", Fix{ListFiles, p.Repo, tree}}
	}
	commit, err = f.Committing(ctx).Text(ctx, "commit-tree", tree, "-p", head, "-m",
		"What was staged in a worktree that was lost")
	if err != nil {
		return "", err
	}
	return commit, f.UpdateOwn(ctx, branch, branch, commit, head)
}
