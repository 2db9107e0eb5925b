package model

import (
	"cmp"
	"maps"
	"slices"

	"cadre/internal/observe/protocol"
	"cadre/internal/team"
)

// spent is what a session has used, by its own running totals. Several sources may show the same
// session, and a source may begin again from nothing when its program was started anew.
type spent struct {
	Member string              `json:"member,omitempty"`
	Team   string              `json:"team,omitempty"`
	Of     map[string]*running `json:"of"`     // by source
	Before tokens              `json:"before"` // what of it was for a team before this one
}

type running struct{ Before, Last tokens }

// tokens is a usage in a form that is saved.
type tokens [5]int64

func tokensOf(u *team.Usage) tokens {
	return tokens{u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens, u.CostMicroUSD}
}

func (t tokens) usage() team.Usage {
	return team.Usage{InputTokens: t[0], OutputTokens: t[1], CacheReadTokens: t[2], CacheWriteTokens: t[3],
		CostMicroUSD: t[4]}
}

// ledger is what the sessions have used.
type ledger struct {
	spent    map[string]*spent // by session
	unbilled bool              // a session has used more than was reported
}

// take takes the running totals of a session that a source shows, and reports whether they are new.
func (l *ledger) take(source string, m *protocol.Line, by speaker) bool {
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
	case less && m.Type == "cost-state": // an older one again: it has no id by which to know it
		return false
	case less:
		for i := range total {
			r.Before[i] += r.Last[i]
		}
	}
	r.Last = total
	l.unbilled = true
	return true
}

// most is what the session has used by the source that knows most of it.
func (s *spent) most() (most tokens) {
	for _, r := range s.Of {
		for i := range most {
			most[i] = max(most[i], r.Before[i]+r.Last[i])
		}
	}
	return most
}

// pays reports whether the team pays for a session: its lead's, or a teammate's.
func (s *subject) pays(id string, one *spent) bool {
	if one.Member == "" {
		return s.leads(id, "")
	}
	return one.Team == "" || one.Team == s.epoch.Name
}

// account reports what the team's sessions have used beyond what its state says.
func (s *subject) account() {
	if !s.unbilled || s.founding() {
		return
	}
	s.unbilled = false
	used := map[string]tokens{}
	for id, one := range s.spent {
		if !s.pays(id, one) {
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
			s.unbilled = true
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
