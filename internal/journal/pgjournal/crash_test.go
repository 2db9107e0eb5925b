package pgjournal_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"cadre/internal/journal"
	"cadre/internal/journal/journaltest"
	"cadre/internal/journal/pgjournal"
	"cadre/internal/testkit/postgrestest"
	"cadre/internal/testkit/soak"
)

// checkDecided checks that each record was decided on the state right before it, and that each
// writer's records are there in order.
func checkDecided(t *testing.T, j journal.Journal, writers, each int) {
	t.Helper()
	next := map[string]int{}
	all := journaltest.All(t, j, 0)
	for i, data := range all {
		var d decided
		if err := json.Unmarshal([]byte(data), &d); err != nil {
			t.Fatal(err)
		}
		if d.On != int64(i) {
			t.Fatalf("record %d was decided on the state at %d", i+1, d.On)
		}
		if d.N != next[d.Writer] {
			t.Fatalf("writer %s: record %d, expected %d", d.Writer, d.N, next[d.Writer])
		}
		next[d.Writer]++
	}
	if len(next) != writers || len(all) != writers*each {
		t.Errorf("%d records of %d writers, want %d of %d", len(all), len(next), writers*each, writers)
	}
}

func TestManyGoroutines(t *testing.T) {
	t.Parallel()
	const writers, each = 32, 10
	at := fresh(t, postgrestest.Shared(t))
	_, j := at.create(t, pgjournal.Options{})
	var stores []*pgjournal.Store
	for range 4 {
		stores = append(stores, at.store(t, pgjournal.Options{}))
	}
	var wg sync.WaitGroup
	for w := range writers {
		mine := open(t, stores[w%len(stores)])
		wg.Go(func() {
			if err := appendDecided(mine, fmt.Sprint(w), each); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	checkDecided(t, j, writers, each)
}

func TestManyProcesses(t *testing.T) {
	t.Parallel()
	const processes, beside, each = 4, 8, 10
	at := fresh(t, postgrestest.Shared(t))
	_, j := at.create(t, pgjournal.Options{})
	var children []*child
	for p := range processes {
		children = append(children, start(t, task{Role: "race", At: at, Name: fmt.Sprint("p", p), Count: each,
			Beside: beside}))
	}
	for _, c := range children {
		if out, err := c.end(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
	checkDecided(t, j, processes*beside, each)
}

// acknowledged parses a line of a child that appends.
func acknowledged(line string) (seq int64, id string, ok bool) {
	n, err := fmt.Sscanf(line, "%d %s", &seq, &id)
	return seq, id, n == 2 && err == nil
}

// TestKilledWriter kills a writer at each step of an append. What it said to be saved is there, and
// nothing twice; the next writer is not kept waiting.
func TestKilledWriter(t *testing.T) {
	t.Parallel()
	const steps = 5 // of an append
	for at := 1; at <= soak.Of(2, 6)*steps; at++ {
		t.Run(fmt.Sprint("step ", at), func(t *testing.T) {
			t.Parallel()
			db := fresh(t, postgrestest.Shared(t))
			_, j := db.create(t, pgjournal.Options{})
			c := start(t, task{Role: "append", At: db, Name: "w", KillAt: at})
			said := map[int64]string{}
			for line := c.line(); line != ""; line = c.line() {
				if seq, id, ok := acknowledged(line); ok {
					said[seq] = id
				}
			}
			if _, err := c.end(); err == nil || c.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() !=
				syscall.SIGKILL {
				t.Fatalf("it ended with %v", c.cmd.ProcessState)
			}
			if want := (at - 1) / steps; len(said) != want {
				t.Errorf("it said that %d records are saved, want %d", len(said), want)
			}
			ctx, stop := context.WithTimeout(t.Context(), 3*time.Second)
			defer stop()
			seen := int64(0)
			last, err := j.Append(ctx, 0, func(r journal.Record) error {
				seen = r.Seq
				if id := said[r.Seq]; id != "" && !strings.Contains(string(r.Data), `"`+id+`"`) {
					t.Errorf("record %d is %s, and %s was acknowledged", r.Seq, r.Data, id)
				}
				return nil
			}, func() ([]byte, error) { return []byte(`{"id":"next"}`), nil })
			if err != nil || last != seen+1 || seen < int64(len(said)) || seen > int64(len(said)+1) {
				t.Errorf("%d were acknowledged, and there are %d; the next is %d, %v", len(said), seen, last, err)
			}
			for n := range int(seen) {
				if got := count(t, j, `"`+id("w", n)+`"`); got != 1 {
					t.Errorf("%s is there %d times", id("w", n), got)
				}
			}
		})
	}
}

// TestStoppedWriter stops a writer that has the lock. The others go on after a time, and when the
// writer wakes, it writes nothing and says so.
func TestStoppedWriter(t *testing.T) {
	t.Parallel()
	const stall = 400 * time.Millisecond
	at := fresh(t, postgrestest.Shared(t))
	_, j := at.create(t, pgjournal.Options{})
	c := start(t, task{Role: "append", At: at, Name: "stopped", Count: 1, StopAt: "locked", Stall: stall})
	if line := c.line(); line != "waiting" {
		t.Fatal(line)
	}
	if err := c.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	add(t, j, 0, `"first"`)
	if waited := time.Since(began); waited > stall+3*time.Second {
		t.Errorf("another writer waited %s", waited)
	}
	add(t, j, 1, `"second"`)
	if _, err := c.in.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	out, err := c.end()
	if err == nil || !strings.Contains(out, "nothing was written") {
		t.Errorf("the stopped writer ended with %v: %s", err, out)
	}
	if got := journaltest.All(t, j, 0); len(got) != 2 {
		t.Errorf("the records are %q", got)
	}
}

// TestStoppedAnywhere stops a writer again and again wherever it is. It always has much to read.
// The others never wait much longer than a stall.
func TestStoppedAnywhere(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for ten stalls; not with -short")
	}
	t.Parallel()
	const stall = 200 * time.Millisecond
	var history []string
	for range 6 {
		history = append(history, `"`+strings.Repeat("x", 1<<20)+`"`)
	}
	at := fresh(t, postgrestest.Shared(t))
	_, j := at.create(t, pgjournal.Options{}, history...)
	c := start(t, task{Role: "reread", At: at, Name: "stopped", Stall: stall})
	if line := c.line(); line != "ready" {
		t.Fatal(line)
	}
	last := int64(len(history))
	for i := range soak.Of(12, 200) {
		time.Sleep(time.Duration(5+7*i%23) * time.Millisecond)
		if err := c.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), stall+time.Second)
		var err error
		if last, err = j.Append(ctx, last, func(journal.Record) error { return nil },
			func() ([]byte, error) { return []byte(`"on"`), nil }); err != nil {
			t.Errorf("while the other one is stopped: %v", err)
		}
		stop()
		if err := c.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
}

// loader appends with errors, and remembers what it was told of each record.
type loader struct {
	name      string
	saved     map[string]int64 // acknowledged, with their seqs
	refused   []string         // said not to be written
	uncertain []string
	failed    atomic.Int64 // how many are refused, for others to read meanwhile
}

func anyRefused(loaders []*loader) bool {
	return slices.ContainsFunc(loaders, func(l *loader) bool { return l.failed.Load() > 0 })
}

func (l *loader) run(ctx context.Context, j journal.Journal) {
	last := int64(0)
	for n := 0; ctx.Err() == nil; n++ {
		id := id(l.name, n)
		seq, err := j.Append(context.Background(), last, func(r journal.Record) error {
			last = r.Seq
			return nil
		}, func() ([]byte, error) { return fmt.Appendf(nil, `{"id":"%s"}`, id), nil })
		switch {
		case err == nil:
			l.saved[id], last = seq, seq
		case errors.Is(err, journal.ErrUncertain):
			l.uncertain = append(l.uncertain, id)
		default:
			l.refused = append(l.refused, id)
			l.failed.Add(1)
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// TestKilledServer kills the server under load, and starts it again. What was acknowledged is
// there, nothing twice, and nothing of which an append said that it was not written. By default
// this server does not wait for the disk at a commit.
func TestKilledServer(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t, postgrestest.Options{Settings: []string{"synchronous_commit = off",
		"wal_writer_delay = 10s"}})
	at := fresh(t, server)
	first, j := at.create(t, pgjournal.Options{})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var loaders []*loader
	var wg sync.WaitGroup
	second := at.store(t, pgjournal.Options{})
	for w := range 8 {
		l := &loader{name: fmt.Sprint("w", w), saved: map[string]int64{}}
		loaders = append(loaders, l)
		mine := open(t, []*pgjournal.Store{first, second}[w%2])
		wg.Go(func() { l.run(ctx, mine) })
	}
	woken := make(chan error, 1)
	waiter := open(t, first)
	go func() { woken <- waiter.Wait(t.Context(), 1<<40) }()
	// A fast server is rarely killed between the parts of an append, so more kills may be needed.
	for n := 0; n < soak.Of(2, 30) || n < 60 && !anyRefused(loaders); n++ {
		time.Sleep(300 * time.Millisecond)
		server.Kill(t)
		time.Sleep(50 * time.Millisecond)
		server.Restart(t)
	}
	time.Sleep(200 * time.Millisecond)
	stop()
	wg.Wait()
	select {
	case err := <-woken:
		t.Errorf("a waiter did not wait for the server: %v", err)
	default:
	}
	seqs := map[string]int64{}
	for i, data := range journaltest.All(t, j, 0) {
		var record struct{ ID string }
		if err := json.Unmarshal([]byte(data), &record); err != nil {
			t.Fatal(err)
		}
		if before, twice := seqs[record.ID]; twice {
			t.Errorf("%s is record %d and %d", record.ID, before, i+1)
		}
		seqs[record.ID] = int64(i + 1)
	}
	saved, refused := 0, 0
	for _, l := range loaders {
		for id, seq := range l.saved {
			if seqs[id] != seq {
				t.Errorf("%s was acknowledged as record %d, and is record %d", id, seq, seqs[id])
			}
		}
		for _, id := range l.refused {
			if seqs[id] != 0 {
				t.Errorf("%s was said not to be written, and is record %d", id, seqs[id])
			}
		}
		saved, refused = saved+len(l.saved), refused+len(l.refused)
		if len(l.uncertain) > 0 {
			t.Errorf("%s never learned what became of %v", l.name, l.uncertain)
		}
	}
	if saved < 10 || refused == 0 { // a busy machine saves few
		t.Errorf("%d records were saved and %d refused: that was no load", saved, refused)
	}
	t.Logf("%d saved, %d refused", saved, refused)
}

// TestNotYetSynced kills the server right after an append.
func TestNotYetSynced(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t, postgrestest.Options{Settings: []string{"synchronous_commit = off",
		"wal_writer_delay = 10s"}})
	_, j := fresh(t, server).create(t, pgjournal.Options{})
	for n := range int64(3) {
		add(t, j, n, fmt.Sprint(n))
		server.Kill(t)
		server.Restart(t)
		if got := journaltest.All(t, j, 0); int64(len(got)) != n+1 {
			t.Fatalf("the records are %q", got)
		}
	}
}
