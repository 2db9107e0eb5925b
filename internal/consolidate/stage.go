package consolidate

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"cadre/internal/git"
)

// stage puts the paths, as they are in the work tree, on top of the commit. It uses a separate
// index, and returns the tree.
func (r *repository) stage(ctx context.Context, index, commit string, paths []string) (tree string, err error) {
	if err := forget(index); err != nil {
		return "", err
	}
	own := r.with(index)
	read := []string{"read-tree", commit}
	if commit == "" {
		read = []string{"read-tree", "--empty"}
	}
	if _, err := own.Run(ctx, nil, read...); err != nil {
		return "", err
	}
	if _, err := own.Run(ctx, []byte(strings.Join(paths, "\x00")), "update-index", "-z", "--add", "--remove",
		"--replace", "--stdin"); err != nil {
		return "", err
	}
	return own.Text(ctx, "write-tree")
}

// forget removes an index of cadre, and the lock file of a killed git.
func forget(index string) error {
	for _, path := range []string{index, index + ".lock"} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return os.MkdirAll(filepath.Dir(index), 0o700)
}

// changes returns the differences between the commit, or another tree, and the tree.
func (r *repository) changes(ctx context.Context, commit, tree string) ([]git.Change, error) {
	if tree == "" {
		return nil, nil
	}
	base, err := r.base(ctx, commit)
	if err != nil {
		return nil, err
	}
	return r.Changes(ctx, "diff-tree", "-r", base, tree)
}

func pathsOf(changes []git.Change) []string {
	var all []string
	for _, c := range changes {
		all = append(all, c.Path)
	}
	return all
}

// unstaged returns the paths of the tree that are different in the work tree.
func (r *repository) unstaged(ctx context.Context, index, commit, tree string) ([]string, error) {
	staged, err := r.changes(ctx, commit, tree)
	if err != nil {
		return nil, err
	}
	now, err := r.stage(ctx, index, commit, pathsOf(staged))
	if err != nil || now == tree {
		return nil, err
	}
	differ, err := r.changes(ctx, tree, now)
	return pathsOf(differ), err
}

// commit makes a commit that nothing refers to yet. A parent may be "".
func (r *repository) commit(ctx context.Context, tree, message string, parents ...string) (string, error) {
	args := []string{"commit-tree", tree, "-F", "-"}
	for _, parent := range parents {
		if parent != "" {
			args = append(args, "-p", parent)
		}
	}
	out, err := r.Committing(ctx).Run(ctx, []byte(message), args...)
	return strings.TrimSpace(string(out)), err
}

// move moves HEAD to the commit, if HEAD still names the parent.
func (r *repository) move(ctx context.Context, commit, parent, why string) error {
	if parent == "" {
		parent = strings.Repeat("0", len(commit))
	}
	_, err := r.Run(ctx, nil, "update-ref", "-m", why, "HEAD", commit, parent)
	return err
}

// follow updates the index to HEAD, for exactly these paths.
func (r *repository) follow(ctx context.Context, mark string, changes []git.Change) error {
	if len(changes) == 0 {
		return nil
	}
	index, err := r.HoldIndex(ctx, r.dir, r.index, mark)
	if err != nil {
		return err
	}
	defer index.Release()
	var in bytes.Buffer
	for _, c := range changes {
		in.WriteString(c.Entry())
	}
	next := r.with(index.Next())
	if _, err := next.Run(ctx, in.Bytes(), "update-index", "-z", "--index-info"); err != nil {
		return err
	}
	// this only saves the next git status some reading; it fails if anything differs
	next.Run(ctx, nil, "update-index", "-q", "--refresh")
	return index.Install()
}
