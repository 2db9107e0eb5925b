package auth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"cadre/internal/access"
	"cadre/internal/layout"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// connection has the peer of a connection: the process at its other end.
//
// The process that connected to a unix socket is noted when the connection is accepted: later it
// may have ended, and another process have its pid. The processes that have the other end of a TCP
// connection are found at its first request with a known token, because that takes milliseconds.
type connection struct {
	tcp  *net.TCPConn // nil for a unix socket
	peer proc.Peer    // of a unix socket
	err  error        // why the peer is not known

	once   sync.Once
	caller access.Caller
	failed error
}

func (c *connection) unix() bool { return c.tcp == nil }

type connectionKey struct{}

// Accepted returns the context of a connection that was accepted, for [http.Server.ConnContext].
// A unix socket's peer with another uid is refused at its first request.
func Accepted(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, lookUp(c))
}

func lookUp(c net.Conn) *connection {
	for { // TLS, and the limit on connections
		wrapped, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		c = wrapped.NetConn()
	}
	switch c := c.(type) {
	case *net.UnixConn:
		peer, err := proc.PeerOf(c)
		switch {
		case errors.Is(err, os.ErrNotExist):
			err = errors.New("the process that connected has ended")
		case err == nil && peer.Uid != os.Geteuid():
			err = fmt.Errorf("process %d belongs to another user", peer.Pid)
		}
		return &connection{peer: peer, err: err}
	case *net.TCPConn:
		return &connection{tcp: c}
	}
	return &connection{err: fmt.Errorf("%T is not a connection of a known kind", c)}
}

// who returns the caller at the other end: the user, a check, or the member in whose session one of
// the processes runs. tunnel says that the user has named a proxy or a tunnel, whose process may be
// another user's.
func (c *connection) who(home layout.Home, tunnel bool) (access.Caller, error) {
	c.once.Do(func() { c.caller, c.failed = c.find(home, tunnel) })
	return c.caller, c.failed
}

func (c *connection) find(home layout.Home, tunnel bool) (access.Caller, error) {
	if c.err != nil {
		return access.Caller{}, stranger(c.err)
	}
	if c.unix() {
		return callerOf(home, c.peer)
	}
	for looks := 1; ; looks++ {
		peers, err := c.owners()
		if err != nil {
			return access.Caller{}, unowned(err, tunnel)
		}
		caller, err := callerOf(home, peers...)
		user := err == nil && caller == access.Caller{}
		if user || len(peers) == 1 || looks == ownerLooks {
			return caller, err
		}
		time.Sleep(forkTime) // between its fork and its exec, a child has open what its parent has
	}
}

// unowned says why the processes at the other end are not known, or returns nil for a machine or a
// tunnel of which nothing is known.
func unowned(err error, tunnel bool) error {
	switch {
	case errors.Is(err, proc.ErrNotShown), errors.Is(err, proc.ErrConcealed) && tunnel:
		return nil
	case errors.Is(err, proc.ErrConcealed):
		return team.Refuse(team.Denied, "it is not known who calls: %v; if that is a tunnel or a proxy, its address "+
			"has to be allowed when the server is started", err)
	}
	return stranger(err)
}

// forkTime is longer than a fork usually takes to its exec.
const forkTime = 2 * time.Millisecond

// ownerLooks is how often the processes at the other end are looked up, because one of them may end
// meanwhile, or be about to become another program.
const ownerLooks = 3

// owners returns the processes that have the other end of a TCP connection.
func (c *connection) owners() (peers []proc.Peer, err error) {
	for range ownerLooks {
		var pids []int
		if pids, err = proc.OwnersOf(c.tcp); err != nil {
			return nil, err
		}
		peers = nil
		for _, pid := range pids {
			var start string
			if start, err = proc.StartTime(pid); err != nil {
				break
			}
			peers = append(peers, proc.Peer{Pid: pid, Start: start})
		}
		if err == nil {
			return peers, nil
		}
	}
	return nil, err
}

// callerOf returns the caller that all of the processes are, where the user counts for nobody: the
// user's own processes may share a connection with a member's.
func callerOf(home layout.Home, peers ...proc.Peer) (is access.Caller, err error) {
	user := access.Caller{}
	for _, p := range peers {
		caller, err := access.Peer(home, p.Pid)
		if err != nil {
			return user, stranger(err)
		}
		if now, err := proc.StartTime(p.Pid); err != nil || now != p.Start {
			return user, stranger(fmt.Errorf("process %d at the other end of the connection has ended", p.Pid))
		}
		switch {
		case is == user:
			is = caller
		case caller != user && caller != is:
			return user, stranger(errors.New("processes of several sessions have the connection open"))
		}
	}
	return is, nil
}

// stranger refuses a connection whose other end is not known.
func stranger(err error) error {
	return team.Refuse(team.Denied, "it is not known who calls: %v; connect again from a process that waits for the "+
		"answer", err)
}
