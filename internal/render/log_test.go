package render_test

import (
	"slices"
	"testing"

	"cadre/internal/render"
	"cadre/internal/team"
)

// TestDetached: the log says whether a member without a session waits for a run, for its budget or
// for its host.
func TestDetached(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]string{
		team.PausedReason:   "ann is paused",
		team.RunEndedReason: "ann is paused: the run ended",
		team.BudgetSpentReason: "ann is paused: its budget is spent; it starts again when the budget is " +
			"raised",
		"its host h1 died": "ann will be started again: its host h1 died",
	} {
		e := &team.MemberDetached{Member: "ann", Reason: reason}
		if got := render.Lines(&team.Record{Events: []team.Event{e}}, nil); !slices.Equal(got, []string{want}) {
			t.Errorf("%q: %q, and not %q", reason, got, want)
		}
	}
}
