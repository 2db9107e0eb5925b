package proc

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// OwnersOf returns the processes that have the other end of a TCP connection open. There may be
// several, because a process passes its sockets on to its children. If it sees none, the error is
// [ErrNotShown], [ErrConcealed] or [ErrDisconnected].
//
// A process that wants to be taken for another one cannot use that it is not seen: ErrNotShown is
// returned for no connection from an address of this machine. Nor can it close its end early: the
// end must still be open when the processes have been looked at.
func OwnersOf(c *net.TCPConn) ([]int, error) {
	local, ok := addrPort(c.LocalAddr())
	remote, known := addrPort(c.RemoteAddr())
	if !ok || !known {
		return nil, ErrNotShown
	}
	inode, err := socketOf(remote, local)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, absent(remote.Addr(), local.Addr())
	}
	if err != nil {
		return nil, err
	}
	pids, err := holders("socket:[" + inode + "]")
	if err != nil {
		return nil, err
	}
	if now, err := socketOf(remote, local); err != nil || now != inode || inode == noInode {
		return nil, ErrDisconnected
	}
	if len(pids) == 0 {
		return nil, ErrConcealed
	}
	return pids, nil
}

// absent says why there is no socket with the remote address.
func absent(remote, local netip.Addr) error {
	if remote.IsLoopback() || remote == local {
		return ErrDisconnected
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return err
	}
	for _, a := range own {
		if n, ok := a.(*net.IPNet); ok {
			if addr, _ := netip.AddrFromSlice(n.IP); addr.Unmap() == remote {
				return ErrDisconnected
			}
		}
	}
	return ErrNotShown
}

func addrPort(a net.Addr) (netip.AddrPort, bool) {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}, false
	}
	p := t.AddrPort()
	return netip.AddrPortFrom(p.Addr().Unmap().WithZone(""), p.Port()), true
}

// noInode is the inode of a socket that no process has open any more.
const noInode = "0"

// socketLooks is how often a socket is looked for. The kernel makes the table while it is read, and
// may leave out a socket beside one that is closed meanwhile.
const socketLooks = 3

// socketOf returns the inode of the socket with these two ends, its own first, or [fs.ErrNotExist].
func socketOf(own, other netip.AddrPort) (inode string, err error) {
	for range socketLooks {
		for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
			if inode, err = inTable(table, own, other); err == nil {
				return inode, nil
			}
			if !errors.Is(err, fs.ErrNotExist) { // without IPv6 the table is missing
				return "", err
			}
		}
	}
	return "", fs.ErrNotExist
}

func inTable(table string, own, other netip.AddrPort) (inode string, err error) {
	f, err := os.Open(table)
	if err != nil {
		return "", err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if is, ok := parseSocket(lines.Text()); ok && is.own == own && is.other == other {
			return is.inode, nil
		}
	}
	return "", cmp.Or(lines.Err(), fs.ErrNotExist)
}

// socket is a line of /proc/net/tcp.
type socket struct {
	own, other netip.AddrPort
	inode      string
}

// parseSocket parses a line of /proc/net/tcp. ok is false for the heading.
func parseSocket(line string) (s socket, ok bool) {
	// sl local_address rem_address st queues tr:when retrnsmt uid timeout inode …
	part := strings.Fields(line)
	if len(part) < 10 {
		return s, false
	}
	s = socket{kernelAddr(part[1]), kernelAddr(part[2]), part[9]}
	_, err := strconv.ParseUint(s.inode, 10, 64)
	return s, err == nil && s.own.IsValid() && s.other.IsValid()
}

// kernelAddr parses an address of /proc/net/tcp: words of 32 bits in the machine's order, and the
// port, in hexadecimal digits.
func kernelAddr(s string) netip.AddrPort {
	host, port, _ := strings.Cut(s, ":")
	raw, err := hex.DecodeString(host)
	number, bad := strconv.ParseUint(port, 16, 16)
	if err != nil || bad != nil || len(raw) != 4 && len(raw) != 16 {
		return netip.AddrPort{}
	}
	for i := 0; i < len(raw); i += 4 {
		binary.BigEndian.PutUint32(raw[i:], binary.NativeEndian.Uint32(raw[i:]))
	}
	addr, _ := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(addr.Unmap(), uint16(number))
}

// holders returns the processes that have a file with that target open, of those that this user may
// look at.
func holders(target string) (pids []int, err error) {
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("look for the process at the other end: %w", err)
	}
	for _, p := range processes {
		pid, err := strconv.Atoi(p.Name())
		if err != nil {
			continue
		}
		dir := filepath.Join("/proc", p.Name(), "fd")
		files, err := os.ReadDir(dir) // not readable for a process of another user, or one that has ended
		if err != nil {
			continue
		}
		for _, f := range files {
			if is, err := os.Readlink(filepath.Join(dir, f.Name())); err == nil && is == target {
				pids = append(pids, pid)
				break
			}
		}
	}
	return pids, nil
}
