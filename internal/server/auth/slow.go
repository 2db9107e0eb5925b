package auth

import (
	"context"
	"sync"
	"time"
)

// After freeFailures wrong tokens within forgetting, the refusal of a wrong token is delayed: twice
// as long for each further one, up to longestWait. 32 random bytes cannot be guessed anyway; the
// delay makes attempts visible and cheap to answer. The right token is never delayed, so a stranger
// cannot lock its owner out.
const (
	freeFailures = 5
	forgetting   = time.Minute
	shortestWait = 50 * time.Millisecond
	longestWait  = 2 * time.Second
	mostWaiting  = 32
)

// slowdown delays refusals of wrong tokens. The zero slowdown is ready for use.
type slowdown struct {
	mu      sync.Mutex
	wrong   int
	last    time.Time
	waiting int
}

// failed counts a wrong token, and waits before it is refused. It does not wait if many wait
// already, and returns false. first says that refusals are delayed from now on.
func (s *slowdown) failed(ctx context.Context) (first, waited bool) {
	s.mu.Lock()
	now := time.Now()
	if now.Sub(s.last) > forgetting {
		s.wrong = 0
	}
	s.wrong++
	s.last = now
	first = s.wrong == freeFailures+1
	if s.wrong <= freeFailures {
		s.mu.Unlock()
		return false, true
	}
	if s.waiting >= mostWaiting {
		s.mu.Unlock()
		return first, false
	}
	s.waiting++
	pause := min(shortestWait<<min(s.wrong-freeFailures-1, 10), longestWait)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.waiting--
		s.mu.Unlock()
	}()
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return first, true
}
