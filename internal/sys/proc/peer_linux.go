package proc

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// peerOf returns the process that connected to a unix socket.
func peerOf(fd int) (Peer, error) {
	c, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return Peer{}, err
	}
	return Peer{Pid: int(c.Pid), Uid: int(c.Uid)}, nil
}

// stillPeer returns [os.ErrNotExist] if the process that connected to a unix socket has ended. Then
// another process may have its pid.
func stillPeer(fd int) error {
	is, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	if errors.Is(err, unix.ENOPROTOOPT) { // before Linux 6.5
		return nil
	}
	if err != nil { // before Linux 6.16, of a process that has ended
		return os.ErrNotExist
	}
	defer unix.Close(is)
	err = unix.PidfdSendSignal(is, 0, nil, 0) // no signal: it checks that there is a process
	if err == nil || errors.Is(err, unix.EPERM) {
		return nil
	}
	return os.ErrNotExist
}
