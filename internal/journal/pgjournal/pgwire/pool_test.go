package pgwire_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"cadre/internal/journal/pgjournal/pgwire"
)

// TestPoolReuses checks that the connection that was released last is the next one.
func TestPoolReuses(t *testing.T) {
	p := newPool(t, config(t, ""))
	first, second := acquire(t, p), acquire(t, p)
	if first == second {
		t.Fatal("two callers have one connection")
	}
	p.Release(first)
	p.Release(second)
	if acquire(t, p) != second || acquire(t, p) != first {
		t.Error("it is another one")
	}
	p.Release(first)
	p.Release(second)
}

// TestPoolIsBounded checks that a caller waits for a connection, until one is released or the
// caller's context ends.
func TestPoolIsBounded(t *testing.T) {
	p := newPool(t, config(t, " pool_max_conns=2"))
	held, other := acquire(t, p), acquire(t, p)
	if conn, err := p.Acquire(within(t, 20*time.Millisecond)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, %v", conn, err)
	}
	got := make(chan *pgwire.Conn)
	go func() { got <- acquire(t, p) }()
	select {
	case <-got:
		t.Fatal("it did not wait")
	case <-time.After(20 * time.Millisecond):
	}
	p.Release(held)
	if conn := <-got; conn != held {
		t.Error("it is a new one")
	}
	p.Release(held)
	p.Release(other)
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := p.Acquire(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestPoolDrops checks which connections are not used again.
func TestPoolDrops(t *testing.T) {
	for name, test := range map[string]struct {
		spoil  func(t *testing.T, p *pgwire.Pool, conn *pgwire.Conn)
		reused bool
	}{
		"a good one": {func(*testing.T, *pgwire.Pool, *pgwire.Conn) {}, true},
		"in a transaction": {func(t *testing.T, _ *pgwire.Pool, conn *pgwire.Conn) {
			if _, err := conn.Exec(t.Context(), "BEGIN"); err != nil {
				t.Fatal(err)
			}
		}, false},
		"closed":              {func(t *testing.T, _ *pgwire.Pool, conn *pgwire.Conn) { conn.Close(t.Context()) }, false},
		"from before a reset": {func(_ *testing.T, p *pgwire.Pool, _ *pgwire.Conn) { p.Reset() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			c, n := counting(config(t, " pool_max_conns=1"))
			p := newPool(t, c)
			conn := acquire(t, p)
			test.spoil(t, p, conn)
			p.Release(conn)
			next := acquire(t, p)
			defer p.Release(next)
			if (next == conn) != test.reused {
				t.Errorf("it was reused: %t", next == conn)
			}
			if _, err := next.Exec(t.Context(), "SELECT 1"); err != nil {
				t.Error(err)
			}
			if open, most := n.opened(); open != 1 || most != 1 {
				t.Errorf("%d connections are open, and there were up to %d", open, most)
			}
		})
	}
}

// TestPoolDropsIdle checks which idle connections are not used again, and which are closed although
// nobody wants one.
func TestPoolDropsIdle(t *testing.T) {
	for name, test := range map[string]struct {
		made, used    time.Duration // ago
		ended, reset  bool
		reused, swept bool
	}{
		"a good one":          {reused: true},
		"unused for a while":  {used: 2 * time.Second, reused: true},
		"ended by the server": {used: 2 * time.Second, ended: true}, // it would not be tested earlier
		"unused for long":     {used: 31 * time.Minute, reused: true, swept: true},
		"old":                 {made: 61 * time.Minute, swept: true},
		"after a reset":       {reset: true, swept: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := config(t, " pool_max_conns=1")
			counted, n := counting(c)
			p := newPool(t, counted)
			idle := func() *pgwire.Conn {
				conn := acquire(t, p)
				p.Release(conn)
				p.Age(test.made, test.used)
				if test.ended {
					terminate(t, c, conn)
				}
				if test.reset {
					p.Reset()
				}
				return conn
			}
			conn := idle()
			next := acquire(t, p)
			if (next == conn) != test.reused {
				t.Errorf("it was reused: %t", next == conn)
			}
			if _, err := next.Exec(t.Context(), "SELECT 1"); err != nil {
				t.Error(err)
			}
			p.Release(next)
			idle()
			p.Sweep()
			for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
				if open, _ := n.opened(); open == 0 || !test.swept {
					break
				}
			}
			if open, most := n.opened(); (open == 0) != test.swept || most != 1 {
				t.Errorf("%d connections are open, and there were up to %d", open, most)
			}
		})
	}
}

// terminate lets the server end the session of a connection, and returns when it has.
func terminate(t *testing.T, c *pgwire.Config, conn *pgwire.Conn) {
	t.Helper()
	other := officialConn(t, c)
	ctx := within(t, 10*time.Second)
	if _, err := other.Exec(ctx, "SELECT pg_terminate_backend($1)", conn.PID()); err != nil {
		t.Fatal(err)
	}
	for there := true; there; time.Sleep(time.Millisecond) {
		const runs = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)"
		err := other.QueryRow(ctx, runs, conn.PID()).Scan(&there)
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestPoolOpensForLater checks that a connection that takes long to open is there for a later
// caller, although the first one did not wait for it.
func TestPoolOpensForLater(t *testing.T) {
	c, n := counting(config(t, " pool_max_conns=1"))
	release := make(chan struct{})
	n.slow = func() { <-release }
	p := newPool(t, c)
	if _, err := p.Acquire(within(t, 20*time.Millisecond)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	close(release)
	conn := acquire(t, p)
	p.Release(conn)
	if dials := n.dials.Load(); dials != 1 {
		t.Errorf("%d connections were opened", dials)
	}
}

// TestPoolCloses checks that Close waits for the connections in use, and refuses others.
func TestPoolCloses(t *testing.T) {
	c, n := counting(config(t, " pool_max_conns=2"))
	p := pgwire.NewPool(c)
	held, idle := acquire(t, p), acquire(t, p)
	waiting := make(chan error, 1)
	go func() { _, err := p.Acquire(context.Background()); waiting <- err }()
	closed := make(chan struct{})
	for range 2 { // twice at once
		go func() { p.Close(); closed <- struct{}{} }()
	}
	if err := <-waiting; err == nil {
		t.Error("a caller got a connection of a closed pool")
	}
	p.Release(idle)
	select {
	case <-closed:
		t.Error("it did not wait")
	case <-time.After(20 * time.Millisecond):
	}
	if _, err := held.Exec(t.Context(), "SELECT 1"); err != nil {
		t.Errorf("a connection in use was closed: %v", err)
	}
	p.Release(held)
	<-closed
	<-closed
	p.Close()
	if open, _ := n.opened(); open != 0 {
		t.Errorf("%d connections are open", open)
	}
	if _, err := p.Acquire(t.Context()); err == nil || err.Error() != "closed pool" {
		t.Errorf("got %v", err)
	}
}

// TestPoolInACrowd lets many callers use a pool whose connections break, whose statements are
// cancelled, and that is reset. It never has more sessions on the server than its limit, and in the
// end it works.
func TestPoolInACrowd(t *testing.T) {
	const limit, callers, rounds = 3, 12, 40
	c := config(t, " pool_max_conns=3")
	p := newPool(t, c)
	var mu sync.Mutex
	inUse := map[*pgwire.Conn]bool{}
	use := func(conn *pgwire.Conn, begins bool) {
		mu.Lock()
		defer mu.Unlock()
		if inUse[conn] == begins || len(inUse) > limit {
			t.Error("two callers have one connection, or there are too many")
		}
		if delete(inUse, conn); begins {
			inUse[conn] = true
		}
	}
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range rounds {
				ctx, stop := context.WithTimeout(t.Context(), time.Duration(1+rand.IntN(30))*time.Millisecond)
				if conn, err := p.Acquire(ctx); err == nil {
					use(conn, true)
					switch rand.IntN(6) {
					case 0:
						_, _ = conn.Exec(ctx, "SELECT pg_sleep($1::bigint / 5.0)", 1)
					case 1:
						_, _ = conn.Exec(ctx, "BEGIN")
					case 2:
						_, _ = conn.Exec(ctx, "SELECT pg_terminate_backend(pg_backend_pid())")
					case 3:
						p.Reset()
					default:
						_, _ = conn.Exec(ctx, "SELECT $1::bigint", 5)
					}
					use(conn, false)
					p.Release(conn)
				}
				stop()
			}
		})
	}
	all.Wait()
	for range 2 * limit {
		conn := acquire(t, p)
		n := 0
		if err := conn.Query(t.Context(), "SELECT $1::bigint", 5).Scan(&n); err != nil || n != 5 {
			t.Errorf("got %d, %v", n, err)
		}
		p.Release(conn)
	}
}
