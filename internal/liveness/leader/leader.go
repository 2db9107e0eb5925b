// Package leader holds the lead of a team for a process. It takes the lead, sends heartbeats while
// it has the lead, and notices when another session takes it over.
//
// # Authority
//
// It has authority over the team's file lead.lock and over the lead's heartbeat. The team decides
// who may have the lead.
//
// # Guarantees
//
//   - At most one process of a machine leads a team at a time. The kernel releases the lock when
//     the process dies, however it dies.
//   - The lead of a process that is known to be dead can be taken at once. A process on another
//     machine is only known to be silent. It counts as silent if no heartbeat arrived while this
//     process waited, whatever the clocks say, or if a host has found that out.
//   - A lead may be recorded as lost while its process is alive, for instance because the machine
//     slept. The process then takes it back with its next heartbeat.
package leader

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"cadre/internal/liveness/heartbeat"
	"cadre/internal/replica"
	"cadre/internal/sys/filelock"
	"cadre/internal/sys/proc"
	"cadre/internal/sys/sleep"
	"cadre/internal/team"
)

// ErrTakenOver reports that another session has taken the lead.
var ErrTakenOver = errors.New("the lead was taken over by another session")

// lockName is the name of the lock file in the team's folder.
const lockName = "lead.lock"

// Alive reports whether a process of this machine leads the team with this folder.
func Alive(teamDir string) bool { return filelock.Held(filepath.Join(teamDir, lockName)) }

// Lock gives one process of this machine the right to lead.
type Lock = filelock.Lock

// Claim takes the lock. The error is [filelock.ErrHeld] while another process has it.
func Claim(teamDir string) (*Lock, error) {
	lock, err := filelock.New(filepath.Join(teamDir, lockName))
	if err == nil {
		_ = proc.Sign(lock) // without a signature, Pid does not find this process
	}
	return lock, err
}

// Pid returns the process of this machine that leads the team with this folder; 0 if none does, or
// if it is not known.
func Pid(teamDir string) int {
	h, _, _ := proc.HolderOf(filepath.Join(teamDir, lockName))
	return h.Pid
}

// Options configures a lead.
type Options struct {
	Replica *replica.Replica
	Dir     string // the team's folder
	Session string // id of the session that leads
	// TakeOver takes the lead from another session because the user asked for it.
	TakeOver bool
	// Beats makes the lead send its own heartbeats. It is set if no host runs the lead's session.
	Beats bool
	// Agent says that the session is an agent's own. An agent is notified of what a person sees on
	// the screen.
	Agent bool
	Log   func(string)

	Machine string          // name of the session's machine; "" for this computer
	Store   heartbeat.Store // heartbeats; nil for those in the team's folder
}

// Lead is a lead that this process holds.
type Lead struct {
	o       Options
	machine string
	count   int64
	stop    context.CancelFunc
	done    sync.WaitGroup
	lost    chan struct{} // closed when another session takes the lead
}

// Attach makes the user the lead. The user leads by commands, sends no heartbeats and is never
// lost. Options.Session is not needed. The caller holds the [Lock].
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
		l.o.Store = heartbeat.Of(o.Dir)
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

// Take takes the lead. The caller holds the [Lock], unless it takes over from the process that
// holds it.
func Take(ctx context.Context, o Options) (*Lead, error) {
	l := newLead(o)
	if err := l.attach(ctx); err != nil {
		return nil, err
	}
	l.beat()
	beating, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop = stop
	l.done.Go(func() { l.hold(beating) })
	return l, nil
}

// lastSeen returns the time of the last heartbeat of the leading session, and the time of the look.
// Seen is 0 if the session is known to be dead. The caller uses the time of the look for its
// command, so that a delay after the look does not count as silence. If the heartbeat seems old,
// lastSeen waits for a new one, because the clock of either machine may be wrong. It does not wait
// if a host has already recorded the lead as lost.
func (l *Lead) lastSeen(ctx context.Context, t team.Team) (seen, at team.Time, err error) {
	b, err := l.beatOf(t)
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
		next, err := l.beatOf(t)
		at = l.o.Replica.Now()
		if err != nil || next != b { // it is alive
			return at, at, err
		}
	}
}

// wall returns the wall clock that the team's commands use.
func (l *Lead) wall() time.Time { return time.UnixMilli(int64(l.o.Replica.Now())) }

func (l *Lead) beatOf(t team.Team) (heartbeat.Beat, error) {
	b, there, err := l.o.Store.Of(t.Lead)
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

// Lost is closed when another session has taken the lead.
func (l *Lead) Lost() <-chan struct{} { return l.lost }

// Close stops the lead's heartbeats. The session keeps the lead until another one takes it, and is
// recorded as lost after a while.
func (l *Lead) Close() {
	l.stop()
	l.done.Wait()
}

// Release stops the heartbeats and hands the lead to the user, who leads by commands and is never
// lost.
func (l *Lead) Release(ctx context.Context) {
	l.Close()
	_, err := l.o.Replica.Do(ctx, team.Command{Actor: team.User, Body: &team.AttachLead{Session: team.User,
		From: l.o.Session, Left: true}})
	if code := team.CodeOf(err); err != nil && code != team.Conflict && code != team.Finished {
		l.o.Log("cannot hand the lead to the user: " + err.Error())
	}
	if l.o.Beats && err == nil { // otherwise the heartbeat belongs to the session that took the lead
		if err := l.o.Store.Forget(l.o.Replica.Team().Lead); err != nil {
			l.o.Log(err.Error())
		}
	}
}

func (l *Lead) hold(ctx context.Context) {
	for {
		t := l.o.Replica.Team()
		switch {
		case t.CleanedUp || t.Status == team.TeamComplete || t.Status == team.TeamAborted:
			return
		case t.LeadSession != l.o.Session:
			close(l.lost)
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
		l.beat()
		if !l.pause(ctx, t.Timing.OrDefaults().Beat) {
			return
		}
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

func (l *Lead) beat() {
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
	if err := l.o.Store.Write(b); err != nil {
		l.o.Log(fmt.Sprintf("cannot write the lead's heartbeat: %v", err))
	}
}
