package pgwire

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

const (
	// untested is how long a connection may have been idle and is used without a test.
	untested = time.Second
	// sweepEvery is how often a pool closes the connections that nobody needs.
	sweepEvery = time.Minute
	// patience is how long a pool waits for a connection to close.
	patience = 15 * time.Second
)

// errClosed reports that a pool was closed.
var errClosed = errors.New("closed pool")

// Pool keeps connections for further use. Its methods may be called from any goroutine.
type Pool struct {
	config *Config
	// places has one for each connection in use, and for each that is being opened or closed. With
	// the idle ones these are never more than its capacity: a connection is opened in a place when
	// none is idle, and becomes idle before its place is free.
	places chan struct{}

	life    context.Context // ends when the pool is closed
	end     context.CancelFunc
	closing sync.Once

	mu         sync.Mutex
	idle       []*Conn // those that were used last are at the end
	generation int     // how often the pool was reset
	sweeper    *time.Timer
}

// NewPool returns a pool, which opens connections when they are needed. [Pool.Close] ends it.
func NewPool(config *Config) *Pool {
	p := &Pool{config: config, places: make(chan struct{}, config.MaxConns)}
	p.life, p.end = context.WithCancel(context.Background())
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweeper = time.AfterFunc(sweepEvery, p.sweep)
	return p
}

// Acquire returns a connection for the caller alone, until [Pool.Release]. It takes the idle one
// that was used last, or opens one. If all are in use, it waits for one until ctx ends.
func (p *Pool) Acquire(ctx context.Context) (*Conn, error) {
	for {
		if err := p.enter(ctx); err != nil {
			return nil, err
		}
		conn, generation := p.takeIdle()
		if conn == nil {
			return p.open(ctx, generation)
		}
		if p.usable(ctx, conn) {
			return conn, nil
		}
		go p.discard(conn)
	}
}

// enter takes a place.
func (p *Pool) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case p.places <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-p.life.Done():
		return errClosed
	}
	if p.life.Err() != nil {
		<-p.places
		return errClosed
	}
	return nil
}

// takeIdle returns the idle connection that was used last, or nil, and the generation of a new one.
func (p *Pool) takeIdle() (conn *Conn, generation int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last := len(p.idle) - 1; last >= 0 {
		conn = p.idle[last]
		p.idle = slices.Delete(p.idle, last, last+1)
	}
	return conn, p.generation
}

// open opens a connection in a place of the caller. If ctx ends first, the connection is idle once
// it is open. So it is there for a caller who tries again, however little time each has.
func (p *Pool) open(ctx context.Context, generation int) (*Conn, error) {
	type result struct {
		conn *Conn
		err  error
	}
	opened := make(chan result)
	go func() {
		conn, err := p.config.Connect(p.life)
		if err != nil {
			<-p.places
		} else {
			conn.generation = generation
		}
		select {
		case opened <- result{conn, err}:
		case <-ctx.Done():
			if err == nil {
				p.Release(conn)
			}
		}
	}()
	select {
	case r := <-opened:
		return r.conn, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// usable reports whether a connection that was idle can be used.
func (p *Pool) usable(ctx context.Context, conn *Conn) bool {
	p.mu.Lock()
	old := p.isOld(conn)
	p.mu.Unlock()
	return !old && (time.Since(conn.used) <= untested || conn.pg.Ping(ctx) == nil)
}

// isOld reports whether a connection must not be used again. The caller has the lock.
func (p *Pool) isOld(conn *Conn) bool {
	return conn.generation != p.generation || p.config.MaxAge > 0 && time.Since(conn.made) > p.config.MaxAge
}

// Release returns a connection to the pool. One that is broken, old, or still in a transaction is
// closed instead.
func (p *Pool) Release(conn *Conn) {
	if p.keep(conn) {
		<-p.places
	} else {
		go p.discard(conn)
	}
}

// keep makes a connection an idle one. It reports whether it did.
func (p *Pool) keep(conn *Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if conn.IsClosed() || conn.pg.IsBusy() || conn.InTransaction() || p.isOld(conn) || p.life.Err() != nil {
		return false
	}
	conn.notices, conn.used = nil, time.Now()
	p.idle = append(p.idle, conn)
	return true
}

// discard closes a connection, and then frees its place.
func (p *Pool) discard(conn *Conn) {
	conn.shut()
	<-p.places
}

// shut closes a connection and waits until nothing is left of it. When it broke, the server is told
// to cancel what it does, which takes a while.
func (c *Conn) shut() {
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	_ = c.Close(ctx)
	select {
	case <-c.pg.CleanupDone():
	case <-ctx.Done():
	}
}

// Reset lets no connection be used again that is open now, as after the server was restarted. It
// waits for none: each is closed when it is released, or when it would be acquired.
func (p *Pool) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.generation++
}

// sweep closes idle connections that nobody needs, now and every minute.
func (p *Pool) sweep() {
	for {
		select {
		case p.places <- struct{}{}:
		default: // none is idle
			p.sweepLater()
			return
		}
		conn := p.takeUnneeded()
		if conn == nil {
			<-p.places
			p.sweepLater()
			return
		}
		go p.discard(conn)
	}
}

func (p *Pool) sweepLater() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life.Err() == nil {
		p.sweeper.Reset(sweepEvery)
	}
}

// takeUnneeded returns a connection that is old or was idle for too long, or nil.
func (p *Pool) takeUnneeded() *Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.idle, func(c *Conn) bool { return p.isOld(c) || time.Since(c.used) > p.config.MaxIdle })
	if i < 0 {
		return nil
	}
	conn := p.idle[i]
	p.idle = slices.Delete(p.idle, i, i+1)
	return conn
}

// Close closes the connections. It waits until those in use are released, and no others are opened.
func (p *Pool) Close() {
	p.closing.Do(func() {
		p.mu.Lock()
		p.end()
		p.sweeper.Stop()
		idle := p.idle
		p.idle = nil
		p.mu.Unlock()
		for _, conn := range idle {
			conn.shut()
		}
		for range cap(p.places) { // takes all that others give back
			p.places <- struct{}{}
		}
	})
}
