package pgjournal_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"cadre/internal/journal"
	"cadre/internal/journal/pgjournal"
	"cadre/internal/journal/store"
	"cadre/internal/journal/store/storetest"
	"cadre/internal/testkit/postgrestest"
)

// leaseTime is long enough for the steps of a test on a busy machine, and short enough to wait for.
const leaseTime = 3 * time.Second

// handles opens each handle in a store of its own.
func handles(parameters string) storetest.Open {
	return func(t testing.TB) func() storetest.Handle {
		at := fresh(t, postgrestest.Shared(t)).with(parameters)
		at.create(t, pgjournal.Options{})
		return func() storetest.Handle {
			j := open(t, at.store(t, pgjournal.Options{}))
			return storetest.Handle{Journal: j, Team: j.Shared()}
		}
	}
}

// acquire takes a lease that must be free.
func acquire(t testing.TB, team store.Team, name string) store.Lease {
	t.Helper()
	lease, err := team.Acquire(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lease.Release() })
	return lease
}

// lost fails the test unless the lease is lost within a time.
func lost(t testing.TB, lease store.Lease, within time.Duration) {
	t.Helper()
	select {
	case <-lease.Lost():
	case <-time.After(within):
		t.Errorf("the lease is not lost after %s", within)
	}
}

// TestLeaseIsRenewed checks that a lease outlives its time by far, and that others see it held.
func TestLeaseIsRenewed(t *testing.T) {
	t.Parallel()
	at := fresh(t, postgrestest.Shared(t))
	s, j := at.create(t, pgjournal.Options{Lease: leaseTime})
	a, b := acquire(t, j.Shared(), "a"), acquire(t, j.Shared(), "b")
	other := open(t, at.store(t, pgjournal.Options{})).Shared()
	first := a.Until()
	for deadline := time.Now().Add(2 * leaseTime); time.Now().Before(deadline); time.Sleep(leaseTime / 10) {
		if !other.Held(t.Context(), "a") || !other.Held(t.Context(), "b") {
			t.Fatal("it is free")
		}
	}
	if until := a.Until(); !until.After(first.Add(leaseTime)) || !until.After(time.Now()) {
		t.Errorf("it was held until %s, and is until %s", first, until)
	}
	for _, lease := range []store.Lease{a, b} {
		select {
		case <-lease.Lost():
			t.Error("it was lost")
		default:
		}
	}
	s.Close() // the process ends
	lost(t, a, leaseTime/2)
	if !other.Held(t.Context(), "a") {
		t.Error("it is free before its time")
	}
	next, err := store.Wait(within(t, 4*leaseTime), other, "a")
	if err != nil {
		t.Fatal(err)
	}
	if next.Fence() <= a.Fence() {
		t.Errorf("fence %d after %d", next.Fence(), a.Fence())
	}
	if err := next.Release(); err != nil {
		t.Error(err)
	}
}

func within(t testing.TB, long time.Duration) context.Context {
	ctx, stop := context.WithTimeout(t.Context(), long)
	t.Cleanup(stop)
	return ctx
}

// TestLeaseCutOff cuts a holder off from the database. It has lost the lease before another process
// gets it.
func TestLeaseCutOff(t *testing.T) {
	t.Parallel()
	direct := fresh(t, postgrestest.Shared(t))
	direct.create(t, pgjournal.Options{})
	p, at := between(t, direct)
	lease := acquire(t, open(t, at.store(t, pgjournal.Options{Lease: leaseTime})).Shared(), store.Lead)
	p.set(func() { p.down = true })
	p.cut()
	next, err := store.Wait(within(t, 4*leaseTime), open(t, direct.store(t, pgjournal.Options{})).Shared(), store.Lead)
	if err != nil {
		t.Fatal(err)
	}
	lost(t, lease, leaseTime/2) // by its timer, which may be late
	if time.Now().Before(lease.Until()) {
		t.Errorf("another process has it, and it was promised until %s", lease.Until())
	}
	if err := next.Release(); err != nil {
		t.Error(err)
	}
}

// TestLeaseShortCut checks that a lease survives connections that break.
func TestLeaseShortCut(t *testing.T) {
	t.Parallel()
	const leaseTime = 4 * leaseTime // a slow machine takes seconds to connect again
	direct := fresh(t, postgrestest.Shared(t))
	direct.create(t, pgjournal.Options{})
	p, at := between(t, direct)
	lease := acquire(t, open(t, at.store(t, pgjournal.Options{Lease: leaseTime})).Shared(), store.Lead)
	for range 10 {
		time.Sleep(leaseTime / 8)
		p.cut()
	}
	select {
	case <-lease.Lost():
		t.Error("it was lost")
	default:
	}
	if !open(t, direct.store(t, pgjournal.Options{})).Shared().Held(t.Context(), store.Lead) {
		t.Error("it is free")
	}
}

// TestLeaseTaken checks that a holder notices that its lease is another's, as after a database was
// restored.
func TestLeaseTaken(t *testing.T) {
	t.Parallel()
	at := fresh(t, postgrestest.Shared(t))
	_, j := at.create(t, pgjournal.Options{Lease: leaseTime})
	lease := acquire(t, j.Shared(), store.Lead)
	at.sql(t, "UPDATE lease SET until = '-infinity'")
	other := acquire(t, open(t, at.store(t, pgjournal.Options{})).Shared(), store.Lead)
	lost(t, lease, 2*leaseTime)
	if err := lease.Release(); err != nil {
		t.Error(err)
	}
	if !j.Shared().Held(t.Context(), store.Lead) || other.Fence() <= lease.Fence() {
		t.Errorf("the lease of the other was released, or has fence %d after %d", other.Fence(), lease.Fence())
	}
}

// TestAcquireCut cuts the connection while a lease is taken and a value is set, before the server
// gets the statement and after it has done it. The client asks again, and finds its own lease.
func TestAcquireCut(t *testing.T) {
	t.Parallel()
	direct := fresh(t, postgrestest.Shared(t))
	direct.create(t, pgjournal.Options{})
	p, at := between(t, direct)
	team := open(t, at.with("pool_max_conns=1").store(t, pgjournal.Options{})).Shared()
	for _, f := range []fault{cutBefore, cutAfter} {
		release(t, team, fmt.Sprint("prepared", f)) // so that the next bytes are the statement
		p.set(func() { p.fault = f })
		release(t, team, fmt.Sprint("cut", f))
		for _, data := range []string{"prepared", fmt.Sprint("cut", f)} {
			if err := team.Put(t.Context(), "key", []byte(data)); err != nil {
				t.Errorf("fault %d: %v", f, err)
			}
			p.set(func() { p.fault = f })
		}
		p.set(func() { p.fault = none })
		if got, err := team.Get(t.Context(), "key"); err != nil || string(got) != fmt.Sprint("cut", f) {
			t.Errorf("fault %d: the value is %s, %v", f, got, err)
		}
	}
}

// release takes a lease and releases it.
func release(t *testing.T, team store.Team, name string) {
	t.Helper()
	if err := acquire(t, team, name).Release(); err != nil {
		t.Error(err)
	}
}

// TestSharedOfRemoved checks that nothing stays of a removed team, that nothing is added to it, and
// that its leases are lost.
func TestSharedOfRemoved(t *testing.T) {
	t.Parallel()
	at := fresh(t, postgrestest.Shared(t))
	s, j := at.create(t, pgjournal.Options{Lease: leaseTime})
	shared := j.Shared()
	lease := acquire(t, shared, store.Lead)
	if err := shared.Put(t.Context(), "a", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(t.Context(), teamID); err != nil {
		t.Fatal(err)
	}
	_, acquiring := shared.Acquire(t.Context(), store.Consolidation)
	for call, err := range map[string]error{"acquire": acquiring, "put": shared.Put(t.Context(), "a", nil),
		"replace": shared.Replace(t.Context(), store.Value{Key: "a"})} {
		if !errors.Is(err, journal.ErrGone) {
			t.Errorf("%s: %v", call, err)
		}
	}
	lost(t, lease, 2*leaseTime)
	at.sql(t, `DO $$ BEGIN ASSERT NOT EXISTS (SELECT FROM lease) AND NOT EXISTS (SELECT FROM value); END $$`)
}

// TestSharedOfNewerSchema checks that nothing is changed in a newer schema.
func TestSharedOfNewerSchema(t *testing.T) {
	t.Parallel()
	at := fresh(t, postgrestest.Shared(t))
	_, j := at.create(t, pgjournal.Options{Lease: leaseTime})
	team := j.Shared()
	held := acquire(t, team, "held")
	if err := team.Put(t.Context(), "a", []byte("x")); err != nil {
		t.Fatal(err)
	}
	at.sql(t, "INSERT INTO migration (version) VALUES (99)", "CREATE TABLE before AS SELECT until FROM lease")
	_, acquiring := team.Acquire(t.Context(), store.Lead)
	for call, err := range map[string]error{"acquire": acquiring, "put": team.Put(t.Context(), "a", nil),
		"delete": team.Delete(t.Context(), "a")} {
		if !errors.Is(err, journal.ErrNewer) || !strings.Contains(err.Error(), "99") {
			t.Errorf("%s: %v", call, err)
		}
	}
	lost(t, held, leaseTime)
	at.sql(t, `DO $$ BEGIN ASSERT (SELECT until FROM lease) = (SELECT until FROM before)
		AND (SELECT data FROM value) = 'x'; END $$`)
}

// BenchmarkBeats measures what the heartbeats of 1,000 members on 10 hosts cost: all processors of
// this machine for their time, in percent of one core where each member sends one in 30 seconds.
func BenchmarkBeats(b *testing.B) {
	at := fresh(b, postgrestest.Shared(b))
	at.create(b, pgjournal.Options{})
	beat := []byte(strings.Repeat(`{"teammate_id":"ann"}`, 15))
	var hosts []store.Team
	for range 10 {
		hosts = append(hosts, open(b, at.store(b, pgjournal.Options{})).Shared())
	}
	for b.Loop() {
		for h, host := range hosts {
			values := make([]store.Value, 100)
			for m := range values {
				values[m] = store.Value{Key: fmt.Sprintf("heartbeats/m%d-%d.json", h, m), Data: beat}
			}
			if err := host.Replace(b.Context(), values...); err != nil {
				b.Fatal(err)
			}
		}
	}
	took := b.Elapsed().Seconds() / float64(b.N)
	b.ReportMetric(100*took*2/30, "%core-at-most")
}
