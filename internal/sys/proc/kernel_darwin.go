package proc

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const zombieState = 5 // SZOMB of <sys/proc.h>

func lookup(pid int) (process, error) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(info.Proc.P_pid) != pid { // no process: an empty answer, which arrives as EIO
		return process{}, os.ErrNotExist
	}
	return fromInfo(info), nil
}

func fromInfo(info *unix.KinfoProc) process {
	p := process{
		pid:    int(info.Proc.P_pid),
		parent: int(info.Eproc.Ppid),
		group:  int(info.Eproc.Pgid),
		start:  fmt.Sprintf("%d.%06d", info.Proc.P_starttime.Sec, info.Proc.P_starttime.Usec),
		zombie: info.Proc.P_stat == zombieState,
	}
	if session, err := unix.Getsid(p.pid); err == nil { // the kernel's answer only holds the session's address
		p.session = session
	}
	return p
}

// Terminal returns the device number of this process's controlling terminal; 0 if it has none.
func Terminal() int64 {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", os.Getpid())
	if err != nil || info.Eproc.Tdev == -1 { // NODEV
		return 0
	}
	return int64(info.Eproc.Tdev)
}

func processes() ([]process, error) {
	infos, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, err
	}
	all := make([]process, 0, len(infos))
	for i := range infos {
		all = append(all, fromInfo(&infos[i]))
	}
	return all, nil
}

// Arguments returns the command line of the process.
func Arguments(pid int) ([]string, error) {
	raw, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil {
		return nil, err
	}
	return splitArguments(raw), nil
}

// hasVariable reports whether the process was started with the variable in its environment. System
// Integrity Protection hides the environment of the system's own programs; for them it returns
// false.
func hasVariable(pid int, variable string) bool {
	arguments, err := unix.SysctlRaw("kern.procargs2", pid)
	return err == nil && bytes.Contains(arguments, []byte("\x00"+variable+"\x00"))
}

// awaitExit returns when our child has ended, and leaves it unreaped, so that its pid is not
// reused. waitid(2) does not work here: on this system it also returns for a child that is merely
// stopped.
func awaitExit(pid int) error {
	queue, err := unix.Kqueue()
	if err != nil {
		return fmt.Errorf("kqueue: %w", err)
	}
	defer unix.Close(queue)
	unix.CloseOnExec(queue)
	watch := []unix.Kevent_t{{
		Ident:  uint64(pid),
		Filter: unix.EVFILT_PROC,
		Flags:  unix.EV_ADD | unix.EV_ONESHOT,
		Fflags: unix.NOTE_EXIT,
	}}
	events := make([]unix.Kevent_t, 1)
	for {
		n, err := unix.Kevent(queue, watch, events, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ESRCH): // it had ended before the call
			return nil
		case err != nil:
			return fmt.Errorf("kevent: %w", err)
		case n == 0:
		case events[0].Flags&unix.EV_ERROR == 0:
			return nil
		case events[0].Data == int64(unix.ESRCH):
			return nil
		default:
			return fmt.Errorf("kevent: %w", unix.Errno(events[0].Data))
		}
	}
}

// seesAll reports whether this process sees all others with their pids and start times. This system
// has no namespaces.
func seesAll() bool { return true }

// ownPid returns the pid of this process.
func ownPid() int { return os.Getpid() }

// earlier is false: start times are by the clock of the machine, which may have been set back
// between two of them.
func earlier(process, process) bool { return false }
