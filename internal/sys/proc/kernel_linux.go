package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// bootID makes start times of different boots differ: the kernel counts them from the boot.
var bootID = sync.OnceValue(func() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "unknown" // the same for every reader on this machine, which is all that a comparison needs
	}
	return strings.TrimSpace(string(id))
})

func lookup(pid int) (process, error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, syscall.ESRCH) { // it ended between open and read
		return process{}, os.ErrNotExist
	}
	if err != nil {
		return process{}, err
	}
	return parseStat(pid, stat)
}

// parseStat reads proc_pid_stat(5). The name in the second field may hold anything, also spaces and
// parentheses, so the fields are counted from the last closing one.
func parseStat(pid int, stat []byte) (process, error) {
	const state, parent, group, session, start = 0, 1, 2, 3, 19
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= start {
		return process{}, fmt.Errorf("/proc/%d/stat: cannot be read as proc_pid_stat(5): %q", pid, stat)
	}
	p := process{pid: pid, start: bootID() + ":" + string(fields[start])}
	switch fields[state][0] {
	case 'Z', 'X', 'x':
		p.zombie = true
	}
	var errs [3]error
	p.parent, errs[2] = strconv.Atoi(string(fields[parent]))
	p.group, errs[0] = strconv.Atoi(string(fields[group]))
	p.session, errs[1] = strconv.Atoi(string(fields[session]))
	return p, errors.Join(errs[:]...)
}

func processes() ([]process, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var all []process
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, err := lookup(pid); err == nil {
			all = append(all, p)
		}
	}
	return all, nil
}

// Arguments returns the command line of the process, which it may have changed; none where it has
// ended.
func Arguments(pid int) ([]string, error) {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil || len(line) == 0 {
		return nil, err
	}
	return strings.Split(strings.TrimRight(string(line), "\x00"), "\x00"), nil
}

// bears reports whether the process was started with the variable in its environment.
func bears(pid int, variable string) bool {
	environ, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	return err == nil && bytes.Contains(append([]byte{0}, environ...), []byte("\x00"+variable+"\x00"))
}

// awaitExit returns when our child has ended, and leaves it unreaped: until then nobody else can
// get its pid.
func awaitExit(pid int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// seesAll reports whether this process is in the namespaces that the system began with: what runs
// in any other one has a number there, and times are as they are.
func seesAll() bool {
	// the kernel's include/linux/proc_ns.h
	for name, first := range map[string]uint64{"pid": 0xEFFFFFFC, "time": 0xEFFFFFFA} {
		var space unix.Stat_t
		err := unix.Stat("/proc/self/ns/"+name, &space)
		if name == "time" && errors.Is(err, fs.ErrNotExist) { // a system without
			continue
		}
		if err != nil || space.Ino != first {
			return false
		}
	}
	return true
}

// ownPid is the number under which /proc has this process. In a namespace of its own it has another
// one, and /proc may still be that of the system.
func ownPid() int {
	if name, err := os.Readlink("/proc/self"); err == nil {
		if pid, err := strconv.Atoi(name); err == nil {
			return pid
		}
	}
	return os.Getpid()
}
