// Command cadre runs teams of coding agents that people can trust to finish.
//
// This package is flags, configuration and wiring: every command finds the team, opens a replica on
// it, sends a command or looks at the state, and prints. What a team is and may do is in
// internal/team.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"cadre/internal/claude/sdkrelay"
	"cadre/internal/claude/teamfiles"
	"cadre/internal/consolidate"
	"cadre/internal/journal"
	"cadre/internal/observe"
	"cadre/internal/observe/store"
	"cadre/internal/sys/filelock"
	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

// Exit statuses.
const (
	done     = 0
	tryAgain = 1 // refused now, conflict, not ready
	hopeless = 2 // usage, not found, damaged
)

func main() {
	// A command reads a team once and ends: collecting garbage meanwhile costs more than it gives.
	// Those that stay turn it on again.
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(1 << 30)
	// Where a file may not grow further a write is to fail, not to end the process.
	signal.Ignore(syscall.SIGXFSZ)
	os.Exit(execute(interruptible(), asTeammate(os.Args[1:])))
}

// interruptible returns a context that ends with the first signal that asks the process to end. The
// handler is installed beside the command: the runtime takes a tenth of a millisecond for it, which
// is a good part of a short command. A signal that comes sooner ends the process, as one does
// before main.
func interruptible() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
		cancel(fmt.Errorf("%s signal received", <-asked))
	}()
	return ctx
}

// stays is called by commands that run for long.
func stays() { debug.SetGCPercent(100) }

func execute(ctx context.Context, args []string) int {
	a := newApp()
	defer a.close()
	c, err := a.root(args).ExecuteContextC(ctx)
	if err == nil {
		return done
	}
	if text := explain(err); text != "" {
		a.note(text)
	}
	// with 2 its words would go to a model, again and again
	if _, said := errors.AsType[exit](err); c.Name() == wakeName && !said {
		return tryAgain
	}
	return status(err)
}

// exit is an error that was told already, with its status.
type exit int

func (exit) Error() string { return "" }

// usage marks an error in how the program was called.
type usage struct{ error }

func (u usage) Unwrap() error { return u.error }

// status is the one table from errors to exit statuses.
func status(err error) int {
	if e, ok := errors.AsType[exit](err); ok {
		return int(e)
	}
	if _, ok := errors.AsType[usage](err); ok {
		return hopeless
	}
	switch team.CodeOf(err) {
	case team.Invalid, team.NotFound, team.TooLarge, team.Denied, team.Finished, team.Taken:
		return hopeless
	case team.Conflict, team.NotReady, team.Nothing, team.Exhausted, team.Rejected, team.MaxTeammatesReached:
		return tryAgain
	}
	if _, ok := errors.AsType[*journal.DamageError](err); ok {
		return hopeless
	}
	if _, ok := errors.AsType[*teamfiles.DamagedError](err); ok {
		return hopeless
	}
	if _, ok := errors.AsType[*sdkrelay.RefusedError](err); ok {
		return hopeless
	}
	if _, special := errors.AsType[*regularfile.Error](err); special {
		return hopeless
	}
	if _, large := errors.AsType[*regularfile.TooLargeError](err); large {
		return hopeless
	}
	for _, final := range []error{journal.ErrNewer, team.ErrNewer, observe.ErrNewer, store.ErrDamaged, journal.ErrGone,
		journal.ErrNotFound, consolidate.ErrDamaged, os.ErrPermission, os.ErrNotExist, syscall.EROFS, syscall.ENOTDIR} {
		if errors.Is(err, final) {
			return hopeless
		}
	}
	if errors.Is(err, filelock.ErrHeld) {
		return tryAgain
	}
	return tryAgain
}
