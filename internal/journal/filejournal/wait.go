package filejournal

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Polling intervals of a waiter: long in case the system lost a notification, short if it cannot
// watch.
const (
	pollWatched   = 2 * time.Second
	pollUnwatched = 50 * time.Millisecond
	linger        = time.Second // how long a watcher outlives the last waiter, because a reader usually waits again
)

// Wait implements [journal.Journal].
func (j *Journal) Wait(ctx context.Context, after int64) error {
	if err := j.enter(); err != nil {
		return err
	}
	defer j.leave()
	if err := j.ended(ctx); err != nil {
		return err
	}
	if has, err := j.has(after); has || err != nil {
		return err
	}
	every := j.watch.join()
	defer j.watch.part()
	poll := time.NewTicker(every)
	defer poll.Stop()
	for {
		// Get the channel before checking, so that a change after the check closes it.
		changed := j.watch.changed()
		if has, err := j.has(after); has || err != nil {
			return err
		}
		if err := j.gone(); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-poll.C:
		case <-j.closed:
		case <-ctx.Done():
		}
		if err := j.ended(ctx); err != nil {
			return err
		}
	}
}

// has reports whether there is a record after seq after. It leaves the position of after
// remembered, not the position behind the record, because the next read begins at after.
func (j *Journal) has(after int64) (bool, error) {
	w, err := j.walkFrom(after)
	if err != nil {
		return false, err
	}
	defer w.close()
	for {
		before := w.cur
		rec, ok, err := w.next()
		if err == nil && !ok {
			ok, err = w.readersEnd()
			if err == nil && ok {
				continue
			}
		}
		if !ok || err != nil {
			return false, err
		}
		if rec.Seq > after {
			w.cur = before
			return true, nil
		}
	}
}

// watch is the system's change notification for the folder. The waiters of a handle share it, and
// the first one creates it. It only wakes them; they read the files to see what changed.
type watch struct {
	dir string

	mu      sync.Mutex
	waiters int
	watcher *fsnotify.Watcher
	wake    chan struct{} // closed at a change and then replaced
	idle    *time.Timer
	stopped bool
}

// join adds a waiter and returns its polling interval.
func (w *watch) join() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiters++
	if w.watcher == nil && !w.stopped {
		w.watcher = w.start()
	}
	if w.watcher == nil {
		return pollUnwatched
	}
	return pollWatched
}

func (w *watch) start() *fsnotify.Watcher {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil
	}
	if err := watcher.Add(w.dir); err != nil {
		watcher.Close()
		return nil
	}
	go func() {
		for {
			select {
			case e, ok := <-watcher.Events:
				if !ok {
					return
				}
				// The marker also changes with every append, which means nothing to a waiter.
				if strings.HasSuffix(e.Name, segmentSuffix) || !e.Has(fsnotify.Write) {
					w.broadcast()
				}
			case _, ok := <-watcher.Errors:
				if !ok {
					return
				}
				w.broadcast()
			}
		}
	}()
	return watcher
}

// part removes a waiter. The watcher is closed some time after the last one.
func (w *watch) part() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiters--
	if w.waiters > 0 || w.stopped {
		return
	}
	if w.idle == nil {
		w.idle = time.AfterFunc(linger, w.rest)
	} else {
		w.idle.Reset(linger)
	}
}

func (w *watch) rest() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiters == 0 {
		w.drop()
	}
}

func (w *watch) drop() {
	if w.watcher != nil {
		w.watcher.Close()
		w.watcher = nil
	}
}

// stop ends the watch for good.
func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	if w.idle != nil {
		w.idle.Stop()
	}
	w.drop()
}

// changed returns a channel that is closed at the next change.
func (w *watch) changed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.wake == nil {
		w.wake = make(chan struct{})
	}
	return w.wake
}

func (w *watch) broadcast() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.wake != nil {
		close(w.wake)
		w.wake = nil
	}
}
