package consolidate

import (
	"context"
	"errors"
	"strings"

	"cadre/internal/git"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// repository is a work tree and what is behind it.
type repository struct {
	git.Runner        // in its top
	top        string // of the work tree, as git names it
	index      string // the file
	dir        string // of the repository, for this work tree
}

// open finds the repository that the directory is in; top is "" where there is none with a work
// tree.
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

// with is the repository with an index of our own.
func (r *repository) with(index string) *repository {
	own := *r
	own.index = index
	own.Runner = r.With("GIT_INDEX_FILE=" + index)
	return &own
}

// refused reports whether git has said no.
func refused(err error) bool {
	_, ok := errors.AsType[*git.Refusal](err)
	return ok
}

// head is the commit that HEAD names; "" before the first one.
func (r *repository) head(ctx context.Context) (string, error) {
	id, err := r.Text(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if refused(err) {
		// it names a branch that has no commit yet
		if _, err := r.Text(ctx, "symbolic-ref", "--quiet", "HEAD"); err == nil {
			return "", nil
		}
	}
	return id, err
}

// checkpoints returns the branch that is checked out, where it is one of those to which checkpoints
// of a team are committed; "" where it is not.
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

// base is what a tree on that commit is compared with.
func (r *repository) base(ctx context.Context, commit string) (string, error) {
	if commit != "" {
		return commit, nil
	}
	return r.Text(ctx, "hash-object", "-t", "tree", "--stdin") // of nothing: the empty tree
}

// forget removes the branch of a member that is in HEAD now, if it is as it came in.
func (r *repository) forget(ctx context.Context, b team.Branch) error {
	_, err := r.Text(ctx, "update-ref", "-d", "refs/heads/"+b.Name, b.Commit)
	if refused(err) { // it is gone, or somebody has gone on with it
		return nil
	}
	return err
}

// follows reports whether the commit on that parent is HEAD, or one of those before it.
func (r *repository) follows(ctx context.Context, commit, parent, head string) (bool, error) {
	if commit == head || head == parent {
		return commit == head, nil
	}
	_, err := r.Text(ctx, "merge-base", "--is-ancestor", commit, head)
	if refused(err) { // it is not, or is gone
		return false, nil
	}
	return err == nil, err
}
