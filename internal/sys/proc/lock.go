package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"cadre/internal/sys/regularfile"
)

// ErrHeld is returned by [NewLock] when another holder has the file.
var ErrHeld = errors.New("held by a living process")

// Lock is a file that is held for as long as a process lives: the kernel lets go of it when the
// process ends, however it ends. Others see with [Held] at once whether the holder lives, and
// nobody has to guess from a pid.
type Lock struct{ file *os.File }

// NewLock takes the lock, and makes the file if there is none. It does not wait for a holder: the
// error is then [ErrHeld].
func NewLock(path string) (*Lock, error) {
	for {
		lock, err := newLock(path)
		if err != nil || lock.at(path) {
			return lock, err
		}
		lock.Unlock() // the file was removed between opening and locking it, and is nobody's any more
	}
}

// at reports whether the file that is held is the one at that path.
func (l *Lock) at(path string) bool {
	held, err := l.file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(held, there)
}

func newLock(path string) (*Lock, error) {
	file, err := regularfile.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) // the os package adds O_CLOEXEC
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	// Held takes a shared lock for a moment. A holder stays longer than this.
	deadline := time.Now().Add(200 * time.Millisecond)
	for {
		err = flock(file, syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return &Lock{file}, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			file.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if time.Now().After(deadline) {
			file.Close()
			return nil, fmt.Errorf("lock %s: %w", path, ErrHeld)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// Sign writes into the file which process holds it, for [HolderOf].
func (l *Lock) Sign() error {
	start, err := StartTime(os.Getpid())
	if err == nil {
		err = l.file.Truncate(0)
	}
	if err == nil {
		_, err = l.file.WriteAt(fmt.Appendf(nil, "%d %s\n", os.Getpid(), start), 0)
	}
	if err != nil {
		return fmt.Errorf("sign lock: %w", err)
	}
	return nil
}

// Holder is a process that signed a lock with [Lock.Sign]. Its start is as [StartTime] has it.
type Holder struct {
	Pid   int
	Start string
}

// HolderOf returns the process that holds the lock at that path, as it signed it. ok is false where
// no process holds it, and where the holder has not signed it or cannot be seen from here, because
// it runs on another machine or in another PID namespace. The error says that the file cannot be
// read; one that does not exist is nobody's.
func HolderOf(path string) (h Holder, ok bool, err error) {
	if h, ok, err = signature(path); err != nil || !ok {
		return Holder{}, false, err
	}
	// A holder that has not signed it yet follows one that has ended, whose signature is still there.
	if !Alive(h.Pid, h.Start) || !Held(path) {
		return Holder{}, false, nil
	}
	return h, true, nil
}

// signature reads who was the last to sign the lock; ok is false where nobody was.
func signature(path string) (h Holder, ok bool, err error) {
	data, err := regularfile.Read(path, maxNote)
	if errors.Is(err, fs.ErrNotExist) {
		return Holder{}, false, nil
	}
	if err != nil {
		return Holder{}, false, err
	}
	_, malformed := fmt.Sscan(string(data), &h.Pid, &h.Start)
	return h, malformed == nil, nil
}

// Unlock lets go of the file and leaves it in its place. It may be called more than once.
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
	return flock(file, syscall.LOCK_SH|syscall.LOCK_NB) != nil
}

func flock(file *os.File, how int) error {
	for {
		err := syscall.Flock(int(file.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
