package pgjournal

import (
	"context"
	"slices"
	"sync"
	"time"

	"cadre/internal/journal/pgjournal/pgwire"
)

// leases renews the leases of a store, all in one statement. It runs while there are some, on a
// connection of its own: those of the pool may all wait for a lock.
type leases struct {
	s *Store

	mu      sync.Mutex
	all     []*lease
	running bool
	ctx     context.Context
	end     context.CancelFunc
	ended   sync.WaitGroup
}

func (r *leases) start(s *Store) {
	r.s = s
	r.ctx, r.end = context.WithCancel(context.Background())
}

// add renews a lease from now on. After stop the lease is lost at once.
func (r *leases) add(l *lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx.Err() != nil {
		l.lose()
		return
	}
	r.all = append(r.all, l)
	if !r.running {
		r.running = true
		r.ended.Go(r.run)
	}
}

func (r *leases) remove(l *lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = slices.DeleteFunc(r.all, func(one *lease) bool { return one == l })
}

func (r *leases) run() {
	var conn *pgwire.Conn
	defer func() { r.s.hangUp(conn) }()
	every := r.s.opts.Lease / leaseRenewals
	for pause := every; ; {
		select {
		case <-time.After(pause):
		case <-r.ctx.Done():
			return
		}
		all := r.take()
		if len(all) == 0 {
			return
		}
		var err error
		if conn, err = r.renew(conn, all); err == nil {
			pause = every
		} else {
			pause = every / leaseRenewals // there may be time for another attempt
		}
	}
}

// take returns the leases to renew. The caller ends if it returns nil. It leaves out lost leases:
// if one were renewed, nobody would have it and nobody could get it.
func (r *leases) take() []*lease {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = slices.DeleteFunc(r.all, (*lease).look)
	r.running = len(r.all) > 0
	return slices.Clone(r.all)
}

// renew renews leases, and returns the connection for the next time. Those that another process has
// by now are lost. So are those of removed teams, and all if the schema is a newer one.
func (r *leases) renew(conn *pgwire.Conn, all []*lease) (*pgwire.Conn, error) {
	var teams []int64
	var names []string
	var tokens [][]byte
	for _, l := range all {
		teams, names, tokens = append(teams, l.of.number), append(names, l.name), append(tokens, l.token)
	}
	// An attempt that hangs must end while there is time for another one, on a new connection.
	ctx, stop := context.WithTimeout(r.ctx, r.s.opts.Lease/leaseAttempt)
	defer stop()
	if conn == nil || conn.IsClosed() {
		var err error
		if conn, err = r.s.config.Connect(ctx); err != nil {
			return nil, err
		}
	}
	var renewed [][]byte
	asked := time.Now()
	err := r.s.change(ctx, conn, r.s.durable(), &renewed, r.s.sql.renew, teams, names, tokens,
		r.s.opts.Lease.Milliseconds(), Version())
	if err != nil {
		r.s.hangUp(conn) // its transaction may not have ended
		return nil, err
	}
	kept := map[string]bool{}
	for _, token := range renewed {
		kept[string(token)] = true
	}
	for _, l := range all {
		if kept[string(l.token)] {
			l.extend(asked)
			continue
		}
		l.lose()
		r.remove(l)
	}
	return conn, nil
}

// stop ends the renewing. Leases that were not released are lost, and expire.
func (r *leases) stop() {
	r.mu.Lock()
	r.end()
	r.mu.Unlock()
	r.ended.Wait()
	r.mu.Lock()
	all := r.all
	r.all = nil
	r.mu.Unlock()
	for _, l := range all {
		l.lose()
	}
}
