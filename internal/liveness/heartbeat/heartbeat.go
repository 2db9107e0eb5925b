// Package heartbeat keeps the heartbeats of a team's members: one small file per member. The
// process that runs the member's session rewrites it every half a minute. Any process can read it
// to see which members are alive.
//
// # Authority
//
// It has authority over a team's heartbeats folder and nothing else. A heartbeat is not history: it
// is in no journal, is not fsynced, and may be lost with the machine. The package makes no
// decisions from heartbeats.
//
// # Clocks
//
// A heartbeat carries the time of its writer's clock. A time in the reader's future shows that one
// of the clocks is wrong. This is clock skew: it deserves a warning, and the age of the heartbeat
// means nothing. A [Watch] still works then, because it also measures by its own steady clock how
// long a heartbeat has not changed. After a pause of its own, for instance when the machine was
// suspended, a watch first observes for a while.
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

// Beat is one heartbeat. Its JSON field names come from the resumption protocol.
type Beat struct {
	Member        string `json:"teammate_id"`
	At            int64  `json:"timestamp_utc_ms"` // in UTC milliseconds since 1970, by the writer's clock
	Task          string `json:"task_claimed,omitempty"`
	Context       int64  `json:"context_usage_percent"`
	Status        string `json:"status"`
	MessageSeq    int64  `json:"message_seq"`    // the last message delivered to it
	CheckpointSeq int64  `json:"checkpoint_seq"` // the last record in a checkpoint
	// Session is the agent's own id of its session. For the lead it is the session that leads.
	Session     string `json:"session,omitempty"`
	Host        string `json:"host,omitempty"`        // id of the host that runs it
	Machine     string `json:"machine,omitempty"`     // name of the computer
	Pid         int    `json:"pid,omitempty"`         // of the writing process
	Count       int64  `json:"count"`                 // grows with each beat of one writer
	Incarnation int64  `json:"incarnation,omitempty"` // of the member
	Unreadable  bool   `json:"-"`                     // the file is damaged: the other fields are unknown
}

// Tolerance is how far in the future a beat may lie before it counts as clock skew.
const Tolerance = 2 * time.Second

// Age returns how old the beat is. Skewed is true if the beat lies in the future or cannot be read.
// The age means nothing then.
func (b Beat) Age(now time.Time) (age time.Duration, skewed bool) {
	age = now.Sub(time.UnixMilli(b.At))
	if b.Unreadable || age < -Tolerance {
		return 0, true
	}
	return max(age, 0), false
}

// Store keeps the last beat of each member of a team. [Folder] implements it.
type Store interface {
	// Write replaces the member's last beat.
	Write(b Beat) error
	// Of returns the member's last beat, and whether there is one.
	Of(member string) (b Beat, there bool, err error)
	// Forget removes the member's beat after its session has ended in good order.
	Forget(member string) error
}

// Folder is the heartbeats folder of a team.
type Folder string

// Of returns the heartbeats folder inside a team's folder.
func Of(teamDir string) Folder { return Folder(filepath.Join(teamDir, "heartbeats")) }

const (
	suffix     = ".json"
	tempSuffix = ".new" // suffix of a file that is not renamed into place yet
	// leftover is the age, compared with the newest beat, at which such a file counts as left by a
	// killed writer. A writer that was only slow writes its next beat again.
	leftover = time.Minute
)

var (
	written atomic.Int64 // beats of this process, which make the names of those files unique
	swept   sync.Map     // folders that this process has written into
)

// Write replaces the member's last beat. A reader sees either the old beat or the new one, never a
// part.
func (f Folder) Write(b Beat) error {
	data, err := json.Marshal(b)
	if err != nil {
		return err
	}
	path := filepath.Join(string(f), b.Member+suffix)
	// The name is unique, because the host that has just lost the member may still write beside
	// this one.
	coming := atomicfile.Passing{Name: fmt.Sprintf("%s.%d-%d%s", path, os.Getpid(), written.Add(1), tempSuffix)}
	if err = atomicfile.Replace(path, append(data, '\n'), coming); errors.Is(err, fs.ErrNotExist) {
		// Only the heartbeats folder is created: a team's folder that does not exist may have been
		// removed.
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

// sweep removes files left by killed writers. It takes their age by the clock of the disk: the beat
// at path was written just now.
func (f Folder) sweep(path string) {
	now, err := os.Stat(path)
	if err != nil {
		return
	}
	entries, _ := os.ReadDir(string(f))
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), tempSuffix) {
			continue
		}
		if info, err := e.Info(); err == nil && now.ModTime().Sub(info.ModTime()) > leftover {
			os.Remove(filepath.Join(string(f), e.Name()))
		}
	}
}

// Forget removes the member's beat after its session has ended in good order.
func (f Folder) Forget(member string) error {
	if err := os.Remove(filepath.Join(string(f), member+suffix)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// maxBeat is the size limit of a beat's file, in bytes.
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
