package worktree

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"cadre/internal/proc"
)

// Keep does as Finish does, but merges nothing: the branch stays, unless all of it is in HEAD already. Result says where work is that is not on the branch.
func Keep(ctx context.Context, procs *proc.Register, p Place, message string) (Result, error) {
	home := git{procs: procs, dir: p.Repo}
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
	g := git{procs: procs, dir: repo}
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
	return git{procs: procs, dir: repo}.tip(ctx, branch)
}

func (g git) tip(ctx context.Context, branch string) (string, error) {
	var out proc.Capture
	code, err := g.exec(ctx, nil, &out, []string{"rev-parse", "--verify", "--quiet", "refs/heads/" + branch + "^{commit}"})
	if code == 1 {
		return "", nil
	}
	return strings.TrimSpace(out.String()), err
}

// has reports whether the commit is in HEAD.
func (g git) has(ctx context.Context, commit string) (bool, error) {
	code, err := g.exec(ctx, nil, io.Discard, []string{"merge-base", "--is-ancestor", commit, "HEAD"})
	if code == 1 {
		return false, nil
	}
	return err == nil, err
}
