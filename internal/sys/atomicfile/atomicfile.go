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
//     folder when [Folder] does.
//   - A write that was killed leaves no more than a file beside that ends with .new, of which the
//     next one makes its own.
package atomicfile

import (
	"errors"
	"os"
	"path/filepath"

	"cadre/internal/sys/regularfile"
)

// Write puts a file with these data at the path, for its owner alone, in the place of the one that
// is there. Its folder has to be there.
func Write(path string, data []byte) error {
	passing := path + ".new"
	f, err := regularfile.OpenFile(passing, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(passing, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(passing))
	}
	return Folder(filepath.Dir(path))
}

// Folder has the names in a folder last as they are.
func Folder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
