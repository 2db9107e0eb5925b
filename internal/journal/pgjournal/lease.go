package pgjournal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"cadre/internal/journal/pgjournal/pgwire"
	"cadre/internal/journal/store"
)

// Shared is what the processes of a team share besides its journal. It implements [store.Team].
type Shared struct {
	s      *Store
	team   string
	number int64
}

var _ store.Team = Shared{}

// Shared returns what the processes of the team share besides the journal. It can be used after the
// handle is closed, until the store is.
func (j *Journal) Shared() Shared { return Shared{j.s, j.team, j.number} }

// explain returns the error of a call with what was called.
func (t Shared) explain(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s of team %s in %s: %w", what, t.team, t.s.where, t.s.explain(err))
}

// unchanged says why a statement that changes something for a team changed nothing. It returns nil
// if neither the team nor the version of the schema is the reason.
func (t Shared) unchanged(ctx context.Context) error {
	var h head
	err := t.s.ask(ctx, func(ctx context.Context, conn *pgwire.Conn) error {
		return scanHead(conn.Query(ctx, t.s.sql.read, t.number), &h)
	})
	if err != nil {
		return err
	}
	return judgeVersion(t.s.opts.Schema, h.version)
}

const (
	// leaseMargin is the part of a lease by which a holder counts it as lost before the server
	// does. It allows for clocks that run at different speeds.
	leaseMargin = 20
	// leaseRenewals is how often a lease is renewed in its time, so that one attempt may fail.
	leaseRenewals = 3
	// leaseAttempt is which part of its time an attempt to renew it may take.
	leaseAttempt = 5
	// leaseLook is how often a holder compares a lease with the wall clock.
	leaseLook = time.Second
)

// lease is a lease that this process has. The leases of a store renew it.
type lease struct {
	of    Shared
	name  string
	token []byte
	fence int64
	lost  chan struct{}

	mu       sync.Mutex
	until    time.Time
	wall     time.Time // until by the wall clock
	timer    *time.Timer
	over     bool // lost or released
	released bool
}

// Lost implements [store.Lease].
func (l *lease) Lost() <-chan struct{} { return l.lost }

// Fence implements [store.Lease].
func (l *lease) Fence() int64 { return l.fence }

// Until implements [store.Lease].
func (l *lease) Until() time.Time {
	l.look()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until
}

// look ends the lease if its time has passed, and reports whether it is over. The steady clock
// stops while a machine is suspended, and the wall clock may be set: the one that leaves less
// counts.
func (l *lease) look() (over bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return true
	}
	now := time.Now()
	left := min(l.until.Sub(now), l.wall.Sub(now.Round(0)))
	switch {
	case left <= 0:
		l.end()
	case l.timer == nil:
		l.timer = time.AfterFunc(min(left, leaseLook), func() { l.look() })
	default:
		l.timer.Reset(min(left, leaseLook))
	}
	return l.over
}

// lose ends the lease, unless it is over.
func (l *lease) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		l.end()
	}
}

// end makes the lease a lost one. The caller has the lock.
func (l *lease) end() {
	l.over = true
	if now := time.Now(); now.Before(l.until) {
		l.until = now
	}
	if l.timer != nil {
		l.timer.Stop()
	}
	close(l.lost)
}

// extend makes the lease last for its time since asked, when the server was asked for it.
func (l *lease) extend(asked time.Time) {
	l.mu.Lock()
	if !l.over {
		long := l.of.s.opts.Lease
		l.until = asked.Add(long - long/leaseMargin)
		l.wall = l.until.Round(0)
	}
	l.mu.Unlock()
	l.look()
}

// Release implements [store.Lease]. The server may still have a lost lease as held, because the
// answer to a renewal was lost.
func (l *lease) Release() error {
	l.mu.Lock()
	again := l.released
	l.over, l.released = true, true
	if l.timer != nil {
		l.timer.Stop()
	}
	l.mu.Unlock()
	s := l.of.s
	s.leases.remove(l)
	if again {
		return nil
	}
	err := s.askSoon(context.Background(), func(ctx context.Context, conn *pgwire.Conn) error {
		_, err := conn.Exec(ctx, s.sql.release, l.of.number, l.name, l.token)
		return err
	})
	return l.of.explain("release the lease "+l.name, err) // after an error it expires
}

// askSoon is ask for a lease: what takes longer than the time between two renewals is of no use.
func (s *Store) askSoon(ctx context.Context, do func(context.Context, *pgwire.Conn) error) error {
	ctx, stop := context.WithTimeout(ctx, s.opts.Lease/leaseRenewals)
	defer stop()
	return s.ask(ctx, do)
}

// Acquire implements [store.Leases]. The lease is held for [Options.Lease] by the clock of the
// server, and renewed until it is released or the store is closed. After an error the server may
// have it as held for that time.
func (t Shared) Acquire(ctx context.Context, name string) (store.Lease, error) {
	if err := store.CheckName(name); err != nil {
		return nil, err
	}
	holder, err := encodeHolder(os.Hostname())
	if err != nil {
		return nil, t.explain("acquire the lease "+name, err)
	}
	l := &lease{of: t, name: name, token: t.s.newID(), lost: make(chan struct{})}
	asked := time.Now()
	// The statement may be sent twice: it knows a lease that it has taken already by its token.
	err = t.s.askSoon(ctx, func(ctx context.Context, conn *pgwire.Conn) error {
		asked = time.Now()
		return t.s.change(ctx, conn, t.inserts(t.s.durable()), &l.fence, t.s.sql.acquire, t.number, name, l.token,
			holder, t.s.opts.Lease.Milliseconds(), Version())
	})
	if errors.Is(err, pgwire.ErrNoRows) {
		if err = t.unchanged(ctx); err == nil {
			return nil, fmt.Errorf("the lease %s of team %s is %w", name, t.team, store.ErrHeld)
		}
	}
	if err != nil {
		return nil, t.explain("acquire the lease "+name, err)
	}
	l.extend(asked)
	t.s.leases.add(l)
	if l.look() {
		_ = l.Release()
		return nil, t.explain("acquire the lease "+name, errLate)
	}
	return l, nil
}

// errLate reports that a lease was over before its caller could have it.
var errLate = errors.New("its time had passed, or the store was closed, before it could be used")

// encodeHolder returns this process as the row of a lease has it. machine and err are what
// [os.Hostname] returned. Without a name, other machines would take the pid for one of theirs.
func encodeHolder(machine string, err error) (string, error) {
	if err == nil && machine == "" {
		err = errors.New("it is empty")
	}
	if err != nil {
		return "", fmt.Errorf("the name of this machine is not known: %w", err)
	}
	data, err := json.Marshal(store.Holder{Machine: machine, Pid: os.Getpid()})
	return string(data), err
}

// Held implements [store.Leases].
func (t Shared) Held(ctx context.Context, name string) bool {
	_, held, err := t.Holder(ctx, name)
	return held || err != nil
}

// Holder implements [store.Leases].
func (t Shared) Holder(ctx context.Context, name string) (h store.Holder, ok bool, err error) {
	var holder string
	err = t.s.ask(ctx, func(ctx context.Context, conn *pgwire.Conn) error {
		return conn.Query(ctx, t.s.sql.holder, t.number, name).Scan(&holder)
	})
	if errors.Is(err, pgwire.ErrNoRows) {
		return h, false, nil
	}
	if err == nil {
		err = json.Unmarshal([]byte(holder), &h)
	}
	if machine, _ := os.Hostname(); h.Machine == machine {
		h.Machine = ""
	}
	return h, err == nil, t.explain("look at the lease "+name, err)
}

// AllHeld implements [store.Leases].
func (t Shared) AllHeld(ctx context.Context, prefix string) (held []string, err error) {
	err = t.s.ask(ctx, func(ctx context.Context, conn *pgwire.Conn) error {
		held, err = pgwire.Collect(conn.Query(ctx, t.s.sql.allHeld, t.number, prefix),
			func(r pgwire.Row) (name string, err error) {
				err = r.Scan(&name)
				return name, err
			})
		return err
	})
	return held, t.explain("look at the leases", err)
}

// change executes one statement in a transaction, in one round trip. settings is a statement that
// sets things for the transaction. into gets the column of the row that the statement returns.
func (s *Store) change(ctx context.Context, conn *pgwire.Conn, settings setting, into any, sql string,
	args ...any) error {
	var b pgwire.Batch
	b.Add(begin)
	b.Add(settings.sql, settings.args...)
	b.Add(sql, args...)
	b.Add(commit)
	err := conn.Do(ctx, &b, func(r *pgwire.Results) error {
		for range 2 {
			if _, err := r.Exec(); err != nil {
				return err
			}
		}
		return r.Rows().Scan(into)
	})
	if unreplicated(conn) && err == nil {
		err = errors.New("the server did not wait for its standby")
	}
	return err
}

// setting is a statement that sets things for a transaction.
type setting struct {
	sql  string
	args []any
}

// durable makes a transaction durable at its commit; see [guard].
func (s *Store) durable() setting { return setting{"SELECT " + guard, []any{s.stall()}} }

// passing makes a transaction not wait for the disk.
var passing = setting{sql: "SELECT set_config('synchronous_commit', 'off', true)"}

// inserts returns settings for a transaction that may insert rows for the team. A removal of the
// team waits for it, and what begins later sees that the team is gone.
func (t Shared) inserts(in setting) setting {
	return setting{
		sql:  fmt.Sprintf("%s, pg_advisory_xact_lock_shared($%d)", in.sql, len(in.args)+1),
		args: append(in.args, t.s.sharedKey(t.number)),
	}
}
