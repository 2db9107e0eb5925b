package feed

import (
	"context"
	"time"

	"github.com/fsnotify/fsnotify"
)

// How often a feed looks by itself: rarely, in case the system lost a change, or often, where it cannot watch.
const (
	pollWatched   = 2 * time.Second
	pollUnwatched = 50 * time.Millisecond
)

// changes is the system's word that something in some folders changed. It only wakes; what there is to read, the files say.
type changes struct {
	watcher *fsnotify.Watcher // nil where the system gives none
	watched map[string]bool
	blind   bool // a folder cannot be watched
}

func newChanges() *changes {
	c := &changes{watched: map[string]bool{}}
	if w, err := fsnotify.NewWatcher(); err == nil {
		c.watcher = w
	}
	return c
}

func (c *changes) close() {
	if c.watcher != nil {
		c.watcher.Close()
	}
}

// add watches the folder, and reports whether that is new.
func (c *changes) add(folder string) bool {
	if c.watched[folder] {
		return false
	}
	if c.watcher == nil || c.watcher.Add(folder) != nil {
		c.blind = true
		return false
	}
	c.watched[folder] = true
	return true
}

// forget is called for a folder that is gone: one of that name may come again.
func (c *changes) forget(folder string) { delete(c.watched, folder) }

// wait returns the paths of what changed; none where anything may have changed. It reports false when ctx has ended.
func (c *changes) wait(ctx context.Context) ([]string, bool) {
	every := pollWatched
	if c.blind || len(c.watched) == 0 {
		every = pollUnwatched
	}
	c.blind = false
	var events chan fsnotify.Event
	var errs chan error
	if c.watcher != nil {
		events, errs = c.watcher.Events, c.watcher.Errors
	}
	timer := time.NewTimer(every)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return nil, false
	case <-timer.C:
		return nil, true
	case <-errs:
		return nil, true
	case e := <-events:
		names := []string{e.Name}
		for { // what came together is looked at together
			select {
			case e := <-events:
				names = append(names, e.Name)
				continue
			default:
			}
			return names, true
		}
	}
}
