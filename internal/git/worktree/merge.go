package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"cadre/internal/sys/proc"
)

// merged is a reference of the worktree alone. It names the commit to which the worktree is being
// updated.
const merged = "refs/worktree/cadre-merge"

// Merge merges the commits into the branch of the worktree, and updates its files. No session may
// be working there. It first commits uncommitted work. If one of the commits conflicts, Merge
// returns it with the conflict; the ones before it are merged.
//
// Merge first makes the commit, and records it in the worktree as the destination, before any file
// changes. So after a kill, the next call finishes the update, and does not confuse a half-written
// file with the member's work. Merge names the worktree to git explicitly, so that nothing that a
// member wrote there redirects git to the user's checkout.
func Merge(ctx context.Context, procs *proc.Register, p Place, message string,
	commits ...string) (at string, c Conflict, err error) {
	common, err := in(procs, p.Repo).common(ctx)
	if err != nil {
		return "", c, err
	}
	own := entryOf(common, p.Dir)
	if info, err := os.Lstat(p.Dir); err != nil || !info.IsDir() || own.dir == "" {
		return "", c, errors.Join(err, fmt.Errorf("%s is not a worktree of %s", p.Dir, p.Repo))
	}
	t := tree{folder: folder{in(procs, p.Dir).With("GIT_DIR="+own.dir, "GIT_WORK_TREE="+p.Dir)},
		common: common, own: own.dir}
	if err := unlocked(ctx, filepath.Join(own.dir, "index.lock"), filepath.Join(own.dir, "HEAD.lock"),
		branchLock(common, p.Branch)); err != nil {
		return "", c, err
	}
	to, err := t.reference(ctx, merged)
	if err != nil {
		return "", c, err
	}
	if to != "" {
		if err := t.bring(ctx, to); err != nil {
			return "", c, err
		}
	}
	for _, commit := range commits {
		if has, err := t.has(ctx, commit); has || err != nil {
			if err != nil {
				return "", c, err
			}
			continue
		}
		strayed, err := t.save(ctx, p.Branch, message)
		if err != nil {
			return "", c, err
		}
		if strayed != "" {
			return "", c, fmt.Errorf("%s is not on the branch %s: what is there is on %s", p.Dir, p.Branch, strayed)
		}
		joined, c, err := Join(ctx, procs, p.Dir, "refs/heads/"+p.Branch, commit)
		if err != nil || !c.None() {
			return commit, c, err
		}
		next, err := t.Committing(ctx).Text(ctx, "commit-tree", joined, "-p", "refs/heads/"+p.Branch, "-p", commit,
			"-m", message)
		if err != nil {
			return "", c, err
		}
		if err := t.UpdateOwn(ctx, merged, merged, next); err != nil {
			return "", c, err
		}
		if err := t.bring(ctx, next); err != nil {
			return "", c, err
		}
	}
	return "", Conflict{}, nil
}

// bring updates the worktree and its branch to the recorded destination.
func (t tree) bring(ctx context.Context, commit string) error {
	if _, err := t.Text(ctx, "reset", "--hard", "--quiet", commit); err != nil {
		return err
	}
	return t.UpdateOwn(ctx, merged, "-d", merged)
}
