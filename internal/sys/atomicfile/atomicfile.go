// Package atomicfile puts files into their place so that they last.
//
// # Authority
//
// The package knows how a file gets to the disk, and nothing of what is in it. That nobody else
// writes the same file at the same time is its caller's affair.
//
// # Guarantees
//
//   - Whoever reads a file, also after a kill or a loss of power, finds it as it was before, or as
//     it was to be, and whole.
//   - What was written is on the disk when [Write] returns, and what came into or went from a
//     folder when [Folder] does. [Replace] does not wait for the disk: after a loss of power its
//     file may be there with less in it.
//   - A write that was killed leaves no more than the passing file. It ends with .new, and the next
//     write makes it its own, unless the caller gave it another name.
package atomicfile

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"cadre/internal/sys/regularfile"
)

// Write puts a file with these data at the path, for its owner alone, in the place of the one that
// is there. Its folder has to be there.
func Write(path string, data []byte) error {
	if err := put(path, data, Passing{}, true); err != nil {
		return err
	}
	return Folder(filepath.Dir(path))
}

// Passing is the file that takes the place of another when it is whole.
type Passing struct {
	Name string      // its path; the other's with .new by default
	Mode fs.FileMode // of a file that is made; 0600 by default
}

// Replace is [Write] for what a loss of power may take: nobody waits for the disk.
func Replace(path string, data []byte, by Passing) error { return put(path, data, by, false) }

func put(path string, data []byte, by Passing, sync bool) error {
	name, mode := cmp.Or(by.Name, path+".new"), cmp.Or(by.Mode, 0o600)
	f, err := regularfile.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	if err = f.Chmod(mode); err == nil { // it may be there with another one
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

// Folder has the names in a folder last as they are.
func Folder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
