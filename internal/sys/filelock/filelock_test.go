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
		t.Error("not held by a living process")
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

// A waiter gets the lock when its holder lets go, and not before.
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

// A waiter that is called off says why, and leaves the lock to its holder.
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

// The holder removes the file before it lets go, as some do. Whoever waited must not hold a file
// that nobody else can find: the file that is at the path afterwards keeps others out.
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

// A lock goes with its process, however that ends; a named pipe in its place keeps nobody waiting.
func TestFileThatIsNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	if _, err := New(path); err == nil || errors.Is(err, ErrHeld) {
		t.Errorf("a pipe was locked: %v", err)
	}
}
