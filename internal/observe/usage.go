package observe

import "cadre/internal/team"

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

// usage takes the running totals of a session.
func (o *Observer) usage(name string, m *message, by speaker, at stamp) {
	if m.Totals == nil || by.Agent != "" {
		return
	}
	if m.UUID != "" {
		h := hash("totals " + m.UUID)
		if o.correlation.done.has(h) {
			return
		}
		o.correlation.done.add(h)
	}
	one := o.spent[m.Session]
	if one == nil {
		if len(o.spent) >= maxSessions {
			return
		}
		one = &spent{Member: by.Member, Team: by.Team, Of: map[string]*running{}}
		o.spent[m.Session] = one
	}
	r := one.Of[name]
	if r == nil {
		r = &running{}
		one.Of[name] = r
	}
	total, less := tokensOf(m.Totals), false
	for i := range total {
		less = less || total[i] < r.Last[i]
	}
	switch {
	case less && m.Type == "cost-state": // an older one again: it has no id by which to know it
		return
	case less:
		for i := range total {
			r.Before[i] += r.Last[i]
		}
	}
	r.Last = total
	o.unbilled = true
	o.settle(o.anID("usage"), by.Member, at)
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
func (o *Observer) pays(id string, one *spent) bool {
	if one.Member == "" {
		return o.leads(id, "")
	}
	return one.Team == "" || one.Team == o.epoch.Name
}

// account reports what the team's sessions have used beyond what its state says.
func (o *Observer) account() {
	if !o.unbilled || o.founding() {
		return
	}
	o.unbilled = false
	used := map[string]tokens{}
	for id, one := range o.spent {
		if !o.pays(id, one) {
			continue
		}
		who, most := first(one.Member, o.lead()), one.most()
		sum := used[who]
		for i := range sum {
			sum[i] += most[i] - one.Before[i]
		}
		used[who] = sum
	}
	for _, who := range sortedKeys(used) {
		m, ok := o.s.Member(who)
		if !ok {
			o.unbilled = true
			continue
		}
		more, have := used[who], tokensOf(&m.Usage)
		for i := range more {
			more[i] = max(0, more[i]-have[i])
		}
		if more != (tokens{}) {
			o.emit(&team.UsageReported{Member: who, Usage: more.usage()})
		}
	}
}
