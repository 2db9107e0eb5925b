package team

import (
	"slices"
	"testing"
)

// TestCosts checks that a budget of money limits the agents that report their cost. The cost of a
// session counts from its beginning, even when it is resumed.
func TestCosts(t *testing.T) {
	s := &State{}
	apply := func(events ...Event) { s.Apply(&Record{Seq: s.Seq() + 1, ID: "r", At: 1, Events: events}) }
	apply(&TeamCreated{Team: Team{ID: "t", Name: "demo", Lead: "lead"}, Lead: Member{Name: "lead", Agent: External,
		Status: Active}})
	for name, agent := range map[string]string{"ann": Claude, "bob": Codex, "carl": Gemini, "dora": OpenCode,
		"eve": External, "fred": Shell, "gil": Codex} {
		apply(&MemberSpawned{Member: Member{Name: name, Agent: agent, Status: Active, Incarnation: 1}})
	}
	if s.Uncounted() != nil {
		t.Errorf("without a budget of money uncounted are %v", s.Uncounted())
	}
	apply(&BudgetChanged{Budget: Budget{CostMicroUSD: 1}})
	if got, want := s.Uncounted(), []string{Codex, Gemini}; !slices.Equal(got, want) {
		t.Errorf("uncounted are %v, not %v", got, want)
	}
	apply(&UsageReported{Member: "carl", Usage: Usage{CostMicroUSD: 5}}, &MemberStopped{Member: "bob"},
		&MemberStopped{Member: "gil"})
	if s.Uncounted() != nil {
		t.Errorf("one says what it costs, and the others have stopped: uncounted are %v", s.Uncounted())
	}

	cost := func(want int64) {
		t.Helper()
		if m, _ := s.Member("dora"); m.SessionCost != want {
			t.Errorf("the session has cost %d, not %d", m.SessionCost, want)
		}
	}
	apply(&MemberStarted{Member: "dora", Session: "one"}, &UsageReported{Member: "dora", Usage: Usage{CostMicroUSD: 7}},
		&MemberStarted{Member: "dora", Session: "one"})
	cost(7)
	apply(&MemberStarted{Member: "dora", Session: "two"}, &UsageReported{Member: "dora", Usage: Usage{CostMicroUSD: 2}})
	cost(2)
}

func TestDollars(t *testing.T) {
	for micro, want := range map[int64]string{0: "$0.00", 12_600: "$0.0126", 500_000: "$0.50", 999_999: "$1.0000",
		1_004_000: "$1.00", 20_000_000: "$20.00"} {
		if got := Dollars(micro); got != want {
			t.Errorf("%d is %s, not %s", micro, got, want)
		}
	}
}

func TestParseDollars(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"5": 5e6, "$5": 5e6, "5 USD": 5e6, "0.5": 5e5, " 2.50 ": 25e5, "0": 0,
		"0.29": 29e4, "$0.000001": 1, "1000000000": 1e15} {
		if got, err := ParseDollars(text); err != nil || got != want {
			t.Errorf("%q is %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "$", "USD", "-1", "+1", "5 EUR", "$5 USD", "5USD", "1e3", "NaN",
		"0x5", ".5", "5.",
		"1,50", "1 000", "0.1234567", "1000000001", "99999999999999999999"} {
		if got, err := ParseDollars(text); CodeOf(err) != Invalid {
			t.Errorf("%q is %d, %v", text, got, err)
		}
	}
}
