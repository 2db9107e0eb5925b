package proc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"cadre/internal/sys/filelock"
	"cadre/internal/testkit/soak"
)

func TestHostDiesAtEachStep(t *testing.T) {
	soak.Long(t)
	for _, step := range []string{"forked", "recorded", "guarded", "opened"} {
		t.Run(step, func(t *testing.T) {
			dir, mark := t.TempDir(), newMark()
			host, out := startHost(t, step, dir, mark)
			host.Wait()
			if _, err := io.ReadAll(out); err != nil {
				t.Fatal(err)
			}
			eventually(t, "no process is left", func() bool { return len(marked(t, mark)) == 0 })
			if _, err := EndStrays(within(t), dir); err != nil {
				t.Error(err)
			}
			if files := recordFiles(t, dir); len(files) > 0 {
				t.Errorf("records left: %v", files)
			}
		})
	}
}

// TestHostDiesAtAnyMoment kills a host that starts and kills families all the time. In every second
// round its watchdog is killed with it, so that only the records are left.
func TestHostDiesAtAnyMoment(t *testing.T) {
	t.Parallel()
	rounds := 24
	if testing.Short() {
		rounds = 6
	}
	for round := range rounds {
		t.Run(strconv.Itoa(round), func(t *testing.T) {
			t.Parallel()
			dir, mark := t.TempDir(), newMark()
			host, out := startHost(t, "busy", dir, mark)
			watchdog := readNumber(t, bufio.NewReader(out))
			<-time.After(time.Duration(rand.IntN(80_000)) * time.Microsecond) // a random moment

			watchdogToo := round%2 == 1
			if watchdogToo {
				freeze(t, host.Process) // otherwise it would replace the watchdog
				syscall.Kill(watchdog, syscall.SIGKILL)
			}
			host.Process.Kill()
			host.Wait()
			if !watchdogToo {
				eventually(t, "no process is left", func() bool { return len(marked(t, mark)) == 0 })
			}
			strays, err := EndStrays(within(t), dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range strays {
				if len(s.Left) > 0 {
					t.Errorf("not recognised: %+v", s)
				}
			}
			// A child at the gate exits by itself, maybe a moment after EndStrays.
			eventually(t, "no process is left", func() bool { return len(marked(t, mark)) == 0 })
			if files := recordFiles(t, dir); len(files) > 0 {
				t.Errorf("records left: %v", files)
			}
			eventually(t, "the watchdog is gone", func() bool { return !runs(watchdog) })
		})
	}
}

// TestStraysOfADeadLeader kills host, watchdog and leader, while the family keeps running. Only the
// token identifies it.
func TestStraysOfADeadLeader(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it waits for a grace; not with -short")
	}
	dir, mark := t.TempDir(), newMark()
	host, out := startHost(t, "orphans", dir, mark)
	lines := bufio.NewReader(out)
	watchdog, leader := readNumber(t, lines), readNumber(t, lines)
	eventually(t, "the family is complete", func() bool { return len(marked(t, mark)) >= 4 })

	freeze(t, host.Process)
	syscall.Kill(watchdog, syscall.SIGKILL)
	syscall.Kill(leader, syscall.SIGKILL)
	if _, err := EndStrays(within(t), dir); !errors.Is(err, filelock.ErrHeld) {
		t.Fatalf("strays of a living host: got %v, want filelock.ErrHeld", err)
	}
	host.Process.Kill()
	host.Wait()
	eventually(t, "the leader is reaped or a zombie", func() bool { return !runs(leader) })
	if len(marked(t, mark)) == 0 {
		t.Fatal("the family should have outlived its leader")
	}

	strays, err := EndStrays(within(t), dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(strays) != 1 || strays[0].Pid != leader {
		t.Fatalf("got %+v, want one stray of %d", strays, leader)
	}
	if len(strays[0].Left) > 0 {
		t.Skipf("this system hides the environment of %v", strays[0].Left)
	}
	if left := marked(t, mark); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	if again, err := EndStrays(within(t), dir); err != nil || len(again) > 0 {
		t.Errorf("a second time: %v, %v", again, err)
	}
}

func TestStrangersLive(t *testing.T) {
	r := open(t, "")
	stranger := start(t, r, Cmd{Args: family(newMark())})
	started, err := StartTime(stranger.Pid())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	reused := Record{Pid: stranger.Pid(), Start: started + "0", Token: "another"}
	if err := reused.write(dir); err != nil {
		t.Fatal(err)
	}
	strays, err := EndStrays(within(t), dir)
	if err != nil || len(strays) > 0 {
		t.Errorf("got %+v, %v", strays, err)
	}
	if !Alive(stranger.Pid(), started) {
		t.Error("a stranger was killed")
	}
	if files := recordFiles(t, dir); len(files) > 0 {
		t.Errorf("records left: %v", files)
	}
}

// TestUnprovenLive checks a group without a leader whose members do not have the token: they are
// reported and keep running.
func TestUnprovenLive(t *testing.T) {
	r, mark := open(t, ""), newMark()
	c := start(t, r, Cmd{Args: family(mark), Linger: time.Minute})
	started, err := StartTime(c.Pid())
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the family is complete", func() bool { return len(marked(t, mark)) >= 4 })
	session, err := members(c.Pid())
	if err != nil {
		t.Fatal(err)
	}
	session = slices.DeleteFunc(session, func(p process) bool { return p.pid == c.Pid() })
	own, others := Record{Pid: c.Pid(), Start: started, Token: "another"}.split(session)
	if len(own) > 0 || len(others) < 3 {
		t.Errorf("got own %v and others %v, want none and at least three", own, others)
	}
}

func TestDamagedRecords(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"1.json":          `{"pid":1,"start":"x","token":"y"}`,
		"-1.json":         `{"pid":-1,"start":"x","token":"y"}`,
		"77.json":         `{"pid":78,"start":"x","token":"y"}`,
		"79.json":         `{"pid":79,`,
		"80.json.new":     `{"pid":80,`,
		"something.json":  `{}`,
		"9999999999.json": `{"pid":9999999999,"start":"x","token":"y"}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := EndStrays(within(t), dir)
	for _, name := range []string{"/1.json", "/-1.json", "/77.json", "/79.json"} {
		if !strings.Contains(fmt.Sprint(err), name) {
			t.Errorf("the error does not name %s: %v", name, err)
		}
	}
	for _, group := range []int{-1, 0, 1, syscall.Getpgrp()} {
		if err := signalGroup(group, 0); !errors.Is(err, os.ErrInvalid) {
			t.Errorf("group %d: got %v", group, err)
		}
	}
}

func TestWatchdogIsReplaced(t *testing.T) {
	r, mark := open(t, t.TempDir()), newMark()
	first := start(t, r, Cmd{Args: family(mark)})
	old := watchdogPid(r)
	syscall.Kill(old, syscall.SIGKILL)
	eventually(t, "the old watchdog is gone", func() bool { return !runs(old) })
	second := start(t, r, Cmd{Args: family(mark)})
	eventually(t, "a new watchdog runs", func() bool {
		pid := watchdogPid(r)
		return pid != 0 && pid != old && runs(pid)
	})
	for _, c := range []*Child{first, second} {
		select {
		case <-c.Done():
			t.Error("a child ended with the old watchdog")
		default:
		}
	}
	// The new watchdog has the child of the old one.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := r.watchdog.close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*Child{first, second} {
		if exit, err := c.Wait(ctx); err != nil || exit.Signal != syscall.SIGKILL {
			t.Errorf("got %v, %v", exit, err)
		}
	}
}

// TestRunOnDeath checks that the death command of a host runs when the host is killed, and not when
// it ends in good order. Unlike the watchdog, its command handles signals.
func TestRunOnDeath(t *testing.T) {
	for mode, want := range map[string]bool{"death": true, "orderly": false} {
		dir := t.TempDir()
		host, out := startHost(t, mode, dir, newMark())
		host.Wait()
		io.Copy(io.Discard, out)
		if !want {
			if files, _ := filepath.Glob(filepath.Join(dir, "[fs]*")); len(files) > 0 { // its watchdog ended before it
				t.Errorf("run was %v", files)
			}
			continue
		}
		second := filepath.Join(dir, "second")
		eventually(t, "the death command has run", func() bool {
			data,
				_ := os.ReadFile(second)
			return string(data) == second+"\n"
		})
		if _, err := os.Stat(filepath.Join(dir, "first")); err == nil {
			t.Error("one that was replaced is run as well")
		}
	}
}

func TestWatchdogIgnoresSignals(t *testing.T) {
	r := open(t, "")
	c := start(t, r, Cmd{Args: []string{"cat"}, StdinPipe: true})
	pid := watchdogPid(r)
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM} {
		syscall.Kill(pid, sig)
	}
	if err := c.Kill(); err != nil {
		t.Fatal(err)
	}
	if !runs(pid) {
		t.Error("a signal ended the watchdog")
	}
}

func TestAlive(t *testing.T) {
	started, err := StartTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if !Alive(os.Getpid(), started) || Alive(os.Getpid(), started+"0") {
		t.Error("a process is known by pid and start time")
	}
	if _, err := StartTime(1 << 30); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want ErrNotExist", err)
	}
}

// freeze stops a process with SIGSTOP and returns when it has stopped.
func freeze(t *testing.T, process *os.Process) {
	t.Helper()
	if err := process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the host has stopped", func() bool {
		out, _ := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(process.Pid)).Output()
		return strings.HasPrefix(strings.TrimSpace(string(out)), "T")
	})
}

func readNumber(t *testing.T, from *bufio.Reader) int {
	t.Helper()
	line, err := from.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func watchdogPid(r *Register) int {
	r.watchdog.mu.Lock()
	defer r.watchdog.mu.Unlock()
	if r.watchdog.shell == nil {
		return 0
	}
	return r.watchdog.shell.cmd.Process.Pid
}

func runs(pid int) bool {
	p, err := lookup(pid)
	return err == nil && !p.zombie
}

// TestDyingHostIsNotAlive checks that a killed host counts as dead when its process has ended,
// even while a child still holds its lock.
func TestDyingHostIsNotAlive(t *testing.T) {
	dir := t.TempDir()
	if HostAlive(dir) {
		t.Error("no host is there")
	}
	r := open(t, dir)
	if !HostAlive(dir) {
		t.Error("a host does not live")
	}
	if err := r.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	if HostAlive(dir) {
		t.Error("a host that has ended is alive")
	}
	host, out := startHost(t, "lingers", dir, newMark())
	var child int
	if _, err := fmt.Fscan(out, &child); err != nil {
		t.Fatal(err)
	}
	if err := awaitExit(host.Process.Pid); err != nil { // it stays a zombie until the test ends
		t.Fatal(err)
	}
	if !filelock.Held(filepath.Join(dir, AliveFile)) || HostAlive(dir) {
		t.Errorf("its lock is held: %t; it is alive: %t", filelock.Held(filepath.Join(dir, AliveFile)), HostAlive(dir))
	}
	if err := syscall.Kill(child, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// TestKillAt checks that the watchdog kills children at the time that was said last, also those
// that began since, and not when it was said again.
func TestKillAt(t *testing.T) {
	t.Parallel()
	r := open(t, "")
	first := start(t, r, Cmd{Args: []string{"sleep", "60"}})
	r.KillAt(time.Now().Add(5 * time.Second))
	r.KillAt(time.Now().Add(time.Minute))
	time.Sleep(6 * time.Second)
	select {
	case <-first.Done():
		t.Error("a child was killed although more time was said")
	default:
	}
	r.KillAt(time.Now().Add(2 * time.Second))
	second := start(t, r, Cmd{Args: []string{"sleep", "60"}})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for _, c := range []*Child{first, second} {
		if exit, err := c.Wait(ctx); err != nil || exit.Signal != syscall.SIGKILL {
			t.Errorf("got %v, %v", exit, err)
		}
	}
	if !runs(watchdogPid(r)) {
		t.Error("the watchdog has ended")
	}
	third := start(t, r, Cmd{Args: []string{"sleep", "60"}})
	r.KillAt(time.Now().Add(time.Minute))
	if err := third.Kill(); err != nil {
		t.Fatal(err)
	}
}
