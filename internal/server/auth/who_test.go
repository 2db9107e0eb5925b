package auth

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"cadre/internal/sys/proc"
)

// TestWho checks who sends a request, by the process that has the other end of the connection. A
// token makes no difference.
func TestWho(t *testing.T) {
	linux := runtime.GOOS == "linux"
	const ann = "the session of ann in team demo"
	const orphan = "a session of team demo"
	for _, test := range []struct {
		name, how, script string // %s is the command
		cmd               proc.Cmd
		unix, tcp         string
	}{
		{"a session", "plain", "%s", proc.Cmd{Member: "ann"}, ann, ann},
		{"without an environment", "plain", "env -i %s", proc.Cmd{Member: "ann"}, ann, ann},
		{"with the environment of another member", "plain", "CADRE_TEAM=demo CADRE_MEMBER_NAME=lead %s",
			proc.Cmd{Member: "ann"}, ann, ann},
		{"in a session of its own", "plain", "env -i setsid --wait %s", proc.Cmd{Member: "ann"}, ann, ann},
		{"nohup", "plain", "(nohup %s >/dev/null 2>&1 &)", proc.Cmd{Member: "ann"}, ann, ann},
		{"a daemon", "plain", "env -i setsid sh -c '(setsid %s &)'", proc.Cmd{Member: "ann"}, orphan, orphan},
		{"with a child that sends it", "passed", "%s", proc.Cmd{Member: "ann"}, ann, ann},
		{"with a child that sends it when its parent has ended", "left", "%s", proc.Cmd{Member: "ann"}, "403", ann},
		{"a check", "plain", "%s", proc.Cmd{Trusted: true, Check: true}, "admin, a check", "steer tok, a check"},
		{"a hook", "plain", "%s", proc.Cmd{Trusted: true}, "admin", "steer tok"},
		{"that resets the connection", "reset", "%s", proc.Cmd{Member: "ann"}, "", "403"},
		{"that closes the connection", "closed", "%s", proc.Cmd{Member: "ann"}, "", "403"},
		{"that hides the connection", "concealed", "%s", proc.Cmd{Member: "ann"}, "", "403"},
	} {
		for network, want := range map[string]string{"unix": test.unix, "tcp": test.tcp} {
			if want == "" || network == "tcp" && !linux {
				continue
			}
			t.Run(test.name+" over "+network, func(t *testing.T) {
				leaves := strings.HasPrefix(test.name, "that")
				l := openWith(t, func(l *lab) {
					if leaves {
						l.held = make(chan struct{})
					}
				})
				token := l.create("tok", Steer)
				host := l.hosting()
				done := filepath.Join(t.TempDir(), "done")
				address := map[string]string{"unix": l.socket, "tcp": l.address}[network]
				command := strings.Join([]string{os.Args[0], askMode, test.how, network, address, token, done}, " ")
				cmd := test.cmd
				cmd.Args = []string{"sh", "-c", fmt.Sprintf(test.script, command) + "\nread forever"}
				cmd.StdinPipe, cmd.Stderr = true, os.Stderr
				c, err := host.Start(cmd)
				if err != nil {
					t.Fatal(err)
				}
				if leaves {
					exists(t, done)
					close(l.held)
				}
				got := next(t, l.answered)
				if want == "403" && !strings.HasPrefix(got, "403 it is not known who calls") || want != "403" &&
					got != want {
					t.Errorf("it is %q, want %q", got, want)
				}
				c.Kill()
				ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
				defer cancel()
				c.Wait(ctx)
			})
		}
	}
}

// TestWhoIsTheUser checks that a process that no host started is the user: with the role of its
// token over TCP, and with any on the socket.
func TestWhoIsTheUser(t *testing.T) {
	l := open(t)
	token := l.create("look", Observe)
	l.hosting()
	for network, want := range map[string]string{"unix": "admin", "tcp": "observe look"} {
		address := map[string]string{"unix": l.socket, "tcp": l.address}[network]
		own := exec.Command(os.Args[0], askMode, "plain", network, address, token, filepath.Join(t.TempDir(), "done"))
		if out, err := own.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if got := next(t, l.answered); got != want {
			t.Errorf("over %s it is %q, want %q", network, got, want)
		}
	}
}

// TestWhoIsBelowTheServer checks that what the server starts for others is not the user, but what
// it marks as trusted is.
func TestWhoIsBelowTheServer(t *testing.T) {
	l := open(t)
	whole, err := proc.OpenWhole(filepath.Join(l.home.Root, "server", "processes"), l.home.Running())
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close(context.Background())
	procs, err := proc.Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer procs.Close(context.Background())
	token := l.create("tok", Steer)
	for _, test := range []struct {
		cmd  proc.Cmd
		want string
	}{
		{proc.Cmd{}, "a session of a team"},
		{proc.Cmd{Trusted: true}, "admin"},
		{proc.Cmd{Trusted: true, Check: true}, "admin, a check"},
	} {
		command := strings.Join([]string{os.Args[0], askMode, "plain", "unix", l.socket, token,
			filepath.Join(t.TempDir(), "done")}, " ")
		test.cmd.Args, test.cmd.Stderr = []string{"sh", "-c", "env -i setsid --wait " + command + "; true"}, os.Stderr
		if _, err := procs.Run(t.Context(), test.cmd, proc.Ladder{}); err != nil {
			t.Fatal(err)
		}
		if got := next(t, l.answered); got != test.want {
			t.Errorf("%+v is %q, want %q", test.cmd, got, test.want)
		}
	}
}

// TestWhoIsAnotherUser checks that another user gets nothing on the socket, although nothing else
// keeps it away.
func TestWhoIsAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can start a process of another user")
	}
	l := open(t)
	for dir := l.socket; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	other := exec.Command("/proc/self/exe", askMode, "plain", "unix", l.socket, "", filepath.Join(t.TempDir(), "done"))
	other.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	other.Dir = "/"
	if out, err := other.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := next(t, l.answered); !strings.HasPrefix(got, "403 ") ||
		!strings.Contains(got, "belongs to another user") {
		t.Errorf("it is %q", got)
	}
}

// TestTunnel checks that a connection whose owner is not seen counts as the user's only if the user
// has named a tunnel. A member's that is closed early never does.
func TestTunnel(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("this system shows no owners")
	}
	for how, want := range map[string]string{"concealed": "steer tok", "reset": "403", "closed": "403"} {
		t.Run(how, func(t *testing.T) {
			l := openWith(t, func(l *lab) { l.guard.Tunnel, l.held = true, make(chan struct{}) })
			token := l.create("tok", Steer)
			done := filepath.Join(t.TempDir(), "done")
			c := exec.Command(os.Args[0], askMode, how, "tcp", l.address, token, done)
			if _, err := c.StdinPipe(); err != nil { // it reads until it is killed
				t.Fatal(err)
			}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			exists(t, done)
			close(l.held)
			if got := next(t, l.answered); got != want &&
				!(want == "403" && strings.HasPrefix(got, "403 it is not known who calls")) {
				t.Errorf("it is %q, want %q", got, want)
			}
			c.Process.Kill()
			c.Wait()
		})
	}
}

// TestCallerOf checks who several processes are together.
func TestCallerOf(t *testing.T) {
	l := open(t)
	host := l.hosting()
	own := exec.Command("cat")
	in, err := own.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := own.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { in.Close(); own.Wait() }()
	of := func(pid int) proc.Peer {
		start, err := proc.StartTime(pid)
		if err != nil {
			t.Fatal(err)
		}
		return proc.Peer{Pid: pid, Start: start}
	}
	runs := func(cmd proc.Cmd) proc.Peer {
		cmd.Args, cmd.StdinPipe = []string{"cat"}, true
		c, err := host.Start(cmd)
		if err != nil {
			t.Fatal(err)
		}
		return of(c.Pid())
	}
	user, ann, bob := of(own.Process.Pid), runs(proc.Cmd{Member: "ann"}), runs(proc.Cmd{Member: "bob"})
	too, check := runs(proc.Cmd{Member: "ann"}), runs(proc.Cmd{Trusted: true, Check: true})
	reused := ann
	reused.Start += "0"
	for _, test := range []struct {
		name  string
		peers []proc.Peer
		want  string // "" for a refusal
	}{
		{"the user", []proc.Peer{user}, "the user"},
		{"a member", []proc.Peer{ann}, "the session of ann in team demo"},
		{"the user and a member", []proc.Peer{user, ann}, "the session of ann in team demo"},
		{"a member and the user", []proc.Peer{ann, user}, "the session of ann in team demo"},
		{"a member twice", []proc.Peer{ann, too}, "the session of ann in team demo"},
		{"two members", []proc.Peer{ann, bob}, ""},
		{"a member and a check", []proc.Peer{ann, check}, ""},
		{"another process with the pid of a member's", []proc.Peer{reused}, ""},
	} {
		is, err := callerOf(l.home, test.peers...)
		if (err == nil) != (test.want != "") || err == nil && is.String() != test.want {
			t.Errorf("%s: %s, %v", test.name, is, err)
		}
	}
	if is, err := callerOf(l.home, user, check); err != nil || is.Command("spawn", nil) == nil {
		t.Errorf("the user and a check: it may spawn: %v", err)
	}
}
