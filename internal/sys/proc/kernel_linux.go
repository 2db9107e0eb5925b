package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// bootID distinguishes start times of different boots, because the kernel counts from the boot.
var bootID = sync.OnceValue(func() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "unknown" // the same for every reader on this machine, which is enough to compare
	}
	return strings.TrimSpace(string(id))
})

func lookup(pid int) (process, error) { return lookupIn(pid, make([]byte, 0, statSize)) }

// lookupIn is lookup with a buffer for the file.
func lookupIn(pid int, buf []byte) (process, error) {
	stat, err := readOf(pid, "stat", buf)
	if errors.Is(err, syscall.ESRCH) { // it ended between open and read
		return process{}, os.ErrNotExist
	}
	if err != nil {
		return process{}, err
	}
	return parseStat(pid, stat)
}

// statSize is more than the size of 52 numbers and a name.
const statSize = 2048

// readOf reads a file below /proc/PID into the buffer, which it enlarges if needed. os.ReadFile
// takes twice as long: it asks for the file's size, which these files do not have, and registers
// the file with the poller.
func readOf(pid int, name string, buf []byte) ([]byte, error) {
	path := "/proc/" + strconv.Itoa(pid) + "/" + name
	fail := func(op string, err error) ([]byte, error) { return nil, &fs.PathError{Op: op, Path: path, Err: err} }
	fd, err := retried(func() (int, error) { return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return fail("open", err)
	}
	defer unix.Close(fd)
	for {
		buf = slices.Grow(buf, 512)
		n, err := retried(func() (int, error) { return unix.Read(fd, buf[len(buf):cap(buf)]) })
		if err != nil {
			return fail("read", err)
		}
		if n == 0 {
			return buf, nil
		}
		buf = buf[:len(buf)+n]
	}
}

// retried calls do again while a signal interrupts it.
func retried(do func() (int, error)) (int, error) {
	for {
		if n, err := do(); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// earlier reports whether p certainly started before q. Start times count from the boot, so a
// process never has an earlier one than the process that started it.
func earlier(p, q process) bool {
	return len(p.start) < len(q.start) || len(p.start) == len(q.start) && p.start < q.start
}

// parseStat parses proc_pid_stat(5). The name in the second field may contain anything, including
// spaces and parentheses, so the fields are counted from the last closing parenthesis.
func parseStat(pid int, stat []byte) (process, error) {
	const state, parent, group, session, start = 0, 1, 2, 3, 19
	var fields [start + 1][]byte
	n := 0
	for field := range bytes.FieldsSeq(stat[bytes.LastIndexByte(stat, ')')+1:]) {
		if fields[n] = field; n == start {
			break
		}
		n++
	}
	if n < start || len(fields[start]) == 0 {
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

// Terminal returns the device number of this process's controlling terminal; 0 if it has none.
func Terminal() int64 {
	const terminal = 4 // among the fields behind the name, in proc_pid_stat(5)
	stat, err := readOf(os.Getpid(), "stat", make([]byte, 0, statSize))
	if err != nil {
		return 0
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= terminal {
		return 0
	}
	device, _ := strconv.ParseInt(string(fields[terminal]), 10, 64)
	return device
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
	all := make([]process, 0, len(names))
	buf := make([]byte, 0, statSize)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, err := lookupIn(pid, buf); err == nil {
			all = append(all, p)
		}
	}
	return all, nil
}

// Arguments returns the command line of the process, which the process may have changed. It is
// empty if the process has ended.
func Arguments(pid int) ([]string, error) {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil || len(line) == 0 {
		return nil, err
	}
	return strings.Split(strings.TrimRight(string(line), "\x00"), "\x00"), nil
}

// hasVariable reports whether the process was started with the variable in its environment.
//
// The kernel shows no environment while a process becomes another program. So an empty one is read
// again: a few times, and longer while the new program has no place for it yet.
func hasVariable(pid int, variable string) bool {
	for bare, looks := 0, 0; bare < bareLooks && looks < mostLooks; looks++ {
		environ, err := readOf(pid, "environ", make([]byte, 1, 8192)) // a zero before the first variable, too
		switch {
		case bytes.Contains(environ, []byte("\x00"+variable+"\x00")):
			return true
		case err != nil || len(environ) > 1 || isKernelThread(pid):
			return false
		case environPlaced(pid):
			bare++
		}
		time.Sleep(bareLook)
	}
	return false
}

// A process without an environment is looked at bareLooks times, bareLook apart, and one that
// becomes another program at most mostLooks times.
const (
	bareLooks = 5
	bareLook  = 100 * time.Microsecond
	mostLooks = 1000
)

func isKernelThread(pid int) bool {
	_, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe")
	return err != nil
}

// environPlaced reports whether the program of a process has a place for its environment, or the
// process has ended.
func environPlaced(pid int) bool {
	stat, err := readOf(pid, "stat", make([]byte, 0, statSize))
	if err != nil {
		return true
	}
	// proc_pid_stat(5): env_start is field 50; field 3 is the first one behind the name
	const start = 50 - 3
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	return len(fields) <= start || string(fields[start]) != "0" || string(fields[0]) == "Z"
}

// awaitExit returns when our child has ended, and leaves it unreaped, so that its pid is not
// reused.
func awaitExit(pid int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// seesAll reports whether this process is in the initial namespaces. Every process of other
// namespaces has a pid there, and start times are the same for all.
func seesAll() bool {
	// The numbers are from the kernel's include/linux/proc_ns.h.
	for name, first := range map[string]uint64{"pid": 0xEFFFFFFC, "time": 0xEFFFFFFA} {
		var space unix.Stat_t
		err := unix.Stat("/proc/self/ns/"+name, &space)
		if name == "time" && errors.Is(err, fs.ErrNotExist) { // the kernel has no time namespaces
			continue
		}
		if err != nil || space.Ino != first {
			return false
		}
	}
	return true
}

// ownPid returns the pid of this process in the namespace of /proc. A process in a namespace of its
// own may still see the /proc of the system, where it has another pid.
func ownPid() int {
	if name, err := os.Readlink("/proc/self"); err == nil {
		if pid, err := strconv.Atoi(name); err == nil {
			return pid
		}
	}
	return os.Getpid()
}
