package proc

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"syscall"
)

// process is what the kernel says of one process. Its start is an identity, not a time to calculate
// with: together with the pid it names one process of all that ever ran on this machine.
type process struct {
	pid, parent, group, session int
	start                       string
	zombie                      bool // it has ended, and its parent has not asked for it yet
}

// StartTime returns the identity of the process that has the pid now. The error is [os.ErrNotExist]
// if there is none.
func StartTime(pid int) (string, error) {
	p, err := lookup(pid)
	if err != nil {
		return "", fmt.Errorf("start time of process %d: %w", pid, err)
	}
	return p.start, nil
}

// Alive reports whether the process with this pid and start time still runs. One that ended and was
// not reaped does not.
func Alive(pid int, start string) bool {
	p, err := lookup(pid)
	return err == nil && p.start == start && !p.zombie
}

// members returns the processes, zombies too, of the session and of the group that the leader made.
func members(leader int) ([]process, error) {
	all, err := processes()
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	return slices.DeleteFunc(all, func(p process) bool { return p.group != leader && p.session != leader }), nil
}

// living returns the pids of those that still run.
func living(ps []process) []int {
	var pids []int
	for _, p := range ps {
		if !p.zombie {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// signalGroup refuses the numbers that kill(2) reads as "everything" and "my own group"; a damaged
// record must not be able to say them.
func signalGroup(group int, sig syscall.Signal) error {
	if group <= 1 || group == syscall.Getpgrp() {
		return fmt.Errorf("signal group %d: %w", group, os.ErrInvalid)
	}
	return syscall.Kill(-group, sig)
}

func signalProcess(pid int, sig syscall.Signal) error {
	if pid <= 1 || pid == os.Getpid() {
		return fmt.Errorf("signal process %d: %w", pid, os.ErrInvalid)
	}
	return syscall.Kill(pid, sig)
}

// splitArguments reads the arguments of a process as macOS gives them in kern.procargs2: their
// number, the path of the program, filled up with zeros, then the arguments and the environment.
// It is here, and not beside its only caller, so that a test on any system reaches it.
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
