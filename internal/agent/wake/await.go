package wake

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"cadre/internal/sys/filelock"
	"cadre/internal/sys/proc"
	"cadre/internal/sys/sleep"
	"cadre/internal/team"
)

const (
	// checkInterval is the time between two checks whether the session is still running.
	checkInterval = 2 * time.Second
	// toolGrace is how long a tool in progress has to deliver the news itself.
	toolGrace = time.Second
	// lockTimeout is how long a process tries to take the lock of a membership. Another process
	// that holds it may belong to a session that has just ended.
	lockTimeout = 3 * checkInterval
)

// Replica is the part of a team's replica that [Await] needs.
type Replica interface {
	View(see func(*team.State))
	Refresh(ctx context.Context) error
	Wait(ctx context.Context, after int64) error
	Close() error
}

// Await waits until there is news at one of the memberships of the session that runs this process.
// It returns true once it has recorded that the session is woken for that news. It returns false if
// there is nothing to wait for: the session has ended, or another process waits at each of its
// memberships. open opens the replica of a team; its error has the code not_found if the team does
// not exist any more. An error at one membership is returned when the waiting at the others has
// ended.
func Await(ctx context.Context, memberships []Membership,
	open func(ctx context.Context, team string) (Replica, error)) (woken bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := &waiter{open: open, wake: cancel}
	troubles := make([]error, len(memberships))
	var waiting sync.WaitGroup
	for i, membership := range memberships {
		waiting.Go(func() { troubles[i] = w.await(ctx, membership) })
	}
	waiting.Wait()
	if w.woken {
		return true, nil
	}
	return false, errors.Join(troubles...)
}

// waiter waits at the memberships of one session.
type waiter struct {
	open func(ctx context.Context, team string) (Replica, error)
	wake context.CancelFunc // ends the waiting at all memberships

	mu    sync.Mutex
	woken bool
}

// await returns when the session is to be woken for the membership, or when there is nothing to
// wait for.
func (w *waiter) await(ctx context.Context, at Membership) error {
	lock, err := lockMembership(ctx, at)
	if err != nil || lock == nil {
		return err
	}
	defer lock.Unlock()
	rep, err := w.open(ctx, at.Team)
	if team.CodeOf(err) == team.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	defer rep.Close()
	for rested := false; ; {
		server, ours, err := at.server()
		if err != nil || !ours {
			return err
		}
		var seq int64
		var news News
		var over bool
		rep.View(func(s *team.State) {
			m, known := s.Member(at.Member)
			seq, news, over = s.Seq(), NewsOf(s, at.Member), !known || !m.Status.Running() || !s.Exists()
		})
		switch {
		case over:
			return nil
		case lastWakeNews(at.Dir, at.Member, server).includes(news):
			rested = false
			err = follow(ctx, rep, seq)
		case !rested:
			rested = true
			if err = sleep.For(ctx, toolGrace); err == nil {
				err = rep.Refresh(ctx)
			}
		default:
			return w.recordWake(at, server, news)
		}
		if err != nil {
			return err
		}
	}
}

// recordWake records that the session is woken for the membership's news, and ends the waiting. If
// the session is already woken for another membership, this news waits for the next time. If the
// record fails, the session is not woken, because it would be woken for the same news at the end of
// each turn.
func (w *waiter) recordWake(at Membership, server proc.Holder, news News) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.woken {
		return nil
	}
	if err := recordWake(at.Dir, at.Member, server, news); err != nil {
		return fmt.Errorf("the session is not woken for team %s: %w", at.Team, err)
	}
	w.woken = true
	w.wake()
	return nil
}

// follow returns when the team has a later record, and when it is time to check the session.
func follow(ctx context.Context, rep Replica, seq int64) error {
	following, cancel := context.WithTimeout(ctx, checkInterval)
	defer cancel()
	if err := rep.Wait(following, seq); following.Err() == nil {
		return err
	}
	return ctx.Err()
}

// lockMembership takes the lock of the membership. The end of each turn starts a process, and the
// lock lets only one of them wait. It returns nil if another process holds it, or the session has
// ended.
func lockMembership(ctx context.Context, at Membership) (*filelock.Lock, error) {
	trying, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	for {
		if _, ours, err := at.server(); err != nil || !ours {
			return nil, err
		}
		lock, err := filelock.New(Lock(at.Dir, at.Member))
		if !errors.Is(err, filelock.ErrHeld) {
			return lock, err
		}
		if sleep.For(trying, toolGrace/4) != nil {
			return nil, ctx.Err()
		}
	}
}
