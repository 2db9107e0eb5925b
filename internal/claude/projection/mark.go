package projection

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"cadre/internal/sys/crc32c"
	"cadre/internal/sys/filelock"
	"cadre/internal/sys/regularfile"
)

// mark records the state that was projected last.
type mark struct {
	Version int    `json:"cadre-projection"`
	Team    string `json:"team"` // team id; a mark of another team is ignored
	// Name is the name of the folders, if it is not the team's name.
	Name string `json:"name,omitempty"`
	Seq  int64  `json:"seq"` // every file shows the state after this record or a later one; 0 for none
	// Tasks is the time at which this program last added a file to the tasks folder or removed one,
	// in nanoseconds.
	Tasks int64  `json:"tasks,omitempty"`
	State string `json:"state,omitempty"` // "", foreign or removed
	Panes string `json:"panes,omitempty"` // checksum of the panes that were projected
}

const (
	markVersion = 1
	// foreign means that a folder is not ours. Nothing was projected, and that was reported.
	foreign = "foreign"
	// removed means that the team was cleaned up. No process may project it again, whatever state
	// it has.
	removed = "removed"

	markMax = 4 << 10
)

// readMark reads the mark without its lock. For a mark that is missing, torn, or of another
// version, ok is false.
func readMark(path string) (m mark, ok bool) {
	f, err := regularfile.Open(path)
	if err != nil {
		return mark{}, false
	}
	defer f.Close()
	return readMarkFrom(f)
}

func readMarkFrom(f *os.File) (m mark, ok bool) {
	var buf [markMax]byte
	n, _ := f.ReadAt(buf[:], 0)
	line, _, ended := strings.Cut(string(buf[:n]), "\n")
	sum, body, _ := strings.Cut(line, " ")
	if !ended || sum != checksum(body) || json.Unmarshal([]byte(body), &m) != nil || m.Version != markVersion {
		return mark{}, false
	}
	return m, true
}

func checksum(body string) string {
	return fmt.Sprintf("%08x", crc32c.Checksum([]byte(body)))
}

// markLock is the locked file of the mark.
type markLock struct{ *filelock.Lock }

// lockMark waits for the lock until ctx ends. It creates the file if it does not exist, but not its
// folder, which is the team's. If that was removed, the error is fs.ErrNotExist.
func lockMark(ctx context.Context, path string) (*markLock, error) {
	lock, err := filelock.Wait(ctx, path)
	if errors.Is(err, filelock.ErrHeld) {
		return nil, fmt.Errorf("another process is projecting and holds %s: %w", path, context.Cause(ctx))
	}
	if err != nil {
		return nil, err
	}
	return &markLock{lock}, nil
}

func (l *markLock) read() (mark, bool) { return readMarkFrom(l.File()) }

// write replaces the first line in place, because renaming a new file over the mark would lose its
// lock. The remains of a longer mark after that line are ignored.
func (l *markLock) write(m mark) error {
	m.Version = markVersion
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	line := checksum(string(body)) + " " + string(body) + "\n"
	if len(line) > markMax {
		return fmt.Errorf("the id of team %s is too long", m.Team)
	}
	_, err = l.File().WriteAt([]byte(line), 0)
	return err
}

func (l *markLock) unlock() { l.Unlock() }
