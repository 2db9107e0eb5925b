package checkpoint

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
)

// gitTimeout is what one git command may take.
const gitTimeout = time.Minute

// git runs in one repository, whatever the surroundings say.
type git struct {
	procs *proc.Register
	args  []string // that name the repository
}

// refusal is what git said when it did not do what it was asked for.
type refusal struct{ command, words string }

func (e *refusal) Error() string { return "git " + e.command + ": " + e.words }

// settings hold for every command: no hook of the repository runs, what was written survives a loss of power, and a small checkpoint does
// not become a pack of its own.
var settings = []string{"-c", "core.hooksPath=/dev/null", "-c", "core.fsync=committed", "-c", "fastimport.unpackLimit=100", "-c", "gc.auto=0"}

func (g git) run(ctx context.Context, input []byte, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, gitTimeout, fmt.Errorf("git %s took longer than %s", args[0], gitTimeout))
	defer cancel()
	var out bytes.Buffer
	var errs proc.Capture
	if input == nil {
		input = []byte{}
	}
	cmd := proc.Cmd{Args: slices.Concat([]string{"git"}, settings, g.args, args), Env: environment(os.Environ()), Input: input, Stdout: &out, Stderr: &errs}
	exit, err := g.procs.Run(ctx, cmd, proc.Ladder{})
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

// ours are the variables that say where git and its configuration are, and not which repository, index or commit somebody is just working on.
var ours = []string{"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH", "GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM"}

// environment is one in which git means the repository that it is told.
func environment(env []string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return strings.HasPrefix(name, "GIT_") && !slices.Contains(ours, name)
	})
	return append(env, "GIT_TERMINAL_PROMPT=0", "GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1", "LC_ALL=C")
}

// repository is where a project is kept.
type repository struct {
	dir    string // that all its work trees have in common
	digits int    // of the ids of its objects
}

// find returns the repository of a directory. Where there is none why says so; an error means that nobody knows.
func find(ctx context.Context, procs *proc.Register, dir string) (repo repository, why string, err error) {
	if _, err := proc.Find("git"); err != nil {
		return repo, "git is not installed", nil
	}
	out, err := git{procs, []string{"-C", dir}}.run(ctx, nil, "rev-parse", "--show-object-format", "--path-format=absolute", "--git-common-dir")
	var refused *refusal
	switch {
	case errors.As(err, &refused) && strings.Contains(refused.words, "not a git repository"):
		return repo, dir + " is not in a git repository", nil
	case errors.As(err, &refused):
		return repo, refused.words, nil
	case err != nil:
		return repo, "", err
	}
	format, common, _ := strings.Cut(strings.TrimSuffix(string(out), "\n"), "\n")
	if repo = (repository{common, 40}); format == "sha256" {
		repo.digits = 64
	}
	return repo, "", nil
}
