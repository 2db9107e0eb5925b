package proc

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// ErrStranger means that the process at the other end of a socket is not the session's that the
// socket is for.
var ErrStranger = errors.New("the process at the other end is not of this session")

// Admits checks that the process at the other end of a unix socket runs in the session of that
// member: that it descends from a child of this register with that name, or was started by this
// program itself. The path of a socket is no secret to other sessions of the same user. The error
// is [ErrStranger], or says why it cannot be known.
func (r *Register) Admits(c syscall.Conn, member string) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	pid, err := 0, error(nil)
	if controlled := raw.Control(func(fd uintptr) { pid, err = peerPid(int(fd)) }); controlled != nil {
		return controlled
	}
	if err != nil {
		return fmt.Errorf("look up the process at the other end: %w", err)
	}
	if !r.runs(pid, member) {
		return fmt.Errorf("process %d: %w", pid, ErrStranger)
	}
	return nil
}

// runs reports whether the process is of that member's session, or this program's own.
func (r *Register) runs(pid int, member string) bool {
	self, err := lookup(os.Getpid())
	if err != nil {
		return false
	}
	child, err := lookup(pid)
	if err != nil {
		return false
	}
	if child.pid == self.pid {
		return true
	}
	for child.parent != self.pid {
		parent, ok, err := parentOf(&child)
		if err != nil || !ok {
			return false
		}
		child = parent
	}
	if child.session == self.session {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.children {
		// a session's number is nobody else's while its leader is not reaped
		if c.pid == child.pid || c.pid == child.session {
			return c.cmd.Member == member && !c.cmd.Trusted
		}
	}
	return false
}
