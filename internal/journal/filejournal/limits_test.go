package filejournal_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cadre/internal/journal"
	"cadre/internal/journal/filejournal"
	"cadre/internal/journal/journaltest"
)

func TestOpenAndCreate(t *testing.T) {
	t.Parallel()
	if _, err := filejournal.Open(t.TempDir(), filejournal.Options{}); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("open nothing: %v", err)
	}
	if _, err := filejournal.Mend(t.Context(), t.TempDir()); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("mend nothing: %v", err)
	}
	dir := create(t, filejournal.Options{}, `1`, `2`)
	if err := filejournal.Create(dir, "team", nil, filejournal.Options{}); !errors.Is(err, journal.ErrExists) {
		t.Errorf("create again: %v", err)
	}
	err := filepath.WalkDir(filepath.Dir(dir), func(path string, d os.DirEntry, err error) error {
		if err != nil || path == filepath.Dir(dir) {
			return err
		}
		info, err := d.Info()
		if want := map[bool]os.FileMode{true: 0o700, false: 0o600}[d.IsDir()]; err != nil ||
			info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestLongRecord appends a record of maximum length and one that is too long.
func TestLongRecord(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("64 MiB")
	}
	dir := create(t, filejournal.Options{})
	j := open(t, dir, filejournal.Options{})
	long := `"` + strings.Repeat("x", 64<<20-2) + `"`
	if seq, err := journaltest.Add(t.Context(), j, 0, long); err != nil || seq != 1 {
		t.Errorf("append: %d, %v", seq, err)
	}
	if _, err := journaltest.Add(t.Context(), j, 1, `"x`+long[1:]); err == nil {
		t.Error("a record that is too long was taken")
	}
	if got := journaltest.All(t, open(t, dir, filejournal.Options{}), 0); len(got) != 1 || got[0] != long {
		t.Errorf("%d records", len(got))
	}
}

// TestGone removes a team under an open handle.
func TestGone(t *testing.T) {
	t.Parallel()
	ways := map[string]func(dir string) error{
		"removed": os.RemoveAll,
		"renamed": func(dir string) error { return os.Rename(dir, dir+".old") },
		"created again": func(dir string) error {
			return errors.Join(os.RemoveAll(dir), filejournal.Create(dir, "team", nil, filejournal.Options{}))
		},
	}
	for name, remove := range ways {
		t.Run(name, func(t *testing.T) {
			dir := create(t, filejournal.Options{}, `1`)
			j := open(t, dir, filejournal.Options{})
			waited := make(chan error)
			go func() { waited <- j.Wait(t.Context(), 1) }()
			if err := remove(dir); err != nil {
				t.Fatal(err)
			}
			if err := <-waited; !errors.Is(err, journal.ErrGone) {
				t.Errorf("wait: %v", err)
			}
			if _, err := journaltest.Add(t.Context(), j, 1, `2`); !errors.Is(err, journal.ErrGone) {
				t.Errorf("append: %v", err)
			}
			if err := j.SaveSnapshot(t.Context(), journal.Snapshot{Seq: 1, Data: `1`}.Taken); !errors.Is(err,
				journal.ErrGone) {
				t.Errorf("save: %v", err)
			}
		})
	}
}

// TestLockedByProcess checks that the error names the locked file and the process that holds the
// lock.
func TestLockedByProcess(t *testing.T) {
	t.Parallel()
	dir := create(t, filejournal.Options{})
	j := open(t, dir, filejournal.Options{})
	c := start(t, task{Role: "hold", Dir: dir})
	if got := c.line(); got != "ready" {
		t.Fatal(got)
	}
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	_, err := journaltest.Add(ctx, j, 0, `1`)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), filepath.Join("journal", "lock")) {
		t.Errorf("got %v", err)
	}
	if pid := fmt.Sprintf("process %d:", c.cmd.Process.Pid); onLinux && !strings.Contains(err.Error(), pid) {
		t.Errorf("%v does not name %s", err, pid)
	}
	if out, err := c.end(); err != nil {
		t.Error(out, err)
	}
	if seq, err := journaltest.Add(t.Context(), j, 0, `1`); err != nil || seq != 1 {
		t.Errorf("after that: %d, %v", seq, err)
	}
}

// TestFileLimit makes a child exceed the limit of a file's length in the middle of a record.
func TestFileLimit(t *testing.T) {
	t.Parallel()
	dir := create(t, filejournal.Options{}, numbered(3)...)
	for limit := uint64(300); limit < 700; limit += 37 {
		before := read(t, segmentPath(dir, 1))
		c := start(t, task{Role: "append", Dir: dir, Name: fmt.Sprint(limit), FileLimit: limit, Data: "some more data"})
		out, err := c.end()
		if err == nil || !strings.Contains(out, "the team is unchanged") || !strings.Contains(out, "file too large") {
			t.Errorf("limit %d: %s, %v", limit, out, err)
		}
		acked := strings.Count(out, "\n") - 1
		got, err := readAll(dir, filejournal.Options{})
		if lines := strings.Count(string(before), "\n") - 1; err != nil || len(got) != lines+acked {
			t.Errorf("limit %d: %d records of %d, %v", limit, len(got), lines+acked, err)
		}
	}
	if h, err := filejournal.Check(dir); err != nil || len(h.Problems)+len(h.Torn) > 0 {
		t.Errorf("check: %+v, %v", h, err)
	}
}

// checkReadOnly checks that a journal in a read-only folder can be read.
func checkReadOnly(t *testing.T, dir string, want int) {
	t.Helper()
	j := open(t, dir, filejournal.Options{})
	if got := journaltest.All(t, j, 0); len(got) != want {
		t.Errorf("read: %q", got)
	}
	if s, err := j.Snapshot(t.Context()); err != nil || s.Seq != 1 {
		t.Errorf("snapshot: %+v, %v", s, err)
	}
	if _, err := journaltest.Add(t.Context(), j, int64(want), `0`); err == nil || !strings.Contains(err.Error(),
		"can be read but not written") {
		t.Errorf("append: %v", err)
	}
	if j.SnapshotDue(1) {
		t.Error("a snapshot is due that cannot be saved")
	}
	if err := j.SaveSnapshot(t.Context(), journal.Snapshot{Seq: 2, Data: `2`}.Taken); err == nil {
		t.Error("a snapshot was saved")
	}
	if err := j.Wait(t.Context(), 0); err != nil {
		t.Errorf("wait: %v", err)
	}
}

// TestPermissions removes write permission. Root ignores permissions, so it needs another user.
func TestPermissions(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("rights do not bind root; see TestReadOnlyMount")
	}
	dir := create(t, filejournal.Options{}, `1`, `2`)
	if err := open(t, dir, filejournal.Options{}).SaveSnapshot(t.Context(),
		journal.Snapshot{Seq: 1, Data: `1`}.Taken); err != nil {
		t.Fatal(err)
	}
	mode := func(folder, file os.FileMode) {
		filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				return os.Chmod(path, file)
			}
			return err
		})
		os.Chmod(filepath.Join(dir, "journal"), folder)
		os.Chmod(dir, folder)
	}
	mode(0o500, 0o400)
	defer mode(0o700, 0o600)
	checkReadOnly(t, dir, 2)
}
