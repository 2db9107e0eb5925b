package pgjournal

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"cadre/internal/journal"
	"cadre/internal/journal/pgjournal/pgwire"
)

// digest stands for a record and all records before it.
type digest [sha256.Size]byte

// origin returns the digest before the first record of a journal.
func origin(id string) digest { return sha256.Sum256([]byte("cadre journal " + id)) }

// next returns the digest of the record that follows.
func (d digest) next(data []byte) (next digest) {
	h := sha256.New()
	h.Write(d[:])
	h.Write(data)
	h.Sum(next[:0])
	return next
}

// is reports whether a stored digest is this one.
func (d digest) is(stored []byte) bool { return string(d[:]) == string(stored) }

// place is a position in a history: right after a record.
type place struct {
	seq    int64
	ends   int64 // bytes of data up to here
	digest digest
	known  bool // ends and digest are set
}

// then returns the place after the record that follows.
func (p place) then(data []byte) place {
	return place{seq: p.seq + 1, ends: p.ends + int64(len(data)), digest: p.digest.next(data), known: true}
}

// head is the end of a history, as the row of the team has it.
type head struct {
	last    int64
	ends    int64
	digest  []byte
	version int // of the schema
}

// row is a row of the table of records.
type row struct {
	seq    int64
	ends   int64
	digest []byte
	data   []byte
}

// verify checks the rows of a page, which begins with the record at from, against the chain. It
// returns the place after the last one. newest is the furthest place that this handle has verified.
func (j *Journal) verify(from, newest place, h head, rows []row) (place, error) {
	at := from
	if from.seq > 0 {
		if len(rows) == 0 || rows[0].seq != from.seq || len(rows[0].digest) != sha256.Size {
			return at, j.damage(from.seq, "the record is missing")
		}
		at = place{seq: from.seq, ends: rows[0].ends, digest: digest(rows[0].digest), known: true}
		if from.known && at != from {
			return from, j.fork(from.seq)
		}
		rows = rows[1:]
	}
	if err := j.verifyPlace(at, newest, h); err != nil {
		return from, err
	}
	for _, r := range rows {
		if r.seq != at.seq+1 {
			return from, j.damage(at.seq+1, "the record is missing")
		}
		at = at.then(r.data)
		if !at.digest.is(r.digest) || at.ends != r.ends {
			return from, j.damage(r.seq, "the digest does not fit the record and the one before it")
		}
		if err := j.verifyPlace(at, newest, h); err != nil {
			return from, err
		}
	}
	return at, nil
}

// verifyPlace compares a place with the row of the team, which has the last record, and with what
// this handle has seen there before.
func (j *Journal) verifyPlace(at, newest place, h head) error {
	if at.seq == newest.seq && newest.known && at != newest {
		return j.fork(at.seq)
	}
	if at.seq == h.last && (!at.digest.is(h.digest) || at.ends != h.ends) {
		return j.damage(at.seq, "the row of the team has another digest for the last record")
	}
	return nil
}

func (j *Journal) fork(seq int64) error {
	return j.damage(seq, "the record is not the one that was read before: this is another history of the team, such "+
		"as an older copy of the database that went on")
}

// older reports that the record seq is missing although there was one at last.
func (j *Journal) older(seq, last int64) error {
	return j.damage(seq, "the record is missing: this is an older copy of the database, and the history went on to "+
		"record %d", last)
}

func (j *Journal) damage(seq int64, format string, args ...any) error {
	return &journal.DamageError{Team: j.team, Segment: j.s.where, Seq: seq, Reason: fmt.Sprintf(format, args...)}
}

var _ journal.Marked = (*Journal)(nil)

// Mark implements [journal.Marked].
func (j *Journal) Mark() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.newest.known || j.newest.seq == 0 {
		return ""
	}
	return fmt.Sprintf("%d %d %x", j.newest.seq, j.newest.ends, j.newest.digest)
}

// Expect implements [journal.Marked].
func (j *Journal) Expect(ctx context.Context, mark string) error {
	ctx, leave, err := j.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	seen := place{known: true}
	var hash []byte
	if n, err := fmt.Sscanf(mark, "%d %d %x", &seen.seq, &seen.ends, &hash); n != 3 || err != nil ||
		len(hash) != len(seen.digest) {
		return fmt.Errorf("%w: %q", journal.ErrNoMark, mark)
	}
	seen.digest = digest(hash)
	var is row
	err = j.s.ask(ctx, func(ctx context.Context, conn *pgwire.Conn) error {
		return conn.Query(ctx, j.s.sql.record, j.number, seen.seq).Scan(&is.ends, &is.digest)
	})
	switch {
	case errors.Is(err, pgwire.ErrNoRows):
		return j.older(seen.seq, seen.seq)
	case err != nil:
		return j.explain(ctx, "look at the history", err)
	case is.ends != seen.ends || !seen.digest.is(is.digest):
		return j.fork(seen.seq)
	}
	j.saw(seen)
	return nil
}
