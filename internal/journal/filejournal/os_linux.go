package filejournal

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// syncData makes the file's bytes and length durable, without its times.
func syncData(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			return err
		}
	}
}

// yield lets another process run.
func yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// holder returns the pid of the process that holds the flock of f, or 0 if it is unknown. It reads
// the kernel's list of locks, so that appends need not record the pid.
func holder(f *os.File) int {
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil {
		return 0
	}
	locks, err := os.Open("/proc/locks")
	if err != nil {
		return 0
	}
	defer locks.Close()
	inode := fmt.Sprintf(":%d", st.Ino)
	for s := bufio.NewScanner(locks); s.Scan(); {
		// A line reads "1: FLOCK ADVISORY WRITE 1234 fe:00:5678 0 EOF". The line of a waiter has
		// "->" as its second field.
		fields := strings.Fields(s.Text())
		if len(fields) >= 6 && fields[1] == "FLOCK" && strings.HasSuffix(fields[5], inode) {
			var pid int
			fmt.Sscan(fields[4], &pid)
			return pid
		}
	}
	return 0
}
