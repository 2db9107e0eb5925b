package git

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// StaleLock is the age above which the lock of something that only cadre changes cannot be a
// running git's. Git holds such a lock for milliseconds.
const StaleLock = 2 * time.Second

// UpdateOwn runs git update-ref with the arguments, options first, for a reference that only cadre
// changes, as [Runner.RunOwn] does.
func (r Runner) UpdateOwn(ctx context.Context, ref string, args ...string) error {
	return r.RunOwn(ctx, ref, slices.Concat([]string{"update-ref"}, args)...)
}

// RunOwn runs a git command that changes one reference, which only cadre changes. A git that was
// killed leaves its lock on the reference, and no other program would remove it. RunOwn removes a
// lock that is older than [StaleLock]. It waits for other locks as [Runner.Run] does, and returns a
// [*LockedError] if one of them stays.
func (r Runner) RunOwn(ctx context.Context, ref string, args ...string) error {
	began, patience := time.Now(), r.Patience
	if patience == 0 {
		patience = DefaultPatience
	}
	r.Patience = StaleLock
	for {
		_, err := r.Run(ctx, nil, args...)
		held, ok := errors.AsType[*LockedError](err)
		switch {
		case !ok || ctx.Err() != nil:
			return err
		case strings.HasSuffix(filepath.ToSlash(held.File), "/"+ref+".lock"):
			removed, failure := removeStale(held.File)
			if failure != nil {
				return failure
			}
			if !removed && time.Since(began) >= max(patience, 2*StaleLock) { // its time is in the future
				return err
			}
		case time.Since(began) >= patience: // it is the lock of another file, such as packed-refs
			return err
		}
	}
}

// removeStale removes a lock that is older than [StaleLock], and reports whether the lock is gone.
func removeStale(lock string) (gone bool, err error) {
	info, err := os.Lstat(lock)
	if err == nil && time.Since(info.ModTime()) < StaleLock {
		return false, nil
	}
	if err == nil {
		err = os.Remove(lock)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return err == nil, err
}
