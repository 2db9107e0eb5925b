// Package detector has it recorded of whom in a team nothing is heard any more. Whatever process
// stays with a team keeps one: a host, and a session outside.
//
// # Authority
//
// It reads signs of life, and reports what follows from them as commands; what becomes of that, the
// team decides. [Keep] also writes those of one member.
//
// # Guarantees
//
//   - Silence is believed in as [heartbeat.Watch] does, whatever the clocks say.
//   - A process of this machine that is gone is found out at the second look, without waiting for
//     its silence: at the first one another host may just be taking its members over.
//   - A member is heard of again when it gave a sign of life between two looks, not when an old one
//     seems to be young.
package detector

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cadre/internal/liveness/heartbeat"
	"cadre/internal/liveness/leader"
	"cadre/internal/sys/filelock"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Detector looks after the signs of life of a team, again and again. It belongs to one goroutine.
type Detector struct {
	Dir string // the team's folder
	Do  func(ctx context.Context, body team.Body) error
	Log func(string)

	Beats heartbeat.Store        // nil for those in the team's folder
	Lives func(host string) bool // nil for the hosts that are enrolled in the team's folder
	Now   func() time.Time       // nil for [time.Now]
	Wall  func() time.Time       // the clock on the wall; nil for that of Now

	began   time.Time // the first look
	lead    heartbeat.Watch
	skewed  bool // a warning was given
	members map[string]*sight
}

// sight is what is known of one member.
type sight struct {
	incarnation int64
	watch       heartbeat.Watch
	beat        heartbeat.Beat // the last that was seen
	there       bool
	gone        int // at how many looks in a row its process was gone
}

// Look looks after the lead and the members, except for those that are the caller's own. It is
// called each time that signs of life are due.
func (l *Detector) Look(ctx context.Context, t team.Team, members []team.Member, own func(member string) bool) {
	if t.CleanedUp || t.Status == team.TeamComplete || t.Status == team.TeamAborted { // nobody is missed any more
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
		// without a host it has no session that could be silent
		if m.Name == t.Lead || own(m.Name) || !m.Status.Running() || m.Agent != team.External && m.Host == "" {
			delete(l.members, m.Name)
			continue
		}
		if err := l.lookFor(ctx, t, m); err != nil {
			l.Log(fmt.Sprintf("not recorded whether %s is offline: %v", m.Name, err))
		}
	}
}

// lookForLead records that the lead is lost when it has been silent for too long.
func (l *Detector) lookForLead(ctx context.Context, t team.Team) {
	if t.LeadSession == "" || t.LeadSession == team.User || t.LeadLost != 0 {
		return
	}
	b, there, err := l.beats().Of(t.Lead)
	if err != nil {
		l.Log("no look at the lead: " + err.Error())
		return
	}
	b = leader.LastBeat(t, b, there)
	l.lead.Every = every(t)
	wall, steady := l.clocks() // not from before the look: the process may have stood still in it
	silent, skewed := l.lead.LookBy(wall, steady, b, true)
	if skewed != l.skewed {
		if l.skewed = skewed; skewed {
			l.Log(fmt.Sprintf("clock skew: the last sign of life of %s is of %s, and here it is %s; times are not "+
				"trusted until that ends", t.Lead,
				time.UnixMilli(b.At).UTC().Format(time.RFC3339), wall.UTC().Format(time.RFC3339)))
		}
	}
	if silent < time.Duration(t.Timing.OrDefaults().LeadLost)*time.Millisecond {
		return
	}
	if err := l.Do(ctx, &team.LoseLead{Session: t.LeadSession, Since: t.LeadSince,
		Seen: before(wall, silent)}); err != nil {
		l.Log("not recorded that the lead is lost: " + err.Error())
	}
}

// lookFor records that a member is offline, or is not any more.
func (l *Detector) lookFor(ctx context.Context, t team.Team, m team.Member) error {
	one := l.members[m.Name]
	if one == nil || one.incarnation != m.Incarnation {
		one = &sight{incarnation: m.Incarnation, watch: heartbeat.Watch{Every: every(t)}}
		if l.members == nil {
			l.members = map[string]*sight{}
		}
		l.members[m.Name] = one
	}
	b, there, err := l.beats().Of(m.Name)
	if err != nil {
		return err
	}
	there = there && Its(m, b)
	heard := one.there && there && b != one.beat
	one.beat, one.there = b, there
	wall, steady := l.clocks()
	silent, _ := one.watch.LookBy(wall, steady, b, there)
	gone := l.gone(m, b, there)
	if one.gone++; gone == "" {
		one.gone = 0
	}
	switch {
	case m.Offline != 0:
		if heard && gone == "" {
			return l.Do(ctx, &team.ReportOnline{Member: m.Name, Incarnation: m.Incarnation})
		}
	case one.gone > 1:
		return l.Do(ctx, &team.ReportOffline{Member: m.Name, Incarnation: m.Incarnation,
			Seen: team.Time(b.At), Gone: gone})
	case silent >= time.Duration(t.Timing.OrDefaults().Offline)*time.Millisecond:
		return l.Do(ctx, &team.ReportOffline{Member: m.Name, Incarnation: m.Incarnation, Seen: before(wall, silent)})
	}
	return nil
}

func (l *Detector) beats() heartbeat.Store {
	if l.Beats != nil {
		return l.Beats
	}
	return heartbeat.Of(l.Dir)
}

// clocks are the clock on the wall, and one that nobody sets.
func (l *Detector) clocks() (wall time.Time, steady time.Duration) {
	now := l.Now()
	if wall = now.Round(0); l.Wall != nil {
		wall = l.Wall()
	}
	return wall, now.Sub(l.began)
}

func every(t team.Team) time.Duration {
	return time.Duration(t.Timing.OrDefaults().Beat) * time.Millisecond
}

func before(now time.Time, silent time.Duration) team.Time {
	return team.Time(now.Add(-silent).UnixMilli())
}

// Its reports whether the sign of life is of the member's present session, as far as it can be
// read: what an earlier host saw of it says nothing.
func Its(m team.Member, b heartbeat.Beat) bool {
	return m.Agent == team.External || b.Unreadable || b.Host == m.Host
}

// Gone says why the process is known to be gone that the member's session was in; "" where it is
// not. There is false where the member has no sign of life.
func Gone(teamDir string, m team.Member, b heartbeat.Beat, there bool) string {
	l := Detector{Dir: teamDir}
	return l.gone(m, b, there)
}

func (l *Detector) gone(m team.Member, b heartbeat.Beat, there bool) string {
	lives := l.Lives
	if lives == nil {
		lives = func(host string) bool { return proc.Lives(filepath.Join(l.Dir, "hosts", host)) }
	}
	switch {
	case m.Agent != team.External && m.Host != "" && !lives(m.Host):
		return team.HostGone
	case m.Agent == team.External && there && b.Machine != "" && b.Machine == machine() &&
		!filelock.Held(Presence(l.Dir, m.Name)):
		return team.SessionGone
	}
	return ""
}

// Presence is the path of the lock that the session outside holds that is the member: of two of
// them each would get a part of its mail.
func Presence(teamDir, member string) string {
	return filepath.Join(teamDir, "present-"+member+".lock")
}

// Present returns the members of whom there is, or was, a session outside, in order.
func Present(teamDir string) ([]string, error) {
	entries, err := os.ReadDir(teamDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var members []string
	for _, e := range entries {
		name, isLock := strings.CutSuffix(e.Name(), ".lock")
		if member, of := strings.CutPrefix(name, "present-"); isLock && of && team.ValidName(member) {
			members = append(members, member)
		}
	}
	return members, nil
}

func machine() string {
	name, _ := os.Hostname() // without it there is silence to go by
	return name
}
