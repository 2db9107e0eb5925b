package inspect

import (
	"context"
	"time"

	"cadre/internal/consolidate"
	"cadre/internal/journal/store"
	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/team"
)

const (
	// MaxAge is the greatest age of findings that a process which follows a team shows. A single
	// look has no age.
	MaxAge = 2 * time.Second
	// endingAge is their greatest age while processes of the team end. A process records its end
	// before it ends, so a look at that moment still finds it.
	endingAge = 100 * time.Millisecond
)

// Trees shares what git says of work trees between the lookers of many teams, for one look at all.
type Trees = consolidate.Trees

// Looker looks at one team once, or repeatedly for a process that follows it: at what is true
// outside its journal, and at which files of a complete team are not committed. It belongs to one
// goroutine.
type Looker struct {
	Replica *replica.Replica
	Home    layout.Home // of the team; the zero Home for a team in memory, whose files are not looked at
	Dir     string      // the team's folder
	Shared  store.Team  // what the team's processes share; nil for what is in Dir
	Trees   Trees       // of one look at many teams; nil for a look at one

	last   *team.Outside
	before recordedLife // at the last look
	ending time.Time    // when the history last said that a process ends
	facts  map[string]reading
	files  committing
}

// recordedLife is what the history says of the processes of a team.
type recordedLife struct {
	hosted int // how many members have a session that a host runs
	lead   string
	status team.TeamStatus
}

func lifeOf(t team.Team, members []team.Member) recordedLife {
	l := recordedLife{lead: t.LeadSession, status: t.Status}
	for _, m := range members {
		if m.Host != "" && m.Status.Running() {
			l.hosted++
		}
	}
	return l
}

// endedSince reports whether the history has the end of a process since then.
func (l recordedLife) endedSince(before recordedLife) bool {
	return l.hosted < before.hosted || l.lead != before.lead && before.lead != "" || l.status != before.status
}

// Look returns findings that are at most [MaxAge] old, and that no recorded start or end of a
// session contradicts.
func (l *Looker) Look(ctx context.Context, now time.Time) (*team.Outside, error) {
	if l.facts == nil {
		l.facts = map[string]reading{}
	}
	var t team.Team
	var members []team.Member
	l.Replica.View(func(s *team.State) { t, members = s.Team(), s.Members() })
	life := lifeOf(t, members)
	if l.last != nil && life == l.before && l.Due(now) > 0 {
		return l.last, nil
	}
	if l.last != nil && life.endedSince(l.before) {
		l.ending = now
	}
	seen, err := look(ctx, t, members, l.home(), l.Dir, l.Shared, now, l.facts)
	if err == nil {
		seen.outside.Uncommitted = l.uncommitted(ctx, t, now)
		l.last, l.before, err = &seen.outside, life, ctx.Err()
	}
	return &seen.outside, err
}

// home returns the home of the team. That of a team in memory is where its folder is, and has
// nothing else.
func (l *Looker) home() layout.Home {
	if l.Home.Root == "" {
		return layout.Of(l.Dir)
	}
	return l.Home
}

// Due returns how long the last findings count, unless something is recorded. It returns 0 without
// findings.
func (l *Looker) Due(now time.Time) time.Duration {
	if l.last == nil {
		return 0
	}
	age := now.Sub(time.UnixMilli(int64(l.last.At)))
	if age < 0 { // the clock was set back
		return 0
	}
	most := MaxAge
	if l.Ending(now) {
		most = endingAge
	}
	return max(0, most-age)
}

// Ending reports whether a process of the team has recorded its end a moment ago, and may still be
// running.
func (l *Looker) Ending(now time.Time) bool {
	since := now.Sub(l.ending)
	return l.last != nil && (l.last.Hosted || l.last.Led || l.last.Consolidating) && since >= 0 && since < MaxAge
}
