// Package filelock locks files between processes.
//
// # Authority
//
// This package takes every flock of the program. A [Lock] stands for a running process that owns
// something: a host owns its folder, a lead its team. [Flock] is the plain system call. It is for
// code that has the file open already and waits in its own way. The journal does so: it queues in
// the kernel, and passes its lock between goroutines.
//
// Claude Code locks with a folder that it creates. That is another program's format and stays in
// package claude/teamfiles.
//
// # Guarantees
//
//   - The kernel releases a lock when its process ends, however it ends. No lock depends on a pid.
//   - The locked file is the one at the path. If the file was removed or replaced while a process
//     waited for it, the process locks the new file instead.
//   - A lock belongs to one open file description. Two holders within one process therefore exclude
//     each other as two processes do. This is how flock(2) works on Linux and macOS. POSIX record
//     locks do not work so, and macOS has no open file description locks.
//
// The libraries for this (gofrs/flock, rogpeppe/go-internal/lockedfile) lack three things: the
// check for a removed file, a check for a holder that creates no file, and an open that does not
// block on a named pipe. Without these, only the system call remains.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"cadre/internal/sys/regularfile"
	"cadre/internal/sys/sleep"
)

// ErrHeld reports that another holder has the lock.
var ErrHeld = errors.New("held by a running process")

// Lock is a file that is locked until [Lock.Unlock], or until the process ends.
type Lock struct{ file *os.File }

const (
	// brieflyHeld is how long [New] waits for a holder to release the lock. [Held] takes a shared
	// lock for a moment; a real holder keeps its lock longer than this.
	brieflyHeld = 200 * time.Millisecond
	// Pauses between two attempts double from firstPause to lastPause.
	firstPause = 100 * time.Microsecond
	lastPause  = 10 * time.Millisecond
)

// New takes the lock and creates the file if it does not exist. If another holder has the lock, New
// does not wait but returns [ErrHeld].
func New(path string) (*Lock, error) {
	var waited time.Duration
	return take(path, func(pause time.Duration) error {
		if waited += pause; waited > brieflyHeld {
			return ErrHeld
		}
		time.Sleep(pause)
		return nil
	})
}

// Wait takes the lock, waiting for its holder until ctx ends. The error then wraps [ErrHeld] and
// the cause of ctx. Wait creates the file if it does not exist, but not its folder.
func Wait(ctx context.Context, path string) (*Lock, error) {
	return take(path, func(d time.Duration) error {
		if err := sleep.For(ctx, d); err != nil {
			return fmt.Errorf("%w: %w", ErrHeld, err)
		}
		return nil
	})
}

// take takes the lock. While another holder has it, take calls wait between attempts, and fails if
// wait returns an error.
func take(path string, wait func(time.Duration) error) (*Lock, error) {
	for pause := firstPause; ; {
		file, err := regularfile.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) // the os package adds O_CLOEXEC
		if err != nil {
			return nil, fmt.Errorf("lock: %w", err)
		}
		for err = try(file); errors.Is(err, syscall.EWOULDBLOCK); err = try(file) {
			if held := wait(pause); held != nil {
				file.Close()
				return nil, fmt.Errorf("lock %s: %w", path, held)
			}
			pause = min(2*pause, lastPause)
		}
		if err != nil {
			file.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		lock := &Lock{file}
		if lock.at(path) {
			return lock, nil
		}
		lock.Unlock() // the file was removed between opening and locking it
	}
}

func try(file *os.File) error { return Flock(file, syscall.LOCK_EX|syscall.LOCK_NB) }

// at reports whether the locked file is the one at path.
func (l *Lock) at(path string) bool {
	held, err := l.file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(held, there)
}

// File returns the locked file, for the holder to read and write. Closing it releases the lock.
func (l *Lock) File() *os.File { return l.file }

// Unlock releases the lock and leaves the file in place. It may be called more than once.
func (l *Lock) Unlock() error {
	if err := l.file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("unlock: %w", err)
	}
	return nil
}

// Held reports whether a running process has the lock. If that cannot be found out, for instance
// for lack of a permission, it returns true. To take a running host for dead would lose work, while
// the reverse only costs a second look.
//
// A false positive is possible for some milliseconds after a process died while it was starting a
// child, because the child has inherited the lock. Callers look again.
func Held(path string) bool {
	file, err := regularfile.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer file.Close()
	return Flock(file, syscall.LOCK_SH|syscall.LOCK_NB) != nil
}

// Flock calls flock(2), again if a signal interrupts it.
func Flock(file *os.File, how int) error {
	for {
		err := syscall.Flock(int(file.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
