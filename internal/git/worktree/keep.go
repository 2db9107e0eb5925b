package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"cadre/internal/sys/proc"
)

// Keep commits what the member left uncommitted and removes the worktree. The branch stays, unless
// HEAD has all of it.
func Keep(ctx context.Context, procs *proc.Register, p Place, message string) (k Kept, err error) {
	home := in(procs, p.Repo)
	if _, err := os.Stat(p.Dir); errors.Is(err, fs.ErrNotExist) {
		// outside a repository there was no worktree
		if _, err := home.Text(ctx, "rev-parse", "--git-dir"); err != nil {
			return Kept{}, ctx.Err()
		}
		if err := tidy(ctx, home, p); err != nil {
			return Kept{}, err
		}
		k.Commit, err = Ahead(ctx, procs, p.Repo, p.Branch)
		return k, err
	}
	tree, err := open(ctx, procs, p.Dir)
	if err != nil {
		return Kept{}, err
	}
	if k.Strayed, err = tree.save(ctx, p.Branch, message); err != nil {
		return Kept{}, err
	}
	if k.Commit, err = Ahead(ctx, procs, p.Repo, p.Branch); err != nil {
		return Kept{}, err
	}
	return k, tree.remove(ctx, home, p.Branch, k.Commit == "" && k.Strayed == "")
}

// Ahead returns the commit that the branch names, if the repository's HEAD does not have it;
// otherwise, or without the branch, "".
func Ahead(ctx context.Context, procs *proc.Register, repo, branch string) (commit string, err error) {
	g := in(procs, repo)
	if commit, err = g.tip(ctx, branch); commit == "" || err != nil {
		return "", err
	}
	if has, err := g.has(ctx, commit); has || err != nil {
		return "", err
	}
	return commit, nil
}

// Tip returns the commit that the branch names, or "".
func Tip(ctx context.Context, procs *proc.Register, repo, branch string) (string, error) {
	return in(procs, repo).tip(ctx, branch)
}

func (f folder) tip(ctx context.Context, branch string) (string, error) {
	return f.reference(ctx, "refs/heads/"+branch)
}

// has reports whether the commit is in HEAD.
func (f folder) has(ctx context.Context, commit string) (bool, error) {
	return f.Holds(ctx, "merge-base", "--is-ancestor", commit, "HEAD")
}
