package worktree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cadre/internal/git"
	"cadre/internal/sys/proc"
)

// Conflict says why two commits cannot be merged. The zero Conflict means that they can.
type Conflict struct {
	Files []string // changed by both, by their paths from the top
	Why   string   // git's message, if the reason is not a conflict in files
}

// None reports whether there is no conflict.
func (c Conflict) None() bool { return len(c.Files) == 0 && c.Why == "" }

func (c Conflict) String() string {
	if c.Why != "" {
		return c.Why
	}
	return "conflicts in " + strings.Join(c.Files, ", ")
}

// Join makes the tree of a merge of both commits, or returns why it cannot. dir is the top of a
// work tree of their repository. It changes no file, no index and no branch.
func Join(ctx context.Context, procs *proc.Register, dir, ours, theirs string) (tree string, c Conflict, err error) {
	f := in(procs, dir)
	out, err := f.Run(ctx, nil, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs)
	names := strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
	refused, ok := errors.AsType[*git.Refusal](err)
	switch {
	case err == nil:
		return names[0], Conflict{}, nil
	case !ok:
		return "", Conflict{}, err
	case refused.Status == 1 && len(names) > 1:
		return "", Conflict{Files: names[1:]}, nil
	case strings.Contains(refused.Words, "usage:"):
		return f.joinByIndex(ctx, ours, theirs) // a git before 2.38
	}
	return "", Conflict{Why: refused.Error()}, nil // for example, histories without a common commit
}

// joinByIndex is Join for every version of git, with a temporary index and work tree. It does not
// follow renames.
func (f folder) joinByIndex(ctx context.Context, ours, theirs string) (tree string, c Conflict, err error) {
	repo, err := f.Text(ctx, "rev-parse", "--path-format=absolute", "--git-dir")
	if err != nil {
		return "", c, err
	}
	base, err := f.Text(ctx, "merge-base", ours, theirs)
	if err != nil {
		return "", Conflict{Why: "the two have no commit in common"}, ctx.Err()
	}
	scratch, err := os.MkdirTemp("", "cadre-merge-")
	if err != nil {
		return "", c, err
	}
	defer os.RemoveAll(scratch)
	empty := filepath.Join(scratch, "tree")
	own := in(f.Procs, empty).With("GIT_DIR="+repo, "GIT_WORK_TREE="+empty,
		"GIT_INDEX_FILE="+filepath.Join(scratch, "index"))
	if err := os.Mkdir(empty, 0o700); err != nil {
		return "", c, err
	}
	if _, err := own.Text(ctx, "read-tree", "-i", "-m", "--aggressive", base, ours, theirs); err != nil {
		return "", c, err
	}
	_, failed := own.Text(ctx, "merge-index", "-o", "-q", "git-merge-one-file", "-a")
	unmerged, err := own.Text(ctx, "ls-files", "--unmerged", "-z")
	if err != nil {
		return "", c, err
	}
	if unmerged != "" {
		for entry := range strings.SplitSeq(strings.TrimRight(unmerged, "\x00"), "\x00") {
			if _, path, _ := strings.Cut(entry, "\t"); !slices.Contains(c.Files, path) {
				c.Files = append(c.Files, path)
			}
		}
		return "", c, nil
	}
	if failed != nil {
		return "", c, failed
	}
	tree, err = own.Text(ctx, "write-tree")
	return tree, c, err
}
