package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"cadre/internal/git"
	"cadre/internal/proc"
)

// Keep does as Finish does, but merges nothing: the branch stays, unless all of it is in HEAD already. Result says where work is that is not on the branch.
func Keep(ctx context.Context, procs *proc.Register, p Place, message string) (Result, error) {
	home := in(procs, p.Repo)
	if _, err := os.Stat(p.Dir); errors.Is(err, fs.ErrNotExist) {
		_, err := tidy(ctx, home, p)
		return Result{}, err
	}
	tree, err := open(ctx, procs, p.Dir)
	if err != nil {
		return Result{}, err
	}
	strayed, err := tree.save(ctx, p.Branch, message)
	if err != nil {
		return Result{}, err
	}
	has, err := home.has(ctx, p.Branch)
	if err != nil {
		return Result{}, err
	}
	return Result{Left: strayed}, tree.remove(ctx, home, p.Branch, has && strayed == "")
}

// Ahead returns the commit that the branch names, where that is not in HEAD of the repository; "" where it is, or there is no such branch.
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

// Tip is the commit that the branch names; "" where there is none.
func Tip(ctx context.Context, procs *proc.Register, repo, branch string) (string, error) {
	return in(procs, repo).tip(ctx, branch)
}

func (f folder) tip(ctx context.Context, branch string) (string, error) {
	commit, err := f.Text(ctx, "rev-parse", "--verify", "--quiet", "refs/heads/"+branch+"^{commit}")
	if refused, ok := errors.AsType[*git.Refusal](err); ok && refused.Status == 1 {
		return "", nil
	}
	return commit, err
}

// has reports whether the commit is in HEAD.
func (f folder) has(ctx context.Context, commit string) (bool, error) {
	return f.Holds(ctx, "merge-base", "--is-ancestor", commit, "HEAD")
}
