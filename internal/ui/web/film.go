package web

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"cadre/internal/engine"
	"cadre/internal/team"
)

// film has the last states of a team as patches, made once for all pages that show it.
type film struct {
	mu      sync.Mutex
	state   *team.State // the last state; nil before the first request
	at      team.Time
	tracker *tracker
	patches []json.RawMessage // that led to the last state, without a gap
}

// present answers with the last state.
func (f *film) present(ctx context.Context, t *engine.Team) (frames, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.advance(ctx, t); err != nil {
		return frames{}, err
	}
	return frames{f.tracker.whole(f.state.Seq(), f.at), listOf(nil), f.state.Seq(), nil, 0}, nil
}

// recent answers with the patches after a record; nil if they are not kept.
func (f *film) recent(ctx context.Context, t *engine.Team, after, to int64) (is frames, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state == nil { // nobody shows the present
		return is, nil
	}
	if err := f.advance(ctx, t); err != nil {
		return is, err
	}
	last := f.state.Seq()
	if first := last - int64(len(f.patches)) + 1; after < first-1 || after > last {
		return is, nil
	} else {
		is.Patches = listOf(f.patches[after-first+1 : max(after, min(to, last))-first+1])
	}
	is.Last = last
	return is, nil
}

// advance reads the records that came since the last call.
func (f *film) advance(ctx context.Context, t *engine.Team) error {
	if f.state == nil {
		return f.begin(ctx, t)
	}
	for r, err := range t.Records(ctx, f.state.Seq()) {
		if _, lost := errors.AsType[*engine.LostError](err); lost {
			return f.begin(ctx, t)
		}
		if err != nil {
			return err
		}
		f.state.Apply(r)
		f.at = r.At
		if f.patches = append(f.patches, encoded(f.tracker.update(f.state, r))); len(f.patches) >= 2*mostStates {
			f.patches = slices.Clone(f.patches[mostStates:])
		}
	}
	return nil
}

// begin takes the last state from the history.
func (f *film) begin(ctx context.Context, t *engine.Team) error {
	s, err := t.Past().At(ctx, t.Seq())
	if err != nil {
		return err
	}
	f.state, f.at, f.tracker, f.patches = s, s.Team().UpdatedAt, newTracker(), nil
	f.tracker.take(s, f.at)
	return nil
}
