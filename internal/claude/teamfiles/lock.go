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
	"cadre/internal/sys/sleep"
)

const (
	// stale is the age at which a lock that its holder has not touched counts as left behind.
	// Claude Code uses the same value.
	stale = time.Minute
	// maxHold is how long this process trusts its own lock. A process that was suspended for longer
	// writes nothing, because the lock may have been stolen by then.
	maxHold = stale / 2
	// longestPause is the maximum pause between two attempts to take a lock.
	longestPause = 20 * time.Millisecond
)

// errLost reports that this process held a lock for so long that it may have been stolen.
var errLost = errors.New("this process was suspended while it held the lock; nothing was written")

// held is a lock that this process holds.
type held struct {
	path  string // the folder that is the lock
	mine  fs.FileInfo
	taken time.Time
}

// lockFile takes the lock of a file. It waits until ctx ends.
func lockFile(ctx context.Context, file string) (*held, error) {
	path := file + ".lock"
	var seen fs.FileInfo // the lock of another holder
	var since time.Time  // when it was first seen in this state
	for wait := time.Millisecond; ; wait = min(2*wait, longestPause) {
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
			// Judge by the time of the lock, or by our own clock if that time is in the future.
			if time.Since(there.ModTime()) > stale || time.Since(since) > stale {
				if err := steal(path, there); err != nil {
					return nil, err
				}
				continue
			}
		}
		if err := sleep.For(ctx, wait); err != nil {
			return nil, fmt.Errorf("another program holds %s: %w", path, err)
		}
	}
}

// steal removes a lock that was left behind, unless it was replaced meanwhile. A flock on the
// parent folder makes sure that only one of our processes steals at a time. It leaves no file
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
		return fmt.Errorf("cannot remove a lock that was left behind at least a minute ago: %w", err)
	}
	return nil
}

// unchanged reports whether a lock is still the same one. The modification time is needed because a
// file system may reuse inode numbers.
func unchanged(before, now fs.FileInfo) bool {
	return os.SameFile(before, now) && before.ModTime().Equal(now.ModTime())
}

// checkHeld returns nil while the lock is certainly still ours.
func (h *held) checkHeld() error {
	if time.Since(h.taken) > maxHold {
		return errLost
	}
	return nil
}

// unlock releases the lock, unless another process has it now.
func (h *held) unlock() {
	if there, err := os.Lstat(h.path); err == nil && unchanged(h.mine, there) {
		os.Remove(h.path)
	}
}
