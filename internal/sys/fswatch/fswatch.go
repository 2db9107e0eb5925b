// Package fswatch reports which files in a set of folders have changed.
//
// # Authority
//
// It passes on change notifications where the system has them, and says how often to poll where it
// has none. Only the files themselves say what changed: a notification may be spurious, and a
// missed change is found at the next poll. The caller decides which folders matter and what to do
// about a change.
//
//	folders ──Add──▶ Folders ──Wait──▶ changed paths │ anything may have changed │ timeout
//
// # Guarantees
//
//   - A change in a folder after Add is reported by its path, or as "anything may have changed".
//   - A folder that was removed and created again is a different folder. It must be added again.
//   - If a folder cannot be watched or does not exist yet, Pace asks for frequent polling, whatever
//     happens in other folders. Polling never takes more than a small part of the time.
package fswatch

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Polling intervals: rarely in case the system lost a notification, often where it cannot watch.
const (
	rarely = 2 * time.Second
	often  = 50 * time.Millisecond

	part = 50 // polling takes at most one part in this many of the time
)

// Folders is a set of watched folders. It belongs to one goroutine.
type Folders struct {
	watcher *fsnotify.Watcher // nil if the system has no watches left
	over    map[string]fs.FileInfo
	blind   map[string]bool // folders that exist but cannot be watched
	awaited bool            // since the last Wait, a folder was added that does not exist
	looked  time.Time       // when everything was polled last
	took    time.Duration   // duration of that poll
}

// New returns an empty set.
func New() *Folders {
	f := &Folders{over: map[string]fs.FileInfo{}, blind: map[string]bool{}}
	if w, err := fsnotify.NewWatcher(); err == nil {
		f.watcher = w
	}
	return f
}

// Add watches a folder, without its subfolders. It returns true if the folder is newly watched. The
// caller must then read it for changes made before.
func (f *Folders) Add(folder string) bool {
	info, err := os.Stat(folder)
	known := f.over[folder]
	if err == nil && known != nil && os.SameFile(known, info) {
		return false
	}
	if known != nil {
		_ = f.watcher.Remove(folder) // the watch may have ended with the folder
		delete(f.over, folder)
	}
	if err != nil {
		f.awaited = true
		return false
	}
	if f.watcher == nil || f.watcher.Add(folder) != nil {
		f.blind[folder] = true
		return false
	}
	delete(f.blind, folder)
	f.over[folder] = info
	return true
}

// Look calls everything, which polls all folders, and measures its duration for Pace. The first
// call does not count, because later polls need not read so much.
func (f *Folders) Look(everything func()) {
	began, first := time.Now(), f.looked.IsZero()
	everything()
	if f.looked = time.Now(); !first {
		f.took = f.looked.Sub(began)
	}
}

// Pace returns the time until the next poll is due, whatever Wait reports meanwhile. It counts from
// the last call of Look, if there was one. A folder that does not exist yet counts if it was added
// since the last Wait.
func (f *Folders) Pace() time.Duration {
	maps.DeleteFunc(f.blind, func(folder string, _ bool) bool { _, err := os.Stat(folder); return err != nil })
	pace := rarely
	if f.awaited || len(f.blind) > 0 || len(f.over) == 0 {
		pace = often
	}
	pace = max(pace, part*f.took)
	if f.looked.IsZero() {
		return pace
	}
	return time.Until(f.looked.Add(pace))
}

// Wait waits until something changed, for at most the given time. It returns the changed paths, or
// none after a timeout. If notifications overflowed, lost is true and anything may have changed. If
// ctx has ended, ok is false.
func (f *Folders) Wait(ctx context.Context, most time.Duration) (changed []string, lost, ok bool) {
	f.awaited = false
	var events chan fsnotify.Event
	var errs chan error
	if f.watcher != nil {
		events, errs = f.watcher.Events, f.watcher.Errors
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return nil, false, false
	case <-timer.C:
		return nil, false, true
	case <-errs:
		return nil, true, true
	case e := <-events:
		changed = append(changed, f.pathOf(e))
	}
	for { // collect all pending events
		select {
		case e := <-events:
			changed = append(changed, f.pathOf(e))
		case <-errs:
			return nil, true, true
		default:
			return changed, false, true
		}
	}
}

// pathOf returns the path of an event. A folder that was removed or renamed is no longer watched.
func (f *Folders) pathOf(e fsnotify.Event) string {
	if e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
		delete(f.over, e.Name)
	}
	return e.Name
}

// Close ends the watch.
func (f *Folders) Close() {
	if f.watcher != nil {
		f.watcher.Close()
	}
}
