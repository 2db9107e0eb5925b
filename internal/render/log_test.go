package render_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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

// TestEveryEventHasWords: no event is told by its name in the journal. The golden files of the
// format have an event of every kind.
func TestEveryEventHasWords(t *testing.T) {
	t.Parallel()
	for _, kind := range team.Kinds() {
		golden, err := os.ReadFile(filepath.Join("../team/testdata/events", kind+".json"))
		if err != nil {
			t.Fatal(err)
		}
		r, err := team.DecodeRecord(1, strings.TrimSpace(string(golden)))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range render.Lines(r, nil) {
			if strings.Contains(line, kind) {
				t.Errorf("the log says %q", line)
			}
		}
	}
}

// TestNested: the log says which team does which task, and what its parent leaves it.
func TestNested(t *testing.T) {
	t.Parallel()
	called := func(string) string { return "manual" }
	for want, e := range map[string]team.Event{
		"docs runs team release-docs for task manual": &team.ChildBegan{Child: team.Child{Team: "release-docs-1",
			Name: "release-docs", Member: "docs", Task: "1"}},
		"team release-docs-1 has used 30 tokens so far": &team.ChildReported{Team: "release-docs-1",
			Usage: team.Usage{InputTokens: 10, OutputTokens: 20}},
		"team release-docs-1 is not needed any more":                 &team.ChildEnded{Team: "release-docs-1"},
		"the mail to the parent team, up to #4, was passed on":       &team.MailPassedOn{Through: 4},
		"the parent team allows at most permission mode acceptEdits": &team.TeamConfined{Mode: "acceptEdits"},
		"the parent team allows at most permission mode plan, 500 tokens, $2.00, 1 min; rules that it does not allow: " +
			"Edit, Write": &team.TeamConfined{Mode: "plan", Dropped: []string{"Edit", "Write"},
			Budget: team.Budget{Tokens: 500, CostMicroUSD: 2_000_000, Time: time.Minute}},
	} {
		if got := render.Lines(&team.Record{Events: []team.Event{e}}, called); !slices.Equal(got, []string{want}) {
			t.Errorf("%q, and not %q", got, want)
		}
	}
	for _, e := range []team.Event{&team.ParentHeard{Seq: 3}, &team.ChildReported{Team: "release-docs-1", Heard: 2}} {
		if got := render.Lines(&team.Record{Events: []team.Event{e}}, called); len(got) != 0 {
			t.Errorf("beside the line of its message there is %q", got)
		}
	}
}
