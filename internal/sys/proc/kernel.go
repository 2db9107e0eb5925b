package proc

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// process is the kernel's information about a process. Its start is an identity, not a time to
// calculate with: pid and start together name one process of all that ever ran on this machine.
type process struct {
	pid, parent, group, session int
	start                       string
	zombie                      bool // it has ended, and its parent has not reaped it yet
}

// StartTime returns the start of the process that has the pid now. The error is [os.ErrNotExist] if
// there is no such process.
func StartTime(pid int) (string, error) {
	p, err := lookup(pid)
	if err != nil {
		return "", fmt.Errorf("start time of process %d: %w", pid, err)
	}
	return p.start, nil
}

// Alive reports whether the process with this pid and start time is running. A zombie is not.
func Alive(pid int, start string) bool {
	p, err := lookup(pid)
	return err == nil && p.start == start && !p.zombie
}

// members returns the processes in the leader's session or group, including zombies.
func members(leader int) ([]process, error) {
	all, err := processes()
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	return membersOf(leader, all), nil
}

// membersOf is like members for a given list of processes, which it does not modify.
func membersOf(leader int, all []process) (session []process) {
	for _, p := range all {
		if p.group == leader || p.session == leader {
			session = append(session, p)
		}
	}
	return session
}

// living returns the pids of the running processes.
func living(ps []process) []int {
	var pids []int
	for _, p := range ps {
		if !p.zombie {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// splitArguments parses the arguments of a process in the format of macOS' kern.procargs2: their
// number, the path of the program, padding zeros, the arguments, and the environment. It is in this
// file, and not beside its only caller, so that tests on any system can run it.
func splitArguments(raw []byte) []string {
	if len(raw) < 4 {
		return nil
	}
	count := int(int32(binary.NativeEndian.Uint32(raw)))
	_, rest, _ := bytes.Cut(raw[4:], []byte{0})
	rest = bytes.TrimLeft(rest, "\x00")
	var args []string
	for len(args) < count && len(rest) > 0 {
		arg, after, _ := bytes.Cut(rest, []byte{0})
		args, rest = append(args, string(arg)), after
	}
	return args
}
