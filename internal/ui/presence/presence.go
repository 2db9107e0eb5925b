// Package presence records what the person looks at, so that no process notifies them of what they
// see.
//
// # Authority
//
// It has authority over the folder "looking" of the home. Each process that shows something has one
// file there, which says what it shows and when the person was last known to be there:
//
//	looking/PID-NUMBER.json ──the process ends, or is killed──▶ removed, by it or by the next reader
//
// # When the person looks
//
// The person looks at what a process shows
//
//   - in tmux, if a client has the focus and shows the window of the process's pane;
//   - in a terminal that reports its focus, while the terminal has it;
//   - in any other terminal, for [Briefly] after they typed.
//
// A person may leave a terminal that has the focus. It counts for [Attentive] after the last key,
// or the last change of the focus.
//
// # Guarantees
//
//   - A process that is killed, and a file that is damaged, hide no notification.
//   - A viewer that cannot write its file, or whose terminal hangs, is not delayed.
package presence

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cadre/internal/sys/atomicfile"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

const (
	// Briefly is how long a person who typed is assumed to look at a terminal that does not report
	// its focus.
	Briefly = time.Minute
	// Attentive is how long a terminal with the focus counts after the last key.
	Attentive = 5 * time.Minute
	// keyPace is the least time between two writes because of keys.
	keyPace = 5 * time.Second
)

// View is what a process shows. The zero View shows nothing.
type View struct {
	Every  bool   `json:"every,omitempty"`  // the items that wait, in all teams
	Team   string `json:"team,omitempty"`   // its name in the home, or its id
	Member string `json:"member,omitempty"` // only this member; "" for the whole team
}

// has reports whether the view shows the team, or the member of it.
func (v View) has(name, id, member string) bool {
	if v.Every {
		return true
	}
	return v.Team != "" && (v.Team == name || v.Team == id) && (v.Member == "" || v.Member == member)
}

// focus is what a terminal reports about its focus.
type focus string

const (
	unsaid focus = ""
	here   focus = "here"
	away   focus = "away"
)

// record is the file of one process.
type record struct {
	Pid   int       `json:"pid"`
	Start string    `json:"start"` // of the process
	View  View      `json:"view"`
	Focus focus     `json:"focus,omitempty"`
	At    team.Time `json:"at,omitempty"`   // the last key, or the last change of the focus
	Tmux  string    `json:"tmux,omitempty"` // socket
	Pane  string    `json:"pane,omitempty"` // of that tmux
}

// Viewer records what this process shows. Its methods never wait for the disk. Any goroutine may
// call them, also on nil.
type Viewer struct {
	path string
	done chan struct{}

	mu      sync.Mutex
	now     record
	written record
	wake    chan struct{} // holds one wake-up; nil once it is closed
}

// Folder returns the folder of records in the home.
func Folder(home string) string { return filepath.Join(home, "looking") }

var number atomic.Int64

// Open starts recording what this process shows in its terminal: nothing at first. The caller must
// close the viewer.
func Open(home string, getenv func(string) string) *Viewer {
	start, _ := proc.StartTime(os.Getpid())
	v := &Viewer{done: make(chan struct{}), wake: make(chan struct{}, 1),
		path: filepath.Join(Folder(home), fmt.Sprintf("%d-%d.json", os.Getpid(), number.Add(1)))}
	v.now = record{Pid: os.Getpid(), Start: start}
	if socket, _, in := strings.Cut(getenv("TMUX"), ","); in {
		v.now.Tmux, v.now.Pane = socket, getenv("TMUX_PANE")
	}
	v.written = v.now
	go v.write(v.wake)
	return v
}

// Show records what is shown from now on.
func (v *Viewer) Show(what View) { v.change(func(r *record) { r.View = what }) }

// Focus records that the terminal reports its focus, and whether it has the focus.
func (v *Viewer) Focus(now team.Time, has bool) {
	v.change(func(r *record) {
		if r.Focus, r.At = away, now; has {
			r.Focus = here
		}
	})
}

// Press records that the person typed.
func (v *Viewer) Press(now team.Time) {
	v.change(func(r *record) {
		if now.Sub(r.At) >= keyPace {
			r.At = now
		}
	})
}

func (v *Viewer) change(by func(*record)) {
	if v == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	by(&v.now)
	if v.wake == nil || v.now == v.written {
		return
	}
	select {
	case v.wake <- struct{}{}:
	default:
	}
}

// write writes the record after each change, until the viewer is closed.
func (v *Viewer) write(wake <-chan struct{}) {
	defer close(v.done)
	for range wake {
		v.mu.Lock()
		r := v.now
		v.written = r
		v.mu.Unlock()
		data, err := json.Marshal(r)
		if err != nil || os.MkdirAll(filepath.Dir(v.path), 0o700) != nil {
			continue
		}
		// It need not survive a power loss. If it fails, the person gets a notification too many.
		atomicfile.Replace(v.path, append(data, '\n'), atomicfile.Passing{})
	}
	os.Remove(v.path)
}

// Close removes the record.
func (v *Viewer) Close() {
	if v == nil {
		return
	}
	v.mu.Lock()
	wake := v.wake
	v.wake = nil
	v.mu.Unlock()
	if wake != nil {
		close(wake)
	}
	<-v.done
}
