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

// Peer is the process that connected to a unix socket, as it was then.
type Peer struct {
	Pid   int
	Uid   int    // the effective one
	Start string // with Pid, it identifies the process; see [StartTime]
}

// PeerOf returns the process at the other end of a unix socket. The kernel knows it, so the process
// cannot pretend to be another one. The error is [os.ErrNotExist] if it has ended.
//
// The kernel knows it by its pid, which another process may have by now. Linux 6.5 and later also
// keeps a reference to the process, so PeerOf cannot take one for the other there. Elsewhere, call
// it soon after the connection was made.
func PeerOf(c syscall.Conn) (p Peer, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return p, err
	}
	if controlled := raw.Control(func(fd uintptr) { p, err = startedPeer(int(fd)) }); controlled != nil {
		return p, controlled
	}
	if err != nil {
		return p, fmt.Errorf("look up the process at the other end: %w", err)
	}
	return p, nil
}

func startedPeer(fd int) (Peer, error) {
	p, err := peerOf(fd)
	if err != nil {
		return p, err
	}
	is, err := lookup(p.Pid)
	if err != nil {
		return p, err
	}
	p.Start = is.start
	return p, stillPeer(fd)
}

// Admits checks that the process at the other end of a unix socket belongs to the member's session.
// Such a process descends from a child of this register with that member, or this program itself
// started it. The path alone is no protection, because other sessions of the same user can see it.
// The error is [ErrStranger], or says why the process is unknown.
func (r *Register) Admits(c syscall.Conn, member string) error {
	peer, err := PeerOf(c)
	if err != nil {
		return err
	}
	pid := peer.Pid
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
