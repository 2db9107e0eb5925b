// Package detector records a teammate as offline, and the lead as lost, when its heartbeats stop.
// Every process that runs a part of a team has a detector: each host, and each external session.
//
// # Authority
//
// It reads heartbeats and sends commands about what they show. The team decides whether it accepts
// them. [Keep] also writes the heartbeats of one member.
//
// # Guarantees
//
//   - A member counts as silent by the rules of [heartbeat.Watch], whatever the clocks say.
//   - A dead process on this machine is reported at the second look, without waiting until it
//     counts as silent. At the first look another host may just be taking over its members.
//   - An offline member is online again when it sent a heartbeat between two looks. A heartbeat
//     whose timestamp merely seems recent is not enough.
package detector

import (
	"context"
	"fmt"
	"os"
	"time"

	"cadre/internal/journal/store"
	"cadre/internal/journal/store/filestore"
	"cadre/internal/liveness/heartbeat"
	"cadre/internal/liveness/leader"
	"cadre/internal/team"
)

// Detector checks the heartbeats of a team repeatedly. It belongs to one goroutine.
type Detector struct {
	Dir    string     // the team's folder
	Shared store.Team // what the team's processes share; nil for what is in Dir
	Do     func(ctx context.Context, body team.Body) error
	Log    func(string)

	Beats heartbeat.Store                             // nil for the heartbeats in Shared
	Alive func(ctx context.Context, host string) bool // nil for the hosts with a lease in Shared
	Now   func() time.Time                            // nil for [time.Now]
	Wall  func() time.Time                            // the wall clock; nil for the wall time of Now

	began   time.Time // the first look
	lead    heartbeat.Watch
	skewed  bool // a warning about clock skew was logged
	members map[string]*observation
}

// observation is the state of one member as the detector saw it last.
type observation struct {
	incarnation int64
	watch       heartbeat.Watch
	beat        heartbeat.Beat // the last one seen
	there       bool
	deadLooks   int // number of looks in a row at which its process was dead
}

// Look checks the heartbeats of the lead and of the members, except for the caller's own members.
// The caller calls it once per heartbeat interval.
func (l *Detector) Look(ctx context.Context, t team.Team, members []team.Member, own func(member string) bool) {
	if t.CleanedUp || t.Status == team.TeamComplete || t.Status == team.TeamAborted { // the team has ended
		return
	}
	if l.Now == nil {
		l.Now = time.Now
	}
	if l.began.IsZero() {
		l.began = l.Now()
	}
	if !own(t.Lead) {
		l.lookForLead(ctx, t)
	}
	for _, m := range members {
		// A member without a host has no session that could be silent.
		if m.Name == t.Lead || own(m.Name) || !m.Status.Running() || m.Agent != team.External && m.Host == "" {
			delete(l.members, m.Name)
			continue
		}
		if err := l.lookFor(ctx, t, m); err != nil {
			l.Log(fmt.Sprintf("cannot record whether %s is offline: %v", m.Name, err))
		}
	}
}

// lookForLead records the lead as lost when it has been silent for too long.
func (l *Detector) lookForLead(ctx context.Context, t team.Team) {
	if t.LeadSession == "" || t.LeadSession == team.User || t.LeadLost != 0 {
		return
	}
	b, there, err := l.beats().Of(ctx, t.Lead)
	if err != nil {
		l.Log("cannot read the lead's heartbeat: " + err.Error())
		return
	}
	b = leader.LastBeat(t, b, there)
	l.lead.Every = every(t)
	wall, steady := l.clocks() // read after the beat: this process may have been suspended in between
	silent, skewed := l.lead.LookBy(wall, steady, b, true)
	if skewed != l.skewed {
		if l.skewed = skewed; skewed {
			l.Log(fmt.Sprintf("clock skew: the last heartbeat of %s is from %s, and the time here is %s; times are "+
				"not trusted until the clocks agree", t.Lead,
				time.UnixMilli(b.At).UTC().Format(time.RFC3339), wall.UTC().Format(time.RFC3339)))
		}
	}
	if silent < t.Timing.OrDefaults().LeadLost {
		return
	}
	if err := l.Do(ctx, &team.LoseLead{Session: t.LeadSession, Since: t.LeadSince,
		Seen: before(wall, silent)}); err != nil {
		l.Log("cannot record that the lead is lost: " + err.Error())
	}
}

// lookFor records that a member is offline, or that it is online again.
func (l *Detector) lookFor(ctx context.Context, t team.Team, m team.Member) error {
	one := l.members[m.Name]
	if one == nil || one.incarnation != m.Incarnation {
		one = &observation{incarnation: m.Incarnation, watch: heartbeat.Watch{Every: every(t)}}
		if l.members == nil {
			l.members = map[string]*observation{}
		}
		l.members[m.Name] = one
	}
	b, there, err := l.beats().Of(ctx, m.Name)
	if err != nil {
		return err
	}
	there = there && FromSession(m, b)
	heard := one.there && there && b != one.beat
	one.beat, one.there = b, there
	wall, steady := l.clocks()
	silent, _ := one.watch.LookBy(wall, steady, b, there)
	gone := l.gone(ctx, m, b, there)
	if one.deadLooks++; gone == "" {
		one.deadLooks = 0
	}
	switch {
	case m.Offline != 0:
		if heard && gone == "" {
			return l.Do(ctx, &team.ReportOnline{Member: m.Name, Incarnation: m.Incarnation})
		}
	case one.deadLooks > 1:
		return l.Do(ctx, &team.ReportOffline{Member: m.Name, Incarnation: m.Incarnation,
			Seen: team.Time(b.At), Gone: gone})
	case silent >= t.Timing.OrDefaults().Offline:
		return l.Do(ctx, &team.ReportOffline{Member: m.Name, Incarnation: m.Incarnation, Seen: before(wall, silent)})
	}
	return nil
}

func (l *Detector) beats() heartbeat.Store {
	if l.Beats != nil {
		return l.Beats
	}
	return heartbeat.In(filestore.Or(l.Shared, l.Dir))
}

// clocks returns the wall clock, and a steady clock that cannot be set.
func (l *Detector) clocks() (wall time.Time, steady time.Duration) {
	now := l.Now()
	if wall = now.Round(0); l.Wall != nil {
		wall = l.Wall()
	}
	return wall, now.Sub(l.began)
}

func every(t team.Team) time.Duration {
	return t.Timing.OrDefaults().Beat
}

func before(now time.Time, silent time.Duration) team.Time {
	return team.Time(now.Add(-silent).UnixMilli())
}

// FromSession reports whether the heartbeat belongs to the member's present session. A heartbeat
// written by an earlier host does not count. An unreadable heartbeat does, because its host is
// unknown.
func FromSession(m team.Member, b heartbeat.Beat) bool {
	return m.Agent == team.External || b.Unreadable || b.Host == m.Host
}

// Gone returns the reason why the process of the member's session is known to be dead, or "" if it
// is not known to be. If the member has no heartbeat, there is false.
func Gone(ctx context.Context, teamDir string, shared store.Team, m team.Member, b heartbeat.Beat, there bool) string {
	l := Detector{Dir: teamDir, Shared: shared}
	return l.gone(ctx, m, b, there)
}

func (l *Detector) gone(ctx context.Context, m team.Member, b heartbeat.Beat, there bool) string {
	shared, alive := filestore.Or(l.Shared, l.Dir), l.Alive
	if alive == nil {
		alive = func(ctx context.Context, host string) bool { return shared.Held(ctx, store.Host(host)) }
	}
	switch {
	case m.Agent != team.External && m.Host != "" && !alive(ctx, m.Host):
		return team.HostOver
	case m.Agent == team.External && there && b.Machine != "" && b.Machine == machine() &&
		!shared.Held(ctx, store.Presence(m.Name)):
		return team.SessionOver
	}
	return ""
}

func machine() string {
	name, _ := os.Hostname() // without a name, only silence shows that a session is dead
	return name
}
