package native

import (
	"context"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// How often a follower looks at everything by itself: rarely, in case the system lost a change, and often where it cannot watch; but never more than a part of its time. And how soon it looks
// again at a file that may be half written.
const (
	lookWatched   = time.Second
	lookUnwatched = 100 * time.Millisecond
	lookAgain     = 20 * time.Millisecond
	lookPart      = 50
)

// waker is the system's word that something changed in some folders. What there is to read, the files say.
type waker struct {
	watcher *fsnotify.Watcher // nil where the system gives none
	woken   chan struct{}
	every   time.Duration
	over    map[string]fs.FileInfo // the folders that are watched

	mu      sync.Mutex
	changed map[string]bool // paths
	all     bool            // anything may have changed
}

func watch() *waker {
	w := &waker{woken: make(chan struct{}, 1), every: lookUnwatched, over: map[string]fs.FileInfo{}, changed: map[string]bool{}, all: true}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return w
	}
	w.watcher = watcher
	go func() {
		for {
			select {
			case e, ok := <-watcher.Events:
				if !ok {
					return
				}
				w.wake(e.Name)
			case _, ok := <-watcher.Errors: // there was more than could be told
				if !ok {
					return
				}
				w.wake("")
			}
		}
	}()
	return w
}

// wake takes note of a file that changed; "" for any.
func (w *waker) wake(path string) {
	w.mu.Lock()
	if path == "" {
		w.all = true
	} else {
		w.changed[path] = true
	}
	w.mu.Unlock()
	select {
	case w.woken <- struct{}{}:
	default: // it knows already
	}
}

// cover watches the folders that are there. One that went and came again is another one.
func (w *waker) cover(folders ...string) {
	if w.watcher == nil {
		return
	}
	w.every = lookWatched
	for _, dir := range folders {
		info, err := os.Stat(dir)
		if known := w.over[dir]; err == nil && (known == nil || !os.SameFile(known, info)) {
			if known != nil {
				w.watcher.Remove(dir)
			}
			if err = w.watcher.Add(dir); err == nil {
				w.over[dir] = info
			}
			w.wake("") // what came before the watch
		}
		if err != nil {
			delete(w.over, dir)
			w.every = lookUnwatched // until there is something to watch
		}
	}
}

// taken are the files that changed since it was called last; or anything may have.
func (w *waker) taken() (paths []string, anything bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for path := range w.changed {
		paths = append(paths, path)
	}
	anything = w.all
	clear(w.changed)
	w.all = false
	return paths, anything
}

// wait waits until something changed, or it is time to look again at some files or at everything, of which a look takes so long. It reports false when ctx has ended.
func (w *waker) wait(ctx context.Context, again map[string]bool, took time.Duration) bool {
	soon := len(again) > 0
	every := max(w.every, lookPart*took)
	if soon {
		every = lookAgain
	}
	next := time.NewTimer(every)
	defer next.Stop()
	select {
	case <-w.woken:
	case <-next.C:
		if soon {
			for path := range again {
				w.wake(path)
			}
		} else {
			w.wake("")
		}
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

func (w *waker) close() {
	if w.watcher != nil {
		w.watcher.Close()
	}
}
