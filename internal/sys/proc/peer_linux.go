package proc

import "golang.org/x/sys/unix"

// peerPid returns the process that connected to a unix socket.
func peerPid(fd int) (int, error) {
	c, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(c.Pid), nil
}
