package storetest

import (
	"context"
	"sync"
	"time"

	"cadre/internal/journal/store"
)

// Losing is a team whose leases end after a time, as those of a database do that cannot be reached
// any more. Others can take them then. It is for tests of those who have leases.
type Losing struct {
	store.Team
	Lasts time.Duration // how long a lease lasts

	mu   sync.Mutex
	made int64              // leases so far
	held map[string]*losing // the last lease of each name
}

type losing struct {
	store.Lease
	until time.Time
	fence int64
	once  sync.Once
	lost  chan struct{}
	timer *time.Timer
}

func (l *losing) Lost() <-chan struct{} { return l.lost }
func (l *losing) Until() time.Time      { return l.until }
func (l *losing) Fence() int64          { return l.fence }

func (l *losing) Release() error {
	l.timer.Stop()
	return l.Lease.Release()
}

// lose ends the lease as its holder sees it, and then for others.
func (l *losing) lose() {
	l.once.Do(func() {
		close(l.lost)
		l.Lease.Release()
	})
}

// Acquire implements [store.Leases].
func (t *Losing) Acquire(ctx context.Context, name string) (store.Lease, error) {
	lease, err := t.Team.Acquire(ctx, name)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.made++
	l := &losing{Lease: lease, until: time.Now().Add(t.Lasts), fence: t.made, lost: make(chan struct{})}
	l.timer = time.AfterFunc(t.Lasts, l.lose)
	if t.held == nil {
		t.held = map[string]*losing{}
	}
	t.held[name] = l
	return l, nil
}

// Lose ends the last lease of that name at once.
func (t *Losing) Lose(name string) {
	t.mu.Lock()
	l := t.held[name]
	t.mu.Unlock()
	l.lose()
}
