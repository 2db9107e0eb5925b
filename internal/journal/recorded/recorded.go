// Package recorded reads the state of a team from its journal: the present one, and with [Past] the
// state after any earlier record.
//
// It has no authority: the journal decides what happened, and package team what that means. It
// writes nothing but keyframes, after a long walk through a history that has none. A damaged snapshot
// costs time and changes nothing; a damaged history is an error.
//
// # Guarantees of Past
//
//   - The state after a record is the one that applying all records up to it gives.
//   - A jump reads at most the records since the nearest earlier keyframe, in memory or kept by the
//     journal. Their number is bounded, unless the history was copied and that part of it was not
//     read yet; see BenchmarkJump.
//   - The keyframes of one team take a bounded amount of memory, whatever the length of its history.
//   - Damage is never skipped. It is a [LostError], which names the states that can be shown.
package recorded

import (
	"context"
	"errors"
	"fmt"

	"cadre/internal/journal"
	"cadre/internal/team"
)

// State returns the state at the end of the journal, and the size of the snapshot that it started
// from. It skips a snapshot that cannot be decoded, because the history has everything that the
// snapshot has; log gets the reason, and may be nil.
func State(ctx context.Context, j journal.Journal, log func(string)) (state *team.State, size int, err error) {
	snapshot, err := j.Snapshot(ctx)
	if err != nil {
		return nil, 0, err
	}
	state, err = team.DecodeSnapshot(snapshot.Seq, snapshot.Data)
	if err != nil && !errors.Is(err, team.ErrNewer) {
		if log != nil {
			log(fmt.Sprintf("the snapshot cannot be read, and is skipped: %v", err))
		}
		state, err = team.DecodeSnapshot(0, "")
	}
	if err != nil {
		return nil, 0, err
	}
	for r, err := range j.Read(ctx, state.Seq()) {
		if err != nil {
			return nil, 0, err
		}
		record, err := team.DecodeRecord(r.Seq, string(r.Data))
		if err != nil {
			return nil, 0, err
		}
		state.Apply(record)
	}
	return state, len(snapshot.Data), nil
}
