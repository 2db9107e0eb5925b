package git

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"cadre/internal/sys/regularfile"
)

// Index is the index of a work tree while nobody else changes it. It is held as git holds it, by a
// file index.lock beside it; but that is a link to a file of a name of ours, so that a lock that a
// kill left behind is known again, and taken away. What a git that was killed leaves, only a person
// may remove.
type Index struct{ path, lock, ours, next string }

// HoldIndex waits for the index and holds it. dir is the repository's folder for the work tree, and
// mark tells this use from all others that may be under way in it: a mark is used by one process at
// a time.
func (r Runner) HoldIndex(ctx context.Context, dir, path, mark string) (*Index, error) {
	ours := filepath.Join(dir, "cadre-index-"+mark)
	i := &Index{path: path, lock: path + ".lock", ours: ours, next: ours + ".new"}
	f, err := os.OpenFile(ours, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	f.Close()
	if err := i.take(ctx, cmp.Or(r.Patience, DefaultPatience)); err != nil {
		return nil, errors.Join(err, os.Remove(ours))
	}
	for _, left := range []string{i.next, i.next + ".lock"} {
		if err := os.Remove(left); err != nil && !errors.Is(err, fs.ErrNotExist) {
			i.Release()
			return nil, err
		}
	}
	if err := CopyIndex(path, i.next); err != nil {
		i.Release()
		return nil, err
	}
	return i, nil
}

// take links our file to the lock, when that is free or was ours already.
func (i *Index) take(ctx context.Context, patience time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := os.Link(i.ours, i.lock)
		if err != nil && !errors.Is(err, fs.ErrExist) { // a disk without links: after a kill a person has to remove it
			var f *os.File
			if f, err = os.OpenFile(i.lock, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err == nil {
				err = f.Close()
			}
		}
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		mine, err := os.Stat(i.ours)
		if err != nil {
			return err
		}
		if held, err := os.Stat(i.lock); err == nil && os.SameFile(mine, held) {
			return nil
		}
		select {
		case <-waiting.Done():
			return &LockedError{i.lock}
		case <-time.After(lockPause):
		}
	}
}

// Next is the file to change, with GIT_INDEX_FILE: a copy of the index.
func (i *Index) Next() string { return i.next }

// Install puts the copy in the place of the index.
func (i *Index) Install() error { return os.Rename(i.next, i.path) }

// Release lets go of the index. What was not installed is gone.
func (i *Index) Release() {
	os.Remove(i.next)
	os.Remove(i.lock)
	os.Remove(i.ours) // last: by this name the lock is known to be ours
}

// maxIndex is the most that is read of an index, in bytes: that of some ten million files.
const maxIndex = 1 << 30

// CopyIndex copies an index, for a use of ours beside the person's. Where there is none it does
// nothing.
//
// The copy gets the time of the original. Git takes a file for unchanged when its size and time are
// as the index has them, unless the file was changed in the very second in which the index was
// written, or later: then it looks into the file. A copy with a later time would make it believe
// what it must not.
func CopyIndex(from, to string) error {
	info, err := os.Stat(from) // before it is read: an older time only makes git look more often
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	data, err := regularfile.Read(from, maxIndex)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = os.WriteFile(to, data, info.Mode().Perm())
	}
	if err == nil {
		err = os.Chtimes(to, info.ModTime(), info.ModTime())
	}
	return err
}
