package catalog

import (
	"testing"

	"cadre/internal/team"
)

// TestStep: of the possible next steps, the one that removes an obstacle comes first.
func TestStep(t *testing.T) {
	t.Parallel()
	mine := []team.Item{{WaitsFor: "lead"}, {WaitsFor: team.ForUser}}
	done := map[string]int{"completed": 2}
	for name, c := range map[string]struct {
		n       Overview
		sealed  bool
		pending bool
		want    Step
	}{
		"something waits":        {n: Overview{Attention: mine, Released: 1, Status: team.TeamActive}, want: Answer},
		"the lead sees to it":    {n: Overview{Attention: mine[:1], Status: team.TeamActive}, want: Staff},
		"released":               {n: Overview{Released: 1, Status: team.TeamActive, Teammates: 1}, want: Pull},
		"observed now":           {n: Overview{Observed: "fx", Watched: true}, want: Follow},
		"observed before":        {n: Overview{Observed: "fx"}, want: Observe},
		"consolidating":          {n: Overview{Status: team.TeamConsolidating}, want: Follow},
		"at work":                {n: Overview{Hosted: true, Tasks: map[string]int{"in_progress": 1}}, want: Follow},
		"complete, with changes": {n: Overview{Status: team.TeamComplete, Tasks: done}, pending: true, want: Seal},
		"complete, without":      {n: Overview{Status: team.TeamComplete, Tasks: done}, want: Review},
		"consolidated": {n: Overview{Status: team.TeamComplete, Tasks: done}, sealed: true,
			pending: true, want: Review},
		"aborted":                {n: Overview{Status: team.TeamAborted, Tasks: done}, pending: true, want: Review},
		"done, and nobody leads": {n: Overview{Status: team.TeamActive, Tasks: done, Teammates: 1}, want: Bring},
		"done, and somebody does": {n: Overview{Status: team.TeamActive, Tasks: done, Teammates: 1, Led: true},
			want: Follow},
		"alone": {n: Overview{Status: team.TeamPending}, want: Staff},
		"idle":  {n: Overview{Status: team.TeamActive, Teammates: 1}, want: Plan},
		"tasks wait": {n: Overview{Status: team.TeamActive, Teammates: 1,
			Tasks: map[string]int{"pending": 1}}, want: Follow},
	} {
		n := Standing{Overview: c.n, Sealed: c.sealed}
		if got := n.Step(func() bool { return c.pending }); got != c.want {
			t.Errorf("%s: %d, and not %d", name, got, c.want)
		}
	}
}
