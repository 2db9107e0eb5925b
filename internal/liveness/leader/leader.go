// Package leader holds the lead of a team for a process: it takes it, gives signs of life while it
// has it, and notices when it was taken away.
//
// # Authority
//
// It has authority over the team's file lead.lock, and over the lead's own sign of life. Whether
// the lead may be had is decided by the team.
//
// # Guarantees
//
//   - One process of a machine leads a team at a time: the kernel lets go of the lock when that
//     dies, however it dies.
//   - The lead of a process that is known to be dead can be had at once. Of one on another machine
//     only its silence is known, and that is believed in when no sign of life came while we looked
//     on, whatever the clocks say, or when a host has found it out.
//   - A lead that was recorded as lost while its process lived, because the machine slept say, is
//     taken up again with the next sign of life.
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
	"cadre/internal/team"
)

// ErrTakenOver is why a lead ended that another session took.
var ErrTakenOver = errors.New("the lead was taken over by another session")

// lockName is that of the lock in the team's folder.
const lockName = "lead.lock"

// Lives reports whether a process of this machine leads the team whose folder that is.
func Lives(teamDir string) bool { return filelock.Held(filepath.Join(teamDir, lockName)) }

// Lock is the right of one process of this machine to lead.
type Lock = filelock.Lock

// Claim takes the lock. The error is [filelock.ErrHeld] while another process has it.
func Claim(teamDir string) (*Lock, error) { return filelock.New(filepath.Join(teamDir, lockName)) }

// Options of a lead.
type Options struct {
	Replica *replica.Replica
	Dir     string // the team's folder
	Session string // id of the session that leads
	// TakeOver takes the lead from another session, on the user's word.
	TakeOver bool
	// Beats says that the lead is nobody's hosted session, so that no host gives its signs of life.
	Beats bool
	// Agent says that the session is an agent's own, which is told of what a person sees for
	// themselves.
	Agent bool
	Log   func(string)

	Machine string          // that it runs on; "" for this computer
	Signs   heartbeat.Store // signs of life; nil for those in the team's folder
}

// Lead is a lead that is held.
type Lead struct {
	o       Options
	machine string
	count   int64
	stop    context.CancelFunc
	done    sync.WaitGroup
	lost    chan struct{} // closed when it was taken over
}

// Attach has the user lead by commands, who gives no signs of life and is never lost. Of the
// options it needs no session. The caller holds the [Lock].
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
		l.machine, _ = os.Hostname() // it only spares waiting
	}
	if o.Signs == nil {
		l.o.Signs = heartbeat.Of(o.Dir)
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

// Take takes the lead. The caller holds the [Lock], unless the process that has it is to be taken
// over.
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

// lastSeen is the last sign of life of the session that leads, 0 where that is known to be dead,
// and when we looked: whoever is held up then must not take the time that passed for silence. One
// that seems old is believed to be so when none comes while we look on, because the clock of
// another machine, or ours, may be wrong; unless a host has found that out already.
func (l *Lead) lastSeen(ctx context.Context, t team.Team) (seen, at team.Time, err error) {
	b, err := l.beatOf(t)
	at = l.o.Replica.Now()
	if err != nil || t.LeadSession == "" || t.LeadSession == team.User {
		return 0, at, err
	}
	if b.Machine == l.machine && b.Machine != "" && !l.o.TakeOver { // the lock is ours, so that process is gone
		return 0, at, nil
	}
	age, skewed := b.Age(time.UnixMilli(int64(at)))
	timing := t.Timing.OrDefaults()
	switch {
	case skewed:
		l.o.Log("clock skew: the last sign of life of " + t.Lead + " lies in the future, and its age decides nothing")
		return at, at, nil
	case l.o.TakeOver || t.LeadLost != 0 || age < time.Duration(timing.Stale)*time.Millisecond:
		return at - team.Time(age.Milliseconds()), at, nil
	}
	began := time.Now()
	watch := heartbeat.Watch{Every: time.Duration(timing.Beat) * time.Millisecond}
	l.o.Log(fmt.Sprintf("session %s seems to be silent since %s; waiting %s for a sign of life of it, because a "+
		"clock may be wrong", t.LeadSession,
		time.UnixMilli(b.At).UTC().Format(time.RFC3339), 2*watch.Every))
	for {
		if silent, _ := watch.LookBy(l.wall(), time.Since(began), b, true); silent > 0 {
			at = l.o.Replica.Now()
			return at - team.Time(silent.Milliseconds()), at, nil
		}
		if !sleep(ctx, watch.Every) {
			return 0, 0, ctx.Err()
		}
		next, err := l.beatOf(t)
		at = l.o.Replica.Now()
		if err != nil || next != b { // it lives
			return at, at, err
		}
	}
}

// wall is the clock on the wall, as the team's commands have it.
func (l *Lead) wall() time.Time { return time.UnixMilli(int64(l.o.Replica.Now())) }

func (l *Lead) beatOf(t team.Team) (heartbeat.Beat, error) {
	b, there, err := l.o.Signs.Of(t.Lead)
	return LastBeat(t, b, there), err
}

// LastBeat is the last sign of life of the session that leads, from the lead's present one, if
// there is one: at least that it took the lead. Its machine is that of the session, whose signs of
// life a host on another one may give.
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

// Close ends the lead's signs of life. The lead stays with the session until another one takes it,
// and is lost after a while.
func (l *Lead) Close() {
	l.stop()
	l.done.Wait()
}

// Release ends them and leaves the lead to the user, who leads by commands and is never lost.
func (l *Lead) Release(ctx context.Context) {
	l.Close()
	_, err := l.o.Replica.Do(ctx, team.Command{Actor: team.User, Body: &team.AttachLead{Session: team.User,
		From: l.o.Session, Left: true}})
	if code := team.CodeOf(err); err != nil && code != team.Conflict && code != team.Finished {
		l.o.Log("the lead is not given back: " + err.Error())
	}
	if l.o.Beats && err == nil { // else the sign of life is that of who took the lead
		if err := l.o.Signs.Forget(l.o.Replica.Team().Lead); err != nil {
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
					l.o.Log("the lead is not taken up again: " + err.Error())
				}
				if !sleep(ctx, time.Second) {
					return
				}
				continue
			}
		}
		l.beat()
		if !l.pause(ctx, time.Duration(t.Timing.OrDefaults().Beat)*time.Millisecond) {
			return
		}
	}
}

// pause waits for so long, or until the lead is recorded as lost or another's. It returns false
// when the lead is to end.
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
				l.o.Log("the team cannot be followed: " + err.Error())
				<-waiting.Done()
			}
			return ctx.Err() == nil
		}
	}
}

func sleep(ctx context.Context, long time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(long):
		return true
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
	if err := l.o.Signs.Write(b); err != nil {
		l.o.Log(fmt.Sprintf("no sign of life for the lead: %v", err))
	}
}
