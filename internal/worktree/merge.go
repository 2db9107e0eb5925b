package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cadre/internal/proc"
)

// merge merges the branch into the one that is checked out in home. Two merges at once would take each other's conflicts for their own.
//
// It is made of steps of which each can be done again, because git merge is not: what that does to files that are not committed, a kill in its middle does not
// bring back.
func merge(ctx context.Context, home git, common, branch, message string) (Result, error) {
	unlock, err := alone(ctx, common)
	if err != nil {
		return Result{}, err
	}
	defer unlock()
	ahead, err := home.run(ctx, "rev-list", "--count", "HEAD.."+branch)
	if err != nil {
		return Result{}, err
	}
	if ahead == "0" {
		return Result{}, nil
	}
	if _, err := home.run(ctx, "symbolic-ref", "--quiet", "HEAD"); err != nil {
		return Result{Left: "no branch is checked out in " + home.dir}, nil
	}
	if _, err := home.run(ctx, "rev-parse", "--verify", "--quiet", "MERGE_HEAD"); err == nil {
		return Result{Left: "somebody is in the middle of a merge in " + home.dir}, nil
	}
	out, err := home.run(ctx, "rev-parse", "HEAD", branch, "--path-format=absolute", "--show-toplevel", "--git-dir", "--git-path", "index")
	if err != nil {
		return Result{}, err
	}
	parts := strings.Split(out, "\n")
	if len(parts) != 5 {
		return Result{}, fmt.Errorf("git rev-parse says %q", out)
	}
	m := merging{git: git{procs: home.procs, dir: parts[2]}, head: parts[0], branch: parts[1], repo: parts[3], index: parts[4]}
	if left, err := m.join(ctx); left != "" || err != nil {
		return Result{Left: left}, err
	}
	if left, err := m.checkOut(ctx); left != "" || err != nil {
		return Result{Left: left}, err
	}
	commit, err := m.run(ctx, "commit-tree", m.tree, "-p", m.head, "-p", m.branch, "-m", message)
	if err != nil {
		return Result{}, err
	}
	if _, moved := m.run(ctx, "update-ref", "-m", "cadre: merge "+branch, "HEAD", commit, m.head); moved != nil {
		if _, err := m.run(ctx, "read-tree", "-m", "-u", m.tree, m.head); err != nil {
			return Result{}, fmt.Errorf("%w; and what was checked out of %s cannot be taken back: %w", moved, branch, err)
		}
		if locked := (*LockedError)(nil); errors.As(moved, &locked) {
			return Result{}, moved
		}
		return Result{Left: moved.Error()}, nil
	}
	return Result{Merged: true}, nil
}

// merging is a merge under way, in the top of the work tree.
type merging struct {
	git
	head, branch string // commits
	repo, index  string // the repository's folder for this work tree, and the file
	tree         string // of both
}

// Join makes the tree of what both commits have, in the repository of the work tree whose top is dir, or says why there is none. It touches nothing.
func Join(ctx context.Context, procs *proc.Register, dir, ours, theirs string) (tree, left string, err error) {
	m := merging{git: git{procs: procs, dir: dir}, head: ours, branch: theirs}
	if m.repo, err = m.run(ctx, "rev-parse", "--path-format=absolute", "--git-dir"); err != nil {
		return "", "", err
	}
	left, err = m.join(ctx)
	return m.tree, left, err
}

// join makes the tree of both, touching nothing, or says why there is none.
func (m *merging) join(ctx context.Context) (left string, err error) {
	var out bytes.Buffer
	code, err := m.exec(ctx, nil, &out, []string{"merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", m.head, m.branch})
	names := strings.Split(strings.TrimRight(out.String(), "\x00"), "\x00")
	switch {
	case err == nil:
		m.tree = names[0]
		return "", nil
	case code == 1 && len(names) > 1:
		return conflicts(names[1:]), nil
	case strings.Contains(err.Error(), "usage:"):
		return m.joinByIndex(ctx) // a git before 2.38
	case code > 0:
		return err.Error(), nil // histories that have nothing in common, say
	}
	return "", err
}

func conflicts(paths []string) string { return "conflicts in " + strings.Join(paths, ", ") }

// joinByIndex is join with what every git has: an index and a work tree of our own, which are gone afterwards. It follows no renames.
func (m *merging) joinByIndex(ctx context.Context) (left string, err error) {
	base, err := m.run(ctx, "merge-base", m.head, m.branch)
	if err != nil {
		return "the two have no commit in common", ctx.Err()
	}
	scratch, err := os.MkdirTemp("", "cadre-merge-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(scratch)
	own := git{procs: m.procs, dir: filepath.Join(scratch, "tree")}
	own.env = []string{"GIT_DIR=" + m.repo, "GIT_WORK_TREE=" + own.dir, "GIT_INDEX_FILE=" + filepath.Join(scratch, "index")}
	if err := os.Mkdir(own.dir, 0o700); err != nil {
		return "", err
	}
	if _, err := own.run(ctx, "read-tree", "-i", "-m", "--aggressive", base, m.head, m.branch); err != nil {
		return "", err
	}
	_, failed := own.run(ctx, "merge-index", "-o", "-q", "git-merge-one-file", "-a")
	unmerged, err := own.output(ctx, "ls-files", "--unmerged", "-z")
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
	m.tree, err = own.run(ctx, "write-tree")
	return "", err
}

// checkOut brings what the tree changes into the work tree and the index, or nothing at all and says why. What is not committed stays as it is.
func (m *merging) checkOut(ctx context.Context) (left string, err error) {
	there, err := m.there(ctx)
	if err != nil {
		return "", err
	}
	index, err := HoldIndex(ctx, m.repo, m.index, "merge")
	if err != nil {
		return "", err
	}
	defer index.Release()
	next := *m
	next.env = append(next.env, "GIT_INDEX_FILE="+index.Next())
	if len(there) > 0 {
		if _, err := next.exec(ctx, there, io.Discard, []string{"update-index", "-z", "--index-info"}); err != nil {
			return "", err
		}
	}
	next.run(ctx, "update-index", "-q", "--refresh") // it fails when anything differs
	if _, err := next.run(ctx, "read-tree", "-n", "-m", "-u", m.head, m.tree); err != nil {
		if ctx.Err() != nil {
			return "", err
		}
		return err.Error(), nil
	}
	if _, err := next.run(ctx, "read-tree", "-m", "-u", m.head, m.tree); err != nil {
		return "", err
	}
	return "", index.Install()
}

// there is what the work tree has already as the tree has it, because a merge before this one was cut off: entries for the index.
func (m *merging) there(ctx context.Context) ([]byte, error) {
	var out bytes.Buffer
	if _, err := m.exec(ctx, nil, &out, []string{"diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", m.head, m.tree}); err != nil {
		return nil, err
	}
	type change struct{ mode, id, path string }
	var changes []change
	var paths bytes.Buffer
	parts := strings.Split(out.String(), "\x00")
	for i := 0; i+1 < len(parts); i += 2 {
		fields := strings.Fields(strings.TrimPrefix(parts[i], ":"))
		if len(fields) != 5 {
			return nil, fmt.Errorf("git diff-tree says %.80q", parts[i])
		}
		path := parts[i+1]
		info, err := os.Lstat(filepath.Join(m.dir, filepath.FromSlash(path)))
		if err != nil || !info.Mode().IsRegular() || strings.ContainsAny(path, "\n\"") {
			continue
		}
		changes = append(changes, change{fields[1], fields[3], path})
		paths.WriteString(path + "\n")
	}
	if len(changes) == 0 {
		return nil, nil
	}
	out.Reset()
	if _, err := m.exec(ctx, paths.Bytes(), &out, []string{"hash-object", "--stdin-paths"}); err != nil {
		return nil, err
	}
	ids := strings.Fields(out.String())
	if len(ids) != len(changes) {
		return nil, fmt.Errorf("git hash-object gave %d ids of %d files", len(ids), len(changes))
	}
	var there bytes.Buffer
	for i, c := range changes {
		if ids[i] == c.id {
			fmt.Fprintf(&there, "%s %s\t%s\x00", c.mode, c.id, c.path)
		}
	}
	return there.Bytes(), nil
}
