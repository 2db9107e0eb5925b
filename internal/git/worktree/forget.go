package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"cadre/internal/sys/proc"
)

// Forget removes the repository's records of missing worktrees whose directories are the caller's.
// Unlike git worktree prune, it keeps the user's worktrees on volumes that are not mounted.
func Forget(ctx context.Context, procs *proc.Register, repo string, its func(dir string) bool) error {
	g := in(procs, repo)
	common, err := g.common(ctx)
	if err != nil || len(stale(common, its)) == 0 {
		return err
	}
	unlock, err := alone(ctx, common) // a worktree in the making is missing too
	if err != nil {
		return err
	}
	defer unlock()
	var errs []error
	for _, dir := range stale(common, its) {
		errs = append(errs, g.drop(ctx, dir))
	}
	return errors.Join(errs...)
}

// stale returns the directories of recorded worktrees that are missing and are the caller's.
func stale(common string, its func(dir string) bool) (dirs []string) {
	for _, e := range entries(common) {
		tree := e.tree()
		if filepath.Base(tree) != ".git" || !its(filepath.Dir(tree)) {
			continue
		}
		if _, err := os.Lstat(filepath.Dir(tree)); errors.Is(err, fs.ErrNotExist) {
			dirs = append(dirs, filepath.Dir(tree))
		}
	}
	return dirs
}
