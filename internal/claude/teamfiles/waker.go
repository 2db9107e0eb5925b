package teamfiles

import (
	"context"
	"time"

	"cadre/internal/sys/fswatch"
)

// lookAgain is how soon a follower looks again at a file that may be half written.
const lookAgain = 20 * time.Millisecond

// waker wakes a follower, with the files that it is to look at.
type waker struct {
	folders    *fswatch.Folders
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

// wait waits until there is something to look at: what changed, everything after a while, or what
// is to be looked at again soon. It reports false when ctx has ended.
func (w *waker) wait(ctx context.Context, again bool) (ok bool) {
	most := w.folders.Pace()
	if again {
		most = lookAgain
	}
	var lost bool
	w.changed, lost, ok = w.folders.Wait(ctx, most)
	w.everything = lost || len(w.changed) == 0 && !again
	return ok
}
