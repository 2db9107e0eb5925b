package team

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Usage counts what models were used for, by the agents' own figures.
type Usage struct {
	InputTokens      int64 // tokens that models read, without those from a cache
	OutputTokens     int64 // tokens that models wrote
	CacheReadTokens  int64 // tokens that were read from a cache
	CacheWriteTokens int64 // tokens that were written to a cache
	CostMicroUSD     int64 // millionths of a US dollar; 0 if the agent does not report its cost
}

// Tokens returns the sum over all kinds of tokens.
func (u Usage) Tokens() int64 {
	return plus(plus(u.InputTokens, u.OutputTokens), plus(u.CacheReadTokens, u.CacheWriteTokens))
}

// Plus returns the sum of both. Like the sums in a state, it does not overflow.
func (u Usage) Plus(v Usage) Usage {
	u.add(v)
	return u
}

func (u *Usage) add(v Usage) {
	u.InputTokens = plus(u.InputTokens, v.InputTokens)
	u.OutputTokens = plus(u.OutputTokens, v.OutputTokens)
	u.CacheReadTokens = plus(u.CacheReadTokens, v.CacheReadTokens)
	u.CacheWriteTokens = plus(u.CacheWriteTokens, v.CacheWriteTokens)
	u.CostMicroUSD = plus(u.CostMicroUSD, v.CostMicroUSD)
}

// plus adds without overflow: with a negative sum a budget would never be spent.
func plus[N ~int64](a, b N) N {
	switch {
	case b > 0 && a > math.MaxInt64-b:
		return math.MaxInt64
	case b < 0 && a < math.MinInt64-b:
		return math.MinInt64
	}
	return a + b
}

// tellsCost reports whether an agent reports the cost of its model in money.
func tellsCost(agent string) bool { return agent == Claude || agent == OpenCode }

// Dollars formats an amount in millionths of a US dollar for people: in cents, and more exactly
// below one dollar.
func Dollars(micro int64) string {
	if micro < 1e6 && micro%1e4 != 0 {
		return fmt.Sprintf("$%.4f", float64(micro)/1e6)
	}
	return fmt.Sprintf("$%.2f", float64(micro)/1e6)
}

// MaxDollars bounds an amount of money, in US dollars.
const MaxDollars = 1_000_000_000

// ParseDollars reads an amount of money as people write it: 5, 0.5, $5 or 5 USD. It returns
// millionths of a US dollar.
func ParseDollars(text string) (micro int64, err error) {
	wrong := refuse(Invalid, "%q is not an amount of US dollars; write it like 5, 0.5, $5 or 5 USD", brief(text))
	number, dollar := strings.CutPrefix(strings.TrimSpace(text), "$")
	if !dollar {
		number = strings.TrimSuffix(number, " USD")
	}
	whole, fraction, point := strings.Cut(number, ".")
	digits := func(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
	if !digits(whole) || point && !digits(fraction) || len(fraction) > 6 {
		return 0, wrong
	}
	dollars, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || dollars > MaxDollars {
		return 0, refuse(Invalid, "%q is more than a budget can be: at most %d US dollars", brief(text), MaxDollars)
	}
	cents, _ := strconv.ParseInt((fraction + "000000")[:6], 10, 64)
	return dollars*1e6 + cents, nil
}

// Uncounted returns the agents of running members that do not report their cost, sorted, if the
// team has a budget of money. That budget does not limit them.
func (s *State) Uncounted() (agents []string) {
	if s.team.Budget.CostMicroUSD == 0 {
		return nil
	}
	for i := range s.members {
		m := &s.members[i]
		if m.Status.Running() && m.Agent != External && !m.runs() && !tellsCost(m.Agent) &&
			m.Usage.CostMicroUSD == 0 {
			agents = append(agents, m.Agent)
		}
	}
	slices.Sort(agents)
	return slices.Compact(agents)
}
