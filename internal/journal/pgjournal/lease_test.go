package pgjournal_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"cadre/internal/journal/journaltest"
	"cadre/internal/journal/pgjournal"
	"cadre/internal/journal/store"
	"cadre/internal/testkit/postgrestest"
)

// hold executes a statement in a transaction, and returns a function that rolls it back.
func (w where) hold(t testing.TB, sql string) (rollback func()) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, w.DSN+" client_encoding=UTF8")
	if err != nil {
		t.Fatal(err)
	}
	rollback = func() { _ = conn.Close(ctx) }
	t.Cleanup(rollback)
	for _, sql := range []string{"SET search_path TO " + w.Schema, "BEGIN", sql} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	return rollback
}

// waiting waits until a session waits for a lock with a statement that has a text.
func (w where) waiting(t testing.TB, text string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), w.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for found := false; !found; time.Sleep(10 * time.Millisecond) {
		err := conn.QueryRow(within(t, 10*time.Second), `SELECT EXISTS (SELECT FROM pg_stat_activity
			WHERE wait_event_type = 'Lock' AND position($1 IN query) > 0 AND position($2 IN query) > 0)`,
			w.Schema, text).Scan(&found)
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestLeaseUnanswered loses the answers to renewals, which the server executes. The holder has lost
// the lease, so it must become free; at once if the holder releases it.
func TestLeaseUnanswered(t *testing.T) {
	t.Parallel()
	for name, released := range map[string]bool{"expires": false, "is released": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			direct := fresh(t, postgrestest.Shared(t))
			direct.create(t, pgjournal.Options{})
			p, at := between(t, direct)
			// Without prepared statements the first exchange of a connection is the renewal.
			s := at.with("default_query_exec_mode=exec").store(t, pgjournal.Options{Lease: leaseTime})
			lease := acquire(t, open(t, s).Shared(), store.Lead)
			other := open(t, direct.store(t, pgjournal.Options{})).Shared()
			p.set(func() { p.mute = true })
			lost(t, lease, 2*leaseTime)
			p.set(func() { p.mute = false })
			if !other.Held(t.Context(), store.Lead) {
				t.Fatal("no renewal has arrived")
			}
			if released {
				if err := lease.Release(); err != nil {
					t.Error(err)
				}
				acquire(t, other, store.Lead)
				return
			}
			next, err := store.Wait(within(t, 3*leaseTime), other, store.Lead)
			if err != nil {
				t.Fatal(err)
			}
			if err := next.Release(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestAcquireSlow checks that a lease which can be taken only after a long wait is not taken.
func TestAcquireSlow(t *testing.T) {
	t.Parallel()
	at := fresh(t, postgrestest.Shared(t))
	_, j := at.create(t, pgjournal.Options{Lease: leaseTime})
	rollback := at.hold(t, `INSERT INTO lease (team, name, token, holder, fence, until)
		SELECT number, 'lead', '', '', 1, now() FROM team`)
	time.AfterFunc(2*leaseTime, rollback)
	began := time.Now()
	lease, err := j.Shared().Acquire(t.Context(), store.Lead)
	if took := time.Since(began); err == nil || errors.Is(err, store.ErrHeld) || took > leaseTime*2/3 {
		t.Errorf("after %s: %v, %v", took, lease, err)
	}
}

// TestAcquireEnded checks that no lease is taken that nobody would renew, because the store is
// being closed.
func TestAcquireEnded(t *testing.T) {
	t.Parallel()
	at := fresh(t, postgrestest.Shared(t))
	s, j := at.create(t, pgjournal.Options{})
	s.EndLeases()
	if lease, err := j.Shared().Acquire(t.Context(), store.Lead); err == nil || errors.Is(err, store.ErrHeld) {
		t.Errorf("%v, %v", lease, err)
	}
	acquire(t, open(t, at.store(t, pgjournal.Options{})).Shared(), store.Lead)
}

// TestLeaseBesideAppends checks that leases are renewed while every connection of the pool waits
// for a lock.
func TestLeaseBesideAppends(t *testing.T) {
	t.Parallel()
	at := fresh(t, postgrestest.Shared(t))
	at.create(t, pgjournal.Options{})
	j := open(t, at.with("pool_max_conns=1").store(t, pgjournal.Options{Lease: leaseTime}))
	lease := acquire(t, j.Shared(), store.Lead)
	rollback := at.hold(t, "SELECT FROM team FOR UPDATE")
	appended := make(chan error, 1)
	go func() { _, err := journaltest.Add(t.Context(), j, 0, "1"); appended <- err }()
	select {
	case <-lease.Lost():
		t.Error("it was lost")
	case err := <-appended:
		t.Errorf("the append did not wait: %v", err)
	case <-time.After(2 * leaseTime):
	}
	if !open(t, at.store(t, pgjournal.Options{})).Shared().Held(t.Context(), store.Lead) {
		t.Error("it is free")
	}
	rollback()
	if err := <-appended; err != nil {
		t.Error(err)
	}
}

// TestLeaseSuspended checks that the time for which a machine was suspended counts.
func TestLeaseSuspended(t *testing.T) {
	t.Parallel()
	at := fresh(t, postgrestest.Shared(t))
	_, j := at.create(t, pgjournal.Options{Lease: time.Minute})
	looked, told := acquire(t, j.Shared(), "looked"), acquire(t, j.Shared(), "told")
	pgjournal.Suspend(looked, time.Minute)
	if until := looked.Until(); until.After(time.Now()) {
		t.Errorf("it is held until %s", until)
	}
	lost(t, looked, 500*time.Millisecond)
	pgjournal.Suspend(told, 30*time.Second)
	if until := told.Until(); !until.After(time.Now()) {
		t.Errorf("it was held until %s", until)
	}
	pgjournal.Suspend(told, 30*time.Second)
	lost(t, told, 10*time.Second)
}

// TestHolderWithoutName checks that no lease is taken for a machine that has no name.
func TestHolderWithoutName(t *testing.T) {
	t.Parallel()
	if got, err := pgjournal.EncodeHolder("", nil); err == nil {
		t.Errorf("it is %s", got)
	}
	unknown := errors.New("unknown")
	if got, err := pgjournal.EncodeHolder("a", unknown); !errors.Is(err, unknown) {
		t.Errorf("it is %s, %v", got, err)
	}
	if got, err := pgjournal.EncodeHolder("a", nil); err != nil || !strings.Contains(got, `"machine":"a"`) {
		t.Errorf("it is %s, %v", got, err)
	}
}

// TestRemoveWaitsForShared removes a team while a lease of it is being taken, and while a value is
// being set. Nothing of it remains.
func TestRemoveWaitsForShared(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		held string
		call func(store.Team) error
	}{
		"lease": {`INSERT INTO lease (team, name, token, holder, fence, until)
			SELECT number, 'lead', '', '', 1, now() FROM team`,
			func(team store.Team) error { _, err := team.Acquire(context.Background(), store.Lead); return err }},
		"value": {"INSERT INTO value (team, key, data) SELECT number, 'a', '' FROM team",
			func(team store.Team) error { return team.Put(context.Background(), "a", nil) }},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			at := fresh(t, postgrestest.Shared(t))
			s, j := at.create(t, pgjournal.Options{})
			rollback := at.hold(t, c.held)
			called, removed := make(chan error, 1), make(chan error, 1)
			go func() { called <- c.call(j.Shared()) }()
			at.waiting(t, what)
			go func() { removed <- s.Remove(context.Background(), teamID) }()
			select {
			case err := <-removed:
				t.Errorf("the team was removed meanwhile: %v", err)
				removed <- err
			case <-time.After(200 * time.Millisecond):
			}
			rollback()
			for _, ended := range []chan error{called, removed} {
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
			at.sql(t, `DO $$ BEGIN ASSERT NOT EXISTS (SELECT FROM lease) AND NOT EXISTS (SELECT FROM value); END $$`)
		})
	}
}
