package proc

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"cadre/internal/sys/atomicfile"
	"cadre/internal/sys/filelock"
	"cadre/internal/sys/regularfile"
)

// ListFolder is the usual name of the folder that lists registers. It lies beside the folders of
// the teams whose sessions they run.
const ListFolder = ".running"

// Listing says where a [Register] is listed, so that a process can find the host above it; see
// [Ancestry].
type Listing struct {
	Folder string // created with the first entry, and removed with the last
	Team   string // the team whose sessions the register runs; "" for a team without a folder beside the list
	// Alive is the lock of [AliveFile] in the register's folder, if the caller has it already. The
	// register releases it.
	Alive *filelock.Lock
	whole bool // see OpenWhole
}

// entry is a register in a list, stored in a file named after its host's pid.
type entry struct {
	Pid   int    `json:"pid"`
	Start string `json:"start"` // see StartTime
	Dir   string `json:"dir"`   // of the register
	Team  string `json:"team,omitempty"`
	Whole bool   `json:"whole,omitempty"` // see OpenWhole; it runs the sessions of no team
}

// enlist lists the register with folder dir, and removes the entries of killed hosts.
func enlist(l Listing, dir string) (path string, err error) {
	start, err := StartTime(os.Getpid())
	if err != nil {
		return "", err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	data, err := json.Marshal(entry{Pid: os.Getpid(), Start: start, Dir: dir, Team: l.Team, Whole: l.whole})
	if err != nil {
		return "", err
	}
	path = filepath.Join(l.Folder, strconv.Itoa(os.Getpid())+"-"+rand.Text()+recordSuffix)
	for {
		if err := os.MkdirAll(l.Folder, 0o700); err != nil {
			return "", err
		}
		err := atomicfile.Replace(path, append(data, '\n'), atomicfile.Passing{})
		if errors.Is(err, fs.ErrNotExist) { // another process removed the last entry, and the folder with it
			continue
		}
		if err != nil {
			return "", err
		}
		break
	}
	sweepList(l.Folder)
	return path, nil
}

// unlist removes the register from its list.
func unlist(path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) { // the whole home was removed
		return nil
	}
	os.Remove(filepath.Dir(path)) // fails while another host is listed
	return err
}

// sweepList removes the entries of processes that have ended. A missed entry does no harm, because
// no running process descends from its process.
func sweepList(folder string) {
	files, err := os.ReadDir(folder)
	if err != nil {
		return
	}
	for _, file := range files {
		name := filepath.Join(folder, file.Name())
		pid, ok := listedPid(strings.TrimSuffix(file.Name(), ".new"))
		if !ok {
			continue
		}
		if e, err := readEntry(name); err == nil && Alive(e.Pid, e.Start) || err != nil && exists(pid) {
			continue
		}
		os.Remove(name)
	}
}

// Listed reports whether this process runs sessions: whether a register of it is in the list.
func Listed(folder string) bool {
	hosts, err := listed(folder)
	return err == nil && len(hosts[os.Getpid()]) > 0
}

// hostsIn returns the pids of the processes in a list that are running.
func hostsIn(folder string) (map[int]bool, error) {
	all, err := listed(folder)
	hosts := map[int]bool{}
	for pid, paths := range all {
		for _, path := range paths {
			if e, err := readEntry(path); err == nil && e.Pid == pid && Alive(pid, e.Start) {
				hosts[pid] = true
			}
		}
	}
	return hosts, err
}

func exists(pid int) bool {
	_, err := lookup(pid)
	return err == nil
}

// listedPid parses the pid in the name of an entry.
func listedPid(name string) (pid int, ok bool) {
	name, isEntry := strings.CutSuffix(name, recordSuffix)
	number, _, _ := strings.Cut(name, "-")
	pid, err := strconv.Atoi(number)
	return pid, isEntry && err == nil && pid > 0
}

func readEntry(path string) (e entry, err error) {
	data, err := regularfile.Read(path, maxFile) // a process that hides its origin may put a pipe there
	if err != nil {
		return e, err
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return e, fmt.Errorf("%s: %w", path, err)
	}
	if e.Pid <= 0 || e.Start == "" || e.Dir == "" {
		return e, fmt.Errorf("%s does not name a process and its register", path)
	}
	return e, nil
}

// listed returns the files of a list by the pid in their names. A folder that does not exist is an
// empty list.
func listed(folder string) (map[int][]string, error) {
	files, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the list of hosts: %w", err)
	}
	var all map[int][]string
	for _, file := range files {
		if pid, ok := listedPid(file.Name()); ok {
			if all == nil {
				all = make(map[int][]string, len(files))
			}
			all[pid] = append(all[pid], filepath.Join(folder, file.Name()))
		}
	}
	return all, nil
}
