package team

import (
	"fmt"
	"math/bits"
	"strings"
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
		return refuse(Denied, "%s is not the user and cannot set a budget", brief(strings.TrimPrefix(d.Actor, "@")))
	}
	if err := b.Budget.check(); err != nil {
		return err
	}
	set, used, since, whose := d.team.Budget, d.team.Usage, d.team.CreatedAt, ""
	told, exhausted := d.team.Alerted, d.team.Exhausted
	if b.Member != "" {
		m, err := d.budgeted(b.Member)
		if err != nil {
			return err
		}
		set, used, since, whose = m.Budget, m.Charged(), m.BudgetSince(), " of "+m.Name
		told, exhausted = m.Alerted, m.Exhausted
	}
	old := set
	confined := b.Member == "" && d.team.Parent.Mode != ""
	if confined {
		set = d.team.Parent.Own
	}
	set, err := set.with(b.Budget, b.Only)
	if err != nil {
		return err
	}
	own := set
	if confined {
		if err := d.confined(set, b.Only); err != nil {
			return err
		}
		set = set.within(d.team.Parent.Left)
	}
	if what := set.spent(used, since, d.At); what != "" {
		return refuse(Invalid, "the new budget%s is spent already: %s", whose, what)
	}
	if p := d.team.Parent; confined && own != p.Own {
		d.emit(&TeamConfined{Budget: p.Left, Own: own, Mode: p.Mode})
	}
	if set == old && exhausted == "" {
		return nil
	}
	spending := set.spending(used, since, d.At)
	told = stillTold(spending, told, exhausted)
	if b.Member != "" {
		d.emit(&MemberBudgetChanged{Member: b.Member, Budget: set, Alerted: told})
		d.alert(b.Member, spending, told)
	} else {
		d.emit(&BudgetChanged{Budget: set, Alerted: told})
		d.alert("", spending, told)
	}
	return nil
}

// with returns the budget with those limits of the other; nil is for all of them.
func (b Budget) with(other Budget, only []string) (Budget, error) {
	if only == nil {
		return other, nil
	}
	for _, what := range only {
		switch what {
		case "tokens":
			b.Tokens = other.Tokens
		case "cost":
			b.CostMicroUSD = other.CostMicroUSD
		case "time":
			b.Time = other.Time
		default:
			return b, refuse(Invalid, "%q is not part of a budget; it has tokens, cost and time", brief(what))
		}
	}
	return b, nil
}

// stillTold returns the alerts that a new budget keeps. These are the spent percentages of it, if
// the lead was notified of at least as much of the old budget. exhausted says which part of the old
// one was spent. The lead is notified again only of percentages that come after these.
func stillTold(spending []Spent, told []Alerted, exhausted string) (still []Alerted) {
	for _, one := range spending {
		last := toldOf(told, one.What)
		if one.What == exhausted {
			last = 100
		}
		if p := min(one.passed(), last); p > 0 {
			still = append(still, Alerted{one.What, p})
		}
	}
	return still
}

// budgeted returns the teammate of that name. Only teammates have budgets of their own. The budget
// of a teammate that has ended is what its successor gets.
func (d *decision) budgeted(name string) (*Member, error) {
	m, err := d.known(name)
	if err == nil && m.Name == d.team.Lead {
		err = Refuse(Invalid, "%s leads, and without it the team stops: set the budget of the team", m.Name).
			With(d.team.hint(ActRaiseBudget))
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

// CheckBudget records how much of the time of the budgets has passed. A host sends it when that is
// due, and so does every process before a command (see [State.Overdue]).
type CheckBudget struct{}

func (b *CheckBudget) decide(d *decision) error {
	for i := range d.members {
		if m := &d.members[i]; m.Status.Running() {
			d.checkMemberBudget(m, m.Charged())
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
		d.exhaust(what)
		return
	}
	d.alert("", d.team.Budget.spending(u, d.team.CreatedAt, d.At), d.team.Alerted)
}

// exhaust records that a part of the team's budget is spent.
func (d *decision) exhaust(what string) {
	d.emit(&BudgetExhausted{What: what})
	d.tell(d.team.Lead, "", "The %s is spent. Nothing more is started, and running sessions are ended; the team "+
		"continues when the user raises the budget.", BudgetOf(what, ""))
}

// alert notifies the lead of the percentages that are spent of a budget and that it does not know
// of: the member's, or the team's for "".
func (d *decision) alert(member string, spending []Spent, told []Alerted) {
	for _, due := range alerts(spending, told) {
		d.emit(&BudgetAlerted{Member: member, What: due.What, Percent: due.percent})
		d.hint(d.team.Lead, due.said(member, due.percent))
	}
}

// checkMemberBudget does the same as checkBudget for a member's own budget. Tasks that are assigned
// to the member stay assigned to it. A session of ours is ended, and returns what it has in
// progress after that. Nothing ends an external session, so it may complete what it has in
// progress.
func (d *decision) checkMemberBudget(m *Member, u Usage) {
	if m.Budget == (Budget{}) || m.Exhausted != "" {
		return
	}
	if what := m.Budget.spent(u, m.BudgetSince(), d.At); what != "" {
		d.memberSpent(m, what)
		return
	}
	d.alert(m.Name, m.Budget.spending(u, m.BudgetSince(), d.At), m.Alerted)
}

// memberSpent records that the member's own budget is spent.
func (d *decision) memberSpent(m *Member, what string) {
	budget := BudgetWord(what)
	d.emit(&MemberBudgetExhausted{Member: m.Name, What: what})
	held, after := d.holds(m.Name), ""
	switch external := m.Agent == External; {
	case external && len(held) > 0:
		after = " It may still complete " + d.tasksOf(held) + "."
	case !external && m.Host != "":
		after = " Its session ends."
	case !external:
		for _, t := range held {
			d.release(t, "the "+BudgetOf(what, m.Name)+" is spent")
		}
	}
	if waiting := d.assignedTo(m); len(waiting) > 0 {
		after += word(len(waiting), fmt.Sprintf(" Still assigned to it is %s; assign that to another member if it "+
			"cannot wait.", d.tasksOf(waiting)), fmt.Sprintf(" Still assigned to it are %s; assign those to other "+
			"members if they cannot wait.", d.tasksOf(waiting)))
	}
	d.tell(d.team.Lead, "", "The %s is spent. It gets no new work.%s Only the user can raise its budget.",
		BudgetOf(what, m.Name), after)
	switch {
	case m.Agent != External:
	case len(held) > 0:
		d.tell(m.Name, "", "Your %s is spent. You get no new work. Complete %s, or release it.", budget,
			d.tasksOf(held))
	default:
		d.tell(m.Name, "", "Your %s is spent. You get no new work.", budget)
	}
}

// returnTasks returns the tasks of a member that has ended to the queue, without an owner. It
// returns what they are called.
func (d *decision) returnTasks(m *Member, reason string) (back []string) {
	for i := range d.tasks {
		t := &d.tasks[i]
		switch {
		case t.Owner != m.Name:
			continue
		case t.Status == InProgress:
			d.releaseTo("", t, reason)
		case t.Status == Pending:
			none := ""
			d.updated(t, &TaskUpdated{Task: t.ID, Owner: &none})
			if t.Submission != nil { // it is with those who verify it
				continue
			}
		default:
			continue
		}
		back = append(back, t.Called())
	}
	return back
}

// assignedTo returns the member's tasks that are not in progress.
func (d *decision) assignedTo(m *Member) (tasks []*Task) {
	for i := range d.tasks {
		if t := &d.tasks[i]; t.Owner == m.Name && t.Status == Pending {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// tasksOf names tasks in a sentence. It shortens a long list to the first ones.
func (d *decision) tasksOf(tasks []*Task) string {
	called := make([]string, len(tasks))
	for i, t := range tasks {
		called[i] = t.Called()
	}
	return word(len(tasks), "task ", "tasks ") + andMore(called)
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
		if p := one.passed(); p > toldOf(told, one.What) {
			due = append(due, alert{one, p})
		}
	}
	return due
}

// toldOf returns the last percentage of that part of a budget that the lead was notified of.
func toldOf(told []Alerted, what string) (percent int64) {
	for _, a := range told {
		if a.What == what {
			percent = a.Percent
		}
	}
	return percent
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

// said puts into words how much is spent of a budget of the member, or of the team for "".
func (u Spent) said(member string, percent int64) string {
	return fmt.Sprintf("%d %% of the %s is spent (%s).", percent, BudgetOf(u.What, member), u)
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
	if what := d.team.BudgetSpent(d.At); what != "" {
		return Refuse(Exhausted, "the %s is spent", BudgetOf(what, "")).
			With(Hint{Action: ActRaiseBudget, Team: d.team.Name, Budget: what})
	}
	return nil
}

// affords refuses what would start new work of a member whose own budget is spent.
func (d *decision) affords(m *Member) error {
	if what := m.BudgetSpent(d.At); what != "" {
		return Refuse(Exhausted, "the %s is spent", BudgetOf(what, m.Name)).
			With(Hint{Action: ActRaiseBudget, Team: d.team.Name, Member: m.Name, Budget: what})
	}
	return nil
}

// BudgetWord names one part of a budget: tokens, cost or time.
func BudgetWord(what string) string {
	return map[string]string{"tokens": "token budget", "cost": "cost budget", "time": "time budget"}[what]
}
