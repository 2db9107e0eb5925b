package team

// The events of budgets.
type (
	// BudgetChanged sets a new budget. The team is no longer exhausted.
	BudgetChanged struct {
		Budget  Budget
		Alerted []Alerted // what the lead was notified of that counts for the new budget too
	}
	// BudgetExhausted says that the budget is spent: tokens, cost or time.
	BudgetExhausted struct{ What string }
	// BudgetAlerted says that the lead was notified of the percentage that is spent of a budget:
	// the team's, or the Member's own.
	BudgetAlerted struct {
		Member  string
		What    string
		Percent int64
	}
	// MemberBudgetChanged gives the member a budget of its own. The member is no longer exhausted.
	MemberBudgetChanged struct {
		Member  string
		Budget  Budget
		Alerted []Alerted // as in BudgetChanged
	}
	// MemberBudgetExhausted says that the member's own budget is spent: tokens, cost or time.
	MemberBudgetExhausted struct{ Member, What string }
)

func (*BudgetChanged) Kind() string         { return "budget_changed" }
func (*BudgetExhausted) Kind() string       { return "budget_exhausted" }
func (*BudgetAlerted) Kind() string         { return "budget_alerted" }
func (*MemberBudgetChanged) Kind() string   { return "member_budget_changed" }
func (*MemberBudgetExhausted) Kind() string { return "member_budget_exhausted" }

func (e *BudgetChanged) fields(c *coder) {
	c.sub("budget", false, &e.Budget)
	objects(c, "alerted", &e.Alerted)
}

func (e *BudgetExhausted) fields(c *coder) { c.str("what", &e.What) }

func (e *BudgetAlerted) fields(c *coder) {
	c.str("member", &e.Member)
	c.str("what", &e.What)
	c.int("percent", &e.Percent)
}

func (e *MemberBudgetChanged) fields(c *coder) {
	c.str("member", &e.Member)
	c.sub("budget", false, &e.Budget)
	objects(c, "alerted", &e.Alerted)
}

func (e *MemberBudgetExhausted) fields(c *coder) {
	c.str("member", &e.Member)
	c.str("what", &e.What)
}
