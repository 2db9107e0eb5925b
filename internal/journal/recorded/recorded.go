// Package recorded reads the state of a team from its journal: the present one, its outline, the
// names of its tasks, and with [Past] the state after any earlier record.
//
// It has no authority: the journal decides what happened, and package team what that means. It
// writes only keyframes, after it has applied a long history that has none. A damaged snapshot
// costs time and changes nothing; a damaged history is an error.
//
// # Guarantees of Past
//
//   - The state after a record is the one that applying all records up to it gives.
//   - A jump reads at most the records since the nearest earlier keyframe, in memory or kept by the
//     journal. Their number is bounded, also in a history that was copied without its keyframes, once
//     [State] has read it; see BenchmarkJump.
//   - The keyframes of one team take a bounded amount of memory, whatever the length of its
//     history.
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
// snapshot has; log gets the reason, and may be nil. Where it must apply many records, it leaves
// keyframes in the journal, so that jumps of [Past] need not apply them again.
func State(ctx context.Context, j journal.Journal, log func(string)) (state *team.State, size int, err error) {
	snapshot, err := j.Snapshot(ctx)
	if err != nil {
		return nil, 0, err
	}
	state, err = team.DecodeSnapshot(snapshot.Seq, snapshot.Data)
	if err != nil && !errors.Is(err, team.ErrNewer) {
		skipped(log, err)
		state, err = team.DecodeSnapshot(0, "")
	}
	if err != nil {
		return nil, 0, err
	}
	began := state.Seq()
	for r, err := range j.Read(ctx, began) {
		if err != nil {
			return nil, 0, err
		}
		if r.Seq-began > longReplay { // a copied history
			p := NewPast(j)
			if state, err = p.end(ctx, state); err != nil {
				return nil, 0, err
			}
			p.save(ctx, 0)
			break
		}
		record, err := team.DecodeRecord(r.Seq, string(r.Data))
		if err != nil {
			return nil, 0, err
		}
		state.Apply(record)
	}
	return state, len(snapshot.Data), nil
}

// Outline returns the outline of the team at the end of the journal. Where a snapshot cannot be
// used, or many records follow it, it reads the whole state, as [State] does.
func Outline(ctx context.Context, j journal.Journal, log func(string)) (*team.Outline, error) {
	snapshot, err := j.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	if o, err := team.DecodeOutline(snapshot.Seq, snapshot.Data); err == nil && snapshot.Seq > 0 {
		if done, err := followTo(ctx, j, o, snapshot.Seq+longReplay); done || err != nil {
			return o, err
		}
	}
	state, _, err := State(ctx, j, log)
	if err != nil {
		return nil, err
	}
	return state.Outline(), nil
}

// TaskNames returns what the tasks are called at the end of the journal. It decodes only records
// that may add tasks. log is as for [State].
func TaskNames(ctx context.Context, j journal.Journal, log func(string)) (*team.TaskNames, error) {
	snapshot, err := j.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	names, err := team.DecodeTaskNames(snapshot.Seq, snapshot.Data)
	if err != nil && !errors.Is(err, team.ErrNewer) {
		skipped(log, err)
		names, err = team.DecodeTaskNames(0, "")
	}
	if err != nil {
		return nil, err
	}
	for r, err := range j.Read(ctx, names.Seq()) {
		if err != nil {
			return nil, err
		}
		if !team.Naming(r.Data) {
			continue
		}
		record, err := team.DecodeRecord(r.Seq, string(r.Data))
		if err != nil {
			return nil, err
		}
		names.Apply(record)
	}
	return names, nil
}

func skipped(log func(string), err error) {
	if log != nil {
		log(fmt.Sprintf("the snapshot cannot be read, and is skipped: %v", err))
	}
}

// followTo applies the records that follow to the outline, as far as the record last. done reports
// that there are no more.
func followTo(ctx context.Context, j journal.Journal, o *team.Outline, last int64) (done bool, err error) {
	for r, err := range j.Read(ctx, o.Seq()) {
		if err != nil {
			return false, err
		}
		if r.Seq > last {
			return false, nil
		}
		record, err := team.DecodeRecord(r.Seq, string(r.Data))
		if err != nil {
			return false, err
		}
		o.Apply(record)
	}
	return true, nil
}
