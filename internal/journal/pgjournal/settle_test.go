package pgjournal_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"cadre/internal/journal"
	"cadre/internal/journal/journaltest"
	"cadre/internal/journal/pgjournal"
	"cadre/internal/journal/store"
	"cadre/internal/testkit/postgrestest"
)

// TestCommitCut cuts the connection at the commit of an append, and compares what Append says with
// what is in the history.
func TestCommitCut(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		fault   fault
		written bool
		err     string
	}{
		{"nothing is cut", none, true, ""},
		{"before it reached the server", cutBefore, false, "nothing was written"},
		{"after the server committed", cutAfter, true, ""},
		{"and the server gets it later", cutLate, true, ""},
		{"and the server cannot be reached", cutAll, false, journal.ErrUncertain.Error()},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			direct := fresh(t, postgrestest.Shared(t))
			_, watcher := direct.create(t, pgjournal.Options{})
			p, at := between(t, direct)
			armed := false
			// With one connection, its statements are prepared by the first append, and the next
			// bytes of the second one after its decision are the commit.
			s := at.with("pool_max_conns=1").store(t, pgjournal.Options{Settle: 800 * time.Millisecond,
				Step: func(step string) {
					if armed && step == "commit" {
						p.set(func() { p.fault = test.fault })
					}
				}})
			j := open(t, s)
			add(t, j, 0, `"before"`)
			s.Quiet()
			armed = true
			seq, err := journaltest.Add(t.Context(), j, 1, `"cut"`)
			armed = false
			if test.err == "" && (err != nil || seq != 2) || test.err != "" && (err == nil ||
				!strings.Contains(err.Error(), test.err)) {
				t.Errorf("got %d, %v", seq, err)
			}
			if errors.Is(err, journal.ErrUncertain) != (test.fault == cutAll) {
				t.Errorf("got %v", err)
			}
			time.Sleep(late / 4) // a lost transaction would come now
			want := map[bool]int{false: 0, true: 1}[test.written]
			if got := count(t, watcher, "cut"); got != want {
				t.Errorf("the history has the record %d times, want %d", got, want)
			}
			p.set(func() { p.down = false })
			after := int64(1 + want)
			if got := add(t, j, after, `"after"`); got != after+1 {
				t.Errorf("the next record is %d", got)
			}
		})
	}
}

// TestCreateCut cuts the connection at the commit of a new team.
func TestCreateCut(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fault fault
		there bool
	}{
		"before": {cutBefore, false},
		"after":  {cutAfter, true},
		"late":   {cutLate, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			direct := fresh(t, postgrestest.Shared(t))
			p, at := between(t, direct)
			armed := none
			s := at.with("pool_max_conns=1").store(t, pgjournal.Options{Settle: 2 * time.Second,
				Step: func(step string) {
					if step == "commit" {
						p.set(func() { p.fault = armed })
					}
				}})
			create := func(name string, fault fault) error {
				armed = fault
				return s.Create(t.Context(), entry(name, name+"-1"), [][]byte{[]byte("1")})
			}
			if err := create("warm", none); err != nil {
				t.Fatal(err)
			}
			err := create(team, test.fault)
			if (err == nil) != test.there {
				t.Errorf("got %v", err)
			}
			time.Sleep(late / 4)
			teams, err := s.Teams().List(t.Context())
			if err != nil || len(teams) != map[bool]int{false: 1, true: 2}[test.there] {
				t.Errorf("the teams are %v, %v", teams, err)
			}
			if err := create(team, none); errors.Is(err, journal.ErrExists) != test.there {
				t.Errorf("created again: %v", err)
			}
		})
	}
}

// TestStandbyMissing checks that an append is not acknowledged while the standby is missing that it
// must wait for, although every other connection sees the record already.
func TestStandbyMissing(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t, postgrestest.Options{})
	at := fresh(t, server)
	_, j := at.create(t, pgjournal.Options{Timeout: 2 * time.Second, Settle: 4 * time.Second})
	add(t, j, 0, "1")
	server.RequireStandby(t)
	_, err := journaltest.Add(t.Context(), j, 1, "2")
	if !errors.Is(err, journal.ErrUncertain) {
		t.Errorf("without its standby: %v", err)
	}
	server.RequireNoStandby(t)
	seq, err := j.Append(t.Context(), 1, func(journal.Record) error { return nil },
		func() ([]byte, error) { return []byte("3"), nil })
	if err != nil || seq < 2 {
		t.Errorf("with a server that waits for nobody: %d, %v", seq, err)
	}
}

// TestServerAway checks that a server which is killed and started again is waited for by everything
// that does not write, by appends, and by leases, which survive it. One that was never reached is
// not waited for.
func TestServerAway(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t, postgrestest.Options{})
	at := fresh(t, server)
	s, j := at.create(t, pgjournal.Options{})
	lease := acquire(t, j.Shared(), store.Lead)
	add(t, j, 0, "1")
	server.Kill(t)
	if _, err := pgjournal.Connect(t.Context(), at.DSN, pgjournal.Options{Schema: at.Schema}); err == nil {
		t.Error("a killed server was reached")
	}
	back := make(chan struct{})
	go func() {
		defer close(back)
		time.Sleep(2 * time.Second)
		server.Restart(t)
	}()
	defer func() { <-back }()
	var all sync.WaitGroup
	all.Go(func() {
		if seq, err := journaltest.Add(t.Context(), j, 1, "2"); seq != 2 || err != nil {
			t.Errorf("append: %d, %v", seq, err)
		}
	})
	all.Go(func() {
		if teams, err := s.Teams().List(t.Context()); len(teams) != 1 || err != nil {
			t.Errorf("the teams are %v, %v", teams, err)
		}
	})
	all.Go(func() {
		if err := j.Shared().Put(t.Context(), "key", []byte("value")); err != nil {
			t.Error(err)
		}
	})
	all.Go(func() {
		for r, err := range j.Read(t.Context(), 0) {
			if err != nil {
				t.Errorf("read: %d, %v", r.Seq, err)
			}
		}
	})
	all.Wait()
	select {
	case <-lease.Lost():
		t.Error("the lease was lost")
	default:
	}
}

// TestCancelledCommit checks that the end of its context does not interrupt a commit.
func TestCancelledCommit(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	at := fresh(t, postgrestest.Shared(t))
	at.create(t, pgjournal.Options{})
	j := open(t, at.store(t, pgjournal.Options{Step: func(step string) {
		if step == "commit" {
			stop()
		}
	}}))
	if seq, err := journaltest.Add(ctx, j, 0, "1"); seq != 1 || err != nil {
		t.Errorf("got %d, %v", seq, err)
	}
}
