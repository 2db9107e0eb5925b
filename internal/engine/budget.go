package engine

import (
	"cadre/internal/replica"
	"cadre/internal/team"
)

// Limit is one part of a budget.
type Limit struct {
	Member string `json:"member,omitempty"`    // its name; "" for the team
	What   string `json:"what"`                // tokens, cost (in millionths of a US dollar) or time (in milliseconds)
	Limit  int64  `json:"limit,omitempty"`     // in the unit of What; 0 for none
	Spent  int64  `json:"spent"`               // how much is used, in the unit of What
	Left   int64  `json:"left,omitempty"`      // how much of the limit is left, in the unit of What
	Over   bool   `json:"exhausted,omitempty"` // this budget is spent
}

// Limits returns the parts of the budget of the team and of its members, or of that member alone.
// Of a member it leaves out the parts without a limit and without use.
func (t *Team) Limits(member string) (all []Limit, err error) {
	all = []Limit{}
	t.View(func(s *team.State) {
		if member != "" {
			_, err = s.Named(member)
		} else {
			of := s.Team()
			all = limits("", of.Budget, of.Usage, of.CreatedAt, of.Exhausted)
		}
		for _, m := range s.Members() {
			if member == "" || m.Name == member {
				all = append(all, limits(m.Name, m.Budget, m.Charged(), m.BudgetSince(), m.Exhausted)...)
			}
		}
	})
	return all, err
}

func limits(member string, b team.Budget, u team.Usage, since team.Time, exhausted string) (all []Limit) {
	for _, l := range []Limit{
		{What: "tokens", Limit: b.Tokens, Spent: u.Tokens()},
		{What: "cost", Limit: b.CostMicroUSD, Spent: u.CostMicroUSD},
		{What: "time", Limit: b.Time.Milliseconds(), Spent: max(0, int64(replica.Now()-since))},
	} {
		l.Member, l.Left, l.Over = member, max(0, l.Limit-l.Spent), exhausted == l.What
		if member == "" || l.Limit > 0 || l.Spent > 0 && l.What != "time" {
			all = append(all, l)
		}
	}
	return all
}
