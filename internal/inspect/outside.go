package inspect

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"cadre/internal/consolidate"
	"cadre/internal/git/checkout"
	"cadre/internal/hook"
	"cadre/internal/host"
	"cadre/internal/journal/store"
	"cadre/internal/journal/store/filestore"
	"cadre/internal/layout"
	"cadre/internal/liveness/detector"
	"cadre/internal/liveness/heartbeat"
	"cadre/internal/liveness/leader"
	"cadre/internal/replica"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// outsideOf finds out what is true of a team outside its journal: which of its processes are alive
// on this machine, and whether its directory and its facts are unchanged. It changes nothing. dir
// is the team's folder. A [Looker] asks git too.
func outsideOf(ctx context.Context, rep *replica.Replica, dir string, now time.Time) (*team.Outside, error) {
	var t team.Team
	var members []team.Member
	rep.View(func(s *team.State) { t, members = s.Team(), s.Members() })
	seen, err := look(ctx, t, members, layout.Of(dir), dir, nil, now, nil)
	return &seen.outside, err
}

// finding is everything that was found.
type finding struct {
	outside team.Outside
	lead    Lead
	skew    []string
	facts   []Fact

	shared store.Team
	beats  map[string]heartbeat.Beat
	hosts  map[string]bool // by id: whether it is running
}

// look looks at everything. shared is nil for what is in dir, the team's folder in the home. read
// caches facts that were read; nil for none.
func look(ctx context.Context, t team.Team, members []team.Member, home layout.Home, dir string, shared store.Team,
	now time.Time, read map[string]reading) (*finding, error) {
	shared = filestore.Or(shared, dir)
	f := &finding{facts: []Fact{}, shared: shared, hosts: map[string]bool{}}
	f.outside = team.Outside{At: team.Time(now.UnixMilli()), Sights: make(map[string]team.Sight, len(members))}
	var err error
	if f.beats, err = heartbeat.In(shared).All(ctx); err != nil {
		return f, err
	}
	o := &f.outside
	o.Hosted = host.HostedHere(ctx, shared)
	o.Led = shared.Held(ctx, store.Lead)
	o.LeadActs = shared.Held(ctx, store.Presence(t.Lead))
	o.Consolidating = consolidate.Running(ctx, shared)
	o.Aborting = host.Aborting(ctx, shared)
	o.Sealed, _ = shared.Has(ctx, consolidate.RecordFile) // who needs it gets the error
	f.leadOf(t, now)
	for _, m := range members {
		o.Sights[m.Name] = f.sight(ctx, dir, t, m, now)
	}
	if t.Observed == "" && t.Dir != "" {
		o.Directory = trouble(t)
	}
	if t.Observed == "" && t.Dir != "" && o.Directory == "" {
		trust := hook.Trust{File: home.Trust()}
		if events, err := trust.Untrusted(t.Dir, t.HookIsOff); err == nil { // the hooks themselves report damage
			o.Untrusted = events
		}
	}
	for _, fact := range t.Facts {
		now := compare(ctx, t.Dir, fact, read)
		if err := ctx.Err(); err != nil {
			return f, err
		}
		if f.facts = append(f.facts, now); now.Stale {
			o.Stale = append(o.Stale, fact.Name)
		}
	}
	return f, f.children(ctx, t, home, now)
}

// children looks at the teams in the team: those that still do a task, and of an ended team those
// that have not ended.
func (f *finding) children(ctx context.Context, t team.Team, home layout.Home, now time.Time) error {
	for _, c := range t.Children {
		folder := home.Has(c.Team)
		if folder == "" || c.Over && !t.Ended() {
			continue
		}
		sight := team.ChildSight{Child: c}
		rep, err := Open(ctx, home, folder, func(string) {})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			sight.Waits, sight.First = 1, "it cannot be read: "+err.Error()
			f.outside.Children = append(f.outside.Children, sight)
			continue
		}
		if of := rep.Team(); of.Ended() {
			sight.Ended = true
		} else if outside, err := outsideOf(ctx, rep, folder, now); err == nil {
			rep.View(func(s *team.State) {
				for _, i := range s.Attention(team.Time(now.UnixMilli()), outside) {
					if i.WaitsFor != team.ForUser {
						continue
					}
					if sight.Waits++; sight.First == "" {
						sight.First = i.Text
					}
				}
			})
		}
		if err := rep.Close(); err != nil {
			return err
		}
		if !sight.Ended {
			f.outside.Children = append(f.outside.Children, sight)
		}
	}
	return nil
}

// trouble says why the team's directory is not usable; "" if it is.
func trouble(t team.Team) string {
	missing, ok := errors.AsType[*checkout.MissingError](checkout.Glance(t))
	switch {
	case !ok, t.Parent.Worktree && t.Ended(): // the worktree of its member was removed after the work
		return ""
	case missing.Path == t.Dir:
		return "it " + missing.Why
	}
	return missing.Path + " " + missing.Why
}

// leadOf examines the session that leads.
func (f *finding) leadOf(t team.Team, now time.Time) {
	b, there := f.beats[t.Lead]
	b = leader.LastBeat(t, b, there && !b.Unreadable)
	l := Lead{Session: t.LeadSession, Lost: t.LeadLost, Alive: f.outside.Led, LastSeen: team.Time(b.At)}
	here, _ := os.Hostname()
	if l.Alive && b.Machine == here && b.Pid != 0 { // the lock is taken before the lead is recorded
		_, err := proc.StartTime(b.Pid)
		l.Taking = errors.Is(err, fs.ErrNotExist)
		l.Alive = !l.Taking
	}
	if b.Machine != here && !l.Alive {
		l.Machine = b.Machine
	}
	if session := t.LeadSession; session != "" && session != team.User {
		f.outside.Elsewhere = l.Machine
	}
	silent, skewed := b.Age(now)
	if skewed && t.LeadSession != "" {
		f.skew = append(f.skew, fmt.Sprintf("the last heartbeat of the lead lies %s in the future",
			team.Span(time.UnixMilli(int64(l.LastSeen)).Sub(now).Round(time.Second))))
	}
	l.Stale = !l.Alive && !skewed && silent >= t.Timing.OrDefaults().Stale
	f.lead = l
}

// sight examines a member.
func (f *finding) sight(ctx context.Context, dir string, t team.Team, m team.Member, now time.Time) (s team.Sight) {
	b, there := f.beats[m.Name]
	if there && !b.Unreadable {
		s.Seen = team.Time(b.At)
	}
	offline := t.Timing.OrDefaults().Offline
	age, skewed := b.Age(now)
	gone := f.gone(ctx, dir, m, b, there)
	switch {
	case !m.Status.Running():
		s.Life, s.Why = Ended, m.Summary
	case m.Name == t.Lead && m.Agent == team.External || m.Agent == team.External && !there:
		s.Life = Outside
	case m.Agent != team.External && m.Host == "":
		s.Life, s.Why = Paused, "no process runs its session"
	case gone != "":
		s.Life, s.Why, s.HostGone = Offline, gone, m.Agent != team.External
	case b.Unreadable:
		s.Life, s.Why = Unknown, "its last heartbeat cannot be read"
	case !there || !detector.FromSession(m, b):
		s.Life, s.Why = Online, "its host runs; it has sent no heartbeat yet"
	case skewed:
		s.Life, s.Why = Unknown, "its last heartbeat lies in the future: a clock is wrong"
		f.skew = append(f.skew, fmt.Sprintf("the last heartbeat of %s lies %s in the future", m.Name,
			team.Span(time.UnixMilli(b.At).Sub(now).Round(time.Second))))
	case age >= offline:
		s.Life, s.Why = Offline, "silent for "+team.Span(age.Round(time.Second))
	default:
		s.Life = Online
	}
	return s
}

// gone is [detector.Gone], and looks at each host only once.
func (f *finding) gone(ctx context.Context, dir string, m team.Member, b heartbeat.Beat, there bool) string {
	if m.Agent == team.External || m.Host == "" {
		return detector.Gone(ctx, dir, f.shared, m, b, there)
	}
	alive, known := f.hosts[m.Host]
	if !known {
		alive = detector.Gone(ctx, dir, f.shared, m, b, there) == ""
		f.hosts[m.Host] = alive
	}
	if alive {
		return ""
	}
	return team.HostOver
}
