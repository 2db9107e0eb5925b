package filejournal

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// fileLock is an exclusive flock with a deadline. Within one handle a gate goes before it, so that
// at most one goroutine of a handle is at the flock, and a handle's own appends are handed over
// without the kernel.
type fileLock struct {
	f      File
	what   string          // what the lock is for, in an error
	gate   chan struct{}   // of capacity 1: full while a goroutine holds or awaits the flock
	closed <-chan struct{} // closed with the handle
	j      *Journal        // whose f it is
}

func newFileLock(j *Journal, f File, what string) *fileLock {
	return &fileLock{f: f, what: what, gate: make(chan struct{}, 1), closed: j.closed, j: j}
}

// lock takes gate and flock. It ends with ctx and with the handle.
func (l *fileLock) lock(ctx context.Context) error {
	if err := l.enter(ctx); err != nil {
		return err
	}
	for range tries {
		ok, err := l.try(unix.LOCK_EX)
		if err == nil && !ok {
			err = ctx.Err()
		}
		if ok {
			return nil
		}
		if err != nil {
			<-l.gate
			return l.failed(ctx, err)
		}
		yield()
	}
	return l.queue(ctx, unix.LOCK_EX)
}

// enter takes the gate.
func (l *fileLock) enter(ctx context.Context) error {
	select {
	case l.gate <- struct{}{}:
		return nil
	default:
	}
	select {
	case l.gate <- struct{}{}:
		return nil
	case <-l.closed:
		return l.j.ended(ctx)
	case <-ctx.Done():
		return l.ended(ctx)
	}
}

func (l *fileLock) leave() { <-l.gate }

// await waits, inside the gate, until nobody holds the flock, beside any number of others who do.
// An error has left the gate.
func (l *fileLock) await(ctx context.Context) error {
	ok, err := l.try(unix.LOCK_SH)
	if err == nil && !ok {
		return l.letGo(l.queue(ctx, unix.LOCK_SH))
	}
	if err != nil {
		l.leave()
		return l.failed(ctx, err)
	}
	return l.letGo(nil)
}

func (l *fileLock) letGo(err error) error {
	if err == nil {
		_ = l.f.Flock(unix.LOCK_UN)
	}
	return err
}

// tries is how often a waiter asks, and lets others run, before it queues in the kernel. The lock
// is held for microseconds, and to be put to sleep and woken by its release costs two processes
// more than that. With 32 processes on two cores, all appending, this makes a fifth more than
// queueing at once, and sleeping between the tries makes less than either.
const tries = 6

// queue waits, inside the gate, for the flock in the kernel, which is fair, on a goroutine of its
// own, because that wait cannot be called off. If ctx ends first the goroutine keeps the gate until
// it has the flock, and lets go of both: to the kernel the two are one holder, so a second
// goroutine of this handle must not get between.
func (l *fileLock) queue(ctx context.Context, how int) error {
	got := make(chan error)
	left := make(chan struct{})
	l.j.hold()
	go func() {
		defer l.j.leave()
		err := l.f.Flock(how)
		select {
		case got <- err:
		case <-left:
			if err == nil {
				_ = l.f.Flock(unix.LOCK_UN)
			}
			<-l.gate
		}
	}()
	select {
	case err := <-got:
		if err != nil {
			<-l.gate
			return l.failed(ctx, err)
		}
		return nil
	case <-l.closed:
		close(left)
		return l.j.ended(ctx)
	case <-ctx.Done():
		close(left)
		return l.ended(ctx)
	}
}

// tryLock takes gate and flock or neither, at once.
func (l *fileLock) tryLock() (bool, error) {
	select {
	case l.gate <- struct{}{}:
	default:
		return false, nil
	}
	ok, err := l.try(unix.LOCK_EX)
	if !ok {
		<-l.gate
	}
	return ok, err
}

func (l *fileLock) unlock() {
	_ = l.f.Flock(unix.LOCK_UN) // a lock that is held can be let go of
	<-l.gate
}

func (l *fileLock) try(how int) (bool, error) {
	err := l.f.Flock(how | unix.LOCK_NB)
	if err == unix.EWOULDBLOCK {
		return false, nil
	}
	return err == nil, err
}

func (l *fileLock) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return l.ended(ctx)
	}
	return fmt.Errorf("%s: lock %s: %w", l.what, l.f.Name(), err)
}

func (l *fileLock) ended(ctx context.Context) error {
	by := "another process"
	if pid := l.f.Holder(); pid == os.Getpid() {
		by = "another call of this process"
	} else if pid != 0 {
		by = fmt.Sprintf("process %d", pid)
	}
	return fmt.Errorf("%s: %s is locked by %s: %w", l.what, l.f.Name(), by, context.Cause(ctx))
}
