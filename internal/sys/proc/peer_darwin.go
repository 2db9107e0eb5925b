package proc

import "golang.org/x/sys/unix"

// peerPid returns the process that connected to a unix socket.
func peerPid(fd int) (int, error) { return unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID) }
