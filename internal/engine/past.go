package engine

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"sync"

	"cadre/internal/inspect/history"
	"cadre/internal/journal/recorded"
	"cadre/internal/journal/store"
	"cadre/internal/team"
)

// LostError reports records that are lost to damage, and which states can be shown; see
// [Team.Past].
type LostError = recorded.LostError

// marks are the marks of a team's history, as far as they were asked for.
type marks struct {
	mu  sync.Mutex
	all history.Marks
}

// Past returns the states of the team after earlier records. They are in memory until the team is
// closed, although others may share its replica.
func (t *Team) Past() *recorded.Past { return t.past }

// Marks returns the records that a person may want to see the team at: failures, waits for a person
// and commits. It reads what was recorded since the last call. Damaged records have no marks.
func (t *Team) Marks(ctx context.Context) ([]history.Mark, error) {
	t.marks.mu.Lock()
	defer t.marks.mu.Unlock()
	for r, err := range t.Past().Records(ctx, t.marks.all.Through()) {
		switch {
		case err == nil:
			t.marks.all.Add(r)
		case !lost(err):
			return nil, err
		}
	}
	return slices.Clone(t.marks.all.All()), nil
}

// Since sums up what happened after the record seq, for the person who leads or watches the team.
// 0 stands for the whole history.
func (t *Team) Since(ctx context.Context, seq int64) (history.Summary, error) {
	var s history.Summary
	if lead := t.Lead(); lead.Agent == team.External {
		s.Reader = lead.Name
	}
	if seq < 0 {
		return s, team.Refuse(team.Invalid, "record %d does not exist: the first record of a team is record 1", seq)
	}
	return s, s.Sum(t.Past().Records(ctx, seq), lost)
}

// Records yields the records after seq after that exist now. Unlike Read it continues after records
// that are lost to damage: it yields a [*LostError] for them.
func (t *Team) Records(ctx context.Context, after int64) iter.Seq2[*team.Record, error] {
	return t.Past().Records(ctx, after)
}

// lost reports whether the error says that records are lost, so that later ones may follow.
func lost(err error) bool {
	_, is := errors.AsType[*LostError](err)
	return is
}

// looked is the value that says what a person saw of the team.
type looked struct {
	Seq int64 `json:"seq"`
}

const lookedKey = "looked.json"

// Looked returns the last record that a person saw, as [Team.Saw] kept it: 0 if no person looked
// yet, or the history is another one since.
func (t *Team) Looked(ctx context.Context) int64 {
	var l looked
	data, err := t.Shared().Get(ctx, lookedKey)
	if err != nil || json.Unmarshal(data, &l) != nil || l.Seq < 0 || l.Seq > t.Seq() {
		return 0
	}
	return l.Seq
}

// Saw keeps that a person saw everything up to the record seq. Several screens may do so: the last
// one counts.
func (t *Team) Saw(ctx context.Context, seq int64) error {
	data, err := json.Marshal(looked{seq})
	if err != nil {
		return err
	}
	return t.Shared().Replace(ctx, store.Value{Key: lookedKey, Data: append(data, '\n')})
}
