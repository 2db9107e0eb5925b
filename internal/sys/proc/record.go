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

// Record describes a running child in the file <pid>.json of the host's folder. It is written
// before the child runs, and removed when no process of its group is left.
type Record struct {
	Pid     int       `json:"pid"`
	Start   string    `json:"start"` // see StartTime
	Token   string    `json:"token"` // unique value of CADRE_PROC in the child's environment
	Member  string    `json:"member,omitempty"`
	Task    string    `json:"task,omitempty"`
	Trusted bool      `json:"trusted,omitempty"` // it acts as the user, whatever Member says
	Check   bool      `json:"check,omitempty"`   // see [Cmd]
	Started time.Time `json:"started"`

	Terminal string `json:"terminal,omitempty"` // see [Cmd]
}

const recordSuffix = ".json"

// maxFile is the size limit of a record, or of another file in a host's folder, in bytes.
const maxFile = 64 << 10

func (r Record) path(dir string) string { return filepath.Join(dir, strconv.Itoa(r.Pid)+recordSuffix) }

// write replaces the record atomically, without fsync: a power loss that could lose the record ends
// the child as well.
func (r Record) write(dir string) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return atomicfile.Replace(r.path(dir), append(data, '\n'), atomicfile.Passing{})
}

// Records returns the children recorded in the folder of a host. A folder that does not exist has
// none. Files that cannot be parsed are named in the error; the other records are returned with it.
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
			} else if !errors.Is(err, fs.ErrNotExist) { // the child ended meanwhile
				errs = append(errs, err)
			}
		}
	}
	return records, errors.Join(errs...)
}

func readRecord(dir string, pid int) (Record, error) {
	path := Record{Pid: pid}.path(dir)
	data, err := regularfile.Read(path, maxFile)
	if err != nil {
		return Record{}, err
	}
	var r Record
	if err := json.Unmarshal(data, &r); err != nil {
		return Record{}, fmt.Errorf("record %s: %w; check what process %d is, then delete the file", path, err, pid)
	}
	if r.Pid != pid || r.Pid <= 1 || r.Start == "" || r.Token == "" {
		return Record{}, fmt.Errorf("record %s does not name a process: check what process %d is, then delete the file",
			path, pid)
	}
	return r, nil
}
