// Package heartbeat keeps the signs of life of a team's members: one small file for each, written
// anew every half a minute by the process that runs the member's session, and read by whoever wants
// to know who lives.
//
// # Authority
//
// It has authority over the folder heartbeats of a team and over nothing else. A beat is not
// history: it is in no journal, is not synced to the disk, and may be lost with the machine. It
// decides nothing by itself.
//
// # Clocks
//
// The beat has the time of the clock of who wrote it. One that lies in the reader's future shows
// that one of the clocks is wrong: it is skew, worth a warning, and its age says nothing. A [Watch]
// stays on its feet then: it also sees, by its own clock that runs evenly, for how long a beat has
// not changed. A watch that slept itself, as a suspended machine does, first looks on for a while.
package heartbeat

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cadre/internal/sys/atomicfile"
	"cadre/internal/sys/regularfile"
)

// Beat is one sign of life. The names of its fields in JSON are those of the resumption protocol.
type Beat struct {
	Member        string `json:"teammate_id"`
	At            int64  `json:"timestamp_utc_ms"` // by the clock of who wrote it
	Task          string `json:"task_claimed,omitempty"`
	Context       int64  `json:"context_usage_percent"`
	Status        string `json:"status"`
	MessageSeq    int64  `json:"message_seq"`    // of the last message that it was given
	CheckpointSeq int64  `json:"checkpoint_seq"` // of the last record that a checkpoint has
	// the agent's own id of its session; of the lead, the session that leads
	Session     string `json:"session,omitempty"`
	Host        string `json:"host,omitempty"`        // id of the host that runs it
	Machine     string `json:"machine,omitempty"`     // name of the computer
	Pid         int    `json:"pid,omitempty"`         // of the process that writes
	Count       int64  `json:"count"`                 // grows with each beat of one writer
	Incarnation int64  `json:"incarnation,omitempty"` // of the member
	Unreadable  bool   `json:"-"`                     // the file is damaged: nothing is known
}

// Tolerance is how far a beat may lie in the future before it is skew.
const Tolerance = 2 * time.Second

// Age is how old the beat is. Skewed says that it lies in the future, or that its file cannot be
// read, and that its age says nothing.
func (b Beat) Age(now time.Time) (age time.Duration, skewed bool) {
	age = now.Sub(time.UnixMilli(b.At))
	if b.Unreadable || age < -Tolerance {
		return 0, true
	}
	return max(age, 0), false
}

// Store keeps the last beat of each member of a team. A [Folder] is one.
type Store interface {
	// Write puts the beat in place of the member's last one.
	Write(b Beat) error
	// Of returns the member's last beat, and whether there is one.
	Of(member string) (b Beat, there bool, err error)
	// Forget removes the member's beat: its session has ended in good order.
	Forget(member string) error
}

// Folder is the folder heartbeats of a team.
type Folder string

// Of is the folder of the team whose own folder that is.
func Of(teamDir string) Folder { return Folder(filepath.Join(teamDir, "heartbeats")) }

const (
	suffix = ".json"
	fresh  = ".new" // ends the names of files that are not in their place yet
	// leftover is how much older than a beat such a file is whose writer was killed. One that is
	// only slow gives its next beat again.
	leftover = time.Minute
)

var (
	written atomic.Int64 // beats of this process, for the names of those files
	swept   sync.Map     // the folders into which this process has written
)

// Write puts the beat in place of the member's last one. A reader sees the one or the other whole.
func (f Folder) Write(b Beat) error {
	data, err := json.Marshal(b)
	if err != nil {
		return err
	}
	path := filepath.Join(string(f), b.Member+suffix)
	// also beside one that has just lost the member
	coming := atomicfile.Passing{Name: fmt.Sprintf("%s.%d-%d%s", path, os.Getpid(), written.Add(1), fresh)}
	if err = atomicfile.Replace(path, append(data, '\n'), coming); errors.Is(err, fs.ErrNotExist) {
		// and not the team's own folder: it may have been removed
		if err = os.Mkdir(string(f), 0o700); err == nil || errors.Is(err, fs.ErrExist) {
			err = atomicfile.Replace(path, append(data, '\n'), coming)
		}
	}
	if err != nil {
		return err
	}
	if _, again := swept.LoadOrStore(f, true); !again {
		f.sweep(path)
	}
	return nil
}

// sweep removes what killed writers left behind. How old that is, it sees by the clock of the disk:
// the beat at that path was written just now.
func (f Folder) sweep(path string) {
	now, err := os.Stat(path)
	if err != nil {
		return
	}
	entries, _ := os.ReadDir(string(f))
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), fresh) {
			continue
		}
		if info, err := e.Info(); err == nil && now.ModTime().Sub(info.ModTime()) > leftover {
			os.Remove(filepath.Join(string(f), e.Name()))
		}
	}
}

// Forget removes the member's beat: its session has ended in good order.
func (f Folder) Forget(member string) error {
	if err := os.Remove(filepath.Join(string(f), member+suffix)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// maxBeat is the most that is read of a beat, in bytes.
const maxBeat = 64 << 10

// Of returns the member's last beat, and whether there is one.
func (f Folder) Of(member string) (Beat, bool, error) {
	data, err := regularfile.Read(filepath.Join(string(f), member+suffix), maxBeat)
	if errors.Is(err, fs.ErrNotExist) {
		return Beat{}, false, nil
	}
	b := Beat{}
	if special := (*regularfile.Error)(nil); errors.As(err, &special) {
		b = Beat{Unreadable: true}
	} else if err != nil {
		return Beat{}, false, err
	} else if json.Unmarshal(data, &b) != nil {
		b = Beat{Unreadable: true}
	}
	b.Member = member
	return b, true, nil
}

// All returns the last beat of each member that has one.
func (f Folder) All() (map[string]Beat, error) {
	entries, err := os.ReadDir(string(f))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	all := make(map[string]Beat, len(entries))
	for _, e := range entries {
		member, isBeat := strings.CutSuffix(e.Name(), suffix)
		if !isBeat {
			continue
		}
		if b, ok, err := f.Of(member); err != nil {
			return nil, err
		} else if ok {
			all[member] = b
		}
	}
	return all, nil
}
