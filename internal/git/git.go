package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"cadre/internal/sys/proc"
)

const (
	// DefaultLimit bounds one command. Reading a large work tree without a cache is slow.
	DefaultLimit = 5 * time.Minute
	// DefaultPatience is how long a command waits for another git in the same repository.
	DefaultPatience = 10 * time.Second

	lockPause = 50 * time.Millisecond
)

// Runner runs git in one place. Changes to a copy do not affect the original. Its methods may be
// called from any goroutine.
type Runner struct {
	Procs    *proc.Register
	Dir      string        // working directory of git; "" for the present one
	Settings []string      // "name=value" of git's configuration, in addition to the fixed ones
	Env      []string      // "name=value", in addition to the fixed ones
	Limit    time.Duration // of one command; 0 for [DefaultLimit]
	Patience time.Duration // with another git that holds a lock; 0 for [DefaultPatience], less for none
	// Remote reports that the command talks to a remote. Then the user's hooks run, and the user's
	// transport settings apply, as if the user had called git. Even so, git does not ask at a
	// terminal or in a window.
	Remote bool
}

// Installed returns an error if git cannot be run.
func Installed() error {
	_, err := proc.Find("git")
	return err
}

// With returns the runner with more variables.
func (r Runner) With(env ...string) Runner {
	r.Env = slices.Concat(r.Env, env)
	return r
}

// Refusal is git's message when it failed. A git that was ended by a signal has no message.
type Refusal struct {
	Command string
	Status  int    // never 0
	Words   string // from standard error
}

func (e *Refusal) Error() string { return "git " + e.Command + ": " + e.Words }

// LockedError reports that a git command holds a file of the repository and did not release it. A
// killed git leaves such a file, and only a person can know that it was killed.
type LockedError struct{ File string }

func (e *LockedError) Error() string {
	return "another git command holds " + e.File + "; if none is running there, remove that file and try again"
}

// locked returns the error of a git that could not get a lock; nil for any other error.
func locked(err error) error {
	refused, ok := errors.AsType[*Refusal](err)
	if !ok {
		return nil
	}
	if _, words, found := strings.Cut(refused.Words, "Unable to create '"); found {
		if file, _, found := strings.Cut(words, ".lock': File exists"); found {
			return &LockedError{file + ".lock"}
		}
	}
	return nil
}

// Run passes the input to git and returns its output, unchanged, even with a [*Refusal]. It waits
// for other git commands that hold the repository's locks.
func (r Runner) Run(ctx context.Context, input []byte, args ...string) ([]byte, error) {
	waiting, cancel := context.WithTimeout(ctx, cmp.Or(r.Patience, DefaultPatience))
	defer cancel()
	for {
		out, err := r.try(ctx, input, args)
		held := locked(err)
		if held == nil {
			return out, err
		}
		select {
		case <-waiting.Done():
			return out, errors.Join(held, context.Cause(ctx))
		case <-time.After(lockPause):
		}
	}
}

// Text returns git's output without the end of its last line.
func (r Runner) Text(ctx context.Context, args ...string) (string, error) {
	out, err := r.Run(ctx, nil, args...)
	return strings.TrimRight(string(out), "\n"), err
}

// Holds reports git's answer to a yes-or-no command. Exit status 1 means no; any other failure is
// an error.
func (r Runner) Holds(ctx context.Context, args ...string) (bool, error) {
	_, err := r.Run(ctx, nil, args...)
	if refused, ok := errors.AsType[*Refusal](err); ok && refused.Status == 1 {
		return false, nil
	}
	return err == nil, err
}

func (r Runner) try(ctx context.Context, input []byte, args []string) ([]byte, error) {
	limit := cmp.Or(r.Limit, DefaultLimit)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took longer than %s", limit))
	defer cancel()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	var out bytes.Buffer
	var said proc.Capture
	cmd := proc.Cmd{Args: r.command(args), Env: append(r.environment(os.Environ()), r.Env...), Input: input,
		Stdout: &out, Stderr: &said}
	exit, err := r.guarded(ctx, cmd, end)
	switch {
	case err != nil:
		cause := context.Cause(ctx)
		if blocked, ok := errors.AsType[*BlockedError](cause); ok {
			err, cause = blocked, nil
		}
		if cause != nil && !errors.Is(err, cause) {
			err = fmt.Errorf("%w: %w", cause, err)
		}
		return nil, fmt.Errorf("git %s: %w", args[0], err)
	case exit.Code < 0:
		return nil, fmt.Errorf("git %s: %s", args[0], exit)
	case exit.Code > 0:
		return out.Bytes(), &Refusal{args[0], exit.Code, cmp.Or(strings.TrimSpace(said.String()), exit.String())}
	}
	return out.Bytes(), nil
}

func (r Runner) command(args []string) []string {
	all := []string{"git"}
	if r.Dir != "" {
		all = append(all, "-C", r.Dir)
	}
	for _, setting := range slices.Concat(settings, r.Settings) {
		if r.Remote && setting == noHooks {
			continue
		}
		all = append(all, "-c", setting)
	}
	return append(all, args...)
}
