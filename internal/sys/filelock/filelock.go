// Package filelock locks files between processes.
//
// # Authority
//
// Every flock of this program is taken here. A [Lock] stands for a living process that has
// something: a host its folder, a lead its team. [Flock] is the system call for code that has a
// file open anyway and waits in its own way: the journal, which queues in the kernel and hands a
// lock from goroutine to goroutine, behind an interface for its disk.
//
// The folder that Claude Code makes as a lock (package claude/teamfiles) is another program's
// format and stays there.
//
// # Guarantees
//
//   - The kernel releases a lock when its process ends, however it ends. No pid is guessed from.
//   - The locked file is the one at the path: a file that was removed or replaced while a process
//     waited for it is left alone, and the new one is locked.
//   - A lock belongs to one opening of its file, so that two holders within one process exclude
//     each other as two processes do. That is flock(2), on Linux and macOS alike; POSIX record locks
//     do not have it, and macOS has no locks of open file descriptions.
//
// The libraries for this (gofrs/flock, rogpeppe/go-internal/lockedfile) lack the check for a
// removed file, the look at a holder that creates nothing, and the open that does not wait at a
// named pipe. What is left of them is the system call.
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
)

// ErrHeld says that another holder has the file.
var ErrHeld = errors.New("held by a living process")

// Lock is a file that is held until [Lock.Unlock], or until the process ends.
type Lock struct{ file *os.File }

const (
	// glance is how long [New] waits for a holder to let go. [Held] takes a shared lock for a
	// moment, and a real holder stays longer than this.
	glance = 200 * time.Millisecond
	// The pauses between two tries double from the first to the last.
	firstPause = 100 * time.Microsecond
	lastPause  = 10 * time.Millisecond
)

// New takes the lock, and makes the file if it does not exist. It does not wait for a holder: the
// error is then [ErrHeld].
func New(path string) (*Lock, error) {
	var waited time.Duration
	return take(path, func(pause time.Duration) error {
		if waited += pause; waited > glance {
			return ErrHeld
		}
		time.Sleep(pause)
		return nil
	})
}

// Wait takes the lock, and waits for its holder until ctx ends. The error then has [ErrHeld] and
// the cause in its chain. It makes the file if it does not exist, but not its folder.
func Wait(ctx context.Context, path string) (*Lock, error) {
	return take(path, func(pause time.Duration) error {
		again := time.NewTimer(pause)
		defer again.Stop()
		select {
		case <-again.C:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrHeld, context.Cause(ctx))
		}
	})
}

// take takes the lock. wait is called while another holder has it, and ends that with an error.
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

// at reports whether the file that is held is the one at that path.
func (l *Lock) at(path string) bool {
	held, err := l.file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(held, there)
}

// File is the held file, for its holder to read and write. Whoever closes it releases the lock.
func (l *Lock) File() *os.File { return l.file }

// Unlock releases the lock and leaves the file in its place. It may be called more than once.
func (l *Lock) Unlock() error {
	if err := l.file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("unlock: %w", err)
	}
	return nil
}

// Held reports whether a living process has the lock. When it cannot find out, for lack of a
// permission say, it answers yes: to take a living host for dead costs work, and the reverse costs
// a second look. For the same reason look again: for some milliseconds after the death of a process
// that was just starting a child, the child holds the lock.
func Held(path string) bool {
	file, err := regularfile.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer file.Close()
	return Flock(file, syscall.LOCK_SH|syscall.LOCK_NB) != nil
}

// Flock is flock(2), which is called again when a signal interrupts it.
func Flock(file *os.File, how int) error {
	for {
		err := syscall.Flock(int(file.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
