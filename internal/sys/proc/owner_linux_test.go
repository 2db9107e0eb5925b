package proc

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// connected returns both ends of a connection to a listener on that address, from another address;
// "" for any.
func connected(t *testing.T, from, to string) (client, server *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(to, "0"))
	if err != nil {
		t.Skipf("this machine has no %s: %v", to, err)
	}
	defer l.Close()
	var d net.Dialer
	if from != "" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	c, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return c.(*net.TCPConn), s.(*net.TCPConn)
}

// outward returns an address of this machine that is not on loopback.
func outward(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
			return n.IP.String()
		}
	}
	t.Skip("this machine has no address beside loopback")
	return ""
}

// TestOwnersOf checks that the owner of a connection is found for every pair of addresses of this
// machine.
func TestOwnersOf(t *testing.T) {
	for _, test := range []struct{ name, from, to string }{
		{"loopback", "", "127.0.0.1"},
		{"IPv6", "", "::1"},
		{"another loopback address", "127.0.0.2", "127.0.0.1"},
		{"from an address of the network", "OUT", "127.0.0.1"},
		{"an address of the network", "OUT", "OUT"},
		{"an address of the network, from loopback", "127.0.0.1", "OUT"},
	} {
		t.Run(test.name, func(t *testing.T) {
			from, to := test.from, test.to
			for _, at := range []*string{&from, &to} {
				if *at == "OUT" {
					*at = outward(t)
				}
			}
			client, server := connected(t, from, to)
			pids, err := OwnersOf(server)
			if err != nil || len(pids) != 1 || pids[0] != os.Getpid() {
				t.Fatalf("open: %d, %v", pids, err)
			}
			if err := client.SetLinger(0); err != nil { // its end leaves no socket
				t.Fatal(err)
			}
			client.Close()
			if pids, err := OwnersOf(server); !errors.Is(err, ErrDisconnected) {
				t.Errorf("reset: %d, %v", pids, err)
			}
		})
	}
}

// TestOwnersOfAnEnd checks that a connection whose other end was closed belongs to nobody, though
// the kernel still has the socket.
func TestOwnersOfAnEnd(t *testing.T) {
	client, server := connected(t, "", "127.0.0.1")
	client.Close()
	if _, err := server.Read(make([]byte, 1)); err != io.EOF {
		t.Fatal(err)
	}
	if pids, err := OwnersOf(server); !errors.Is(err, ErrDisconnected) {
		t.Errorf("%d, %v", pids, err)
	}
}

// raw returns a descriptor of the connection that is open instead of it.
func raw(t *testing.T, c *net.TCPConn) int {
	t.Helper()
	f, err := c.File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fd, err := unix.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	return fd
}

// TestOwnersOfAnInherited checks that a process that got the connection from another one is its
// owner.
func TestOwnersOfAnInherited(t *testing.T) {
	client, server := connected(t, "", "127.0.0.1")
	f, err := client.File()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command("cat")
	child.ExtraFiles = []*os.File{f}
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { in.Close(); child.Wait() }()
	pids, err := OwnersOf(server)
	slices.Sort(pids)
	want := []int{os.Getpid(), child.Process.Pid}
	slices.Sort(want)
	if err != nil || !slices.Equal(pids, want) {
		t.Errorf("both have it: %d, %v; want %d", pids, err, want)
	}
	f.Close()
	client.Close()
	if pids, err := OwnersOf(server); err != nil || len(pids) != 1 || pids[0] != child.Process.Pid {
		t.Errorf("the child has it: %d, %v", pids, err)
	}
}

// TestOwnersOfAConcealed checks that a connection that no list of open files shows has no known
// owner. A process can do that to hide.
func TestOwnersOfAConcealed(t *testing.T) {
	t.Run("on its way to another process", func(t *testing.T) {
		client, server := connected(t, "", "127.0.0.1")
		fd := raw(t, client)
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(pair[0])
		defer unix.Close(pair[1])
		if err := unix.Sendmsg(pair[0], []byte{0}, unix.UnixRights(fd), nil, 0); err != nil {
			t.Fatal(err)
		}
		unix.Close(fd)
		if pids, err := OwnersOf(server); !errors.Is(err, ErrConcealed) {
			t.Errorf("%d, %v", pids, err)
		}
	})
	t.Run("in a thread with files of its own", func(t *testing.T) {
		client, server := connected(t, "", "127.0.0.1")
		fd := raw(t, client)
		unshared, done := make(chan error), make(chan struct{})
		ended := make(chan struct{})
		hide := func() {
			defer close(ended)
			runtime.LockOSThread() // for good: the thread ends with the goroutine
			unshared <- unix.Unshare(unix.CLONE_FILES)
			<-done
		}
		go func() {
			runtime.LockOSThread()
			if unix.Gettid() != os.Getpid() {
				hide()
				return
			}
			// the files of the first thread are those that the system lists for the process
			go hide()
			<-ended
			runtime.UnlockOSThread()
		}()
		if err := <-unshared; err != nil {
			t.Skip("a thread cannot have files of its own here: ", err)
		}
		unix.Close(fd)
		if pids, err := OwnersOf(server); !errors.Is(err, ErrConcealed) {
			t.Errorf("%d, %v", pids, err)
		}
		close(done)
		<-ended
	})
}

// TestOwnersOfAnotherUser checks that a connection of another user is not taken for one of an
// unknown machine.
func TestOwnersOfAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can start a process of another user")
	}
	watch := exec.Command("/proc/self/exe", watchOwnersMode) // the path itself is closed to others
	watch.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	watch.Dir = "/"
	watch.Stderr = os.Stderr
	out, err := watch.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	var address, pids string
	var concealed bool
	if _, err := fmt.Fscanln(out, &address); err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fscanln(out, &pids, &concealed); err != nil || pids != "[]" || !concealed {
		t.Errorf("owners %s, concealed %t: %v", pids, concealed, err)
	}
	watch.Wait()
}

// TestOwnersOfANamespace checks that a connection from another network namespace is not shown.
func TestOwnersOfANamespace(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can make network namespaces")
	}
	name := fmt.Sprintf("proc%d", os.Getpid())
	run := func(args ...string) error {
		out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%q: %w: %s", args, err, out)
		}
		return nil
	}
	if err := run("ip", "netns", "add", name); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { run("ip", "netns", "del", name) })
	link, peer := name[:min(len(name), 12)]+"a", name[:min(len(name), 12)]+"b"
	if err := run("ip", "link", "add", link, "type", "veth", "peer", "name", peer, "netns", name); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { run("ip", "link", "del", link) })
	for _, args := range []string{"ip addr add 10.231.7.1/24 dev " + link, "ip link set " + link + " up",
		"ip netns exec " + name + " ip addr add 10.231.7.2/24 dev " + peer,
		"ip netns exec " + name + " ip link set " + peer + " up"} {
		if err := run(strings.Fields(args)...); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("tcp", "10.231.7.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dialer := exec.Command("ip", "netns", "exec", name, os.Args[0], dialMode, l.Addr().String())
	if err := dialer.Start(); err != nil {
		t.Fatal(err)
	}
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if pids, err := OwnersOf(c.(*net.TCPConn)); !errors.Is(err, ErrNotShown) {
		t.Errorf("%d, %v", pids, err)
	}
	c.Close()
	dialer.Wait()
}

// TestPeerThatEnded checks that a process that connected and has ended is nobody, also when another
// process has got its pid.
func TestPeerThatEnded(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	gone := exec.Command(os.Args[0], dialMode, "unread", socket)
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if p, err := PeerOf(c.(*net.UnixConn)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%+v, %v", p, err)
	}

	pid := gone.Process.Pid
	var again *exec.Cmd
	for range 50 { // other programs start processes, too
		if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", fmt.Appendf(nil, "%d", pid-1), 0); err != nil {
			t.Skip("the next pid cannot be chosen: ", err)
		}
		again = exec.Command("cat")
		in, err := again.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := again.Start(); err != nil {
			t.Fatal(err)
		}
		if again.Process.Pid == pid {
			defer func() { in.Close(); again.Wait() }()
			break
		}
		in.Close()
		again.Wait()
		again = nil
	}
	if again == nil {
		t.Skip("another program got the pid each time")
	}
	p, err := PeerOf(c.(*net.UnixConn))
	if p.Pid != pid {
		t.Fatalf("the pid is %d, not %d", p.Pid, pid)
	}
	if raw, failed := c.(*net.UnixConn).SyscallConn(); failed == nil {
		raw.Control(func(fd uintptr) {
			if _, failed = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PEERPIDFD); errors.Is(failed,
				unix.ENOPROTOOPT) {
				t.Skip("this kernel does not keep the process that connected")
			}
		})
	}
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("another process with its pid is taken for it: %+v, %v", p, err)
	}
}

// FuzzSocket checks that any line of /proc/net/tcp is parsed or refused.
func FuzzSocket(f *testing.F) {
	for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			f.Add(line)
		}
	}
	f.Add("  0: 0100007F:1F90 0200007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 4242 1")
	f.Add("0: FFFF00000000000000000000FFFF0000:1 0:0 0 0 0 0 0 0 0")
	f.Fuzz(func(t *testing.T, line string) {
		s, ok := parseSocket(line)
		if !ok {
			return
		}
		for _, a := range []netip.AddrPort{s.own, s.other} {
			if !a.IsValid() || a.Addr().Zone() != "" || a.Addr().Is4In6() {
				t.Errorf("%q has the address %v", line, a)
			}
		}
		if strings.Trim(s.inode, "0123456789") != "" {
			t.Errorf("%q has the inode %q", line, s.inode)
		}
	})
}

// TestKernelAddr checks addresses as the kernel writes them.
func TestKernelAddr(t *testing.T) {
	for text, want := range map[string]string{
		"0100007F:1F90":                         "127.0.0.1:8080",
		"00000000000000000000000001000000:0050": "[::1]:80",
		"0000000000000000FFFF00000100007F:0001": "127.0.0.1:1",
		"B80D0120000000000000000001000000:FFFF": "[2001:db8::1]:65535",
		"0100007F":                              "invalid AddrPort",
		"0100007:1":                             "invalid AddrPort",
		"0100007F0100007F:1":                    "invalid AddrPort",
		"0100007F:10000":                        "invalid AddrPort",
		"":                                      "invalid AddrPort",
	} {
		if got := kernelAddr(text).String(); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}
