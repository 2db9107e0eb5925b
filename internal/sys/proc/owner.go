package proc

import "errors"

// Why [OwnersOf] returns no process.
var (
	// ErrNotShown says that this system does not show the processes at the other end of TCP
	// connections, or that the other end is on another machine or in another network namespace.
	ErrNotShown = errors.New("the system does not show which process is at the other end of the connection")
	// ErrConcealed says that the other end is a socket of this machine that no process is seen to
	// have open. It belongs to another user, or to a process that may not be looked at, or it is on
	// its way from one process to another.
	ErrConcealed = errors.New("no process is seen to have the other end of the connection open")
	// ErrDisconnected says that the other end was on this machine and is closed.
	ErrDisconnected = errors.New("the other end of the connection is closed")
)
