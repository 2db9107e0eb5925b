package simtest

import (
	"context"
	"time"

	"cadre/internal/journal"
	"cadre/internal/liveness/leader"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// outside leads by package leader, in goroutines of its process. What the process does besides, as the
// command does that resumes a team, is [leading.lead]'s.
func (l *leading) outside(ctx context.Context) {
	out := &office{of: l.of, ids: 1_000_000} // the ids of the person's own commands are others
	out.reopen = func(context.Context) (journal.Journal, error) { return &outer{l.of.w.disk.open(l.of)}, nil }
	held, rep, err := l.takeOutside(ctx, out)
	if err != nil {
		return // it was killed, or gave up
	}
	l.of.ask("leads", func(*thread) {
		l.holds = !l.byHand
		if l.of.w.plan.Lead == team.External {
			l.of.spawn("leads", l.person.leads)
		}
		if l.byHand {
			l.of.w.unlock(l.of)
		}
	})
	if l.byHand {
		return
	}
	over := make(chan struct{})
	go l.untilOver(ctx, rep, over)
	select {
	case <-held.Lost():
	case <-over:
	case <-ctx.Done():
	}
	l.of.ask("lost", func(*thread) { l.holds = false })
	held.Release(ctx)
	l.of.ask("end", func(*thread) {
		l.of.w.logf("%s ends", l.of.name)
		l.of.kill()
	})
}

// untilOver closes over when the team has ended.
func (l *leading) untilOver(ctx context.Context, rep *replica.Replica, over chan struct{}) {
	for {
		seq := rep.Seq()
		if s := rep.Team().Status; s == team.TeamComplete || s == team.TeamAborted {
			close(over)
			return
		}
		if rep.Wait(ctx, seq) != nil && l.of.ask("wait", func(t *thread) { t.sleep(100 * time.Millisecond) }) != nil {
			return
		}
	}
}

// takeOutside takes the lock of its machine and the lead, and tries that a few times.
func (l *leading) takeOutside(ctx context.Context, out *office) (*leader.Lead, *replica.Replica, error) {
	rep, err := out.openOutside(ctx)
	for try := 0; err == nil; try++ {
		held, failed := l.tryOutside(ctx, rep)
		if failed == nil {
			return held, rep, nil
		}
		err = l.of.ask("again", func(t *thread) {
			l.of.w.logf("%s: %v", l.of.name, failed)
			if try == 10 {
				l.of.w.logf("%s gives up", l.of.name)
				l.of.kill()
				t.step()
			}
			t.sleep(time.Duration(100+t.rng.IntN(300)) * time.Millisecond)
		})
		if replica.Broken(failed) && err == nil {
			rep, err = out.openOutside(ctx)
		}
	}
	return nil, nil, err
}

func (l *leading) tryOutside(ctx context.Context, rep *replica.Replica) (*leader.Lead, error) {
	if err := rep.Refresh(ctx); err != nil {
		return nil, err
	}
	if t := rep.Team(); l.takeOver && t.LeadSession != "" && t.LeadSession != team.User {
		if _, err := rep.Do(ctx, team.Command{Actor: team.User, Body: &team.AttachLead{Session: team.User,
			TakeOver: true}}); err != nil {
			return nil, err
		}
	}
	ready := false
	if err := l.of.ask("lock", func(t *thread) {
		ready = l.replica != nil && l.of.w.lock(l.of) && l.keepSaved(t)
	}); err != nil {
		return nil, err
	}
	if !ready {
		return nil, errLocked
	}
	o := leader.Options{Replica: rep, Dir: folder, Session: l.session,
		Beats: l.of.w.plan.Lead == team.External, Log: l.of.says, Machine: l.of.on.name, Signs: signs{l.of}}
	if l.byHand {
		return nil, leader.Attach(ctx, o)
	}
	return leader.Take(ctx, o)
}
