package fswatch

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func put(t *testing.T, path string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// tells waits until the path is reported.
func tells(t *testing.T, f *Folders, path string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		changed, lost, ok := f.Wait(ctx, time.Minute)
		switch {
		case !ok:
			t.Fatalf("%s is not reported", path)
		case lost || slices.Contains(changed, path):
			return
		}
	}
}

func TestChanges(t *testing.T) {
	dir := t.TempDir()
	f := New()
	defer f.Close()
	if f.Pace() != often {
		t.Error("without a folder it is not looked at often")
	}
	if !f.Add(dir) || f.Add(dir) {
		t.Error("it is not new once")
	}
	if f.Pace() != rarely {
		t.Error("a folder that is watched is looked at often")
	}
	tells(t, f, put(t, filepath.Join(dir, "a")))
	tells(t, f, put(t, filepath.Join(dir, "a")))
	if err := os.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	tells(t, f, filepath.Join(dir, "b"))
	if err := os.Remove(filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	tells(t, f, filepath.Join(dir, "b"))
}

// TestFolderThatComesAgain checks that a missing or removed folder is polled often until it is
// added again, and that it counts as new then.
func TestFolderThatComesAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dir")
	f := New()
	defer f.Close()
	if f.Add(dir) || f.Pace() != often {
		t.Error("what is not there is watched")
	}
	for range 3 {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if !f.Add(dir) {
			t.Error("it is not new")
		}
		tells(t, f, put(t, filepath.Join(dir, "a")))
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		tells(t, f, dir)
		if f.Add(dir) || f.Pace() != often {
			t.Error("what is gone is watched")
		}
	}
}

func TestNothingChanges(t *testing.T) {
	f := New()
	defer f.Close()
	f.Add(t.TempDir())
	if changed, lost, ok := f.Wait(t.Context(), time.Millisecond); len(changed) > 0 || lost || !ok {
		t.Errorf("got %v, %t, %t", changed, lost, ok)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, ok := f.Wait(ctx, time.Minute); ok {
		t.Error("it waits on")
	}
}

// TestWithoutASystem checks that everything is polled often if the system gives no watch.
func TestWithoutASystem(t *testing.T) {
	f := &Folders{over: map[string]fs.FileInfo{}, blind: map[string]bool{}}
	defer f.Close()
	dir := t.TempDir()
	if f.Add(dir) || f.Pace() != often {
		t.Error("it is watched")
	}
	if changed, lost, ok := f.Wait(t.Context(), time.Millisecond); len(changed) > 0 || lost || !ok {
		t.Errorf("got %v, %t, %t", changed, lost, ok)
	}
}

// TestPace checks that one folder that cannot be watched makes everything be polled often while it
// exists, whatever is reported about other folders. Polling keeps to its share of the time, however
// long it takes. The first poll does not count, because it reads what later polls need not.
func TestPace(t *testing.T) {
	f := New()
	defer f.Close()
	watched, blind := t.TempDir(), t.TempDir()
	f.Add(watched)
	f.blind[blind] = true // as where the system has no watch left
	if f.Pace() != often {
		t.Error("it is not looked at often")
	}
	slowly := func() { time.Sleep(10 * time.Millisecond) }
	f.Look(slowly)
	before := f.Pace()
	tells(t, f, put(t, filepath.Join(watched, "a")))
	if now := f.Pace(); before > often || now >= before {
		t.Errorf("after the first look it is to be looked at in %s, and when something else was told in %s", before,
			now)
	}
	f.Look(slowly)
	if got := f.Pace(); got < 200*time.Millisecond {
		t.Errorf("what takes 10 ms is to be done again in %s", got)
	}
	f.Look(func() {})
	if err := os.Remove(blind); err != nil {
		t.Fatal(err)
	}
	if got := f.Pace(); got <= often {
		t.Errorf("it is gone, and looked for in %s", got)
	}
}
