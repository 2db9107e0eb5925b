// Command cadre runs teams of coding agents that survive crashes and restarts.
//
// This package has flags and printing. Each command parses what was typed, calls the engine, a run
// or a front end, and prints the answer as text or as JSON. What acts on a team is in
// internal/engine and internal/run, and the rules of a team are in internal/team.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"syscall"

	"cadre/internal/claude/sdkrelay"
	"cadre/internal/claude/teamfiles"
	"cadre/internal/consolidate"
	"cadre/internal/journal"
	"cadre/internal/observe"
	"cadre/internal/observe/store"
	"cadre/internal/sys/crc32c"
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
	// A command reads a team once and ends, so garbage collection costs more than it saves.
	// Commands that run for long turn it on again.
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(1 << 30)
	// A write beyond the file size limit must fail, not end the process.
	signal.Ignore(syscall.SIGXFSZ)
	args := asTeammate(os.Args[1:])
	if len(args) == 1 && (args[0] == "version" || args[0] == "--version") {
		os.Exit(execute(context.Background(), haste{}, args)) // there is nothing to interrupt
	}
	ctx, more := interruptible()
	go crc32c.Prepare() // most commands read a journal
	os.Exit(execute(ctx, more, args))
}

// stays is called by commands that run for long.
func stays() { debug.SetGCPercent(100) }

func execute(ctx context.Context, more haste, args []string) int {
	a := newApp()
	a.haste = more
	defer a.close()
	root := a.root(args)
	if more.ready != nil { // on a busy machine, a signal would end a command that has begun
		<-more.ready
	}
	c, err := root.ExecuteContextC(ctx)
	if err == nil {
		return done
	}
	code := status(err)
	// with 2 its output would go to a model, each time
	if _, said := errors.AsType[exit](err); c.Name() == wakeName && !said {
		code = tryAgain
	}
	a.report(c, err, code, args)
	return code
}

// exit is the status of an error that was already printed.
type exit int

func (exit) Error() string { return "" }

// usage marks an error in the command line.
type usage struct{ error }

func (u usage) Unwrap() error { return u.error }

// status maps errors to exit statuses. It is the only such table.
func status(err error) int {
	if e, ok := errors.AsType[exit](err); ok {
		return int(e)
	}
	if _, ok := errors.AsType[usage](err); ok {
		return hopeless
	}
	switch team.CodeOf(err) {
	case team.Invalid, team.NotFound, team.TooLarge, team.Denied, team.Finished, team.Taken,
		team.NestedTeamsNotAllowed:
		return hopeless
	case team.Conflict, team.NotReady, team.Nothing, team.Exhausted, team.Rejected, team.MaxTeammatesReached:
		return tryAgain
	}
	if damaged(err) {
		return hopeless
	}
	if _, ok := errors.AsType[*sdkrelay.RefusedError](err); ok {
		return hopeless
	}
	if regularfile.Is(err) {
		return hopeless
	}
	if _, large := errors.AsType[*regularfile.TooLargeError](err); large {
		return hopeless
	}
	for _, final := range []error{journal.ErrGone, journal.ErrNotFound, os.ErrPermission, os.ErrNotExist, syscall.EROFS,
		syscall.ENOTDIR} {
		if errors.Is(err, final) {
			return hopeless
		}
	}
	if errors.Is(err, filelock.ErrHeld) {
		return tryAgain
	}
	return tryAgain
}

// damaged reports whether files are damaged, or were written by a newer version.
func damaged(err error) bool {
	if _, is := errors.AsType[*journal.DamageError](err); is {
		return true
	}
	if _, is := errors.AsType[*teamfiles.DamagedError](err); is {
		return true
	}
	return slices.ContainsFunc([]error{journal.ErrNewer, team.ErrNewer, observe.ErrNewer, store.ErrDamaged,
		consolidate.ErrDamaged}, func(final error) bool { return errors.Is(err, final) })
}
