package native

import (
	"context"
	"time"

	"cadre/internal/watch"
)

const (
	// lookAgain is how soon a follower looks again at a file that may be half written.
	lookAgain = 20 * time.Millisecond
	// lookPart is of how much of its time a follower spends a part on looking at everything, however long that takes.
	lookPart = 50
)

// waker wakes a follower, with the files that it is to look at.
type waker struct {
	folders    *watch.Folders
	changed    []string
	everything bool
}

// cover watches the folders that are there.
func (w *waker) cover(folders ...string) {
	for _, folder := range folders {
		w.everything = w.folders.Add(folder) || w.everything // what came before the watch
	}
}

// taken are the files to look at, since it was called last, or everything.
func (w *waker) taken() (files []string, everything bool) {
	files, everything = w.changed, w.everything
	w.changed, w.everything = nil, false
	return files, everything
}

// wait waits until there is something to look at: what changed, everything after a while, of which a look took so long, or what is to be looked at again soon. It
// reports false when ctx has ended.
func (w *waker) wait(ctx context.Context, again bool, took time.Duration) (ok bool) {
	most := max(w.folders.Pace(), lookPart*took)
	if again {
		most = lookAgain
	}
	var lost bool
	w.changed, lost, ok = w.folders.Wait(ctx, most)
	w.everything = lost || len(w.changed) == 0 && !again
	return ok
}
