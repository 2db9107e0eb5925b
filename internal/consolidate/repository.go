package consolidate

import (
	"context"
	"errors"
	"strings"

	"cadre/internal/git"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// repository is a work tree and its git repository.
type repository struct {
	git.Runner          // runs in top
	top        string   // top of the work tree, as git names it
	index      string   // path of the index file
	dir        string   // git's folder for this work tree
	said       *answers // shares what git says with others; nil for nobody
}

// open finds the repository of the directory; top is "" if there is none with a work tree.
func open(ctx context.Context, procs *proc.Register, dir string) (*repository, error) {
	r := &repository{Runner: git.Runner{Procs: procs, Dir: dir}}
	if git.Installed() != nil {
		return r, nil
	}
	out, err := r.Text(ctx, "rev-parse", "--path-format=absolute", "--is-inside-work-tree", "--show-toplevel",
		"--git-dir", "--git-path", "index")
	refused, ok := errors.AsType[*git.Refusal](err)
	switch lines := strings.Split(out, "\n"); {
	case ok && (strings.Contains(refused.Words, "not a git repository") || strings.Contains(refused.Words,
		"must be run in a work tree")):
		return r, nil
	case err != nil:
		return nil, err
	case len(lines) != 4 || lines[0] != "true":
		return r, nil
	default:
		r.top, r.dir, r.index = lines[1], lines[2], lines[3]
		r.Dir = r.top
		return r, nil
	}
}

// with returns the repository with the index at that path.
func (r *repository) with(index string) *repository {
	own := *r
	own.index = index
	own.Runner = r.With("GIT_INDEX_FILE=" + index)
	return &own
}

// refused reports whether git answered with a failure.
func refused(err error) bool {
	_, ok := errors.AsType[*git.Refusal](err)
	return ok
}

// head returns the commit that HEAD names; "" before the first one.
func (r *repository) head(ctx context.Context) (string, error) {
	id, err := r.Text(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if refused(err) {
		// HEAD names a branch without a commit
		if _, err := r.Text(ctx, "symbolic-ref", "--quiet", "HEAD"); err == nil {
			return "", nil
		}
	}
	return id, err
}

// checkpoints returns the branch that is checked out, if it is a branch of checkpoints; otherwise
// "".
func (r *repository) checkpoints(ctx context.Context) (string, error) {
	branch, err := r.Text(ctx, "symbolic-ref", "--quiet", "--short", "HEAD")
	name, ok := strings.CutPrefix(branch, "cadre/")
	if refused(err) || err == nil && !ok {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	head, err := r.head(ctx)
	if head == "" || err != nil {
		return "", err
	}
	there, err := r.Text(ctx, "ls-tree", "--name-only", head, "--", ".claude/teams/"+name+"/state.json")
	if there == "" || err != nil {
		return "", err
	}
	return branch, nil
}

// base returns the tree or commit to which a tree on that commit is compared.
func (r *repository) base(ctx context.Context, commit string) (string, error) {
	if commit != "" {
		return commit, nil
	}
	return r.Text(ctx, "hash-object", "-t", "tree", "--stdin") // of empty input: the empty tree
}

// forget removes a member's merged branch, unless it has moved since.
func (r *repository) forget(ctx context.Context, b team.Branch) error {
	ref := "refs/heads/" + b.Name
	err := r.UpdateOwn(ctx, ref, "-d", ref, b.Commit)
	if refused(err) { // the branch is gone, or has moved
		return nil
	}
	return err
}

// follows reports whether the commit on that parent is HEAD or an ancestor of HEAD.
func (r *repository) follows(ctx context.Context, commit, parent, head string) (bool, error) {
	if commit == head || head == parent {
		return commit == head, nil
	}
	_, err := r.Text(ctx, "merge-base", "--is-ancestor", commit, head)
	if refused(err) { // it is not, or the commit is gone
		return false, nil
	}
	return err == nil, err
}
