package run

import (
	"context"

	"cadre/internal/consolidate"
)

// Steps are the steps of a run that may be followed by a consolidation. A front end shows each of
// them in its own way.
type Steps struct {
	// Interrupted says that an earlier run was killed while it consolidated: nothing is left to
	// run.
	Interrupted bool
	Work        func(ctx context.Context) (Result, error) // runs the team, as [Run] does
	// Done is called when everything is done, before the consolidation; nil for nothing.
	Done func(Result)
	// Consolidate consolidates the team; nil for a run that commits nothing.
	Consolidate func(ctx context.Context) (*consolidate.Record, error)
}

// Ended is how a run ended, with the consolidation after it.
type Ended struct {
	Result
	Ran    bool                // there was work to do; else Result is zero
	Record *consolidate.Record // of the consolidation; nil for none
	// Failure says why the team is not consolidated although everything is done; nil if it is, or
	// if no consolidation was wanted.
	Failure error
}

// Through takes a team to its end: it runs the team, and consolidates it if everything is done. If
// an earlier run was interrupted while it consolidated, Through only finishes the consolidation. It
// returns an error if the run fails. If the consolidation fails, the result has a Failure.
func Through(ctx context.Context, s Steps) (e Ended, err error) {
	consolidates := func() {
		if e.Record, e.Failure = s.Consolidate(ctx); e.Failure == nil {
			e.Pending = consolidate.Pending{}
		}
	}
	if s.Interrupted && s.Consolidate != nil {
		consolidates()
		return e, nil
	}
	e.Ran = true
	if e.Result, err = s.Work(ctx); err != nil || !e.Done() || s.Consolidate == nil {
		return e, err
	}
	if s.Done != nil {
		s.Done(e.Result)
	}
	consolidates()
	return e, nil
}
