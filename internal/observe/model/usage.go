package model

import (
	"cmp"
	"maps"
	"slices"

	"cadre/internal/observe/protocol"
	"cadre/internal/team"
)

// spent is the usage of a session, by its own running totals. Several sources may show the same
// session. A source may start again from zero when its program was restarted.
type spent struct {
	Member string              `json:"member,omitempty"`
	Team   string              `json:"team,omitempty"`
	Of     map[string]*running `json:"of"`     // by source
	Before tokens              `json:"before"` // the part that belongs to earlier teams
}

type running struct{ Before, Last tokens }

// tokens is a usage in its saved form.
type tokens [5]int64

func tokensOf(u *team.Usage) tokens {
	return tokens{u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens, u.CostMicroUSD}
}

func (t tokens) usage() team.Usage {
	return team.Usage{InputTokens: t[0], OutputTokens: t[1], CacheReadTokens: t[2], CacheWriteTokens: t[3],
		CostMicroUSD: t[4]}
}

// usageTotals is the usage of all sessions.
type usageTotals struct {
	spent      map[string]*spent // by session
	unreported bool              // a session has used more than was reported
}

// take records the running totals of a session in a source, and reports whether they are new.
func (l *usageTotals) take(source string, m *protocol.Line, by speaker) bool {
	one := l.spent[m.Session]
	if one == nil {
		if len(l.spent) >= maxSessions {
			return false
		}
		one = &spent{Member: by.Member, Team: by.Team, Of: map[string]*running{}}
		l.spent[m.Session] = one
	}
	r := one.Of[source]
	if r == nil {
		r = &running{}
		one.Of[source] = r
	}
	total, less := tokensOf(m.Totals), false
	for i := range total {
		less = less || total[i] < r.Last[i]
	}
	switch {
	case less && m.Type == "cost-state": // a repeated older line; it has no id to recognise it by
		return false
	case less:
		for i := range total {
			r.Before[i] += r.Last[i]
		}
	}
	r.Last = total
	l.unreported = true
	return true
}

// most returns the usage of the session according to the source that has seen most of it.
func (s *spent) most() (most tokens) {
	for _, r := range s.Of {
		for i := range most {
			most[i] = max(most[i], r.Before[i]+r.Last[i])
		}
	}
	return most
}

// countsUsage reports whether the usage of a session counts for the team: its lead's or a
// teammate's does.
func (s *observedTeam) countsUsage(id string, one *spent) bool {
	if one.Member == "" {
		return s.leads(id, "")
	}
	return one.Team == "" || one.Team == s.lifetime.Name
}

// reportUsage emits the usage of the team's sessions beyond what is in its state.
func (s *observedTeam) reportUsage() {
	if !s.unreported || s.founding() {
		return
	}
	s.unreported = false
	used := map[string]tokens{}
	for id, one := range s.spent {
		if !s.countsUsage(id, one) {
			continue
		}
		who, most := cmp.Or(one.Member, s.lead()), one.most()
		sum := used[who]
		for i := range sum {
			sum[i] += most[i] - one.Before[i]
		}
		used[who] = sum
	}
	for _, who := range slices.Sorted(maps.Keys(used)) {
		m, ok := s.state.Member(who)
		if !ok {
			s.unreported = true
			continue
		}
		more, have := used[who], tokensOf(&m.Usage)
		for i := range more {
			more[i] = max(0, more[i]-have[i])
		}
		if more != (tokens{}) {
			s.emit(&team.UsageReported{Member: who, Usage: more.usage()})
		}
	}
}
