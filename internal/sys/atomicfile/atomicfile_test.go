package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestWrite writes a new file and replaces an existing one, also while a reader has it open, and
// over the remains of a killed write.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path+".new", []byte("half of something that is longer"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, []byte("first")); err != nil {
		t.Fatal(err)
	}
	reader, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := Write(path, []byte("second")); err != nil {
		t.Fatal(err)
	}
	before := make([]byte, 10)
	if n, _ := reader.Read(before); string(before[:n]) != "first" {
		t.Errorf("a reader that had opened the old file reads %q", before[:n])
	}
	if now, err := os.ReadFile(path); string(now) != "second" || err != nil {
		t.Errorf("it is %q, %v", now, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode: %v, %v", info.Mode(), err)
	}
	if entries, err := os.ReadDir(dir); len(entries) != 1 || err != nil {
		t.Errorf("beside it is %v, %v", entries, err)
	}
}

// TestReplace checks that Replace also writes the whole file, with the mode and through the
// temporary file that the caller chose.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path, passing := filepath.Join(dir, "file"), filepath.Join(dir, "passing")
	for _, text := range []string{"first", "second"} {
		if err := Replace(path, []byte(text), Passing{Name: passing, Mode: 0o640}); err != nil {
			t.Fatal(err)
		}
		if now, err := os.ReadFile(path); string(now) != text || err != nil {
			t.Errorf("it is %q, %v", now, err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o640 {
		t.Errorf("mode: %v, %v", info.Mode(), err)
	}
	if err := os.Mkdir(passing, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Replace(path, []byte("third"), Passing{Name: passing}); err == nil {
		t.Error("a folder was written over")
	}
	if now, err := os.ReadFile(path); string(now) != "second" || err != nil {
		t.Errorf("then it is %q, %v", now, err)
	}
}

// TestWriteThatFails checks that a failed write returns an error and leaves the old file, and
// nothing else.
func TestWriteThatFails(t *testing.T) {
	dir := t.TempDir()
	if err := Write(filepath.Join(dir, "nowhere", "file"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("into no folder: %v", err)
	}
	path := filepath.Join(dir, "full")
	if err := os.MkdirAll(filepath.Join(path, "of things"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, []byte("x")); err == nil {
		t.Error("a folder is written over")
	}
	if entries, err := os.ReadDir(dir); len(entries) != 1 || !entries[0].IsDir() || err != nil {
		t.Errorf("there is %v, %v", entries, err)
	}
}
