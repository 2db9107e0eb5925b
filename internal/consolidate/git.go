package consolidate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"cadre/internal/proc"
	"cadre/internal/team"
	"cadre/internal/worktree"
)

const (
	// gitTimeout is what one git command may take. Looking at a large work tree that no cache knows is slow.
	gitTimeout   = 5 * time.Minute
	lockPatience = 10 * time.Second // for another git command in the same repository
	lockPause    = 50 * time.Millisecond
)

// repository is a work tree and what is behind it.
type repository struct {
	procs *proc.Register
	top   string // of the work tree, as git names it
	index string // the file
	dir   string // of the repository, for this work tree
	env   []string

	patience time.Duration // with other git commands in the same repository
}

// open finds the repository that the directory is in; top is "" where there is none with a work tree.
func open(ctx context.Context, procs *proc.Register, dir string) (*repository, error) {
	r := &repository{procs: procs, top: dir, patience: lockPatience}
	if _, err := proc.Find("git"); err != nil {
		return &repository{procs: procs}, nil
	}
	out, err := r.text(ctx, "rev-parse", "--path-format=absolute", "--is-inside-work-tree", "--show-toplevel", "--git-dir", "--git-path", "index")
	var refused *refusal
	switch lines := strings.Split(out, "\n"); {
	case errors.As(err, &refused) && (strings.Contains(refused.words, "not a git repository") || strings.Contains(refused.words, "must be run in a work tree")):
		return &repository{procs: procs}, nil
	case err != nil:
		return nil, err
	case len(lines) != 4 || lines[0] != "true":
		return &repository{procs: procs}, nil
	default:
		r.top, r.dir, r.index = lines[1], lines[2], lines[3]
		return r, nil
	}
}

// with is the repository with an index of our own.
func (r *repository) with(index string) *repository {
	own := *r
	own.index = index
	own.env = []string{"GIT_INDEX_FILE=" + index}
	return &own
}

// refusal is what git said when it did not do what it was asked for.
type refusal struct{ command, words string }

func (e *refusal) Error() string { return "git " + e.command + ": " + e.words }

// settings hold for every command: no hook of the repository runs and no watcher of its is started, nothing is signed, and what was written survives a loss of power.
var settings = []string{"-c", "core.hooksPath=/dev/null", "-c", "core.fsync=added,reference", "-c", "gc.auto=0", "-c", "core.fsmonitor=false", "-c", "i18n.commitEncoding=UTF-8", "-c", "core.quotePath=false", "-c", "advice.addEmbeddedRepo=false"}

// text is what git printed, without the line's end. It waits for other git commands that hold the repository's locks.
func (r *repository) text(ctx context.Context, args ...string) (string, error) {
	out, err := r.run(ctx, nil, args...)
	return strings.TrimRight(string(out), "\n"), err
}

func (r *repository) run(ctx context.Context, input []byte, args ...string) ([]byte, error) {
	waiting, cancel := context.WithTimeout(ctx, r.patience)
	defer cancel()
	for {
		out, err := r.try(ctx, input, args)
		if err == nil {
			return out, nil
		}
		locked := worktree.Locked(err.Error())
		if locked == nil {
			return out, err
		}
		select {
		case <-waiting.Done():
			return out, locked
		case <-time.After(lockPause):
		}
	}
}

func (r *repository) try(ctx context.Context, input []byte, args []string) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, gitTimeout, fmt.Errorf("git %s took longer than %s", args[0], gitTimeout))
	defer cancel()
	if input == nil {
		input = []byte{}
	}
	var out bytes.Buffer
	var errs proc.Capture
	cmd := proc.Cmd{Args: slices.Concat([]string{"git", "-C", r.top}, settings, args), Env: append(environment(os.Environ()), r.env...), Input: input, Stdout: &out, Stderr: &errs}
	exit, err := r.procs.Run(ctx, cmd, proc.Ladder{})
	if err != nil {
		return nil, errors.Join(err, context.Cause(ctx))
	}
	if exit.Code != 0 {
		words := strings.TrimSpace(errs.String())
		if words == "" {
			words = exit.String()
		}
		return out.Bytes(), &refusal{args[0], words}
	}
	return out.Bytes(), nil
}

// localVariables are those by which git means another repository, or another part of this one, than the one that it is called in.
var localVariables = []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_IMPLICIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_INDEX_VERSION", "GIT_OBJECT_DIRECTORY",
	"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_QUARANTINE_PATH", "GIT_SHALLOW_FILE", "GIT_GRAFT_FILE", "GIT_REPLACE_REF_BASE", "GIT_NAMESPACE", "GIT_PREFIX",
	"GIT_INTERNAL_SUPER_PREFIX", "GIT_REFLOG_ACTION", "GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"}

// local is an environment in which git means the repository that it is called in, for commands of the person: what else they told git stays.
func local(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(localVariables, name)
	})
}

// ours are the variables that say where git is and in whose name it commits, and not which repository or index somebody is just working on.
var ours = []string{"GIT_EXEC_PATH", "GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"}

// environment is one in which git does what it is told here, and nothing else. Where its configuration is, stays.
func environment(env []string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return strings.HasPrefix(name, "GIT_") && !strings.HasPrefix(name, "GIT_CONFIG_") && !slices.Contains(ours, name)
	})
	return append(env, "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_LITERAL_PATHSPECS=1", "LC_ALL=C")
}

// head is the commit that HEAD names; "" before the first one.
func (r *repository) head(ctx context.Context) (string, error) {
	id, err := r.text(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	var refused *refusal
	if errors.As(err, &refused) {
		if _, err := r.text(ctx, "symbolic-ref", "--quiet", "HEAD"); err == nil { // it names a branch that has no commit yet
			return "", nil
		}
	}
	return id, err
}

// checkpoints returns the branch that is checked out, where it is one of those to which checkpoints of a team are committed; "" where it is not.
func (r *repository) checkpoints(ctx context.Context) (string, error) {
	branch, err := r.text(ctx, "symbolic-ref", "--quiet", "--short", "HEAD")
	name, ok := strings.CutPrefix(branch, "cadre/")
	if refused := (*refusal)(nil); errors.As(err, &refused) || err == nil && !ok {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	head, err := r.head(ctx)
	if head == "" || err != nil {
		return "", err
	}
	there, err := r.text(ctx, "ls-tree", "--name-only", head, "--", ".claude/teams/"+name+"/state.json")
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
	return r.text(ctx, "hash-object", "-t", "tree", "--stdin") // of nothing: the empty tree
}

// forget removes the branch of a member that is in HEAD now, if it is as it came in.
func (r *repository) forget(ctx context.Context, b team.Branch) error {
	_, err := r.text(ctx, "update-ref", "-d", "refs/heads/"+b.Name, b.Commit)
	var refused *refusal
	if errors.As(err, &refused) { // it is gone, or somebody has gone on with it
		return nil
	}
	return err
}

// follows reports whether the commit on that parent is HEAD, or one of those before it.
func (r *repository) follows(ctx context.Context, commit, parent, head string) (bool, error) {
	if commit == head || head == parent {
		return commit == head, nil
	}
	_, err := r.text(ctx, "merge-base", "--is-ancestor", commit, head)
	var refused *refusal
	if errors.As(err, &refused) { // it is not, or is gone
		return false, nil
	}
	return err == nil, err
}
