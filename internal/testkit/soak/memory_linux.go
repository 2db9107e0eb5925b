package soak

import "syscall"

const (
	shared = "/dev/shm"
	tmpfs  = 0x01021994 // its type, by statfs(2)
	noExec = 0x0008     // a flag
	room   = 1 << 30    // bytes; a container may have no more than 64 MiB
)

// memory returns a folder in memory with room for the tests, in which programs may run, or "".
func memory() string {
	var s syscall.Statfs_t
	if err := syscall.Statfs(shared, &s); err != nil || s.Type != tmpfs || s.Flags&noExec != 0 ||
		s.Bavail*uint64(s.Bsize) < room || syscall.Access(shared, 7) != nil {
		return ""
	}
	return shared
}
