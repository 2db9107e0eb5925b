package api

import (
	"sync"
	"sync/atomic"
)

// cursors are the places of the clients that follow events.
type cursors struct {
	mu  sync.Mutex
	all map[*cursor]struct{}
}

// cursor is the place of one client.
type cursor struct {
	last func() int64 // the last record of its team
	at   atomic.Int64 // the last record that was sent
}

// enter adds a client. leave removes it.
func (c *cursors) enter(last func() int64, at int64) (one *cursor, leave func()) {
	one = &cursor{last: last}
	one.at.Store(at)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[*cursor]struct{}{}
	}
	c.all[one] = struct{}{}
	return one, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.all, one)
	}
}

// Lag returns how many records the client that is furthest behind has still to read.
func (s *Server) Lag() (most int64) {
	s.cursors.mu.Lock()
	defer s.cursors.mu.Unlock()
	for c := range s.cursors.all {
		most = max(most, c.last()-c.at.Load())
	}
	return most
}
