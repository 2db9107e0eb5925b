package render_test

import (
	"slices"
	"testing"

	"cadre/internal/render"
	"cadre/internal/team"
)

// TestHeadlinesOfThePast checks that each line has the subject that its task had then, whether a
// person or the team file changed it, and the time that the attempt took.
func TestHeadlinesOfThePast(t *testing.T) {
	text := func(s string) *string { return &s }
	records := []*team.Record{
		{Seq: 1, At: 1000, Events: []team.Event{&team.TeamCreated{Team: team.Team{ID: "x", Name: "x", Lead: "lead",
			Status: team.TeamActive}, Lead: team.Member{Name: "lead", Agent: team.External, Status: team.Active}}}},
		{Seq: 2, At: 1000, Events: []team.Event{&team.TaskCreated{Task: team.Task{ID: "1", Subject: "first",
			Status: team.Pending}}}},
		{Seq: 3, At: 2000, Events: []team.Event{&team.TaskUpdated{Task: "1", Subject: text("second"),
			Was: &team.TaskWas{Subject: text("first")}}}},
		{Seq: 4, At: 3000, Events: []team.Event{&team.TaskClaimed{Task: "1", Member: "ann", Fence: 1}}},
		{Seq: 5, At: 4000, Events: []team.Event{&team.TaskFailed{Task: "1", By: "ann", Reason: "no"}}},
		{Seq: 6, At: 5000, Events: []team.Event{&team.TaskRevised{Task: team.Task{ID: "1", Subject: "third"},
			Fields: []string{"subject"}}}},
		{Seq: 7, At: 6000, Events: []team.Event{&team.TaskClaimed{Task: "1", Member: "ann", Fence: 3}}},
		{Seq: 8, At: 9000, Events: []team.Event{&team.TaskCompleted{Task: "1", By: "ann"}}},
	}
	s := &team.State{}
	for _, r := range records {
		s.Apply(r)
	}
	for from, want := range map[int][]string{
		1: {"· task 1  first", "▸ ann  second", "✗ ann  second: no", "▸ ann  third", "✓ ann  third (3 s)"},
		2: {"▸ ann  second", "✗ ann  second: no", "▸ ann  third", "✓ ann  third (3 s)"},
	} {
		var got []string
		render.Headlines(records[from:], s, func(_ *team.Record, line string) { got = append(got, line) })
		if !slices.Equal(got, want) {
			t.Errorf("from record %d the lines are\n%q\nwant\n%q", from+1, got, want)
		}
	}
}
