package team

import (
	"fmt"
	"math/bits"
	"time"
)

// BudgetAlerts are the percentages of a budget at which the lead is notified, once each. From the
// first one on, the budget is listed under attention.
var BudgetAlerts = []int64{50, 80, 95}

// SetBudget gives the team, or the member, a new budget. Work that stopped at the old budget
// continues.
type SetBudget struct {
	Member string // whose budget it is; "" for the team's
	Budget Budget
	Only   []string // limits to set: tokens, cost or time; the others stay. nil for all
}

func (b *SetBudget) decide(d *decision) error {
	if d.Actor != User {
		return refuse(Denied, "only the user sets the budget")
	}
	if err := b.Budget.check(); err != nil {
		return err
	}
	set, used, since, whose := d.team.Budget, d.team.Usage, d.team.CreatedAt, ""
	if b.Member != "" {
		m, err := d.budgeted(b.Member)
		if err != nil {
			return err
		}
		set, used, since, whose = m.Budget, m.Usage, m.JoinedAt, " of "+m.Name
	}
	if b.Only == nil {
		set = b.Budget
	}
	for _, what := range b.Only {
		switch what {
		case "tokens":
			set.Tokens = b.Budget.Tokens
		case "cost":
			set.CostMicroUSD = b.Budget.CostMicroUSD
		case "time":
			set.Time = b.Budget.Time
		default:
			return refuse(Invalid, "%q is not part of a budget; it has tokens, cost and time", brief(what))
		}
	}
	if what := set.spent(used, since, d.At); what != "" {
		return refuse(Invalid, "the new budget%s is spent already: %s", whose, what)
	}
	if b.Member != "" {
		d.emit(&MemberBudgetChanged{Member: b.Member, Budget: set})
	} else {
		d.emit(&BudgetChanged{Budget: set})
	}
	return nil
}

// budgeted returns the running teammate of that name. Only teammates have budgets of their own.
func (d *decision) budgeted(name string) (*Member, error) {
	m, err := d.running(name)
	if err == nil && m.Name == d.team.Lead {
		err = refuse(Invalid, "%s leads, and without it the team stops: set the budget of the team", m.Name)
	}
	return m, err
}

// check refuses an invalid budget.
func (b Budget) check() error {
	if b.Tokens < 0 || b.CostMicroUSD < 0 || b.Time < 0 {
		return refuse(Invalid, "a budget cannot be negative; 0 is without limit")
	}
	return nil
}

// CheckBudget records how much of the time of the budgets has passed; a host sends it when that is
// due.
type CheckBudget struct{}

func (b *CheckBudget) decide(d *decision) error {
	for i := range d.members {
		if m := &d.members[i]; m.Status.Running() {
			d.checkMemberBudget(m, m.Usage)
		}
	}
	d.checkBudget(d.team.Usage)
	return nil
}

// checkBudget records that the team's budget is spent at that usage, or how much of it.
func (d *decision) checkBudget(u Usage) {
	if d.team.Exhausted != "" {
		return
	}
	if what := d.team.Budget.spent(u, d.team.CreatedAt, d.At); what != "" {
		d.emit(&BudgetExhausted{What: what})
		d.tell(d.team.Lead, "", "The budget of the team is spent: %s. Nothing more is started, and "+
			"running sessions are ended; a new budget lets the team go on.", what)
		return
	}
	for _, due := range alerts(d.team.Budget.spending(u, d.team.CreatedAt, d.At), d.team.Alerted) {
		d.emit(&BudgetAlerted{What: due.What, Percent: due.percent})
		d.hint(d.team.Lead, due.said("the team", due.percent))
	}
}

// checkMemberBudget does the same as checkBudget for a member's own budget.
func (d *decision) checkMemberBudget(m *Member, u Usage) {
	if m.Budget == (Budget{}) || m.Exhausted != "" {
		return
	}
	if what := m.Budget.spent(u, m.JoinedAt, d.At); what != "" {
		d.emit(&MemberBudgetExhausted{Member: m.Name, What: what})
		d.tell(d.team.Lead, "",
			"The %s of %s is spent. It gets no new work, and its tasks return to the queue; only the "+
				"user gives it a new budget.", budgetWord(what), m.Name)
		return
	}
	for _, due := range alerts(m.Budget.spending(u, m.JoinedAt, d.At), m.Alerted) {
		d.emit(&BudgetAlerted{Member: m.Name, What: due.What, Percent: due.percent})
		d.hint(d.team.Lead, due.said(m.Name, due.percent))
	}
}

// alert says that a percentage of a budget was reached for the first time.
type alert struct {
	Spent
	percent int64
}

// alerts returns the alerts that are due. Where several percentages were passed at once, it returns
// only the last.
func alerts(all []Spent, told []Alerted) (due []alert) {
	for _, one := range all {
		last := int64(0)
		for _, a := range told {
			if a.What == one.What {
				last = a.Percent
			}
		}
		if p := one.passed(); p > last {
			due = append(due, alert{one, p})
		}
	}
	return due
}

// passed returns the last of [BudgetAlerts] that was reached; 0 before the first.
func (u Spent) passed() (percent int64) {
	for _, p := range BudgetAlerts {
		if u.reached(p) {
			percent = p
		}
	}
	return percent
}

// reached reports whether that percentage is spent, exact to the last unit.
func (u Spent) reached(percent int64) bool {
	high, low := bits.Mul64(uint64(max(0, u.Used)), 100)
	limitHigh, limitLow := bits.Mul64(uint64(u.Limit), uint64(percent))
	return high > limitHigh || high == limitHigh && low >= limitLow
}

// said puts into words how much is spent of whose budget.
func (u Spent) said(whose string, percent int64) string {
	return fmt.Sprintf("%d %% of the %s of %s is spent (%s).", percent, budgetWord(u.What), whose, u)
}

// checkAt returns when the time of the budget must be checked next; 0 for never.
func (b Budget) checkAt(since Time, told []Alerted) Time {
	if b.Time <= 0 {
		return 0
	}
	for _, p := range BudgetAlerts {
		done := false
		for _, a := range told {
			done = done || a.What == "time" && a.Percent >= p
		}
		if millis := b.Time.Milliseconds(); !done && millis > 0 {
			return since.Add(time.Duration((millis*p+99)/100) * time.Millisecond)
		}
	}
	return since.Add(b.Time)
}

// spent says which part of the budget is used up; "" for none.
func (b Budget) spent(u Usage, since, now Time) string {
	switch {
	case b.Tokens > 0 && u.Tokens() >= b.Tokens:
		return "tokens"
	case b.CostMicroUSD > 0 && u.CostMicroUSD >= b.CostMicroUSD:
		return "cost"
	case b.Time > 0 && now >= since.Add(b.Time):
		return "time"
	}
	return ""
}

// affordable refuses what would start new work on a spent budget of the team.
func (d *decision) affordable() error {
	if d.team.Exhausted != "" {
		return refuse(Exhausted, "the %s of team %s is spent; a new budget lets it go on",
			budgetWord(d.team.Exhausted), d.team.Name)
	}
	return nil
}

// affords refuses what would start new work of a member whose own budget is spent.
func (d *decision) affords(m *Member) error {
	if m.Exhausted != "" {
		return Refuse(Exhausted, "the %s of %s is spent; a new one lets it continue", budgetWord(m.Exhausted), m.Name).
			With(Hint{Action: ActRaiseBudget, Team: d.team.Name, Member: m.Name, Budget: m.Exhausted})
	}
	return nil
}

func budgetWord(what string) string {
	return map[string]string{"tokens": "token budget", "cost": "cost budget", "time": "time budget"}[what]
}
