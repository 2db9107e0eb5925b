package proc

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"cadre/internal/sys/atomicfile"
	"cadre/internal/sys/regularfile"
)

// Record is what a host leaves on disk of a running child, as <pid>.json in its folder. It is there
// before the child runs and until its group is gone.
type Record struct {
	Pid     int       `json:"pid"`
	Start   string    `json:"start"` // see StartTime
	Token   string    `json:"token"` // value of CADRE_PROC in the child's environment, unlike any other
	Member  string    `json:"member,omitempty"`
	Task    string    `json:"task,omitempty"`
	Trusted bool      `json:"trusted,omitempty"` // it acts as the user, whatever Member says
	Check   bool      `json:"check,omitempty"`   // it is a check; see [Cmd]
	Started time.Time `json:"started"`

	Terminal string `json:"terminal,omitempty"` // see [Cmd]
}

const recordSuffix = ".json"

// maxNote is the most that is read of a record, or of another file in a host's folder, in bytes.
const maxNote = 64 << 10

func (r Record) path(dir string) string { return filepath.Join(dir, strconv.Itoa(r.Pid)+recordSuffix) }

// write puts the record in place whole. It is not synced: a loss of power that could lose it ends
// the child as well.
func (r Record) write(dir string) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return atomicfile.Replace(r.path(dir), append(data, '\n'), atomicfile.Passing{})
}

// Records returns the children that the folder of a host lists. A folder that does not exist lists
// none. The error names files that cannot be read as a record; the others are returned with it.
func Records(dir string) ([]Record, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read records: %w", err)
	}
	var records []Record
	var errs []error
	for _, entry := range entries {
		name, isRecord := strings.CutSuffix(entry.Name(), recordSuffix)
		if pid, err := strconv.Atoi(name); isRecord && err == nil {
			record, err := readRecord(dir, pid)
			if err == nil {
				records = append(records, record)
			} else if !errors.Is(err, fs.ErrNotExist) { // the child ended while we looked
				errs = append(errs, err)
			}
		}
	}
	return records, errors.Join(errs...)
}

func readRecord(dir string, pid int) (Record, error) {
	path := Record{Pid: pid}.path(dir)
	data, err := regularfile.Read(path, maxNote)
	if err != nil {
		return Record{}, err
	}
	var r Record
	if err := json.Unmarshal(data, &r); err != nil {
		return Record{}, fmt.Errorf("record %s: %w; see what process %d is, then delete the file", path, err, pid)
	}
	if r.Pid != pid || r.Pid <= 1 || r.Start == "" || r.Token == "" {
		return Record{}, fmt.Errorf("record %s does not name a process: see what process %d is, then delete the file",
			path, pid)
	}
	return r, nil
}
