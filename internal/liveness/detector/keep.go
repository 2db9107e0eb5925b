package detector

import (
	"context"
	"errors"
	"os"
	"time"

	"cadre/internal/journal/store"
	"cadre/internal/journal/store/filestore"
	"cadre/internal/liveness/heartbeat"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// Options configures [Keep].
type Options struct {
	Replica *replica.Replica
	Dir     string     // the team's folder
	Shared  store.Team // what the team's processes share; nil for what is in Dir
	Member  string     // the member that the session acts as
	Log     func(string)
}

// Keep sends the heartbeats of an external session, unless it is the lead, which sends its own. It
// also checks the other members' heartbeats and handles overdue requests and messages: a team with
// only external sessions has no host that does so. It returns when ctx ends or the team does, and
// removes its heartbeat. The caller has the lease [store.Presence].
func Keep(ctx context.Context, o Options) {
	o.Shared = filestore.Or(o.Shared, o.Dir)
	k := &keeper{Options: o, detector: Detector{Dir: o.Dir, Shared: o.Shared, Log: o.Log}}
	k.detector.Do = k.do
	defer k.leave(context.WithoutCancel(ctx))
	for {
		wait, over := k.once(ctx)
		if over {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

type keeper struct {
	Options
	detector Detector
	count    int64
	beaten   bool
	trouble  string // the last error, which is logged once
}

func (k *keeper) do(ctx context.Context, body team.Body) error {
	_, err := k.Replica.Do(ctx, team.Command{Actor: team.User, Body: body})
	return err
}

// once sends a heartbeat, checks the other members' heartbeats, and returns how long to wait before
// the next call.
func (k *keeper) once(ctx context.Context) (wait time.Duration, over bool) {
	k.logOnce(k.Replica.Refresh(ctx))
	var t team.Team
	var me team.Member
	var members []team.Member
	var exists, known bool
	var beat heartbeat.Beat
	var overdue []team.Body
	now := time.Now()
	k.Replica.View(func(s *team.State) {
		t, exists, members = s.Team(), s.Exists(), s.Members()
		me, known = s.Member(k.Member)
		beat = k.newBeat(s, me, now)
		overdue, _ = s.Overdue(k.Replica.Now())
	})
	switch {
	case !exists || !known || !me.Status.Running() || t.Status == team.TeamComplete || t.Status == team.TeamAborted:
		return 0, true
	case ctx.Err() != nil:
		return 0, true
	}
	if me.Name != t.Lead {
		err := heartbeat.In(k.Shared).Write(ctx, beat)
		k.beaten = true
		if err == nil && me.Offline != 0 {
			err = k.do(ctx, &team.ReportOnline{Member: me.Name, Incarnation: me.Incarnation})
		}
		k.logOnce(err)
	}
	// Unanswered requests and messages that wait too long. No host handles them here.
	for _, body := range overdue {
		if err := k.do(ctx, body); team.CodeOf(err) == "" { // a refusal means that another process was first
			k.logOnce(err)
		}
	}
	k.detector.Look(ctx, t, members, func(member string) bool { return member == k.Member })
	return every(t), false
}

func (k *keeper) newBeat(s *team.State, m team.Member, now time.Time) heartbeat.Beat {
	k.count++
	b := heartbeat.Beat{Member: m.Name, At: now.UnixMilli(), Context: m.Context, Status: string(m.Status),
		MessageSeq: m.DeliveredSeq, Machine: machine(), Pid: os.Getpid(), Count: k.count,
		Incarnation: m.Incarnation}
	if held := s.Held(m.Name); len(held) > 0 {
		b.Task = held[0].ID
	}
	if s.Zombie(m.Name) {
		b.Status = "zombie"
	}
	return b
}

func (k *keeper) leave(ctx context.Context) {
	if k.beaten {
		k.logOnce(heartbeat.In(k.Shared).Forget(ctx, k.Member))
	}
}

// logOnce logs an error, but not the same one twice in a row.
func (k *keeper) logOnce(err error) {
	switch {
	case errors.Is(err, context.Canceled): // it is ending
	case err == nil:
		k.trouble = ""
	case err.Error() != k.trouble:
		k.trouble = err.Error()
		k.Log(k.Member + " may seem to be offline: " + k.trouble)
	}
}
