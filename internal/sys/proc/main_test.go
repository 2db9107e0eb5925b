package proc

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The test binary is also the host that the tests kill.
const hostMode = "PROC_TEST_HOST"

func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == originMode {
		if err := tellOrigin(os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) == 3 && os.Args[1] == dialMode {
		dial(os.Args[2])
		os.Exit(0)
	}
	if len(os.Args) == 4 && os.Args[1] == dialMode {
		if _, err := net.Dial("unix", os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) == 2 && os.Args[1] == watchOwnersMode {
		if err := watchOwners(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) == 3 && os.Args[1] == starterMode || len(os.Args) == 4 && os.Args[1] == programMode {
		if err := runStarter(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) == 4 && (os.Args[1] == frontMode || os.Args[1] == workerMode) {
		os.Exit(runInFront(os.Args[1], os.Args[2], os.Args[3]))
	}
	if mode := os.Getenv(hostMode); mode != "" {
		if err := runHost(mode, os.Args[1], os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// family returns a command with background processes, one of which ignores SIGTERM. All have the
// mark in their arguments: a number of seconds to sleep that no other process uses.
func family(mark string) []string {
	return []string{"sh", "-c", "sleep " + mark + " & (trap '' TERM; sleep " + mark + ") & sleep " + mark}
}

func runHost(mode, dir, mark string) error {
	die := func() { syscall.Kill(os.Getpid(), syscall.SIGKILL); select {} }
	r, err := Open(dir)
	if err != nil {
		return err
	}
	cmd := Cmd{Args: family(mark), Stdout: os.Stderr}
	switch mode {
	case "busy": // until it is killed
		if err := r.watchdog.add(1 << 30); err != nil { // this group does not exist; adding it starts the watchdog
			return err
		}
		fmt.Println(r.watchdog.shell.cmd.Process.Pid)
		for {
			c, err := r.Start(cmd)
			if err != nil {
				return err
			}
			if rand.IntN(2) == 0 {
				c.Kill()
			}
		}
	case "death", "orderly": // sets death commands, and ends by a kill or in good order
		for _, will := range []string{"first", "second"} {
			if err := r.RunOnDeath("/bin/sh", "-c", `trap 'echo "$0" >"$0"' TERM; kill -s TERM $$`,
				filepath.Join(dir, will)); err != nil {
				return err
			}
		}
		if mode == "death" {
			die()
		}
		return r.Close(context.Background())
	case "lingers": // a child holds its lock for a while after it was killed
		c := exec.Command("sleep", mark)
		c.ExtraFiles = []*os.File{r.alive.File()}
		if err := c.Start(); err != nil {
			return err
		}
		fmt.Println(c.Process.Pid)
		die()
	case "orphans": // its child leaves processes behind and does not wait for them
		c, err := r.Start(cmd)
		if err != nil {
			return err
		}
		fmt.Println(r.watchdog.shell.cmd.Process.Pid)
		fmt.Println(c.Pid())
		select {}
	}
	c, err := fork(cmd)
	if err != nil {
		return err
	}
	if mode == "forked" {
		die()
	}
	start, err := StartTime(c.pid)
	if err != nil {
		return err
	}
	if err := (Record{Pid: c.pid, Start: start, Token: c.token}).write(dir); err != nil {
		return err
	}
	if mode == "recorded" {
		die()
	}
	if err := r.watchdog.add(c.pid); err != nil {
		return err
	}
	if mode == "guarded" {
		die()
	}
	c.open()
	if mode == "opened" {
		die()
	}
	return fmt.Errorf("no such mode: %s", mode)
}

// startHost starts the test binary as a host in a process of its own. Its output is a pipe: reading
// it to the end shows that no surviving process holds the host's files open.
func startHost(t *testing.T, mode, dir, mark string) (*exec.Cmd, *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	host := exec.Command(os.Args[0], dir, mark)
	host.Env = append(os.Environ(), hostMode+"="+mode)
	host.Stdout = w
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	t.Cleanup(func() {
		host.Process.Kill()
		host.Wait()
		r.Close()
		for _, line := range marked(t, mark) { // in case the test failed
			if pid, err := strconv.Atoi(strings.Fields(line)[0]); err == nil {
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	})
	return host, r
}

func newMark() string { return strconv.Itoa(30_000_000 + rand.IntN(9_000_000)) }

// marked lists the running processes that have the mark, with ps, which the code under test does
// not use.
func marked(t *testing.T, mark string) []string {
	t.Helper()
	out, err := exec.Command("ps", "-A", "-o", "pid=,stat=,args=").Output()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		own := fields[0] == strconv.Itoa(os.Getpid()) || strings.Contains(line, os.Args[0])
		if strings.Contains(line, mark) && !strings.HasPrefix(fields[1], "Z") && !own {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

// eventually polls until the condition holds, and fails the test if it never does.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	for !holds() {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-deadline:
			t.Fatalf("still not: %s", what)
		}
	}
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func open(t *testing.T, dir string) *Register {
	t.Helper()
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := r.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return r
}

func start(t *testing.T, r *Register, cmd Cmd) *Child {
	t.Helper()
	c, err := r.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func recordFiles(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"+recordSuffix))
	if err != nil {
		t.Fatal(err)
	}
	return files
}
