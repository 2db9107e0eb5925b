// Package journal is the contract of a team's history: an ordered, durable list of records that any
// number of processes append to.
//
// # Authority
//
// A journal orders records and keeps them. It knows nothing of what they say: a record's data is
// one JSON value that the team package encodes and reads. The journal is the only truth about a
// team; a snapshot only saves reading it from the start, and everything else on disk can be made
// again from it.
//
// # Guarantees
//
//   - Order is by [Record.Seq]: 1, 2, 3, … without a gap, the same for every reader.
//   - The conflict rule: a record is decided on the state at seq n and written as n+1, or it is not
//     written. [Journal.Append] shows its caller every record up to n before it asks for the next
//     one, and no other writer comes between.
//   - Append returns nil only when the record is durable: it survives kill -9 and loss of power. On
//     any other outcome the record is not in the journal, or, after an error for which [errors.Is]
//     with [ErrUncertain] holds, it may be.
//   - Damage is never skipped: it is reported as a [*DamageError] that names the place and the
//     command that mends it.
//   - Nothing grows with the length of the history but the history itself.
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
	Data string // a text, because the state that is read from it keeps parts of it
}

// Taken returns the parts of s: its method value is what [Journal.SaveSnapshot] takes where the
// snapshot is there already.
func (s Snapshot) Taken() (seq int64, data []byte) { return s.Seq, []byte(s.Data) }

// Journal is one team's journal. Its methods may be called from any goroutine, and other processes
// may hold the same journal at the same time.
type Journal interface {
	// Snapshot returns the newest usable snapshot, or the zero Snapshot where there is none. A
	// damaged snapshot counts as none: the history has everything.
	Snapshot(ctx context.Context) (Snapshot, error)

	// Read yields the records after seq after, in order, up to the last one there now. It takes no
	// lock and cuts nothing: a line that a writer has not finished is not there yet. After an error
	// the sequence ends.
	Read(ctx context.Context, after int64) iter.Seq2[Record, error]

	// Append adds one record under the conflict rule. With other writers held off it calls catchUp
	// with each record after seq after, in order, and then decide, whose result becomes the next
	// record; it returns that record's seq once it is durable. catchUp may have been called
	// whatever Append returns, and what it was shown stays true.
	//
	// Where decide returns an error, Append returns that error as it is and has written nothing. A
	// nil result without an error writes nothing either and returns the seq of the last record.
	// Neither function may call the journal.
	Append(ctx context.Context, after int64, catchUp func(Record) error, decide func() ([]byte, error)) (int64, error)

	// Wait returns nil soon after there is a record after seq after, at once where there is one
	// already; it may also return nil for no reason. It returns the context's error when that ends
	// first.
	Wait(ctx context.Context, after int64) error

	// SnapshotDue reports whether enough was written since the last snapshot that a new one pays
	// for itself. size is that of the snapshot the caller would write, in bytes; 0 takes it to be
	// like the last one.
	SnapshotDue(size int) bool

	// SaveSnapshot calls take and keeps what it returns, the state after the record seq, as the
	// newest snapshot, durably and at once for every reader. While another process is saving one it
	// does nothing, and does not call take; and one that is not newer than the journal's is
	// dropped, all without an error: snapshots are a saving, not a fact.
	SaveSnapshot(ctx context.Context, take func() (seq int64, data []byte)) error

	// Close lets go of the journal's files. Calls that are under way end with an error.
	Close() error
}

// The errors of the contract, to be tested with [errors.Is].
var (
	// ErrUncertain marks a failure after the record was written and before it was known to be
	// durable.
	ErrUncertain = errors.New("it is not known whether the record was kept")
	// ErrReopen marks what is refused because an earlier record could not be made durable: nothing
	// can be built on it. The journal has to be opened anew.
	ErrReopen = errors.New("this journal has to be opened anew")
	// ErrNewer marks a journal in a format that this version does not know.
	ErrNewer = errors.New("the journal was written by a newer version of cadre")
	// ErrGone marks a journal whose team was removed while it was open.
	ErrGone = errors.New("the team's journal is gone: the team was cleaned up")
	// ErrNotFound marks a journal that does not exist.
	ErrNotFound = errors.New("there is no journal here")
	// ErrExists marks the creation of a journal where there is one.
	ErrExists = errors.New("there is a journal here already")
)

// DamageError says that records which were acknowledged cannot be read.
type DamageError struct {
	Team    string // the name by which a person finds the team: that of its folder
	Segment string // path of the damaged file
	Line    int    // line in it, from 1; 0 where the file as a whole is meant
	Reason  string // what is wrong with it
}

func (e *DamageError) Error() string {
	where := e.Segment
	if e.Line > 0 {
		where = fmt.Sprintf("%s, line %d", e.Segment, e.Line)
	}
	return fmt.Sprintf("the journal is damaged at %s: %s; nothing was changed", where, e.Reason)
}

// Watch yields the records after seq after as they come, and waits for more, until ctx ends; its
// error is then the last pair. A slow consumer loses nothing: it holds a cursor, not a buffer.
func Watch(ctx context.Context, j Journal, after int64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for {
			for r, err := range j.Read(ctx, after) {
				if !yield(r, err) || err != nil {
					return
				}
				after = r.Seq
			}
			if err := j.Wait(ctx, after); err != nil {
				yield(Record{}, err)
				return
			}
		}
	}
}
