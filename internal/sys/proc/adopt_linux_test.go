package proc

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"cadre/internal/testkit/soak"
)

// TestOrphansAreReaped checks that the host reaps orphans left behind by a child, and does not reap
// a child that the program started itself.
func TestOrphansAreReaped(t *testing.T) {
	soak.Long(t)
	adopt()
	defer disown()
	end, ended := make(chan struct{}), make(chan struct{})
	go reap(end, ended, 50*time.Millisecond) // like the reaper of adopt, with a shorter delay
	defer func() { close(end); <-ended }()

	r := open(t, t.TempDir())
	pids := filepath.Join(t.TempDir(), "pids")
	c := start(t, r, Cmd{Args: []string{"sh", "-c", "env -i setsid sh -c '(sh -c \"echo \\$\\$ >>" + pids +
		"; sleep 0.3\" &)'; sleep 0.2"}})
	own := exec.Command("sleep", "0.01")
	if err := own.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Wait(within(t)); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(pids)
	if err != nil {
		t.Fatal(err)
	}
	orphan, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	if p, err := lookup(orphan); err != nil || p.parent != os.Getpid() {
		t.Fatalf("the orphan %+v is not ours: %v", p, err)
	}
	eventually(t, "the orphan is reaped", func() bool { return !exists(orphan) })
	if p, err := lookup(own.Process.Pid); err != nil || !p.zombie {
		t.Errorf("the program's own child: %+v, %v", p, err)
	}
	if err := own.Wait(); err != nil {
		t.Errorf("the program's own child was reaped by another goroutine: %v", err)
	}
}

// TestAHostWithoutChildrenWatchesNone checks that a host which starts no process does not listen
// for the end of processes. In a program that tests its members of Go code with testing/synctest,
// such a signal would end the program.
func TestAHostWithoutChildrenWatchesNone(t *testing.T) {
	died := make(chan os.Signal, 1)
	signal.Notify(died, syscall.SIGCHLD)
	defer signal.Stop(died)
	synctest.Test(t, func(t *testing.T) {
		r, err := OpenListed(filepath.Join(t.TempDir(), "h1"), Listing{Folder: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for range 2 { // once the second came, all listeners have got the first
			if err := syscall.Kill(os.Getpid(), syscall.SIGCHLD); err != nil {
				t.Error(err)
			}
			<-died
		}
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestOrphansOfADetachedProgram checks that this process adopts the orphans of a program that it
// detached, also if it has started no other.
func TestOrphansOfADetachedProgram(t *testing.T) {
	list, at := t.TempDir(), t.TempDir()
	r, err := OpenListed(filepath.Join(at, "h1"), Listing{Folder: list})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(context.Background())
	output, err := os.Create(filepath.Join(at, "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	adopting := func() int {
		orphans.mu.Lock()
		defer orphans.mu.Unlock()
		return orphans.registers
	}
	before, over := adopting(), filepath.Join(at, "over")
	ended, err := DetachWatched(list, []string{"/bin/sh", "-c", "until [ -e " + over + " ]; do sleep 0.01; done"},
		os.Environ(), output)
	if err != nil {
		t.Fatal(err)
	}
	if now := adopting(); now != before+1 {
		t.Errorf("%d registers adopt orphans, want %d", now, before+1)
	}
	if err := os.WriteFile(over, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	<-ended
	if now := adopting(); now != before {
		t.Errorf("afterwards %d registers adopt orphans, want %d", now, before)
	}
}

// TestOwnChildrenInSessionsAreLeft checks that a child which this package started in a session of
// its own is left to its register.
func TestOwnChildrenInSessionsAreLeft(t *testing.T) {
	r := open(t, t.TempDir())
	c := start(t, r, Cmd{Args: []string{"sleep", "30"}})
	defer c.Kill()
	if !isStarted(c.Pid()) {
		t.Fatal("the register's child is not known")
	}
	stopped := exec.Command("true")
	stopped.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := stopped.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it has ended", func() bool { p, err := lookup(stopped.Process.Pid); return err == nil && p.zombie })
	if first := reapOrphans(nil); len(first) == 0 {
		t.Error("a zombie is seen, and only then reaped")
	}
	if err := stopped.Wait(); err != nil {
		t.Errorf("the first look took it from who started it: %v", err)
	}
	if err := r.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if isStarted(c.Pid()) {
		t.Error("a child that was reaped is still known")
	}
}
