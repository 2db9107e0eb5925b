package regularfile_test

import (
	"bytes"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cadre/internal/sys/regularfile"
)

// TestOtherThanRegular checks that opening or reading anything but a regular file returns at once
// with an error that says what it is.
func TestOtherThanRegular(t *testing.T) {
	dir := t.TempDir()
	pipe, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.Symlink(pipe, link), os.Mkdir(filepath.Join(dir, "folder"),
		0o700)); err != nil {
		t.Fatal(err)
	}
	short, err := os.MkdirTemp("", "s") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(short) })
	listener, err := net.Listen("unix", filepath.Join(short, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for path, want := range map[string]string{
		pipe: "a named pipe", link: "a named pipe", filepath.Join(dir, "folder"): "a directory",
		filepath.Join(short, "s"): "a socket", "/dev/zero": "a device",
	} {
		for name, open := range map[string]func() error{
			"Read":  func() error { _, err := regularfile.Read(path, 1<<20); return err },
			"write": func() error { _, err := regularfile.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600); return err },
			"both":  func() error { _, err := regularfile.OpenFile(path, os.O_RDWR, 0); return err },
		} {
			ended := make(chan error, 1)
			go func() { ended <- open() }()
			select {
			case err := <-ended:
				if special := (*regularfile.Error)(nil); !errors.As(err, &special) ||
					!strings.Contains(err.Error(), want) {
					t.Errorf("%s of %s: %v", name, want, err)
				}
			case <-time.After(time.Minute):
				t.Fatalf("%s of %s has not ended", name, want)
			}
		}
	}
}

// TestSize checks that a size above a limit never looks as small as the limit.
func TestSize(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 bytes", 1: "1 byte", 1023: "1023 bytes", 1 << 10: "1 KiB", 1<<10 + 1: "1.1 KiB", 1<<20 - 1: "1024 KiB",
		1 << 20: "1 MiB",
		5 << 20: "5 MiB", 5<<20 + 1: "5.1 MiB", 6<<20 - 1: "6 MiB", 3 << 29: "1536 MiB",
	} {
		if got := regularfile.Size(n); got != want {
			t.Errorf("%d bytes are shown as %s, not %s", n, got, want)
		}
	}
}

func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if _, err := regularfile.Read(path, 10); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	for _, n := range []int{0, 1, 9, 10, 11, 1 << 16} {
		want := bytes.Repeat([]byte("x"), n)
		if err := os.WriteFile(path, want, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := regularfile.Read(path, 10)
		large := (*regularfile.TooLargeError)(nil)
		if n > 10 != errors.As(err, &large) || n <= 10 && (err != nil || !bytes.Equal(got, want)) {
			t.Errorf("%d bytes of at most 10: %q, %v", n, got, err)
		}
	}
	if got, err := regularfile.Read(path, 1<<16); err != nil || len(got) != 1<<16 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	// These files have content although the system reports size 0.
	if data, err := regularfile.Read("/proc/self/maps", 1<<20); err == nil && len(data) == 0 {
		t.Error("a file without a size was not read")
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := regularfile.Read("/proc/self/maps", 10); err == nil {
		t.Error("more was read than the limit")
	}
}

// TestOpenFile opens a file for writing.
func TestOpenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if _, err := regularfile.OpenFile(path, os.O_RDWR, 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	f, err := regularfile.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("text"); err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	if data, err := regularfile.Read(path, 4); err != nil || string(data) != "text" {
		t.Errorf("%q, %v", data, err)
	}
}
