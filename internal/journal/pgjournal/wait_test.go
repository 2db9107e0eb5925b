package pgjournal_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"cadre/internal/journal"
	"cadre/internal/journal/pgjournal"
	"cadre/internal/testkit/postgrestest"
)

// waited returns how long a waiter of the journal at needs to see a record of another store. It
// waits for some time before.
func waited(t *testing.T, j, writer *pgjournal.Journal, after int64, before time.Duration) time.Duration {
	t.Helper()
	woken := make(chan time.Time, 1)
	go func() {
		if err := j.Wait(t.Context(), after); err != nil {
			t.Error(err)
		}
		woken <- time.Now()
	}()
	time.Sleep(before)
	select {
	case <-woken:
		t.Fatal("it did not wait")
	default:
	}
	add(t, writer, after, `"news"`)
	began := time.Now()
	return (<-woken).Sub(began)
}

// TestWaitHears checks that a record is heard of, not found by the next poll.
func TestWaitHears(t *testing.T) {
	t.Parallel()
	at := fresh(t, postgrestest.Shared(t))
	_, writer := at.create(t, pgjournal.Options{})
	j := open(t, at.store(t, pgjournal.Options{}))
	for n := range int64(4) {
		if took := waited(t, j, writer, n, pgjournal.PollHeard/10); took > pgjournal.PollHeard/4 {
			t.Errorf("record %d was seen after %s", n+1, took)
		}
	}
}

// TestWaitDeaf checks that records are found where no notification arrives.
func TestWaitDeaf(t *testing.T) {
	t.Parallel()
	direct := fresh(t, postgrestest.Shared(t))
	_, writer := direct.create(t, pgjournal.Options{})
	p, at := between(t, direct)
	p.deaf = true
	j := open(t, at.store(t, pgjournal.Options{}))
	for n := range int64(2) {
		if took := waited(t, j, writer, n, 3*pgjournal.PollUnheard); took > pgjournal.PollHeard/2 {
			t.Errorf("record %d was seen after %s", n+1, took)
		}
	}
}

// TestWaitCut checks that a waiter survives the loss of all its connections, and listens again.
func TestWaitCut(t *testing.T) {
	t.Parallel()
	direct := fresh(t, postgrestest.Shared(t))
	_, writer := direct.create(t, pgjournal.Options{})
	p, at := between(t, direct)
	j := open(t, at.store(t, pgjournal.Options{}))
	woken := make(chan error, 1)
	go func() { woken <- j.Wait(t.Context(), 0) }()
	time.Sleep(100 * time.Millisecond)
	p.set(func() { p.down = true })
	p.cut()
	time.Sleep(100 * time.Millisecond)
	add(t, writer, 0, `"news"`)
	heard := 0
	p.set(func() { p.down, heard = false, p.heard })
	select {
	case err := <-woken:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Error("the waiter sleeps on")
	}
	go func() { woken <- j.Wait(t.Context(), 1) }()
	late := time.After(5 * time.Second)
	for again := false; !again; {
		select {
		case err := <-woken:
			t.Fatalf("it has stopped to wait: %v", err)
		case <-late:
			t.Fatal("it does not listen again")
		case <-time.After(10 * time.Millisecond):
			p.set(func() { again = p.heard > heard })
		}
	}
	add(t, writer, 1, `"more"`)
	if err := <-woken; err != nil {
		t.Error(err)
	}
}

// TestWaitCrowd checks that a waiter hears of records while several processes append without a
// pause, and of the last one.
func TestWaitCrowd(t *testing.T) {
	t.Parallel()
	at := fresh(t, postgrestest.Shared(t))
	at.create(t, pgjournal.Options{})
	const each = 60
	var writers sync.WaitGroup
	for w := range 3 {
		j := open(t, at.store(t, pgjournal.Options{}))
		writers.Go(func() {
			if err := appendDecided(j, fmt.Sprint(w), each); err != nil {
				t.Error(err)
			}
		})
	}
	j := open(t, at.store(t, pgjournal.Options{}))
	var worst time.Duration
	for last, began := int64(0), time.Now(); last < 3*each; began = time.Now() {
		if err := j.Wait(t.Context(), last); err != nil {
			t.Fatal(err)
		}
		worst = max(worst, time.Since(began))
		for r, err := range j.Read(t.Context(), last) {
			if err != nil {
				t.Fatal(err)
			}
			last = r.Seq
		}
	}
	writers.Wait()
	if worst > pgjournal.PollHeard/2 {
		t.Errorf("it heard nothing for %s", worst)
	}
}

func TestWaitRemoved(t *testing.T) {
	t.Parallel()
	at := fresh(t, postgrestest.Shared(t))
	s, _ := at.create(t, pgjournal.Options{})
	j := open(t, at.store(t, pgjournal.Options{}))
	woken := make(chan error, 1)
	go func() { woken <- j.Wait(t.Context(), 0) }()
	time.Sleep(100 * time.Millisecond)
	if err := s.Remove(t.Context(), teamID); err != nil {
		t.Fatal(err)
	}
	if err := <-woken; !errors.Is(err, journal.ErrGone) {
		t.Errorf("got %v", err)
	}
}
