package api

import (
	"time"

	"cadre/internal/team"
)

// BudgetSpec limits what a team or a member may spend; 0 for no limit.
type BudgetSpec struct {
	Tokens       int64 `json:"tokens,omitempty"`       // tokens of all kinds together
	CostMicroUSD int64 `json:"costMicroUSD,omitempty"` // millionths of a US dollar
	Time         int64 `json:"millis,omitempty"`       // milliseconds since the team was created or the member joined
}

func (b BudgetSpec) budget() (team.Budget, error) {
	if b.Tokens < 0 || b.CostMicroUSD < 0 || b.Time < 0 {
		return team.Budget{}, team.Refuse(team.Invalid, "a budget cannot be negative")
	}
	return team.Budget{Tokens: b.Tokens, CostMicroUSD: b.CostMicroUSD,
		Time: time.Duration(b.Time) * time.Millisecond}, nil
}
