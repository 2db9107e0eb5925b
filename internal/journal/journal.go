// Package journal defines the contract of a team's history: an ordered, durable list of records
// that any number of processes append to.
//
// # Authority
//
// A journal orders records and keeps them. It does not interpret them: the data of a record is one
// JSON value that the team package encodes and decodes. The journal is the only truth about a team.
// A snapshot only saves reading it from the start. Snapshots and projections can be rebuilt from
// it; work in progress, the text of sessions and the decisions of a person are not in it.
//
// # Guarantees
//
//   - Records are ordered by [Record.Seq]: 1, 2, 3, … without a gap, the same for every reader.
//   - The conflict rule: a record is decided on the state at seq n and written as n+1, or it is not
//     written. [Journal.Append] shows its caller every record up to n before it asks for the next
//     one, and no other writer comes between.
//   - Append returns nil only when the record is durable: it survives kill -9 and power loss. After
//     an error the record is not in the journal, with one exception: if the error is [ErrUncertain]
//     by [errors.Is], it may be.
//   - Damage is never skipped. It is reported as a [*DamageError] that names the place.
//   - Only the history itself grows with the length of the history.
package journal

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// Record is one entry of a journal.
type Record struct {
	Seq  int64  // 1 for the first record
	Data []byte // one JSON value; valid only until the callback or loop body that received it returns
}

// Snapshot is the state of a team after the record Seq, encoded as one JSON value. The zero
// Snapshot is the state before the first record.
type Snapshot struct {
	Seq  int64
	Data string // a string, because the decoded state keeps parts of it
}

// Taken returns the fields of s. Its method value is an argument for [Journal.SaveSnapshot] when
// the snapshot exists already.
func (s Snapshot) Taken() (seq int64, data []byte) { return s.Seq, []byte(s.Data) }

// Journal is one team's journal. Its methods may be called from any goroutine, and several
// processes may have the same journal open.
type Journal interface {
	// Snapshot returns the newest usable snapshot, or the zero Snapshot if there is none. A damaged
	// snapshot is not usable; the history is complete without it.
	Snapshot(ctx context.Context) (Snapshot, error)

	// Read yields the records after seq after, in order, up to the last one at this time. It takes
	// no lock and cuts nothing: a line that a writer has not finished does not count yet. The
	// sequence ends after an error.
	Read(ctx context.Context, after int64) iter.Seq2[Record, error]

	// Append adds one record under the conflict rule. While it excludes other writers, it calls
	// catchUp with each record after seq after, in order, and then decide. The result of decide
	// becomes the next record. Append returns its seq when it is durable. Whatever Append returns,
	// catchUp may have been called, and the records that it received are valid.
	//
	// If decide returns an error, Append returns it unchanged and writes nothing. If decide returns
	// nil and no error, Append writes nothing and returns the seq of the last record. Neither
	// function may call the journal.
	Append(ctx context.Context, after int64, catchUp func(Record) error, decide func() ([]byte, error)) (int64, error)

	// Wait returns nil soon after there is a record after seq after, or at once if there is one
	// already. It may also return nil for no reason. If ctx ends first, it returns the context's
	// error.
	Wait(ctx context.Context, after int64) error

	// SnapshotDue reports whether enough was written since the last snapshot to justify a new one.
	// size is the size of the new snapshot in bytes; 0 means about the size of the last one.
	SnapshotDue(size int) bool

	// SaveSnapshot calls take and stores the result, the state after the record seq, as the newest
	// snapshot. This is atomic and durable. While another process saves a snapshot, it does nothing
	// and does not call take. It drops a snapshot that is not newer than the stored one. Both are
	// not errors: snapshots save time but are not part of the history. The snapshot that is
	// replaced may be kept as a keyframe.
	SaveSnapshot(ctx context.Context, take func() (seq int64, data []byte)) error

	// Keyframes returns the seqs of the snapshots that are kept, in order: the newest one, and some
	// earlier ones, so that an earlier state can be had without the whole history before it. Their
	// distance and their size are bounded. Any of them may disappear at any time.
	Keyframes(ctx context.Context) ([]int64, error)

	// Keyframe returns the kept snapshot of the state after the record seq, or the zero Snapshot if
	// there is none that is usable.
	Keyframe(ctx context.Context, seq int64) (Snapshot, error)

	// SaveKeyframe keeps a snapshot of an earlier state, if no kept one is near. It does nothing
	// while another process saves one, or if the journal keeps none.
	SaveKeyframe(ctx context.Context, s Snapshot) error

	// Close closes the journal's files. Calls in progress return an error.
	Close() error
}

// Errors of the contract, to be tested with [errors.Is].
var (
	// ErrUncertain marks a failure after the record was written and before it was known to be
	// durable.
	ErrUncertain = errors.New("it is unknown whether the record was saved")
	// ErrLost marks an append of which nothing was written, because the connection to the journal
	// was lost. It can be tried again.
	ErrLost = errors.New("the connection to the journal was lost")
	// ErrReopen marks a refusal because an earlier record could not be made durable. No record can
	// follow it. The journal must be reopened.
	ErrReopen = errors.New("the journal must be reopened")
	// ErrNewer marks a journal in a format that this version does not know.
	ErrNewer = errors.New("the journal was written by a newer version of cadre")
	// ErrGone marks a journal whose team was removed while the journal was open.
	ErrGone = errors.New("the team was cleaned up, and its journal removed")
	// ErrNotFound marks a journal that does not exist.
	ErrNotFound = errors.New("the journal does not exist")
	// ErrExists reports that Create found an existing journal.
	ErrExists = errors.New("the journal already exists")
)

// Marked is a journal that can be told from an older copy of it, and from one that went on in
// another way: it has a chain.
type Marked interface {
	// Mark returns the furthest record that this handle has seen, as a text for Expect; "" for
	// none.
	Mark() string
	// Expect has the handle refuse a history without the record that an earlier one has seen, with
	// a [*DamageError]. For a text that is no mark it returns [ErrNoMark].
	Expect(ctx context.Context, mark string) error
}

// ErrNoMark reports that a text is no mark of a [Marked] journal.
var ErrNoMark = errors.New("no mark of a history")

// DamageError reports that acknowledged records cannot be read.
type DamageError struct {
	Team    string // name of the team's folder, by which a person finds the team
	Segment string // path of the damaged file, or the database
	Line    int    // line in the file, from 1; 0 for the file as a whole
	Seq     int64  // the record, in a database; 0 in a file
	Reason  string // the defect
}

func (e *DamageError) Error() string {
	where := e.Segment
	if e.Line > 0 {
		where = fmt.Sprintf("%s, line %d", e.Segment, e.Line)
	}
	if e.Seq > 0 {
		where = fmt.Sprintf("%s, team %s, record %d", e.Segment, e.Team, e.Seq)
	}
	return fmt.Sprintf("the journal is damaged at %s: %s; nothing was changed", where, e.Reason)
}
