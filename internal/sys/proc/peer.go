package proc

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// ErrStranger reports that the process at the other end of a socket does not belong to the socket's
// session.
var ErrStranger = errors.New("the process at the other end does not belong to this session")

// Admits checks that the process at the other end of a unix socket belongs to the member's session.
// Such a process descends from a child of this register with that member, or this program itself
// started it. The path alone is no protection, because other sessions of the same user can see it.
// The error is [ErrStranger], or says why the process is unknown.
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

// runs reports whether the process belongs to the member's session or to this program itself.
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
		// A session id is not reused while its leader is not reaped.
		if c.pid == child.pid || c.pid == child.session {
			return c.cmd.Member == member && !c.cmd.Trusted
		}
	}
	return false
}
