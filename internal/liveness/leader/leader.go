// Package leader holds the lead of a team for a process. It takes the lead, sends heartbeats while
// it has the lead, and notices when another session takes it over.
//
// # Authority
//
// It has authority over the team's lease [store.Lead] and over the lead's heartbeat. The team
// decides who may have the lead.
//
// # Guarantees
//
//   - At most one process leads a team at a time, among those that share its leases. Where these
//     are files, the kernel releases the lease when the process dies, however it dies.
//   - The lead of a process that is known to be dead can be taken at once. A process on another
//     machine is only known to be silent. It counts as silent if no heartbeat arrived while this
//     process waited, whatever the clocks say, or if a host has found that out.
//   - A process that loses the lease stops acting as the lead at once: it sends no heartbeats, and
//     does not hand the lead to the user.
//   - A lead may be recorded as lost while its process is alive, for instance because the machine
//     slept. The process then takes it back with its next heartbeat.
package leader

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"cadre/internal/journal/store"
	"cadre/internal/liveness/heartbeat"
	"cadre/internal/replica"
	"cadre/internal/sys/sleep"
	"cadre/internal/team"
)

// ErrTakenOver reports that another session has taken the lead.
var ErrTakenOver = errors.New("the lead was taken over by another session")

// Claim takes the right to lead. The error is [store.ErrHeld] while another process has it.
func Claim(ctx context.Context, leases store.Leases) (store.Lease, error) {
	return leases.Acquire(ctx, store.Lead)
}

// Options configures a lead.
type Options struct {
	Replica *replica.Replica
	Shared  store.Team // what the team's processes share
	Session string     // id of the session that leads
	// Lease is that of [Claim]. The lead is lost with it. It is nil if the process that has it is
	// another one.
	Lease store.Lease
	// TakeOver takes the lead from another session because the user asked for it.
	TakeOver bool
	// Beats makes the lead send its own heartbeats. It is set if no host runs the lead's session.
	Beats bool
	// Agent says that the session is an agent's own. An agent is notified of what a person sees on
	// the screen.
	Agent bool
	Log   func(string)

	Machine string          // name of the session's machine; "" for this computer
	Store   heartbeat.Store // heartbeats; nil for those in Shared
}

// Lead is a lead that this process holds.
type Lead struct {
	o       Options
	machine string
	count   int64
	stop    context.CancelFunc
	done    sync.WaitGroup
	lost    chan struct{} // closed when another session takes the lead, or the lease is lost
	why     error         // read only after lost is closed
}

// Attach makes the user the lead. The user leads by commands, sends no heartbeats and is never
// lost. Options.Session is not needed. The caller has the lease of [Claim].
func Attach(ctx context.Context, o Options) error {
	o.Session = team.User
	return newLead(o).attach(ctx)
}

func newLead(o Options) *Lead {
	if o.Log == nil {
		o.Log = func(string) {}
	}
	l := &Lead{o: o, lost: make(chan struct{})}
	if l.machine = o.Machine; l.machine == "" {
		l.machine, _ = os.Hostname() // an empty name only makes the next lead wait
	}
	if o.Store == nil {
		l.o.Store = heartbeat.In(o.Shared)
	}
	return l
}

func (l *Lead) attach(ctx context.Context) error {
	t := l.o.Replica.Team()
	seen, at, err := l.lastSeen(ctx, t)
	if err != nil {
		return err
	}
	_, err = l.o.Replica.Do(ctx, team.Command{Actor: team.User, At: at, Body: &team.AttachLead{Session: l.o.Session,
		Machine: l.machine, Agent: l.o.Agent, From: t.LeadSession, Seen: seen, Since: t.LeadSince,
		TakeOver: l.o.TakeOver}})
	return err
}

// Take takes the lead. The caller has the lease of [Claim], unless it takes over from the process
// that has it.
func Take(ctx context.Context, o Options) (*Lead, error) {
	l := newLead(o)
	if err := l.attach(ctx); err != nil {
		return nil, err
	}
	l.beat(ctx)
	beating := context.WithoutCancel(ctx)
	if o.Lease != nil {
		beating, l.stop = store.While(beating, o.Lease)
	} else {
		beating, l.stop = context.WithCancel(beating)
	}
	l.done.Go(func() { l.hold(beating) })
	return l, nil
}

// lastSeen returns the time of the last heartbeat of the leading session, and the time of the look.
// Seen is 0 if the session is known to be dead. The caller uses the time of the look for its
// command, so that a delay after the look does not count as silence. If the heartbeat seems old,
// lastSeen waits for a new one, because the clock of either machine may be wrong. It does not wait
// if a host has already recorded the lead as lost.
func (l *Lead) lastSeen(ctx context.Context, t team.Team) (seen, at team.Time, err error) {
	b, err := l.beatOf(ctx, t)
	at = l.o.Replica.Now()
	if err != nil || t.LeadSession == "" || t.LeadSession == team.User {
		return 0, at, err
	}
	if b.Machine == l.machine && b.Machine != "" && !l.o.TakeOver { // the lock is ours, so that process is dead
		return 0, at, nil
	}
	age, skewed := b.Age(time.UnixMilli(int64(at)))
	timing := t.Timing.OrDefaults()
	switch {
	case skewed:
		l.o.Log("clock skew: the last heartbeat of " + t.Lead + " lies in the future, so its age is ignored")
		return at, at, nil
	case l.o.TakeOver || t.LeadLost != 0 || age < timing.Stale:
		return at.Add(-age), at, nil
	}
	began := time.Now()
	watch := heartbeat.Watch{Every: timing.Beat}
	l.o.Log(fmt.Sprintf("session %s seems to be silent since %s; waiting %s for a heartbeat from it, because a "+
		"clock may be wrong", t.LeadSession,
		time.UnixMilli(b.At).UTC().Format(time.RFC3339), 2*watch.Every))
	for {
		if silent, _ := watch.LookBy(l.wall(), time.Since(began), b, true); silent > 0 {
			at = l.o.Replica.Now()
			return at.Add(-silent), at, nil
		}
		if sleep.For(ctx, watch.Every) != nil {
			return 0, 0, ctx.Err()
		}
		next, err := l.beatOf(ctx, t)
		at = l.o.Replica.Now()
		if err != nil || next != b { // it is alive
			return at, at, err
		}
	}
}

// wall returns the wall clock that the team's commands use.
func (l *Lead) wall() time.Time { return time.UnixMilli(int64(l.o.Replica.Now())) }

func (l *Lead) beatOf(ctx context.Context, t team.Team) (heartbeat.Beat, error) {
	b, there, err := l.o.Store.Of(ctx, t.Lead)
	return LastBeat(t, b, there), err
}

// LastBeat returns the last heartbeat of the leading session, given the lead's present heartbeat.
// Without one from that session, the session was last seen when it took the lead. The beat's
// machine is the session's machine, even if a host on another machine wrote the beat.
func LastBeat(t team.Team, b heartbeat.Beat, there bool) heartbeat.Beat {
	if !there || b.Session != t.LeadSession {
		return heartbeat.Beat{Member: t.Lead, At: int64(t.LeadSince), Machine: t.LeadMachine}
	}
	if b.Host != "" {
		b.Machine = t.LeadMachine
	}
	return b
}

// Lost is closed when another session has taken the lead, or the lease was lost. The process must
// not act as the lead any more.
func (l *Lead) Lost() <-chan struct{} { return l.lost }

// Why returns [ErrTakenOver] or [store.ErrLost] after Lost was closed.
func (l *Lead) Why() error { return l.why }

// Close stops the lead's heartbeats. The session keeps the lead until another one takes it, and is
// recorded as lost after a while.
func (l *Lead) Close() {
	l.stop()
	l.done.Wait()
}

// Release stops the heartbeats and hands the lead to the user, who leads by commands and is never
// lost. After the lease was lost it only stops the heartbeats.
func (l *Lead) Release(ctx context.Context) {
	l.Close()
	if errors.Is(l.why, store.ErrLost) {
		return
	}
	_, err := l.o.Replica.Do(ctx, team.Command{Actor: team.User, Body: &team.AttachLead{Session: team.User,
		From: l.o.Session, Left: true}})
	if code := team.CodeOf(err); err != nil && code != team.Conflict && code != team.Finished {
		l.o.Log("cannot hand the lead to the user: " + err.Error())
	}
	if l.o.Beats && err == nil { // otherwise the heartbeat belongs to the session that took the lead
		if err := l.o.Store.Forget(ctx, l.o.Replica.Team().Lead); err != nil {
			l.o.Log(err.Error())
		}
	}
}

// hold keeps the lead until ctx or the team ends, or the lead is lost.
func (l *Lead) hold(ctx context.Context) {
	defer func() {
		if errors.Is(context.Cause(ctx), store.ErrLost) {
			l.lose(store.ErrLost)
		}
	}()
	for ctx.Err() == nil {
		t := l.o.Replica.Team()
		switch {
		case t.CleanedUp || t.Status == team.TeamComplete || t.Status == team.TeamAborted:
			return
		case t.LeadSession != l.o.Session:
			l.lose(ErrTakenOver)
			return
		case t.LeadLost != 0:
			_, err := l.o.Replica.Do(ctx, team.Command{Actor: team.User, Body: &team.AttachLead{Session: l.o.Session,
				Machine: l.machine, Agent: l.o.Agent, From: l.o.Session}})
			if err != nil {
				if ctx.Err() == nil {
					l.o.Log("cannot take the lead back: " + err.Error())
				}
				if sleep.For(ctx, time.Second) != nil {
					return
				}
				continue
			}
		}
		l.beat(ctx)
		if !l.pause(ctx, t.Timing.OrDefaults().Beat) {
			return
		}
	}
}

// lose reports once that the lead is lost.
func (l *Lead) lose(why error) {
	if l.why == nil {
		l.why = why
		close(l.lost)
	}
}

// pause waits for one interval, or until the lead is recorded as lost or has another session. It
// returns false when ctx has ended.
func (l *Lead) pause(ctx context.Context, long time.Duration) bool {
	waiting, cancel := context.WithTimeout(ctx, long)
	defer cancel()
	for {
		seq := l.o.Replica.Seq()
		if t := l.o.Replica.Team(); t.LeadSession != l.o.Session || t.LeadLost != 0 {
			return ctx.Err() == nil
		}
		if err := l.o.Replica.Wait(waiting, seq); err != nil {
			if waiting.Err() == nil {
				l.o.Log("cannot follow the team: " + err.Error())
				<-waiting.Done()
			}
			return ctx.Err() == nil
		}
	}
}

func (l *Lead) beat(ctx context.Context) {
	if !l.o.Beats {
		return
	}
	l.count++
	var b heartbeat.Beat
	l.o.Replica.View(func(s *team.State) {
		t := s.Team()
		m, _ := s.Member(t.Lead)
		b = heartbeat.Beat{Member: t.Lead, At: int64(l.o.Replica.Now()), Context: m.Context, Status: string(m.Status),
			MessageSeq: m.DeliveredSeq, Session: l.o.Session,
			Machine: l.machine, Pid: os.Getpid(), Count: l.count, Incarnation: m.Incarnation}
	})
	if err := l.o.Store.Write(ctx, b); err != nil {
		l.o.Log(fmt.Sprintf("cannot write the lead's heartbeat: %v", err))
	}
}
