package proc

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cadre/internal/testkit/soak"
)

// frontMode makes the test binary run itself as a worker, in workerMode, and print how that ended.
// The other arguments are what the worker does, and a folder.
const (
	frontMode  = "proc-test-front"
	workerMode = "proc-test-worker"
)

func runInFront(mode, does, dir string) int {
	if mode == frontMode {
		ended, err := RunWorker([]string{os.Args[0], workerMode, does, dir}, os.Environ(),
			[3]*os.File{os.Stdin, os.Stdout, os.Stderr})
		fmt.Printf("front: %+v %v\n", ended, err)
		return 0
	}
	w := OpenWorker()
	if w == nil || OpenWorker() != nil || os.Getenv(workerVariable) != "" {
		return 99
	}
	got := make(chan os.Signal, 1)
	go w.Signals(func(s os.Signal) { got <- s })
	note := func(text string) { _ = os.WriteFile(filepath.Join(dir, does), []byte(text), 0o600) }
	switch does {
	case "exits":
		w.Shows(true)
		w.Shows(false)
		return 7
	case "dies":
		w.Tell("first")
		w.Shows(true)
		w.Tell("second")
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "waits":
		fmt.Println("ready", os.Getpid())
		s := <-got
		note(fmt.Sprint(s))
	case "leaves":
		before, _ := unix.Getsid(0)
		log, err := os.Create(filepath.Join(dir, "log"))
		if err != nil {
			return 98
		}
		if err := w.Leave(log); err != nil {
			return 97
		}
		for syscall.Kill(before, 0) == nil && os.Getppid() == before { // until the process in front has ended
			time.Sleep(time.Millisecond)
		}
		fmt.Println("this goes to the log")
		_, terminal := os.OpenFile("/dev/tty", os.O_RDWR, 0)
		session, _ := unix.Getsid(0)
		select {
		case s := <-got:
			note(fmt.Sprint("signal ", s))
		case <-time.After(100 * time.Millisecond):
			note(fmt.Sprint(session == os.Getpid(), terminal != nil))
		}
	}
	return 0
}

// TestWorker runs a worker that exits, one that is killed, one whose process in front gets a signal
// or is killed, and one that leaves for the background.
func TestWorker(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	start := func(does, dir string) (*exec.Cmd, *bufio.Reader) {
		c := exec.Command(os.Args[0], frontMode, does, dir)
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		c.Stderr = os.Stderr
		out, err := c.StdoutPipe()
		if err == nil {
			err = c.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		return c, bufio.NewReader(out)
	}
	noted := func(path string) string {
		for range 1000 {
			if text, err := os.ReadFile(path); err == nil && len(text) > 0 {
				return string(text)
			}
			time.Sleep(10 * time.Millisecond)
		}
		return "nothing"
	}
	for does, want := range map[string]string{
		"exits":  "front: {Status:7 Signal:signal 0 Left:false Screen:false Told:} <nil>\n",
		"dies":   "front: {Status:137 Signal:killed Left:false Screen:true Told:second} <nil>\n",
		"leaves": "front: {Status:0 Signal:signal 0 Left:true Screen:false Told:} <nil>\n",
	} {
		dir := t.TempDir()
		c, out := start(does, dir)
		if line, err := out.ReadString('\n'); line != want {
			t.Errorf("%s: %q, %v", does, line, err)
		}
		if err := c.Wait(); err != nil {
			t.Errorf("%s: %v", does, err)
		}
		if does != "leaves" {
			continue
		}
		if text := noted(filepath.Join(dir, does)); text != "true true" {
			t.Errorf("a worker that left is not in a session of its own without a terminal: %s", text)
		}
		if text := noted(filepath.Join(dir, "log")); text != "this goes to the log\n" {
			t.Errorf("the log of a worker that left: %s", text)
		}
	}
	for s, want := range map[syscall.Signal]string{syscall.SIGTERM: "terminated", syscall.SIGINT: "interrupt",
		syscall.SIGKILL: "hangup"} {
		dir := t.TempDir()
		c, out := start("waits", dir)
		if line, err := out.ReadString('\n'); !strings.HasPrefix(line, "ready") {
			t.Fatalf("%q, %v", line, err)
		}
		_ = c.Process.Signal(s)
		if text := noted(filepath.Join(dir, "waits")); text != want {
			t.Errorf("the process in front got %v, and the worker %s", s, text)
		}
		_ = c.Wait()
	}
}
