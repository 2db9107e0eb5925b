package team

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Confine limits a new child team, which was not created yet, to what its parent allows. Its
// budget, modes and rules are limited by [ConfineTeam], also later.
func (s *State) Confine(c *CreateTeam) {
	if own := s.team.Permissions.Policy; slices.Index(yielding, c.Permissions.Policy) > slices.Index(yielding, own) {
		c.Permissions.Policy = own
	}
}

// Bounds returns the command that limits the child team, which was created at that time, to what
// its member may do and spend now. It returns false for an unknown child team.
func (s *State) Bounds(child string, created Time) (*ConfineTeam, bool) {
	i := slices.IndexFunc(s.team.Children, func(c Child) bool { return c.Team == child })
	if i < 0 {
		return nil, false
	}
	c := &s.team.Children[i]
	m := s.member(c.Member)
	if m == nil {
		return nil, false
	}
	team := s.team.Budget.less(s.team.Usage, c.Usage, created.Sub(s.team.CreatedAt))
	member := m.Budget.less(m.Charged(), c.Usage, created.Sub(m.BudgetSince()))
	b := &ConfineTeam{Budget: team.within(member), Binds: member.below(team), Mode: m.PermissionMode}
	if b.AnyRule = m.PermissionMode == "bypassPermissions"; !b.AnyRule {
		b.Rules = slices.Clone(s.team.Permissions.Allow)
		for _, r := range s.team.Rules {
			if r.covers(m.Name) {
				b.Rules = append(b.Rules, r.Rule)
			}
		}
	}
	return b, true
}

// ConfineTeam limits a nested team to what its parent's member may do and spend now. What the team
// has of its own stays known, so that it gets that back when its parent allows it.
type ConfineTeam struct {
	Budget  Budget // from its creation on, with what it has used
	Binds   Budget // the limits of Budget that the budget of its member sets
	Mode    string // permission mode of its members at most
	Rules   []string
	AnyRule bool // it may have other permission rules than Rules
}

func (b *ConfineTeam) decide(d *decision) error {
	p := d.team.Parent
	switch {
	case p.Team == "":
		return refuse(Invalid, "team %s is not nested and has no parent that limits it", d.team.Name)
	case d.Actor != User && !d.isHost():
		return refuse(Denied, "only the host of team %s limits its teams", p.Name)
	}
	if err := cmp.Or(b.Budget.check(), b.Binds.check(), oneOf("permission mode", b.Mode, PermissionModes)); err != nil {
		return err
	}
	own := p.Own
	if p.Mode == "" { // nothing has limited it before
		own = d.team.Budget
	}
	e := &TeamConfined{Budget: b.Budget, Binds: b.Binds, Own: own, Mode: b.Mode}
	for _, rule := range d.team.Permissions.Allow {
		if tool, _, _ := strings.Cut(rule, "("); !b.AnyRule && !slices.Contains(b.Rules, rule) &&
			!slices.Contains(b.Rules, tool) {
			e.Dropped = append(e.Dropped, rule)
		}
	}
	if e.Budget == p.Left && e.Binds == p.Binds && e.Mode == p.Mode && len(e.Dropped) == 0 {
		return nil
	}
	d.emit(e)
	d.confineModes(b.Mode)
	d.confineBudget(own.within(b.Budget))
	return nil
}

// confineModes gives each member the mode of its own, or that one if it allows less.
func (d *decision) confineModes(most string) {
	for i := range d.members {
		m := &d.members[i]
		own := cmp.Or(m.OwnMode, m.PermissionMode)
		mode := narrower(own, most)
		if mode == own {
			own = ""
		}
		if !m.Status.Running() || m.Agent == Shell || mode == m.PermissionMode && own == m.OwnMode {
			continue
		}
		d.emit(&ModeChanged{Member: m.Name, Mode: mode, Own: own})
		if mode != m.PermissionMode {
			d.changed(m, "Your permission mode is now "+mode+".")
		}
	}
}

// confineBudget sets the budget of the team, which may be spent already.
func (d *decision) confineBudget(set Budget) {
	if set == d.team.Budget {
		return
	}
	before := d.team.Exhausted
	spending := set.spending(d.team.Usage, d.team.CreatedAt, d.At)
	told := stillTold(spending, d.team.Alerted, before)
	d.emit(&BudgetChanged{Budget: set, Alerted: told})
	switch what := set.spent(d.team.Usage, d.team.CreatedAt, d.At); {
	case what == "":
		d.alert("", spending, told)
	case before == "":
		d.exhaust(what)
	default:
		d.emit(&BudgetExhausted{What: what})
	}
}

// confined refuses a new budget of the team of which a part is more than its parent leaves it.
func (d *decision) confined(set Budget, only []string) error {
	p := d.team.Parent
	for _, one := range set.parts() {
		left := p.Left.part(one.What)
		if named := only == nil && one.Limit > 0 || slices.Contains(only, one.What); named && left > 0 &&
			(one.Limit == 0 || one.Limit > left) {
			return Refuse(Denied, "team %s leaves its team %s less: the %s can be raised only with those of team %s and "+
				"its member %s", p.Name, d.team.Name, BudgetOf(one.What, ""), p.Name, p.Member).
				With(p.raise(one.What))
		}
	}
	return nil
}

// parts returns the limits of the budget, also those that are not set.
func (b Budget) parts() []Spent {
	return []Spent{{What: "tokens", Limit: b.Tokens}, {What: "cost", Limit: b.CostMicroUSD},
		{What: "time", Limit: int64(b.Time)}}
}

// part returns one limit of the budget; 0 for none.
func (b Budget) part(what string) int64 {
	for _, one := range b.parts() {
		if one.What == what {
			return one.Limit
		}
	}
	return 0
}

// TeamConfined says what the parent of a nested team leaves it.
type TeamConfined struct {
	Budget  Budget   // at most
	Binds   Budget   // the limits of it that the budget of the member sets
	Own     Budget   // that the team has besides
	Mode    string   // of its members, at most
	Dropped []string // permission rules that it loses
}

// Kind returns the event's name in the journal.
func (*TeamConfined) Kind() string { return "team_confined" }

func (e *TeamConfined) fields(c *coder) {
	c.sub("budget", e.Budget == Budget{}, &e.Budget)
	c.sub("binds", e.Binds == Budget{}, &e.Binds)
	c.sub("own", e.Own == Budget{}, &e.Own)
	c.str("mode", &e.Mode)
	c.strs("dropped", &e.Dropped)
}

func (e *TeamConfined) apply(s *State, _ *Record) {
	p := &s.team.Parent
	p.Left, p.Binds, p.Own, p.Mode = e.Budget, e.Binds, e.Own, constant(e.Mode, PermissionModes...)
	if len(e.Dropped) > 0 {
		s.team.Permissions.Allow = slices.DeleteFunc(slices.Clone(s.team.Permissions.Allow),
			func(rule string) bool { return slices.Contains(e.Dropped, rule) })
	}
}

// narrower returns the permission mode that allows less.
func narrower(a, b string) string {
	if slices.Index(widening, b) < slices.Index(widening, a) {
		return b
	}
	return a
}

// yielding lists the policies, from the strictest to the one that allows everything.
var yielding = []string{"deny", "user", "", "lead", "allow"}

// less returns what a team may use, of which so much is counted already, after that use of all.
// What is spent leaves the smallest budget, since 0 is no limit.
func (b Budget) less(all, its Usage, took time.Duration) Budget {
	if b.Tokens > 0 {
		b.Tokens = max(1, b.Tokens-all.Tokens()+its.Tokens())
	}
	if b.CostMicroUSD > 0 {
		b.CostMicroUSD = max(1, b.CostMicroUSD-all.CostMicroUSD+its.CostMicroUSD)
	}
	if b.Time > 0 {
		b.Time = max(time.Millisecond, b.Time-took)
	}
	return b
}

// below returns the limits of b that are stricter than those of the other budget.
func (b Budget) below(other Budget) (of Budget) {
	if in := b.within(other); in != other {
		if in.Tokens != other.Tokens {
			of.Tokens = in.Tokens
		}
		if in.CostMicroUSD != other.CostMicroUSD {
			of.CostMicroUSD = in.CostMicroUSD
		}
		if in.Time != other.Time {
			of.Time = in.Time
		}
	}
	return of
}

// within returns the stricter limits of the two budgets.
func (b Budget) within(other Budget) Budget {
	b.Tokens = stricter(b.Tokens, other.Tokens)
	b.CostMicroUSD = stricter(b.CostMicroUSD, other.CostMicroUSD)
	b.Time = stricter(b.Time, other.Time)
	return b
}

// stricter returns the smaller of two limits, where 0 is no limit.
func stricter[T int64 | time.Duration](a, b T) T {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
