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

// Index is the index of a work tree, locked against other changes. It uses git's own lock, a file
// index.lock beside the index. The lock is a link to a file with a name of cadre's. So the next
// Index recognizes a lock that a kill left, and removes it. Only a person may remove a lock that a
// killed git left.
type Index struct{ path, lock, ours, next string }

// HoldIndex waits for the index and locks it. dir is the repository's folder for the work tree.
// mark distinguishes this use from all others at the same time; one process at a time uses a mark.
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

// take links cadre's file to the lock, if the lock is free or is cadre's already.
func (i *Index) take(ctx context.Context, patience time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := os.Link(i.ours, i.lock)
		if err != nil && !errors.Is(err, fs.ErrExist) { // no links: after a kill, a person removes the lock
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

// Next returns the file to change through GIT_INDEX_FILE: a copy of the index.
func (i *Index) Next() string { return i.next }

// Install replaces the index by the copy.
func (i *Index) Install() error { return os.Rename(i.next, i.path) }

// Release unlocks the index. It discards a copy that was not installed.
func (i *Index) Release() {
	os.Remove(i.next)
	os.Remove(i.lock)
	os.Remove(i.ours) // last, because this name marks the lock as cadre's
}

// maxIndex bounds how much of an index is read, in bytes: the index of some ten million files.
const maxIndex = 1 << 30

// CopyIndex copies an index, for use beside the user's. It does nothing if there is no index.
//
// The copy gets the time of the original. Git assumes that a file is unchanged if its size and time
// match the index. It reads a file that was changed in the second in which the index was written,
// or later. With a later time, git would assume that changed files are unchanged.
func CopyIndex(from, to string) error {
	info, err := os.Stat(from) // before it is read: an older time only makes git read more files
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
