package proc

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Pipes returns the named pipes that processes of the child are opening or reading. It considers
// only processes whose name begins with program, and ignores their standard input. known is false
// if the system hides what one of them waits for.
func (c *Child) Pipes(program string) (paths []string, known bool) {
	all, err := members(c.pid)
	if err != nil {
		return nil, false
	}
	known = true
	for _, p := range all {
		dir := "/proc/" + strconv.Itoa(p.pid)
		name, err := os.ReadFile(dir + "/comm")
		if p.zombie || err != nil || !strings.HasPrefix(string(name), program) {
			continue
		}
		threads, _ := filepath.Glob(dir + "/task/*")
		for _, thread := range threads {
			call, err := os.ReadFile(thread + "/syscall")
			if err != nil {
				known = known && !Alive(p.pid, p.start)
				continue
			}
			path, ok := awaited(dir, call)
			if info, err := os.Stat(path); ok && err == nil && info.Mode()&os.ModeNamedPipe != 0 &&
				!slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
	}
	return paths, known
}

// awaited returns the file that a thread waits for, given its proc_pid_syscall(5): a number and
// arguments, or "running".
func awaited(dir string, call []byte) (path string, ok bool) {
	fields := strings.Fields(string(call))
	if len(fields) < 3 {
		return "", false
	}
	number, err := strconv.Atoi(fields[0])
	first, err1 := strconv.ParseUint(fields[1], 0, 64)
	second, err2 := strconv.ParseUint(fields[2], 0, 64)
	if err != nil || err1 != nil || err2 != nil {
		return "", false
	}
	const open = 2 // on amd64, where some C libraries use it; other architectures may use the number for another call
	switch {
	case number == unix.SYS_OPENAT:
		return opened(dir, int32(first), second)
	case number == open && runtime.GOARCH == "amd64":
		return opened(dir, unix.AT_FDCWD, first)
	case number == unix.SYS_READ && first > 2:
		path, err := os.Readlink(dir + "/fd/" + strconv.FormatUint(first, 10))
		return path, err == nil && filepath.IsAbs(path)
	}
	return "", false
}

// opened returns the path at an address in the memory of a process, resolved against the given
// folder.
func opened(dir string, folder int32, address uint64) (path string, ok bool) {
	if path, ok = text(dir, address); !ok || filepath.IsAbs(path) {
		return filepath.Clean(path), ok
	}
	at := dir + "/cwd"
	if folder != unix.AT_FDCWD {
		at = dir + "/fd/" + strconv.Itoa(int(folder))
	}
	base, err := os.Readlink(at)
	return filepath.Join(base, path), err == nil
}

// text returns the string at an address in the memory of a process. It reads page by page, because
// the page after the end of the string may not exist.
func text(dir string, address uint64) (string, bool) {
	memory, err := os.Open(dir + "/mem")
	if err != nil {
		return "", false
	}
	defer memory.Close()
	page := uint64(os.Getpagesize())
	var all []byte
	for len(all) < unix.PathMax {
		part := make([]byte, page-address%page)
		if _, err := memory.ReadAt(part, int64(address)); err != nil {
			return "", false
		}
		if end := bytes.IndexByte(part, 0); end >= 0 {
			return string(append(all, part[:end]...)), end > 0 || len(all) > 0
		}
		all = append(all, part...)
		address += uint64(len(part))
	}
	return "", false
}
