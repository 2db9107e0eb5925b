package teamfiles

import (
	"context"
	"time"

	"cadre/internal/sys/fswatch"
)

// lookAgain is the delay before a follower looks again at a file that may be half written.
const lookAgain = 20 * time.Millisecond

// waker wakes a follower and tells it which files to look at.
type waker struct {
	folders    *fswatch.Folders
	changed    []string
	everything bool
}

// cover watches the folders that exist.
func (w *waker) cover(folders ...string) {
	for _, folder := range folders {
		w.everything = w.folders.Add(folder) || w.everything // files may have changed before the watch
	}
}

// taken returns the files to look at since the last call, or everything.
func (w *waker) taken() (files []string, everything bool) {
	files, everything = w.changed, w.everything
	w.changed, w.everything = nil, false
	return files, everything
}

// wait waits until there is something to look at: a change, everything after a while, or a file to
// look at again soon. It returns false when ctx has ended.
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
