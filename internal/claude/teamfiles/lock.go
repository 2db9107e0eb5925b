package teamfiles

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"cadre/internal/sys/filelock"
)

const (
	// stale is after how long without a sign of its holder a lock counts as left behind. Claude
	// Code has the same.
	stale = time.Minute
	// overdue is how long a lock of ours is trusted: whoever stood still for longer writes nothing,
	// because it may be somebody else's by the time it does.
	overdue = stale / 2
	// longestPause between two tries for a lock that is held.
	longestPause = 20 * time.Millisecond
)

// errLost says that this process held a lock for so long that it may have been stolen.
var errLost = errors.New("this process stood still while it held the lock; nothing was written")

// held is a lock that this process has.
type held struct {
	path  string // the folder that is the lock
	mine  fs.FileInfo
	taken time.Time
}

// lockFile takes the lock of a file, and waits for it until ctx ends.
func lockFile(ctx context.Context, file string) (*held, error) {
	path := file + ".lock"
	var seen fs.FileInfo // the lock that is waited for
	var since time.Time  // when it was first seen as it is
	for pause := time.Millisecond; ; pause = min(2*pause, longestPause) {
		taken := time.Now()
		err := os.Mkdir(path, 0o700)
		if err == nil {
			mine, err := os.Lstat(path)
			if err != nil {
				return nil, err
			}
			return &held{path, mine, taken}, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		if there, err := os.Lstat(path); err == nil {
			if seen == nil || !unchanged(seen, there) {
				seen, since = there, time.Now()
			}
			// By its own time, or by ours for one whose time lies ahead.
			if time.Since(there.ModTime()) > stale || time.Since(since) > stale {
				if err := steal(path, there); err != nil {
					return nil, err
				}
				continue
			}
		}
		again := time.NewTimer(pause)
		select {
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return nil, fmt.Errorf("another program holds %s: %w", path, context.Cause(ctx))
		}
	}
}

// steal removes a lock that was left behind, unless it is another one by now. Of our processes one
// at a time does so, by a lock of the kernel's on the folder that both are in, which leaves nothing
// behind.
func steal(path string, left fs.FileInfo) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := filelock.Flock(dir, syscall.LOCK_EX); err != nil {
		return err
	}
	there, err := os.Lstat(path)
	if err != nil || !unchanged(left, there) {
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the lock was left behind a minute ago or longer, and cannot be removed: %w", err)
	}
	return nil
}

// unchanged reports whether a lock is the one that it was: a file system may give a new one the
// number of an old one.
func unchanged(before, now fs.FileInfo) bool {
	return os.SameFile(before, now) && before.ModTime().Equal(now.ModTime())
}

// sure is nil while the lock is certainly still ours.
func (h *held) sure() error {
	if time.Since(h.taken) > overdue {
		return errLost
	}
	return nil
}

// unlock lets go of the lock, unless somebody else has it by now.
func (h *held) unlock() {
	if there, err := os.Lstat(h.path); err == nil && unchanged(h.mine, there) {
		os.Remove(h.path)
	}
}
