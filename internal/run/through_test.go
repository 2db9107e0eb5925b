package run

import (
	"context"
	"errors"
	"slices"
	"testing"

	"cadre/internal/consolidate"
)

// TestThrough checks which steps a run has, and that a failed consolidation keeps the result of the
// run.
func TestThrough(t *testing.T) {
	short, broken, unsealed := errors.New("tasks failed"), errors.New("no disk"), errors.New("a check failed")
	for _, one := range []struct {
		name             string
		interrupted      bool // the consolidation of an earlier run
		wants            bool // that the team is consolidated
		short            error
		work, seal       error
		steps            []string
		ran, sealed      bool
		failure, failing error
	}{
		{name: "done", wants: true, steps: []string{"work", "done", "consolidate"}, ran: true, sealed: true},
		{name: "done, commits nothing", steps: []string{"work"}, ran: true},
		{name: "not done", wants: true, short: short, steps: []string{"work"}, ran: true},
		{name: "the run fails", wants: true, work: broken, steps: []string{"work"}, ran: true, failing: broken},
		{name: "not consolidated", wants: true, seal: unsealed, steps: []string{"work", "done", "consolidate"},
			ran:     true,
			failure: unsealed},
		{name: "interrupted", interrupted: true, wants: true, steps: []string{"consolidate"}, sealed: true},
		{name: "interrupted, and not consolidated", interrupted: true, wants: true, seal: unsealed,
			steps: []string{"consolidate"}, failure: unsealed},
		{name: "interrupted, commits nothing", interrupted: true, steps: []string{"work"}, ran: true},
	} {
		t.Run(one.name, func(t *testing.T) {
			var steps []string
			s := Steps{
				Interrupted: one.interrupted,
				Work: func(context.Context) (Result, error) {
					steps = append(steps, "work")
					return Result{Short: one.short, Completed: 2, Pending: consolidate.Pending{Unknown: "why"}},
						one.work
				},
				Done: func(Result) { steps = append(steps, "done") },
			}
			if one.wants {
				s.Consolidate = func(context.Context) (*consolidate.Record, error) {
					steps = append(steps, "consolidate")
					if one.seal != nil {
						return nil, one.seal
					}
					return &consolidate.Record{}, nil
				}
			}
			e, err := Through(t.Context(), s)
			if !slices.Equal(steps, one.steps) {
				t.Errorf("the steps are %q, want %q", steps, one.steps)
			}
			if err != one.failing || e.Failure != one.failure || e.Ran != one.ran || (e.Record != nil) != one.sealed {
				t.Errorf("got %v, %+v", err, e)
			}
			if one.ran && e.Completed != 2 {
				t.Errorf("the result of the run is lost: %+v", e.Result)
			}
			if pending := e.Pending.Unknown != ""; pending == one.sealed && one.ran {
				t.Errorf("work is pending: %v, and the team is consolidated: %v", pending, one.sealed)
			}
		})
	}
}
