package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"cadre/internal/sys/proc"
)

// merged names, among the references that the worktree alone has, the commit that it is being
// brought to.
const merged = "refs/worktree/cadre-merge"

// Merge merges the commits into the branch of the worktree, in which nobody is at work, and brings
// its files up to that. What was not committed there is committed first. Where one of them
// conflicts, that one is returned with the conflict, and those before it are merged.
//
// The commit of a merge is made first, and the worktree notes that it goes there before any file
// changes. So whoever comes after a kill finishes that, and takes no file that was half written for
// the member's own. git is told which worktree is meant, so that nothing that a member wrote there
// leads it to the person's checkout.
func Merge(ctx context.Context, procs *proc.Register, p Place, message string,
	commits ...string) (at string, c Conflict, err error) {
	common, err := in(procs, p.Repo).Text(ctx, "rev-parse", "--path-format=absolute", "--git-common-dir")
	if err != nil {
		return "", c, err
	}
	own := entryOf(common, p.Dir)
	if info, err := os.Lstat(p.Dir); err != nil || !info.IsDir() || own.dir == "" {
		return "", c, errors.Join(err, fmt.Errorf("%s is no worktree of %s", p.Dir, p.Repo))
	}
	t := tree{folder: folder{in(procs, p.Dir).With("GIT_DIR="+own.dir, "GIT_WORK_TREE="+p.Dir)},
		common: common, own: own.dir}
	if err := unlocked(ctx, filepath.Join(own.dir, "index.lock"), filepath.Join(own.dir, "HEAD.lock"),
		branchLock(common, p.Branch)); err != nil {
		return "", c, err
	}
	to, err := t.commitOf(ctx, merged)
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
		if _, err := t.Text(ctx, "update-ref", merged, next); err != nil {
			return "", c, err
		}
		if err := t.bring(ctx, next); err != nil {
			return "", c, err
		}
	}
	return "", Conflict{}, nil
}

// bring brings the worktree and its branch to the commit that it notes it goes to.
func (t tree) bring(ctx context.Context, commit string) error {
	if _, err := t.Text(ctx, "reset", "--hard", "--quiet", commit); err != nil {
		return err
	}
	_, err := t.Text(ctx, "update-ref", "-d", merged)
	return err
}
