package filejournal_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cadre/internal/journal"
	"cadre/internal/journal/filejournal"
	"cadre/internal/journal/journaltest"
)

const onLinux = true

// mount mounts a new file system of the given size for the test.
func mount(t *testing.T, size string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("cannot mount: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// TestFullDisk fills the disk. A record that does not fit is refused without a trace, and when
// there is room again the journal continues.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	root := mount(t, "256k")
	dir := filepath.Join(root, "team")
	opts := filejournal.Options{SegmentSize: 20_000}
	if err := filejournal.Create(dir, "team", nil, opts); err != nil {
		t.Fatal(err)
	}
	ballast := filepath.Join(root, "ballast")
	write(t, ballast, make([]byte, 64<<10))
	j := open(t, dir, opts)
	data := `"` + strings.Repeat("x", 700) + `"`
	last := int64(0)
	var err error
	for err == nil {
		last, err = journaltest.Add(t.Context(), j, last, data)
		if err == nil && last > 1000 {
			t.Fatal("the disk does not fill")
		}
	}
	if !strings.Contains(err.Error(), "no space left") || !strings.Contains(err.Error(), "the team is unchanged") {
		t.Errorf("full: %v", err)
	}
	n := len(journaltest.All(t, j, 0))
	if h, err := filejournal.Check(dir); err != nil || len(h.Problems)+len(h.Torn) > 0 || h.Last != int64(n) ||
		h.Durable != h.Last {
		t.Errorf("check: %+v, %v", h, err)
	}
	if err := j.SaveSnapshot(t.Context(), func() (int64, []byte) { return 1, make([]byte, 1<<20) }); err == nil {
		t.Error("a snapshot was saved on a full disk")
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	for _, j := range []journal.Journal{j, open(t, dir, opts)} {
		n++
		if seq, err := journaltest.Add(t.Context(), j, 0, data); err != nil || seq != int64(n) {
			t.Errorf("with room again: %d, %v; want %d", seq, err, n)
		}
	}
}

// TestReadOnlyMount makes the file system read-only, which also affects root.
func TestReadOnlyMount(t *testing.T) {
	t.Parallel()
	root := mount(t, "1m")
	dir := filepath.Join(root, "team")
	if err := filejournal.Create(dir, "team", [][]byte{[]byte(`1`), []byte(`2`)}, filejournal.Options{}); err != nil {
		t.Fatal(err)
	}
	j := open(t, dir, filejournal.Options{})
	if err := j.SaveSnapshot(t.Context(), journal.Snapshot{Seq: 1, Data: `1`}.Taken); err != nil {
		t.Fatal(err)
	}
	j.Close()
	// A child that another test is just starting holds this process's files until it execs.
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		err := unix.Mount("", root, "", unix.MS_REMOUNT|unix.MS_RDONLY, "size=1m")
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EBUSY) || time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	checkReadOnly(t, dir, 2)
}
