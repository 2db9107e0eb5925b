package host

import (
	"context"
	"sync"
	"time"

	"cadre/internal/team"
)

// ErrLeaseLost reports that a host lost its lease, or could not renew it in time. Its sessions have
// ended, and nothing was recorded of that: another host may have the members by now.
var ErrLeaseLost = team.Refuse(team.NotReady, "this host could not renew its lease in time, so it ended its "+
	"sessions; another host may take its members over")

const (
	// fenceTime is how long before the end of its lease a host asks its sessions to end. The third
	// attempt to renew a lease of 15 seconds comes before it.
	fenceTime = 2500 * time.Millisecond
	// killTime is how long before the end of the lease what is left of them is killed. A machine
	// that was busy or paused for less than that ends them in time.
	killTime = time.Second
)

// fence ends the sessions of a host while the host still has its lease. It does so by itself,
// because [Host.Run] may wait for a store that cannot be reached.
type fence struct {
	mu     sync.Mutex
	slots  map[*slot]struct{} // with a session that may be running
	kill   time.Time          // when they are killed; zero while the host has its lease
	ended  chan struct{}      // closed after shut, when no session is left
	killed chan struct{}      // closed when no session has any time left
	stop   context.CancelFunc // ends the guard
	over   chan struct{}      // closed when the guard has ended
}

func newFence() *fence {
	over := make(chan struct{})
	close(over)
	return &fence{slots: map[*slot]struct{}{}, ended: make(chan struct{}), killed: make(chan struct{}),
		stop: func() {}, over: over}
}

// enter counts a slot whose session is about to start. After shut it stops the slot.
func (f *fence) enter(s *slot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.slots[s] = struct{}{}
	if !f.kill.IsZero() {
		s.stop(stopQuietly, "", 0)
	}
}

// leave forgets a slot without a session.
func (f *fence) leave(s *slot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.slots, s)
	f.settle()
}

// settle closes ended when no session is left after shut. The caller has the lock.
func (f *fence) settle() {
	if f.kill.IsZero() || len(f.slots) > 0 {
		return
	}
	select {
	case <-f.ended:
	default:
		close(f.ended)
	}
}

// shut asks all sessions to end, at the latest when they are killed.
func (f *fence) shut(kill time.Time, grace time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kill = kill
	for s := range f.slots {
		s.stop(stopQuietly, "", min(grace, max(0, time.Until(kill))))
	}
	f.settle()
}

// guard calls lost and ends every session before the lease can be taken by another host. Without a
// lease, or with one that does not expire, it does nothing. It runs until [Host.unenroll].
func (h *Host) guard(ctx context.Context, lost func(error)) {
	if h.Lease == nil || h.Lease.Until().IsZero() {
		return
	}
	f := h.fence
	f.over = make(chan struct{})
	ctx, f.stop = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(f.over)
		until, is := h.awaitFence(ctx)
		if !is {
			return
		}
		lost(ErrLeaseLost)
		kill := until.Add(-killTime)
		f.shut(kill, h.StopGrace)
		select {
		case <-f.ended:
		case <-time.After(time.Until(kill)):
		}
		close(f.killed)
		killing, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBack)
		defer cancel()
		if err := h.Procs.Close(killing); err != nil {
			h.Log(err.Error())
		}
	}()
}

// fenceLook is how often a host looks whether its lease was renewed.
const fenceLook = 2 * time.Second

// awaitFence waits until the lease was lost or is about to be, and returns when it ends. is is
// false if ctx ended first. A host that is stopped meanwhile cannot end its child processes: then
// the watchdog kills them.
func (h *Host) awaitFence(ctx context.Context) (until time.Time, is bool) {
	told := time.Time{}
	for {
		until = h.Lease.Until()
		left := time.Until(until) - fenceTime
		if left <= 0 {
			return until, true
		}
		if h.Procs != nil && until.Sub(told) > time.Second {
			h.Procs.KillAt(until.Add(-killTime))
			told = until
		}
		select {
		case <-time.After(min(left, fenceLook)):
		case <-h.Lease.Lost():
		case <-ctx.Done():
			return until, false
		}
	}
}

// surrender ends the host after its sessions were ended by the guard. It records nothing.
func (h *Host) surrender(ctx context.Context) error {
	<-h.fence.over
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBack)
	defer cancel()
	for len(h.slots) > 0 && ctx.Err() == nil {
		select {
		case s := <-h.ended:
			delete(h.slots, s.member)
		case <-ctx.Done():
		}
	}
	h.writes.checking.Wait()
	h.expander.under.Wait()
	h.tracer.close(ctx)
	h.kept()
	if err := h.unenroll(ctx); err != nil {
		h.Log(err.Error()) // the lease expires
	}
	return ErrLeaseLost
}
