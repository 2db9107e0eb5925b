package team

import (
	"fmt"
	"time"
)

// Budget limits what a team or a member may spend; zero means no limit. Time is a deadline: hooks,
// questions and pauses do not stop it.
type Budget struct {
	Tokens       int64         // tokens of all kinds together; 0 for no limit
	CostMicroUSD int64         // millionths of a US dollar; 0 for no limit
	Time         time.Duration // wall-clock time since the team was created or the member joined; 0 for no limit
}

// Alerted says that the lead was notified of how much of a budget is spent.
type Alerted struct {
	What    string // tokens, cost or time
	Percent int64  // the last of 50, 80 and 95 that the lead was notified of
}

// Spent is how much of one budget is used.
type Spent struct {
	What  string `json:"what"`  // tokens, cost (in millionths of a US dollar) or time (in milliseconds)
	Used  int64  `json:"used"`  // how much is used, in the unit of What
	Limit int64  `json:"limit"` // the limit, in the unit of What
}

// Spending returns how much of each of the team's budgets is used.
func (s *State) Spending(now Time) []Spent {
	return s.team.Budget.spending(s.team.Usage, s.team.CreatedAt, now)
}

// Spending returns how much of each of the member's own budgets is used.
func (m *Member) Spending(now Time) []Spent {
	return m.Budget.spending(m.Charged(), m.BudgetSince(), now)
}

// Charged returns what counts against the member's own budget: what it used, and what the members
// used whose successor it is.
func (m *Member) Charged() Usage {
	u := m.Usage
	u.add(m.Inherited)
	return u
}

// BudgetSince returns when the time of the member's own budget began.
func (m *Member) BudgetSince() Time {
	if m.BudgetFrom != 0 {
		return m.BudgetFrom
	}
	return m.JoinedAt
}

// BudgetSpent says which of the member's own budgets is spent at that time: tokens, cost or time;
// "" for none.
func (m *Member) BudgetSpent(at Time) string {
	if m.Exhausted != "" {
		return m.Exhausted
	}
	return m.Budget.spent(m.Charged(), m.BudgetSince(), at)
}

// BudgetSpent says which of the team's budgets is spent at that time: tokens, cost or time; "" for
// none.
func (t *Team) BudgetSpent(at Time) string {
	if t.Exhausted != "" {
		return t.Exhausted
	}
	return t.Budget.spent(t.Usage, t.CreatedAt, at)
}

func (b Budget) spending(u Usage, since, now Time) (all []Spent) {
	for _, one := range []Spent{
		{"tokens", u.Tokens(), b.Tokens}, {"cost", u.CostMicroUSD, b.CostMicroUSD},
		{"time", max(0, int64(now-since)), b.Time.Milliseconds()},
	} {
		if one.Limit > 0 {
			all = append(all, one)
		}
	}
	return all
}

// Percent returns how much of the budget is used, at most 100.
func (u Spent) Percent() int64 {
	if u.Used >= u.Limit {
		return 100
	}
	return int64(float64(u.Used) / float64(u.Limit) * 100)
}

// SpentOf says that this budget of the member is spent, and how much of it; "" is the team's. The
// text begins without an article.
func (u Spent) SpentOf(member string) string {
	return fmt.Sprintf("%s is spent (%s)", BudgetOf(u.What, member), u)
}

// BudgetOf names a budget of the member: "token budget of ann"; "" is the team's.
func BudgetOf(what, member string) string {
	if member == "" {
		member = "the team"
	}
	return BudgetWord(what) + " of " + member
}

// String says how much is used of which limit. Beyond the limit "12 min of 6 s" would be a riddle.
func (u Spent) String() string {
	if u.Used > u.Limit && u.amount(u.Used) != u.amount(u.Limit) {
		return fmt.Sprintf("used %s, the limit is %s", u.amount(u.Used), u.amount(u.Limit))
	}
	if u.What == "cost" || u.What == "time" {
		return u.amount(u.Used) + " of " + u.amount(u.Limit)
	}
	return fmt.Sprintf("%d of %s", u.Used, u.amount(u.Limit))
}

// amount puts an amount of what is limited into words.
func (u Spent) amount(n int64) string {
	switch u.What {
	case "cost":
		return Dollars(n)
	case "time":
		return Span(multiple(n, time.Millisecond))
	}
	return fmt.Sprintf("%d %s", n, u.What)
}
