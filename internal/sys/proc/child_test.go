package proc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"cadre/internal/sys/filelock"
)

func TestRun(t *testing.T) {
	tests := []struct {
		name   string
		cmd    Cmd
		code   int
		stdout string
		stderr string
	}{
		{"exit status", Cmd{Args: []string{"sh", "-c", "echo out; echo err >&2; exit 7"}}, 7, "out\n", "err\n"},
		{"input", Cmd{Args: []string{"cat"}, Input: []byte("hello")}, 0, "hello", ""},
		{"no input is end of file", Cmd{Args: []string{"cat"}}, 0, "", ""},
		{"input that is not read", Cmd{Args: []string{"true"}, Input: make([]byte, 1<<20)}, 0, "", ""},
		{"environment", Cmd{Args: []string{"sh", "-c", "echo $A"}, Env: []string{"A=1", "A=2"}}, 0, "2\n", ""},
		{"directory", Cmd{Args: []string{"pwd"}, Dir: "/"}, 0, "/\n", ""},
		{"arguments stay whole", Cmd{Args: []string{"printf", "%s|", "a b", "", "$x", "'", "-n"}}, 0,
			"a b||$x|'|-n|", ""},
		{"the gate's pipe is not passed on", Cmd{Args: []string{"sh", "-c", "(: <&3) 2>/dev/null && echo open"}}, 2, "",
			""},
	}
	r := open(t, t.TempDir())
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var stdout, stderr Capture
			test.cmd.Stdout, test.cmd.Stderr = &stdout, &stderr
			exit, err := r.Run(within(t), test.cmd, Ladder{})
			if err != nil {
				t.Fatal(err)
			}
			if test.name != "the gate's pipe is not passed on" && exit.Code != test.code {
				t.Errorf("got %v, want %d", exit, test.code)
			}
			if stdout.String() != test.stdout || stderr.String() != test.stderr {
				t.Errorf("got %q and %q", stdout.String(), stderr.String())
			}
		})
	}
	if files := recordFiles(t, r.dir); len(files) > 0 {
		t.Errorf("records left: %v", files)
	}
}

func TestStartRefuses(t *testing.T) {
	r := open(t, t.TempDir())
	for name, cmd := range map[string]Cmd{
		"nothing":        {},
		"no such name":   {Args: []string{"no-such-program-here"}},
		"no such folder": {Args: []string{"true"}, Dir: "/no/such/folder"},
		"both inputs":    {Args: []string{"true"}, Input: []byte{}, StdinPipe: true},
		"both outputs":   {Args: []string{"true"}, Stdout: io.Discard, StdoutPipe: true},
	} {
		if _, err := r.Start(cmd); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := r.Start(Cmd{Args: []string{"no-such-program-here"}}); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

// TestUnrecordedDoesNotRun removes the folder, so that the record cannot be written.
func TestUnrecordedDoesNotRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "host")
	r := open(t, dir)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	ran := filepath.Join(t.TempDir(), "ran")
	if _, err := r.Start(Cmd{Args: []string{"touch", ran}}); err == nil {
		t.Error("no error")
	}
	if _, err := os.Stat(ran); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it ran without a record: %v", err)
	}
}

func TestRecordWhileRunning(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	c := start(t, r, Cmd{Args: []string{"cat"}, StdinPipe: true, Member: "alice", Task: "3"})
	records, err := Records(dir)
	if err != nil || len(records) != 1 {
		t.Fatalf("got %v, %v", records, err)
	}
	if got := records[0]; got.Pid != c.Pid() || got.Member != "alice" || got.Task != "3" || !Alive(got.Pid, got.Start) {
		t.Errorf("got %+v", got)
	}
	if info, err := os.Stat(records[0].path(dir)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v", info.Mode(), err)
	}
	if err := c.Kill(); err != nil {
		t.Fatal(err)
	}
	if files := recordFiles(t, dir); len(files) > 0 {
		t.Errorf("records left: %v", files)
	}
}

func TestLadder(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("its steps take three seconds; not with -short")
	}
	grace := time.Second
	long := time.Minute
	tests := []struct {
		name   string
		script string
		ladder Ladder
		steps  string // what the child saw
		signal syscall.Signal
	}{
		{"closed input is enough", "cat; echo eof", Ladder{Stdin: long, Term: long}, "eof\n", 0},
		{"then SIGTERM", "trap 'echo term; exit' TERM; echo ready; cat; echo eof; sleep 1000 & wait",
			Ladder{Stdin: grace, Term: long}, "eof\nterm\n", 0},
		{"then SIGKILL", "trap 'echo term' TERM; echo ready; cat; echo eof; while :; do sleep 1000 & wait; done",
			Ladder{Stdin: grace, Term: grace}, "eof\nterm\n", syscall.SIGKILL},
		{"steps left out", "trap 'echo term' TERM; echo ready; while :; do sleep 1000 & wait; done",
			Ladder{Stdin: -1, Term: -1}, "", syscall.SIGKILL},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := open(t, t.TempDir())
			c := start(t, r, Cmd{Args: []string{"sh", "-c", test.script}, StdinPipe: true, StdoutPipe: true})
			out := bufio.NewReader(c.Stdout)
			if strings.Contains(test.script, "ready") {
				if line, err := out.ReadString('\n'); err != nil || line != "ready\n" {
					t.Fatalf("got %q, %v", line, err)
				}
			}
			begin := time.Now()
			if err := c.Stop(within(t), test.ladder); err != nil {
				t.Fatal(err)
			}
			steps, err := io.ReadAll(out)
			if err != nil || string(steps) != test.steps {
				t.Errorf("got %q, %v, want %q", steps, err, test.steps)
			}
			exit, err := c.Wait(within(t))
			if err != nil || exit.Signal != test.signal {
				t.Errorf("got %v, %v", exit, err)
			}
			var atLeast time.Duration
			if test.ladder.Stdin == grace {
				atLeast += grace
			}
			if test.ladder.Term == grace {
				atLeast += grace
			}
			if took := time.Since(begin); took < atLeast {
				t.Errorf("took %v, less than the grace of %v", took, atLeast)
			}
		})
	}
}

func TestStopWithEndedContextKills(t *testing.T) {
	r, mark := open(t, ""), newMark()
	c := start(t, r, Cmd{Args: []string{"sh", "-c", "trap '' TERM; sleep " + mark}, StdinPipe: true})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Stop(ctx, Ladder{Stdin: time.Hour, Term: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if left := marked(t, mark); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// TestBackgroundEndsWithLeader checks that background processes of an exited leader have ended when
// Wait returns, even a job with a group of its own.
func TestBackgroundEndsWithLeader(t *testing.T) {
	r, mark := open(t, t.TempDir()), newMark()
	script := "sleep " + mark + " & (trap '' TERM; sleep " + mark + ") & set -m; sleep " + mark + " & exit 3"
	var output Capture
	exit, err := r.Run(within(t), Cmd{Args: []string{"sh", "-c", script}, Stdout: &output, Stderr: &output}, Ladder{})
	if err != nil || exit.Code != 3 {
		t.Errorf("got %v, %v", exit, err)
	}
	if left := marked(t, mark); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func TestLinger(t *testing.T) {
	r, mark := open(t, ""), newMark()
	done := filepath.Join(t.TempDir(), "done")
	c := start(t, r, Cmd{Args: []string{"sh", "-c", "(sleep 0.2; touch " + done + ") & exit 0"}, Linger: time.Minute})
	if _, err := c.Wait(within(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(done); err != nil {
		t.Error("it was not let finish")
	}
	c = start(t, r, Cmd{Args: []string{"sh", "-c", "sleep " + mark + " & exit 0"}, Linger: time.Hour})
	if err := c.Stop(within(t), Ladder{Term: -1}); err != nil {
		t.Fatal(err)
	}
	if left := marked(t, mark); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// TestEscapedProcess checks that a daemon in a session of its own is ended too, and does not delay
// Wait.
func TestEscapedProcess(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("needs setsid(1)")
	}
	r, mark := open(t, ""), newMark()
	var output Capture
	begin := time.Now()
	script := "echo before; setsid sh -c 'echo $$; exec sleep " + mark + "' & sleep 0.2"
	c := start(t, r, Cmd{Args: []string{"sh", "-c", script}, Stdout: &output, Drain: 100 * time.Millisecond})
	exit, err := c.Wait(within(t))
	if err != nil || exit.Code != 0 {
		t.Fatalf("got %v, %v", exit, err)
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("a held pipe delayed Wait: %v", took)
	}
	var pid int
	if _, err := fmt.Sscanf(output.String(), "before\n%d", &pid); err != nil {
		t.Fatalf("%q: %v", output.String(), err)
	}
	if runs(pid) {
		t.Error("the escaped process is still there")
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

// TestEscapedStream is like TestEscapedProcess for a caller that reads the output itself, slowly.
func TestEscapedStream(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("needs setsid(1)")
	}
	r, mark := open(t, ""), newMark()
	script := "setsid sh -c 'echo $$; exec sleep " + mark + "' & sleep 0.2; echo last"
	c := start(t, r, Cmd{Args: []string{"sh", "-c", script}, StdoutPipe: true, Drain: 50 * time.Millisecond})
	if _, err := c.Wait(within(t)); err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(c.Stdout)
	var pid int
	fmt.Sscan(string(out), &pid)
	syscall.Kill(pid, syscall.SIGKILL)
	if err != nil || !strings.HasSuffix(string(out), "\nlast\n") {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestCloseEndsEverything(t *testing.T) {
	dir, mark := t.TempDir(), newMark()
	r := open(t, dir)
	for range 5 {
		start(t, r, Cmd{Args: family(mark)})
	}
	if err := r.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	if left := marked(t, mark); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	if files := recordFiles(t, dir); len(files) > 0 || filelock.Held(filepath.Join(dir, AliveFile)) {
		t.Errorf("the folder is not free: %v", files)
	}
	if _, err := r.Start(Cmd{Args: []string{"true"}}); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
}

// TestCloseWithoutTime checks that the watchdog has time to end by itself even if the caller's time
// is over.
func TestCloseWithoutTime(t *testing.T) {
	r := open(t, t.TempDir())
	c := start(t, r, Cmd{Args: []string{"true"}})
	if _, err := c.Wait(within(t)); err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Close(over); err != nil {
		t.Error(err)
	}
}

func TestRunEndsWithContext(t *testing.T) {
	r, mark := open(t, ""), newMark()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	exit, err := r.Run(ctx, Cmd{Args: family(mark)}, Ladder{})
	if !errors.Is(err, context.DeadlineExceeded) || exit.Signal != syscall.SIGTERM {
		t.Errorf("got %v, %v", exit, err)
	}
	if left := marked(t, mark); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func TestCapture(t *testing.T) {
	tests := []struct {
		name   string
		writes []string
		want   string
	}{
		{"nothing", nil, ""},
		{"fits the head", []string{"abc"}, "abc"},
		{"fits both", []string{"abcd", "efgh"}, "abcdefgh"},
		{"one too many", []string{"abcdefghi"}, "abcd\n[1 bytes left out]\nfghi"},
		{"bytewise", strings.Split("abcdefghijklmnopqrstuvwxyz", ""), "abcd\n[18 bytes left out]\nwxyz"},
		{"large after small", []string{"abcdef", "ghijklmnop"}, "abcd\n[8 bytes left out]\nmnop"},
		{"a character over the seam that fits", []string{"abcéfg"}, "abcéfg"},
		{"characters cut on both sides", []string{"abcé......é123"}, "abc\n[10 bytes left out]\n123"},
		{"not UTF-8", []string{"a\xffb"}, "a\uFFFDb"},
	}
	for _, test := range tests {
		c := Capture{Head: 4, Tail: 4}
		for _, w := range test.writes {
			if n, err := c.Write([]byte(w)); n != len(w) || err != nil {
				t.Errorf("%s: got %d, %v", test.name, n, err)
			}
		}
		if got := c.String(); got != test.want || !utf8.ValidString(got) {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

func TestOutputIsBounded(t *testing.T) {
	r := open(t, "")
	var output Capture
	script := "echo first; i=0; while [ $i -lt 2000 ]; do printf '%01000d\n' $i; i=$((i+1)); done; echo last"
	if _, err := r.Run(within(t), Cmd{Args: []string{"sh", "-c", script}, Stdout: &output, Stderr: &output},
		Ladder{}); err != nil {
		t.Fatal(err)
	}
	got := output.String()
	if len(got) > 2*DefaultKeep+100 || !strings.HasPrefix(got, "first\n") || !strings.HasSuffix(got, "last\n") ||
		!strings.Contains(got, "bytes left out") || output.Total() != 6+5+2000*1001 {
		t.Errorf("got %d bytes of %d", len(got), output.Total())
	}
	if cap(output.tail) > 4*DefaultKeep {
		t.Errorf("%d bytes held", cap(output.tail))
	}
}
