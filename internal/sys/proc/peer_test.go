package proc

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// dialMode makes the test binary connect to a socket, or to an address, and read to its end. Its
// arguments are this word and the socket. With unread before the socket, it ends at once.
const dialMode = "proc-test-dial"

func dial(socket string) error {
	network := "unix"
	if _, _, err := net.SplitHostPort(socket); err == nil {
		network = "tcp"
	}
	c, err := net.Dial(network, socket)
	if err != nil {
		return err
	}
	_, err = c.Read(make([]byte, 1))
	return err
}

// watchOwnersMode makes the test binary accept a connection on loopback, and say who owns it. It
// prints its address, then the owner of each connection.
const watchOwnersMode = "proc-test-owners"

func watchOwners() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	c, err := l.Accept()
	if err != nil {
		return err
	}
	if _, err := c.Read(make([]byte, 1)); err != nil {
		return err
	}
	pids, err := OwnersOf(c.(*net.TCPConn))
	fmt.Println(pids, errors.Is(err, ErrConcealed))
	return nil
}

// TestAdmits checks that a socket admits the session of one member, however its processes were
// started, and the program itself.
func TestAdmits(t *testing.T) {
	r := open(t, t.TempDir())
	other := open(t, t.TempDir())
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	admitted := func() error {
		c, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return r.Admits(c.(*net.UnixConn), "ann")
	}
	command := os.Args[0] + " " + dialMode + " " + socket
	for _, test := range []struct {
		name string
		in   *Register
		cmd  Cmd
		may  bool
	}{
		{"its own", r, Cmd{Args: []string{"sh", "-c", command + "; true"}, Member: "ann"}, true},
		{"its own in a session of its own", r, Cmd{Args: []string{"sh", "-c", "env -i setsid --wait " + command},
			Member: "ann"}, true},
		{"another member's", r, Cmd{Args: []string{"sh", "-c", command + "; true"}, Member: "bob"}, false},
		{"another member's without its name", r, Cmd{Args: []string{"sh", "-c", "env -i setsid --wait " + command},
			Member: "bob"}, false},
		{"a trusted child", r, Cmd{Args: []string{"sh", "-c", command}, Member: "ann", Trusted: true}, false},
		{"a member of that name at another host", other, Cmd{Args: []string{"sh", "-c", command},
			Member: "ann"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := start(t, test.in, test.cmd)
			if err := admitted(); (err == nil) != test.may || err != nil && !errors.Is(err, ErrStranger) {
				t.Errorf("got %v", err)
			}
			c.Wait(within(t))
		})
	}
	t.Run("the program", func(t *testing.T) {
		go dial(socket)
		if err := admitted(); err != nil {
			t.Error(err)
		}
		own := exec.Command(os.Args[0], dialMode, socket)
		if err := own.Start(); err != nil {
			t.Fatal(err)
		}
		if err := admitted(); err != nil {
			t.Errorf("a process that it started: %v", err)
		}
		own.Wait()
	})
}
