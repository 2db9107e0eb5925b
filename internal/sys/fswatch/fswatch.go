// Package fswatch tells which files of some folders changed.
//
// # Authority
//
// It has the system's word that something changed, where the system gives it, and says how often to
// look where it gives none. What there is to read the files say: a change that was told may be of
// nothing, and one that was not is found at the next look. Which folders matter, and what to do
// about a change, is its caller's.
//
//	folders ──Add──▶ Folders ──Wait──▶ paths that changed │ anything may have │ nothing was told
//
// # Guarantees
//
//   - What changes after a folder was added is told, or anything is said to may have changed.
//   - A folder that went and came again is another one, and has to be added again.
//   - Where folders cannot be watched, or are not there yet, Pace says to look often, whatever
//     happens in others, but never for more than a small part of the time.
package fswatch

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"time"

	"github.com/fsnotify/fsnotify"
)

// How often to look whatever the system says: rarely, in case it lost a change, and often where it
// cannot watch.
const (
	rarely = 2 * time.Second
	often  = 50 * time.Millisecond

	part = 50 // looking takes one of so many parts of the time
)

// Folders are folders that are watched. They belong to one goroutine.
type Folders struct {
	watcher *fsnotify.Watcher // nil where the system gives none
	over    map[string]fs.FileInfo
	blind   map[string]bool // those that are there and cannot be watched
	awaited bool            // since the last wait, one was added that is not there
	looked  time.Time       // when everything was looked at last
	took    time.Duration   // by that look
}

// New returns none.
func New() *Folders {
	f := &Folders{over: map[string]fs.FileInfo{}, blind: map[string]bool{}}
	if w, err := fsnotify.NewWatcher(); err == nil {
		f.watcher = w
	}
	return f
}

// Add watches a folder, not what is below its own folders, and reports whether it did not before:
// then the folder is to be looked at, for what came before.
func (f *Folders) Add(folder string) bool {
	info, err := os.Stat(folder)
	known := f.over[folder]
	if err == nil && known != nil && os.SameFile(known, info) {
		return false
	}
	if known != nil {
		_ = f.watcher.Remove(folder) // it may have gone by itself
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

// Look has everything looked at. How long that takes counts for Pace, but for the first time: what
// is read then need not be read again.
func (f *Folders) Look(everything func()) {
	began, first := time.Now(), f.looked.IsZero()
	everything()
	if f.looked = time.Now(); !first {
		f.took = f.looked.Sub(began)
	}
}

// Pace is how soon to look at everything, whatever is told meanwhile: counted from when that was
// done last, if it was. A folder that is not there yet counts when it was added since the last
// wait.
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

// Wait waits until something changed, and for no longer than that. It returns the paths of what
// changed, none when nothing was told; or lost, where anything may have changed because there was
// more than could be told. It reports false when ctx has ended.
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
		changed = append(changed, f.told(e))
	}
	for { // what came together is told together
		select {
		case e := <-events:
			changed = append(changed, f.told(e))
		case <-errs:
			return nil, true, true
		default:
			return changed, false, true
		}
	}
}

// told is the path of an event. A folder that went is not watched any more.
func (f *Folders) told(e fsnotify.Event) string {
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
