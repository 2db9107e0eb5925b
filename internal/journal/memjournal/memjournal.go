// Package memjournal keeps a team's journal in memory, for tests and for programs that embed cadre
// without a disk.
//
// # Authority
//
// A [Store] is the journal. [Store.Open] returns any number of handles on it, which stand for
// processes. The history exists as long as the Store.
//
// # Guarantees
//
// Those of package journal hold, except that durability ends with the process. Closing a handle
// does not affect the others. There is no damage and no format version, so [journal.DamageError],
// [journal.ErrNewer] and [journal.ErrUncertain] do not occur.
package memjournal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"sync"

	"cadre/internal/journal"
)

// Store is the journal of one team.
type Store struct {
	team   string
	writer chan struct{} // capacity 1: full while an append decides

	mu       sync.Mutex
	records  [][]byte // records[i] has seq i+1; elements never change
	snapshot journal.Snapshot
	pending  int           // bytes of the records after the snapshot
	grown    chan struct{} // closed at the next record and at removal, and then replaced
	gone     bool
}

// New returns the journal of a team with the given first records.
func New(team string, records ...[]byte) *Store {
	s := &Store{team: team, writer: make(chan struct{}, 1), grown: make(chan struct{})}
	for _, r := range records {
		s.records = append(s.records, bytes.Clone(r))
		s.pending += len(r)
	}
	return s
}

// Open returns a new handle.
func (s *Store) Open() *Journal {
	return &Journal{s: s, closed: make(chan struct{})}
}

// Remove removes the journal: every later call on any handle fails with [journal.ErrGone].
func (s *Store) Remove() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = true
	s.records, s.snapshot = nil, journal.Snapshot{}
	s.grew()
}

func (s *Store) grew() {
	close(s.grown)
	s.grown = make(chan struct{})
}

// Journal is a handle on a Store. It implements [journal.Journal].
type Journal struct {
	s      *Store
	closed chan struct{}
	close  sync.Once
}

var _ journal.Journal = (*Journal)(nil)

// ended returns the reason why a call must end now, or nil.
func (j *Journal) ended(ctx context.Context) error {
	select {
	case <-j.closed:
		return fmt.Errorf("the journal of %s: %w", j.s.team, os.ErrClosed)
	default:
		return ctx.Err()
	}
}

// Snapshot implements [journal.Journal].
func (j *Journal) Snapshot(ctx context.Context) (journal.Snapshot, error) {
	if err := j.ended(ctx); err != nil {
		return journal.Snapshot{}, err
	}
	j.s.mu.Lock()
	defer j.s.mu.Unlock()
	if j.s.gone {
		return journal.Snapshot{}, journal.ErrGone
	}
	return j.s.snapshot, nil
}

// after returns the records after seq, the seq of the last one, and a channel that is closed when
// there are more.
func (s *Store) after(seq int64) (records [][]byte, last int64, more <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return nil, 0, nil, journal.ErrGone
	}
	last = int64(len(s.records))
	return s.records[min(seq, last):], last, s.grown, nil
}

// Read implements [journal.Journal].
func (j *Journal) Read(ctx context.Context, after int64) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		after := max(after, 0)
		records, _, _, err := j.s.after(after)
		for i := 0; err == nil && i < len(records); i++ {
			if err = j.ended(ctx); err == nil && !yield(journal.Record{Seq: after + int64(i) + 1,
				Data: records[i]}, nil) {
				return
			}
		}
		if err == nil {
			err = j.ended(ctx)
		}
		if err != nil {
			yield(journal.Record{}, err)
		}
	}
}

// Append implements [journal.Journal].
func (j *Journal) Append(ctx context.Context, after int64, catchUp func(journal.Record) error,
	decide func() ([]byte, error)) (int64, error) {
	after = max(after, 0)
	if err := j.ended(ctx); err != nil {
		return 0, err
	}
	select {
	case j.s.writer <- struct{}{}:
	case <-j.closed:
		return 0, j.ended(ctx)
	case <-ctx.Done():
		return 0, fmt.Errorf("waited to append: another handle is deciding: %w", ctx.Err())
	}
	defer func() { <-j.s.writer }()
	records, last, _, err := j.s.after(after)
	if err != nil {
		return 0, err
	}
	if after > last {
		return 0, fmt.Errorf("the journal of %s ends with record %d, but the caller knows record %d", j.s.team, last,
			after)
	}
	for i, data := range records {
		if err := j.ended(ctx); err != nil {
			return 0, err
		}
		if err := catchUp(journal.Record{Seq: after + int64(i) + 1, Data: data}); err != nil {
			return 0, err
		}
	}
	if err := j.ended(ctx); err != nil {
		return 0, err
	}
	data, err := decide()
	if err != nil || len(data) == 0 {
		return last, err
	}
	if !json.Valid(data) {
		return 0, errors.New("a record must be one JSON value")
	}
	j.s.mu.Lock()
	defer j.s.mu.Unlock()
	if j.s.gone {
		return 0, journal.ErrGone
	}
	j.s.records = append(j.s.records, bytes.Clone(data))
	j.s.pending += len(data)
	j.s.grew()
	return last + 1, nil
}

// Wait implements [journal.Journal].
func (j *Journal) Wait(ctx context.Context, after int64) error {
	for {
		if err := j.ended(ctx); err != nil {
			return err
		}
		_, last, more, err := j.s.after(max(after, 0))
		if err != nil || last > after {
			return err
		}
		select {
		case <-more:
		case <-j.closed:
		case <-ctx.Done():
		}
	}
}

// SnapshotDue implements [journal.Journal].
func (j *Journal) SnapshotDue(size int) bool {
	j.s.mu.Lock()
	defer j.s.mu.Unlock()
	return j.s.pending >= max(64<<10, size/8)
}

// SaveSnapshot implements [journal.Journal].
func (j *Journal) SaveSnapshot(ctx context.Context, take func() (int64, []byte)) error {
	if err := j.ended(ctx); err != nil {
		return err
	}
	seq, data := take()
	j.s.mu.Lock()
	defer j.s.mu.Unlock()
	switch last := int64(len(j.s.records)); {
	case j.s.gone:
		return journal.ErrGone
	case seq > last:
		return fmt.Errorf("save a snapshot: the journal of %s ends with record %d, and the snapshot is of the state "+
			"after %d", j.s.team, last, seq)
	case seq <= j.s.snapshot.Seq:
		return nil
	}
	j.s.snapshot = journal.Snapshot{Seq: seq, Data: string(data)}
	j.s.pending = 0
	for _, r := range j.s.records[seq:] {
		j.s.pending += len(r)
	}
	return nil
}

// Keyframes implements [journal.Journal]. It returns only the newest snapshot, because records in
// memory are read fast.
func (j *Journal) Keyframes(ctx context.Context) ([]int64, error) {
	s, err := j.Snapshot(ctx)
	if err != nil || s.Seq == 0 {
		return nil, err
	}
	return []int64{s.Seq}, nil
}

// Keyframe implements [journal.Journal].
func (j *Journal) Keyframe(ctx context.Context, seq int64) (journal.Snapshot, error) {
	if s, err := j.Snapshot(ctx); err != nil || s.Seq == seq {
		return s, err
	}
	return journal.Snapshot{}, nil
}

// SaveKeyframe implements [journal.Journal]. It saves nothing.
func (j *Journal) SaveKeyframe(ctx context.Context, _ journal.Snapshot) error { return j.ended(ctx) }

// Close implements [journal.Journal].
func (j *Journal) Close() error {
	j.close.Do(func() { close(j.closed) })
	return nil
}
