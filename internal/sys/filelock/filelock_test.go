package filelock

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "alive")
	if Held(path) {
		t.Error("held before it is there")
	}
	lock, err := New(path)
	if err != nil {
		t.Fatal(err)
	}
	if !Held(path) {
		t.Error("not held by a running process")
	}
	if _, err := New(path); !errors.Is(err, ErrHeld) {
		t.Errorf("got %v, want ErrHeld", err)
	}
	for range 2 {
		if err := lock.Unlock(); err != nil {
			t.Error(err)
		}
	}
	if Held(path) {
		t.Error("held after unlock")
	}
}

// TestWait checks that a waiter gets the lock when its holder releases it, and not before.
func TestWait(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	var inside, most atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				lock, err := Wait(t.Context(), path)
				if err != nil {
					t.Error(err)
					return
				}
				most.Store(max(most.Load(), inside.Add(1)))
				inside.Add(-1)
				lock.Unlock()
			}
		})
	}
	all.Wait()
	if most.Load() != 1 {
		t.Errorf("%d held it at once", most.Load())
	}
}

// TestWaitEnds checks that a cancelled waiter says why it stopped, and leaves the lock to its
// holder.
func TestWaitEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	lock, err := New(path)
	if err != nil {
		t.Fatal(err)
	}
	why := errors.New("enough")
	ctx, end := context.WithCancelCause(t.Context())
	time.AfterFunc(20*time.Millisecond, func() { end(why) })
	if _, err := Wait(ctx, path); !errors.Is(err, ErrHeld) || !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
	if !Held(path) {
		t.Error("the holder has lost it")
	}
	lock.Unlock()
	if _, err := Wait(ctx, filepath.Join(filepath.Dir(path), "no", "lock")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a folder that does not exist: %v", err)
	}
}

// TestRemovedFile has holders remove the file before they release the lock. A waiter must not end
// up with a lock on a removed file: the file now at the path must exclude others.
func TestRemovedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	for range 50 {
		lock, err := New(path)
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan *Lock)
		go func() {
			next, err := Wait(t.Context(), path)
			if err != nil {
				t.Error(err)
			}
			got <- next
		}()
		time.AfterFunc(time.Millisecond, func() { os.Remove(path); lock.Unlock() })
		next := <-got
		if !Held(path) {
			t.Fatal("the waiter holds a file that is not at the path")
		}
		next.Unlock()
	}
}

// TestFileThatIsNoFile checks that a named pipe in place of the lock file does not block.
func TestFileThatIsNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	if _, err := New(path); err == nil || errors.Is(err, ErrHeld) {
		t.Errorf("a pipe was locked: %v", err)
	}
}
