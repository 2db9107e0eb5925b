package simtest

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	realhost "cadre/internal/host"
	"cadre/internal/journal"
	"cadre/internal/liveness/heartbeat"
	"cadre/internal/liveness/leader"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// leading is a process that leads the team by package leader, or wants to. It also does what the
// command that resumes a team does.
type leading struct {
	*person
	session  string
	takeOver bool // the user asked for a takeover
	byHand   bool // the user leads by commands, and this process only reads the lead's mail
	holds    bool // it leads, as far as it knows
}

// resume starts a process that takes the lead, on that machine.
func (w *world) resume(on *machine, takeOver, byHand bool) *leading {
	w.leads = slices.DeleteFunc(w.leads, func(l *leading) bool { return !l.of.alive })
	w.sessionsLed++
	l := &leading{person: w.personOn("lead", "lead", on), session: "L" + strconv.Itoa(w.sessionsLed),
		takeOver: takeOver, byHand: byHand}
	w.leads = append(w.leads, l)
	w.logf("%s wants to lead on %s, as session %s, taking over: %t, by hand: %t", l.of.name, on.name, l.session,
		takeOver, byHand)
	ctx, stop := context.WithCancel(context.Background())
	l.of.stop = stop
	w.start(func() { l.live(ctx) })
	return l
}

// leader returns the living process that leads, or wants to, or nil.
func (w *world) leader() *leading {
	for _, l := range w.leads {
		if l.of.alive && !l.byHand {
			return l
		}
	}
	return nil
}

// rescue simulates a sensible user when the faults are over: the user resumes a team without a
// lead.
func (w *world) rescue(try int) {
	s := w.judge.truth
	if t := s.Team(); s.Exists() && t.Status != team.TeamAborted {
		led := t.LeadSession == team.User && (w.plan.Lead != team.External ||
			slices.ContainsFunc(w.leads, func(l *leading) bool { return l.of.alive && l.byHand }))
		if l := w.leader(); l == nil && !led {
			w.resume(w.machines[try%2], try >= 4, try%5 == 1)
			try++
		}
	}
	w.at(w.now+2*time.Second, func() { w.rescue(try) })
}

// live runs the real lead, in goroutines of its process.
func (l *leading) live(ctx context.Context) {
	out := &office{of: l.of, ids: 1_000_000} // the person's own commands have other ids
	out.reopen = func(context.Context) (journal.Journal, error) { return &gated{l.of.w.disk.open(l.of)}, nil }
	held, rep, err := l.takeLive(ctx, out)
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

// takeLive takes the lock of its machine and then the lead. It retries a few times.
func (l *leading) takeLive(ctx context.Context, out *office) (*leader.Lead, *replica.Replica, error) {
	rep, err := out.openLive(ctx)
	for try := 0; err == nil; try++ {
		held, failed := l.tryLive(ctx, rep)
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
			rep, err = out.openLive(ctx)
		}
	}
	return nil, nil, err
}

func (l *leading) tryLive(ctx context.Context, rep *replica.Replica) (*leader.Lead, error) {
	if err := rep.Refresh(ctx); err != nil {
		return nil, err
	}
	if t := rep.Team(); l.takeOver && t.LeadSession != "" && t.LeadSession != team.User {
		if _, err := rep.Do(ctx, team.Command{Actor: team.User, Body: &team.AttachLead{Session: team.User,
			TakeOver: true}}); err != nil {
			return nil, err
		}
	}
	ready, alone := false, true
	if err := l.of.ask("lock", func(t *thread) {
		ready = l.replica != nil && l.of.w.lock(l.of)
		for _, h := range l.of.w.hosts {
			_, lives := l.of.w.held(h.id())
			alone = alone && !lives
		}
	}); err != nil {
		return nil, err
	}
	if !ready {
		return nil, errLocked
	}
	var members []team.Member
	rep.View(func(s *team.State) { members = s.Members() })
	for i := range members {
		if !alone {
			break
		}
		if err := realhost.KeepSavedIn(ctx, saved{l.of}, rep, members[i].Name); err != nil {
			return nil, err
		}
	}
	o := leader.Options{Replica: rep, Session: l.session,
		Beats: l.of.w.plan.Lead == team.External, Log: l.of.says, Machine: l.of.on.name, Store: signs{l.of}}
	if l.byHand {
		return nil, leader.Attach(ctx, o)
	}
	return leader.Take(ctx, o)
}

// release hands the lead to the user.
func (l *leading) release(t *thread) {
	_, err := l.do(t, team.Command{Actor: team.User, Body: &team.AttachLead{Session: team.User, From: l.session,
		Left: true}})
	if errors.Is(err, journal.ErrUncertain) || errors.Is(err, journal.ErrReopen) {
		l.open(t)
	}
	if err == nil {
		delete(l.of.w.beats, l.replica.Team().Lead)
	}
}

// beat sends a heartbeat, unless the process is muted.
func (p *process) beat(b heartbeat.Beat) {
	if p.mute > p.w.now {
		return
	}
	p.w.beats[b.Member] = sign{Beat: b, at: p.w.now, before: p.w.beats[b.Member].seen(p.w.now)}
	p.w.judge.lives(b)
}

// lock takes the leader lock, as the kernel of the machine grants it.
func (w *world) lock(p *process) bool {
	if p.on.led != nil && p.on.led.alive && p.on.led != p {
		return false
	}
	p.on.led = p
	return true
}

func (w *world) unlock(p *process) {
	if p.on.led == p {
		p.on.led = nil
	}
}
