package teamfiles

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// run starts the processes together and returns the lines that each printed.
func run(t *testing.T, all ...*exec.Cmd) [][]string {
	t.Helper()
	out := make([]bytes.Buffer, len(all))
	errs := make([]bytes.Buffer, len(all))
	for i, c := range all {
		c.Stdout, c.Stderr = &out[i], &errs[i]
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
	}
	lines := make([][]string, len(all))
	for i, c := range all {
		if err := c.Wait(); err != nil {
			t.Fatalf("%v: %s", err, errs[i].String())
		}
		lines[i] = strings.Split(strings.TrimSpace(out[i].String()), "\n")
	}
	return lines
}

// TestRacingSenders has many processes write to one inbox and one read it. No message is lost or
// read twice.
func TestRacingSenders(t *testing.T) {
	t.Parallel()
	team, claude := newTeam(t, "ann")
	ctx := soon(t)
	senders, each := 6, 40
	if testing.Short() {
		each = 10
	}
	all := []*exec.Cmd{process(ctx, "take", claude, Lead, senders*each)}
	for n := range senders {
		all = append(all, process(ctx, "send", claude, fmt.Sprint("p", n), each))
	}
	got := run(t, all...)[0]
	next := map[string]int{}
	for _, text := range got {
		name, number, _ := strings.Cut(text, " ")
		if number != strconv.Itoa(next[name]) {
			t.Fatalf("%s came where number %d of %s was to", text, next[name], name)
		}
		next[name]++
	}
	if len(got) != senders*each {
		t.Errorf("%d messages arrived", len(got))
	}
	if rest, err := team.Inbox(ctx, Lead); err != nil || len(rest) != 0 {
		t.Errorf("left are %v, %v", rest, err)
	}
}

// TestRacingTasks checks that each id is assigned once, and that each task goes to one claimer.
func TestRacingTasks(t *testing.T) {
	t.Parallel()
	team, claude := newTeam(t)
	ctx := soon(t)
	const makers, each = 5, 12
	var all []*exec.Cmd
	for n := range makers {
		all = append(all, process(ctx, "create", claude, fmt.Sprint("p", n), each))
	}
	ids := slices.Concat(run(t, all...)...)
	all = nil
	for n := range makers {
		all = append(all, process(ctx, "claim", claude, fmt.Sprint("p", n), makers*each))
	}
	claims := run(t, all...)
	owners := map[string]string{}
	for n, claimed := range claims {
		for _, id := range claimed {
			if id == "" {
				continue
			}
			if before, twice := owners[id]; twice {
				t.Errorf("task %s went to %s and to p%d", id, before, n)
			}
			owners[id] = fmt.Sprint("p", n)
		}
	}
	tasks, err := team.Tasks(ctx)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(ids, byNumber)
	for i, task := range tasks {
		if i >= len(ids) || task.ID != strconv.Itoa(i+1) || ids[i] != task.ID || owners[task.ID] != task.Owner {
			t.Fatalf("task %+v; its claim went to %q; ids are %v", task, owners[task.ID], ids)
		}
	}
	if len(tasks) != makers*each || len(owners) != makers*each {
		t.Errorf("%d tasks and %d claims", len(tasks), len(owners))
	}
}

// TestKilledHolder checks that the lock of a killed process is respected for a minute, and then
// stolen by one waiter.
func TestKilledHolder(t *testing.T) {
	t.Parallel()
	team, claude := newTeam(t, "ann")
	ctx := soon(t)
	if err := team.Send(ctx, Lead, Entry{From: "ann", Text: "first"}); err != nil {
		t.Fatal(err)
	}
	holder := process(ctx, "hold", claude, "x", 0)
	out, err := holder.StdoutPipe()
	if err == nil {
		err = holder.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "held\n" {
		t.Fatal(line, err)
	}
	holder.Process.Kill() // SIGKILL
	holder.Wait()

	lock := team.inbox(Lead) + ".lock"
	at := func(age time.Duration) {
		t.Helper()
		when := time.Now().Add(-age)
		if err := os.Chtimes(lock, when, when); err != nil {
			t.Fatal(err)
		}
	}
	at(stale - 10*time.Second)
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	err = team.Send(short, Lead, Entry{From: "ann", Text: "too early"})
	cancel()
	if err == nil || !strings.Contains(err.Error(), "holds") {
		t.Fatalf("a lock of 50 s: %v", err)
	}
	at(stale + time.Second)
	all := []*exec.Cmd{}
	for n := range 5 {
		all = append(all, process(ctx, "send", claude, fmt.Sprint("p", n), 20))
	}
	run(t, all...)
	if got, err := team.Inbox(ctx, Lead); err != nil || len(got) != 101 {
		t.Errorf("%d of 101 messages are there, %v", len(got), err)
	}
	if _, err := os.Stat(lock); !os.IsNotExist(err) {
		t.Errorf("the lock is left: %v", err)
	}
}

// TestStealOnce checks that one of the processes that saw the same old lock steals it. The others
// find a new lock.
func TestStealOnce(t *testing.T) {
	t.Parallel()
	team, _ := newTeam(t)
	path := team.inbox(Lead) + ".lock"
	for range 200 {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		old := time.Now().Add(-2 * stale)
		os.Chtimes(path, old, old)
		left, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		taken := make(chan bool, 8)
		for range 8 {
			all.Go(func() {
				if err := steal(path, left); err != nil {
					t.Error(err)
				}
				taken <- os.Mkdir(path, 0o700) == nil
			})
		}
		all.Wait()
		close(taken)
		n := 0
		for one := range taken {
			if one {
				n++
			}
		}
		if n != 1 {
			t.Fatalf("%d took the lock", n)
		}
		os.Remove(path)
	}
}

// TestLostLock checks that a process suspended for too long writes nothing and does not remove
// another process' lock.
func TestLostLock(t *testing.T) {
	t.Parallel()
	team, _ := newTeam(t)
	ctx := soon(t)
	file := team.inbox(Lead)
	lock, err := lockFile(ctx, file)
	if err != nil || lock.checkHeld() != nil {
		t.Fatal(err, lock.checkHeld())
	}
	lock.taken = lock.taken.Add(-maxHold - time.Second) // as if the process had been suspended
	if lock.checkHeld() == nil {
		t.Error("it is sure of a lock that may be stolen")
	}
	os.Remove(file + ".lock")
	other, err := lockFile(ctx, file) // another process stole it
	if err != nil {
		t.Fatal(err)
	}
	lock.unlock()
	if _, err := os.Stat(file + ".lock"); err != nil {
		t.Errorf("the lock of another process is gone: %v", err)
	}
	other.unlock()
}

// TestLockOfHalfWritten checks that a process waiting for a half-written file releases its lock
// meanwhile, because the writer may need it.
func TestLockOfHalfWritten(t *testing.T) {
	t.Parallel()
	team, _ := newTeam(t, "ann")
	ctx := soon(t)
	file := team.inbox("ann")
	write(t, file, `[{"from":"x`)
	tries, shortest := 0, time.Hour
	var all []*object
	err := retryDamaged(ctx, func() error {
		began := time.Now()
		err := editOnce(ctx, file, &all, func(bool) (bool, error) { return true, nil })
		shortest = min(shortest, time.Since(began))
		if _, held := os.Stat(file + ".lock"); held == nil {
			t.Error("the lock is held between two tries")
		}
		if tries++; tries == 5 {
			write(t, file, `[{"from":"x"}]`)
		}
		return err
	})
	if err != nil || tries != 6 || len(all) != 1 {
		t.Errorf("after %d tries it has %d entries, %v", tries, len(all), err)
	}
	if shortest >= rereads*rereadPause {
		t.Errorf("the lock is held for %s at least", shortest)
	}
}
