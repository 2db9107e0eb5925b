package team

import (
	"fmt"
	"slices"
	"time"
)

// TroubleLimit is the trouble of a member whose model takes no more requests for a time.
const TroubleLimit = "limit"

// RateLimit is the rate limit of one pool. The members of a pool share what the provider counts:
// the agent, the endpoint, the source of the credentials and the model. So what one of them is told
// is true for all of them.
type RateLimit struct {
	Pool   string // what its members share; without any secret
	Since  Time   // since when the pool is limited
	At     Time   // when Until was recorded
	Until  Time   // no turn of a member starts before
	By     string // the member that was refused last
	Text   string // the reason, in the words of its agent
	Tries  int64  // how often in a row the pool was refused
	Lifted Time   // when the model answered again; 0 while the limit lasts
}

// ReportedRateLimit is a rate limit as people see it.
type ReportedRateLimit struct {
	Pool    string   `json:"pool"`           // what the members share: agent, endpoint, source of the credentials, model
	Since   Time     `json:"since"`          // since when the pool is limited
	Until   Time     `json:"endsAt"`         // no turn of a member starts before
	By      string   `json:"by"`             // the member that was refused last
	Text    string   `json:"text,omitempty"` // the reason, in the words of its agent
	Members []string `json:"members"`        // the members that wait for it
}

const (
	// probeTime is how long the other members of a pool wait for the first one that is back.
	probeTime = time.Minute
	// liftedFor is how long a lifted limit is remembered: its members come back one by one, and a
	// refusal in that time is the next one in a row.
	liftedFor = time.Minute
	// longestLimit bounds the wait that an agent's words can cause. Weekly limits are the longest.
	longestLimit = 8 * 24 * time.Hour
	// lastingLimit is how long a limit lasts before a person is told.
	lastingLimit = 5 * time.Minute
)

// The events of rate limits.
type (
	// RateLimited says that the pool takes no turn before Until. By was refused, for the Tries-th
	// time in a row. If Ended is set, that ended its turn, and it continues by itself after the
	// wait, with its tasks and its session.
	RateLimited struct {
		Pool  string
		Until Time
		By    string
		Text  string
		Tries int64
		Ended bool
	}
	// RateLimitLifted says that the pool takes turns again: its model answered By, or a person
	// decided it.
	RateLimitLifted struct{ Pool, By string }
)

// Kind returns the event's name in the journal.
func (*RateLimited) Kind() string { return "rate_limited" }

// Kind returns the event's name in the journal.
func (*RateLimitLifted) Kind() string { return "rate_limit_lifted" }

func (e *RateLimited) fields(c *coder) {
	c.str("pool", &e.Pool)
	c.int("until", (*int64)(&e.Until))
	c.str("by", &e.By)
	c.str("text", &e.Text)
	c.int("tries", &e.Tries)
	c.bool("ended", &e.Ended)
}

func (e *RateLimitLifted) fields(c *coder) {
	c.str("pool", &e.Pool)
	c.str("by", &e.By)
}

func (l *RateLimit) fields(c *coder) {
	c.str("pool", &l.Pool)
	c.int("since", (*int64)(&l.Since))
	c.int("at", (*int64)(&l.At))
	c.int("until", (*int64)(&l.Until))
	c.str("by", &l.By)
	c.str("text", &l.Text)
	c.int("tries", &l.Tries)
	c.int("lifted", (*int64)(&l.Lifted))
}

func (e *RateLimited) apply(s *State, r *Record) {
	s.rateLimits = slices.DeleteFunc(s.rateLimits, func(l RateLimit) bool {
		return l.Lifted != 0 && l.Pool != e.Pool && r.At.Sub(l.Lifted) > liftedFor
	})
	l := s.rateLimit(e.Pool)
	if l == nil {
		pool := e.Pool
		own(&pool)
		s.rateLimits = append(s.rateLimits, RateLimit{Pool: pool, Since: r.At})
		l = &s.rateLimits[len(s.rateLimits)-1]
	}
	if l.Lifted != 0 {
		*l = RateLimit{Pool: l.Pool, Since: r.At}
	}
	if e.Until > l.Until {
		l.At, l.Until, l.By, l.Text, l.Tries = r.At, e.Until, s.known(e.By), e.Text, e.Tries
		own(&l.Text)
	}
	m := s.alive(e.By)
	if m == nil {
		return
	}
	m.Pool = l.Pool
	if e.Ended {
		m.Limited, m.Summary, m.Turn = r.At, e.Text, 0
		own(&m.Summary)
		if m.Status == Active || m.Status == Idle {
			m.become(Blocked, r.At)
		}
	}
}

func (e *RateLimitLifted) apply(s *State, r *Record) {
	if l := s.rateLimit(e.Pool); l != nil {
		l.Lifted = r.At
	}
}

// rateLimit returns the limit of the pool, also one that was lifted; nil for none.
func (s *State) rateLimit(pool string) *RateLimit {
	for i := range s.rateLimits {
		if s.rateLimits[i].Pool == pool && pool != "" {
			return &s.rateLimits[i]
		}
	}
	return nil
}

// RateLimits returns the rate limits for which members wait, in the order in which their pools were
// limited first.
func (s *State) RateLimits() (all []ReportedRateLimit) {
	for i := range s.rateLimits {
		l := &s.rateLimits[i]
		one := ReportedRateLimit{Pool: l.Pool, Since: l.Since, Until: l.Until, By: l.By, Text: l.Text}
		for j := range s.members {
			if m := &s.members[j]; s.waitsFor(m, l) {
				one.Members = append(one.Members, m.Name)
			}
		}
		if len(one.Members) > 0 {
			all = append(all, one)
		}
	}
	return all
}

// waitsFor reports whether the member would work if the pool were not limited: it would start a
// turn, or in its turn it tries again by itself.
func (s *State) waitsFor(m *Member, l *RateLimit) bool {
	return l.Lifted == 0 && m.Pool == l.Pool && m.Pool != "" && m.Status.Running() && !s.over() &&
		(s.contends(m) || m.Status == Active && m.Name == l.By && m.Since <= l.At)
}

// WaitsForLimit returns the rate limit that the member waits for; nil for none.
func (s *State) WaitsForLimit(member string) *RateLimit {
	m := s.member(member)
	if m == nil {
		return nil
	}
	if l := s.rateLimit(m.Pool); l != nil && s.waitsFor(m, l) {
		own := *l
		return &own
	}
	return nil
}

// LimitedUntil returns until when no new turn of the member starts because of a rate limit; 0 if it
// does not wait for one. A turn that runs continues, whatever this says.
func (s *State) LimitedUntil(member string, now Time) Time {
	if m := s.member(member); m != nil && m.Status.Running() && m.Status != Active {
		if until := s.limitedUntil(m); until > now {
			return until
		}
	}
	return 0
}

// LiftsLimit reports whether an answer of the member's model at that time lifts the rate limit of
// its pool.
func (s *State) LiftsLimit(member string, now Time) bool {
	m := s.member(member)
	if m == nil {
		return false
	}
	l := s.rateLimit(m.Pool)
	return l != nil && l.Lifted == 0 && now >= l.Until
}

// limitedUntil returns when the next turn of the member may start, as far as its pool is concerned;
// 0 for at once. The first member that is back is a probe. The others follow when the model has
// answered it, and if they hear nothing of it, a little later. So a limit that lasts refuses one
// turn, not one of each member.
func (s *State) limitedUntil(m *Member) Time {
	l := s.rateLimit(m.Pool)
	switch {
	case l == nil:
		return 0
	case l.Lifted != 0:
		if l.Lifted < l.Until { // a person wants it tried at once
			return l.Lifted
		}
		return l.Lifted.Add(s.jitter(m, l))
	case s.probe(l) == m:
		return l.Until.Add(s.jitter(m, l))
	}
	return l.Until.Add(probeTime + s.jitter(m, l))
}

// jitter returns the share of the member in the spread of its pool: its members must not come back
// at one moment. It depends on the member and the time alone, so every process knows the same.
func (s *State) jitter(m *Member, l *RateLimit) time.Duration {
	wait := l.Until.Sub(l.At)
	spread := min(max(10*time.Second, wait/10), time.Minute, wait)
	if spread < time.Millisecond {
		return 0
	}
	h := uint64(14695981039346656037) // FNV-1a
	for _, b := range []byte(fmt.Sprintf("%s/%s/%d", s.team.ID, m.Name, l.Until)) {
		h = (h ^ uint64(b)) * 1099511628211
	}
	h ^= h >> 32
	return time.Duration(h%uint64(spread/time.Millisecond)) * time.Millisecond
}

// probe returns the member of the limited pool that tries first: one whose turn tries already, or
// of those with something to do the one with the shortest wait. It returns nil for none.
func (s *State) probe(l *RateLimit) (first *Member) {
	for i := range s.members {
		m := &s.members[i]
		if m.Pool != l.Pool {
			continue
		}
		switch {
		case m.Status == Active && (m.Name == l.By || m.Since >= l.Until):
			return m
		case !s.contends(m):
		case first == nil || s.jitter(m, l) < s.jitter(first, l):
			first = m
		}
	}
	return first
}

// contends reports whether the member would start a turn if it could.
func (s *State) contends(m *Member) bool {
	switch m.Status {
	case Spawning:
		return true
	case Blocked:
		return m.Limited != 0
	case Idle:
		return s.wakes(m) || s.work(m) != nil
	}
	return false
}
