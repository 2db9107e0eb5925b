// Package atomicfile replaces files atomically and durably.
//
// # Authority
//
// The package knows how a file gets to the disk. It does not know the content. The caller makes
// sure that no other process or goroutine writes the same file at the same time.
//
// # Guarantees
//
//   - A reader finds the old file or the new one, complete, also after a kill or a power loss.
//   - When [Write] returns, the file is on the disk. When [Folder] returns, the entries of the
//     folder are. [Replace] does not wait for the disk: after a power loss its file may be
//     truncated.
//   - A killed write leaves only the temporary file (Passing). Its name ends in .new, and the next
//     write overwrites it, unless the caller chose another name.
package atomicfile

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"cadre/internal/sys/regularfile"
)

// Write replaces the file at path with one that holds data and that only its owner can read. The
// file's folder must exist.
func Write(path string, data []byte) error { return WriteBy(path, data, Passing{}) }

// WriteBy is [Write] by way of that temporary file.
func WriteBy(path string, data []byte, by Passing) error {
	if err := put(path, data, by, true); err != nil {
		return err
	}
	return Folder(filepath.Dir(path))
}

// Passing is the temporary file that is renamed over the target when it is complete.
type Passing struct {
	Name string      // its path; by default the target's path with .new appended
	Mode fs.FileMode // mode of the file; 0600 by default
}

// Replace is like [Write] but does not fsync. Use it for files that a power loss may damage.
func Replace(path string, data []byte, by Passing) error { return put(path, data, by, false) }

func put(path string, data []byte, by Passing, sync bool) error {
	name, mode := cmp.Or(by.Name, path+".new"), cmp.Or(by.Mode, 0o600)
	f, err := regularfile.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	if err = f.Chmod(mode); err == nil { // a leftover file may have another mode
		_, err = f.Write(data)
	}
	if err == nil && sync {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(name, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

// Folder fsyncs a folder, so that created, renamed and removed entries survive a power loss.
func Folder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
