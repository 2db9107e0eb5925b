// Package leader holds the lead of a team for a process: it takes it, gives signs of life while it has it, and notices when it was taken away.
//
// # Authority
//
// It has authority over the team's file lead.lock, and over the lead's own sign of life. Whether the lead may be had is decided by the team.
//
// # Guarantees
//
//   - One process of a machine leads a team at a time: the kernel lets go of the lock when that dies, however it dies.
//   - The lead of a process that is known to be dead can be had at once. Of one on another machine only its silence is known.
//   - A lead that was recorded as lost while its process lived, because the machine slept say, is taken up again with the next sign of life.
package leader

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"cadre/internal/desk"
	"cadre/internal/heartbeat"
	"cadre/internal/proc"
	"cadre/internal/team"
)

// ErrTakenOver is why a lead ended that another session took.
var ErrTakenOver = errors.New("the lead was taken over by another session")

// lockName is that of the lock in the team's folder.
const lockName = "lead.lock"

// Lives reports whether a process of this machine leads the team whose folder that is.
func Lives(teamDir string) bool { return proc.Held(filepath.Join(teamDir, lockName)) }

// Lock is the right of one process of this machine to lead.
type Lock = proc.Lock

// Claim takes the lock. The error is [proc.ErrHeld] while another process has it.
func Claim(teamDir string) (*Lock, error) { return proc.NewLock(filepath.Join(teamDir, lockName)) }

// Options of a lead.
type Options struct {
	Desk    *desk.Desk
	Dir     string // the team's folder
	Session string // id of the session that leads
	// TakeOver takes the lead from another session, on the user's word.
	TakeOver bool
	// Beats says that the lead is nobody's hosted session, so that no host gives its signs of life.
	Beats bool
	Log   func(string)
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

// Attach has the user lead by commands, who gives no signs of life and is never lost. Of the options it needs no session. The caller holds the [Lock].
func Attach(ctx context.Context, o Options) error {
	o.Session = team.User
	return newLead(o).attach(ctx)
}

func newLead(o Options) *Lead {
	if o.Log == nil {
		o.Log = func(string) {}
	}
	l := &Lead{o: o, lost: make(chan struct{})}
	l.machine, _ = os.Hostname() // it only spares waiting
	return l
}

func (l *Lead) attach(ctx context.Context) error {
	t := l.o.Desk.Team()
	seen, err := l.lastSeen(t)
	if err != nil {
		return err
	}
	_, err = l.o.Desk.Do(ctx, team.Command{Actor: team.User, Body: &team.AttachLead{Session: l.o.Session, From: t.LeadSession, Seen: seen, TakeOver: l.o.TakeOver}})
	return err
}

// Take takes the lead. The caller holds the [Lock], unless the process that has it is to be taken over.
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

// lastSeen is the last sign of life of the session that leads; 0 where that is known to be dead.
func (l *Lead) lastSeen(t team.Team) (team.Time, error) {
	if t.LeadSession == "" {
		return 0, nil
	}
	b, there, err := heartbeat.Of(l.o.Dir).Of(t.Lead)
	if err != nil {
		return 0, err
	}
	if !there || b.Session != t.LeadSession {
		return t.LeadSince, nil
	}
	if b.Machine == l.machine && b.Machine != "" && !l.o.TakeOver { // the lock is ours, so that process is gone
		return 0, nil
	}
	age, skewed := b.Age(time.Now())
	if skewed {
		l.o.Log("clock skew: the last sign of life of " + t.Lead + " lies in the future, and its age decides nothing")
		return desk.Now(), nil
	}
	return desk.Now() - team.Time(age.Milliseconds()), nil
}

// Lost is closed when another session has taken the lead.
func (l *Lead) Lost() <-chan struct{} { return l.lost }

// Close ends the lead's signs of life. The lead stays with the session until another one takes it, and is lost after a while.
func (l *Lead) Close() {
	l.stop()
	l.done.Wait()
}

// Release ends them and leaves the lead to the user, who leads by commands and is never lost.
func (l *Lead) Release(ctx context.Context) {
	l.Close()
	_, err := l.o.Desk.Do(ctx, team.Command{Actor: team.User, Body: &team.AttachLead{Session: team.User, From: l.o.Session, Left: true}})
	if code := team.CodeOf(err); err != nil && code != team.Conflict && code != team.Finished {
		l.o.Log("the lead is not given back: " + err.Error())
	}
	if l.o.Beats && err == nil { // else the sign of life is that of who took the lead
		if err := heartbeat.Of(l.o.Dir).Forget(l.o.Desk.Team().Lead); err != nil {
			l.o.Log(err.Error())
		}
	}
}

func (l *Lead) hold(ctx context.Context) {
	for {
		t := l.o.Desk.Team()
		switch {
		case t.CleanedUp || t.Status == team.TeamComplete || t.Status == team.TeamAborted:
			return
		case t.LeadSession != l.o.Session:
			close(l.lost)
			return
		case t.LeadLost != 0:
			_, err := l.o.Desk.Do(ctx, team.Command{Actor: team.User, Body: &team.AttachLead{Session: l.o.Session, From: l.o.Session}})
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

// pause waits for so long, or until the lead is recorded as lost or another's. It returns false when the lead is to end.
func (l *Lead) pause(ctx context.Context, long time.Duration) bool {
	waiting, cancel := context.WithTimeout(ctx, long)
	defer cancel()
	for {
		seq := l.o.Desk.Seq()
		if t := l.o.Desk.Team(); t.LeadSession != l.o.Session || t.LeadLost != 0 {
			return ctx.Err() == nil
		}
		if err := l.o.Desk.Wait(waiting, seq); err != nil {
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
	l.o.Desk.View(func(s *team.State) {
		t := s.Team()
		m, _ := s.Member(t.Lead)
		b = heartbeat.Beat{Member: t.Lead, At: time.Now().UnixMilli(), Context: m.Context, Status: string(m.Status), MessageSeq: m.DeliveredSeq, Session: l.o.Session,
			Machine: l.machine, Pid: os.Getpid(), Count: l.count, Incarnation: m.Incarnation}
	})
	if err := heartbeat.Of(l.o.Dir).Write(b); err != nil {
		l.o.Log(fmt.Sprintf("no sign of life for the lead: %v", err))
	}
}
