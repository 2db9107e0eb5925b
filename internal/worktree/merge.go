package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cadre/internal/git"
	"cadre/internal/proc"
)

// merge merges the branch into the one that is checked out in home. Two merges at once would take each other's conflicts for their own.
//
// It is made of steps of which each can be done again, because git merge is not: what that does to files that are not committed, a kill in its middle does not
// bring back.
func merge(ctx context.Context, home folder, common, branch, message string) (Result, error) {
	unlock, err := alone(ctx, common)
	if err != nil {
		return Result{}, err
	}
	defer unlock()
	ahead, err := home.Text(ctx, "rev-list", "--count", "HEAD.."+branch)
	if err != nil {
		return Result{}, err
	}
	if ahead == "0" {
		return Result{}, nil
	}
	if _, err := home.Text(ctx, "symbolic-ref", "--quiet", "HEAD"); err != nil {
		return Result{Left: "no branch is checked out in " + home.Dir}, nil
	}
	if _, err := home.Text(ctx, "rev-parse", "--verify", "--quiet", "MERGE_HEAD"); err == nil {
		return Result{Left: "somebody is in the middle of a merge in " + home.Dir}, nil
	}
	out, err := home.Text(ctx, "rev-parse", "HEAD", branch, "--path-format=absolute", "--show-toplevel", "--git-dir", "--git-path", "index")
	if err != nil {
		return Result{}, err
	}
	parts := strings.Split(out, "\n")
	if len(parts) != 5 {
		return Result{}, fmt.Errorf("git rev-parse says %q", out)
	}
	m := merging{folder: in(home.Procs, parts[2]), head: parts[0], branch: parts[1], repo: parts[3], index: parts[4]}
	if left, err := m.join(ctx); left != "" || err != nil {
		return Result{Left: left}, err
	}
	if left, err := m.checkOut(ctx); left != "" || err != nil {
		return Result{Left: left}, err
	}
	commit, err := m.Committing(ctx).Text(ctx, "commit-tree", m.tree, "-p", m.head, "-p", m.branch, "-m", message)
	if err != nil {
		return Result{}, err
	}
	if _, moved := m.Text(ctx, "update-ref", "-m", "cadre: merge "+branch, "HEAD", commit, m.head); moved != nil {
		if _, err := m.Text(ctx, "read-tree", "-m", "-u", m.tree, m.head); err != nil {
			return Result{}, fmt.Errorf("%w; and what was checked out of %s cannot be taken back: %w", moved, branch, err)
		}
		if locked := (*git.LockedError)(nil); errors.As(moved, &locked) {
			return Result{}, moved
		}
		return Result{Left: moved.Error()}, nil
	}
	return Result{Merged: true}, nil
}

// merging is a merge under way, in the top of the work tree.
type merging struct {
	folder
	head, branch string // commits
	repo, index  string // the repository's folder for this work tree, and the file
	tree         string // of both
}

// Join makes the tree of what both commits have, in the repository of the work tree whose top is dir, or says why there is none. It touches nothing.
func Join(ctx context.Context, procs *proc.Register, dir, ours, theirs string) (tree, left string, err error) {
	m := merging{folder: in(procs, dir), head: ours, branch: theirs}
	if m.repo, err = m.Text(ctx, "rev-parse", "--path-format=absolute", "--git-dir"); err != nil {
		return "", "", err
	}
	left, err = m.join(ctx)
	return m.tree, left, err
}

// join makes the tree of both, touching nothing, or says why there is none.
func (m *merging) join(ctx context.Context) (left string, err error) {
	out, err := m.Run(ctx, nil, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", m.head, m.branch)
	names := strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
	refused, ok := errors.AsType[*git.Refusal](err)
	switch {
	case err == nil:
		m.tree = names[0]
		return "", nil
	case !ok:
		return "", err
	case refused.Status == 1 && len(names) > 1:
		return conflicts(names[1:]), nil
	case strings.Contains(refused.Words, "usage:"):
		return m.joinByIndex(ctx) // a git before 2.38
	}
	return refused.Error(), nil // histories that have nothing in common, say
}

func conflicts(paths []string) string { return "conflicts in " + strings.Join(paths, ", ") }

// joinByIndex is join with what every git has: an index and a work tree of our own, which are gone afterwards. It follows no renames.
func (m *merging) joinByIndex(ctx context.Context) (left string, err error) {
	base, err := m.Text(ctx, "merge-base", m.head, m.branch)
	if err != nil {
		return "the two have no commit in common", ctx.Err()
	}
	scratch, err := os.MkdirTemp("", "cadre-merge-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(scratch)
	empty := filepath.Join(scratch, "tree")
	own := in(m.Procs, empty).With("GIT_DIR="+m.repo, "GIT_WORK_TREE="+empty, "GIT_INDEX_FILE="+filepath.Join(scratch, "index"))
	if err := os.Mkdir(empty, 0o700); err != nil {
		return "", err
	}
	if _, err := own.Text(ctx, "read-tree", "-i", "-m", "--aggressive", base, m.head, m.branch); err != nil {
		return "", err
	}
	_, failed := own.Text(ctx, "merge-index", "-o", "-q", "git-merge-one-file", "-a")
	unmerged, err := own.Text(ctx, "ls-files", "--unmerged", "-z")
	if err != nil {
		return "", err
	}
	if unmerged != "" {
		var paths []string
		for entry := range strings.SplitSeq(strings.TrimRight(unmerged, "\x00"), "\x00") {
			if _, path, _ := strings.Cut(entry, "\t"); !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
		return conflicts(paths), nil
	}
	if failed != nil {
		return "", failed
	}
	m.tree, err = own.Text(ctx, "write-tree")
	return "", err
}

// checkOut brings what the tree changes into the work tree and the index, or nothing at all and says why. What is not committed stays as it is.
func (m *merging) checkOut(ctx context.Context) (left string, err error) {
	there, err := m.there(ctx)
	if err != nil {
		return "", err
	}
	index, err := m.HoldIndex(ctx, m.repo, m.index, "merge")
	if err != nil {
		return "", err
	}
	defer index.Release()
	next := m.With("GIT_INDEX_FILE=" + index.Next())
	if len(there) > 0 {
		if _, err := next.Run(ctx, there, "update-index", "-z", "--index-info"); err != nil {
			return "", err
		}
	}
	next.Text(ctx, "update-index", "-q", "--refresh") // it fails when anything differs
	if _, err := next.Text(ctx, "read-tree", "-n", "-m", "-u", m.head, m.tree); err != nil {
		if ctx.Err() != nil {
			return "", err
		}
		return err.Error(), nil
	}
	if _, err := next.Text(ctx, "read-tree", "-m", "-u", m.head, m.tree); err != nil {
		return "", err
	}
	return "", index.Install()
}

// there is what the work tree has already as the tree has it, because a merge before this one was cut off: entries for the index.
func (m *merging) there(ctx context.Context) ([]byte, error) {
	changes, err := m.Changes(ctx, "diff-tree", "-r", m.head, m.tree)
	if err != nil {
		return nil, err
	}
	changes = slices.DeleteFunc(changes, func(c git.Change) bool {
		info, err := os.Lstat(filepath.Join(m.Dir, filepath.FromSlash(c.Path)))
		return err != nil || !info.Mode().IsRegular() || strings.ContainsAny(c.Path, "\n\"")
	})
	if len(changes) == 0 {
		return nil, nil
	}
	var paths, there bytes.Buffer
	for _, c := range changes {
		paths.WriteString(c.Path + "\n")
	}
	out, err := m.Run(ctx, paths.Bytes(), "hash-object", "--stdin-paths")
	if err != nil {
		return nil, err
	}
	ids := strings.Fields(string(out))
	if len(ids) != len(changes) {
		return nil, fmt.Errorf("git hash-object gave %d ids of %d files", len(ids), len(changes))
	}
	for i, c := range changes {
		if ids[i] == c.IsID {
			there.WriteString(c.Entry())
		}
	}
	return there.Bytes(), nil
}
