package team

import "fmt"

// Spent is how much of one budget is used.
type Spent struct {
	What        string `json:"what"` // tokens, cost (in millionths of a US dollar) or time (in milliseconds)
	Used, Limit int64
}

// Spending returns what is used of each budget that the team has.
func (s *State) Spending(now Time) (all []Spent) {
	b := s.team.Budget
	for _, one := range []Spent{
		{"tokens", s.team.Usage.Tokens(), b.Tokens}, {"cost", s.team.Usage.CostMicroUSD, b.CostMicroUSD},
		{"time", max(0, int64(now-s.team.CreatedAt)), b.Millis},
	} {
		if one.Limit > 0 {
			all = append(all, one)
		}
	}
	return all
}

// Percent is how much of the budget is used, 100 for all of it and more.
func (u Spent) Percent() int64 {
	if u.Used >= u.Limit {
		return 100
	}
	return int64(float64(u.Used) / float64(u.Limit) * 100)
}

func (u Spent) String() string {
	switch u.What {
	case "cost":
		return Dollars(u.Used) + " of " + Dollars(u.Limit)
	case "time":
		return fmt.Sprintf("%s of %s", span(Time(u.Used)), span(Time(u.Limit)))
	}
	return fmt.Sprintf("%d of %d %s", u.Used, u.Limit, u.What)
}
