package detector

import (
	"context"
	"os"
	"time"

	"cadre/internal/liveness/heartbeat"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// Options of a session outside.
type Options struct {
	Replica *replica.Replica
	Dir     string // the team's folder
	Member  string // who the session is
	Log     func(string)
}

// Keep gives the signs of life of a session outside, unless it is the lead, who has its own, and
// looks after everybody else's and after what is overdue: a team of such sessions has no host that
// would. It ends with ctx, or when the team does, and takes leave. The caller holds the member's
// [Presence].
func Keep(ctx context.Context, o Options) {
	k := &keeper{Options: o, detector: Detector{Dir: o.Dir, Log: o.Log}}
	k.detector.Do = k.do
	defer k.leave()
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
	trouble  string // the last one, which is told once
}

func (k *keeper) do(ctx context.Context, body team.Body) error {
	_, err := k.Replica.Do(ctx, team.Command{Actor: team.User, Body: body})
	return err
}

// once gives a sign of life and looks for those of the others. It returns when to do so again.
func (k *keeper) once(ctx context.Context) (wait time.Duration, over bool) {
	k.tell(k.Replica.Refresh(ctx))
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
		beat = k.sign(s, me, now)
		overdue = s.Overdue(k.Replica.Now())
	})
	switch {
	case !exists || !known || !me.Status.Running() || t.Status == team.TeamComplete || t.Status == team.TeamAborted:
		return 0, true
	case ctx.Err() != nil:
		return 0, true
	}
	if me.Name != t.Lead {
		err := heartbeat.Of(k.Dir).Write(beat)
		k.beaten = true
		if err == nil && me.Offline != 0 {
			err = k.do(ctx, &team.ReportOnline{Member: me.Name, Incarnation: me.Incarnation})
		}
		k.tell(err)
	}
	// requests that nobody answered, messages that wait for long: no host sees to them here
	for _, body := range overdue {
		if err := k.do(ctx, body); team.CodeOf(err) == "" { // else somebody else has seen to it
			k.tell(err)
		}
	}
	k.detector.Look(ctx, t, members, func(member string) bool { return member == k.Member })
	return every(t), false
}

func (k *keeper) sign(s *team.State, m team.Member, now time.Time) heartbeat.Beat {
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

func (k *keeper) leave() {
	if k.beaten {
		k.tell(heartbeat.Of(k.Dir).Forget(k.Member))
	}
}

// tell says a trouble, once in a row.
func (k *keeper) tell(err error) {
	switch {
	case err == nil:
		k.trouble = ""
	case err.Error() != k.trouble:
		k.trouble = err.Error()
		k.Log(k.Member + " may seem to be offline: " + k.trouble)
	}
}
