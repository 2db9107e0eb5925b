package pgjournal

import (
	"context"
	"fmt"

	"cadre/internal/journal"
	"cadre/internal/journal/pgjournal/pgwire"
)

// maxRounds is how often an append reads what does not fit under the lock without it. Then it reads
// under the lock, because the others append faster than it reads.
const maxRounds = 16

// Append implements [journal.Journal].
func (j *Journal) Append(ctx context.Context, after int64, catchUp func(journal.Record) error,
	decide func() ([]byte, error)) (int64, error) {
	inner, leave, err := j.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	j.s.step("lock")
	select {
	case j.shared.turn <- struct{}{}:
	case <-inner.Done():
		return 0, j.explain(ctx, "waited to append, because another goroutine appends", inner.Err())
	}
	defer func() { <-j.shared.turn }()
	own := &ownError{}
	seq, err := j.append(inner, after, own.mark(catchUp), decide, own)
	if own.err != nil {
		return seq, own.err
	}
	return seq, j.explain(ctx, "append", err)
}

// ownError is an error of a function of the caller, which Append returns as it is.
type ownError struct{ err error }

func (o *ownError) mark(catchUp func(journal.Record) error) func(journal.Record) error {
	return func(r journal.Record) error {
		o.err = catchUp(r)
		return o.err
	}
}

func (j *Journal) append(ctx context.Context, after int64, catchUp func(journal.Record) error,
	decide func() ([]byte, error), own *ownError) (int64, error) {
	conn, at, err := j.catchUp(ctx, after, catchUp)
	if err != nil {
		return 0, err
	}
	defer j.s.release(conn) // it rolls back what is not committed
	if err := j.ended(ctx); err != nil {
		return 0, err
	}
	data, err := decide()
	if err != nil {
		own.err = err
		return at.seq, err
	}
	if len(data) == 0 {
		return at.seq, nil
	}
	if err := checkData(data); err != nil {
		return 0, err
	}
	at = at.then(data)
	if err := j.commit(ctx, conn, at, data); err != nil {
		return 0, err
	}
	j.saw(at)
	j.s.committed(j.number, at.seq, j.appended(at.seq))
	j.s.step("committed")
	return at.seq, nil
}

// catchUp locks the row of the team and shows the records after seq after. It returns the
// connection whose transaction has the lock, and the place after the last record.
func (j *Journal) catchUp(ctx context.Context, after int64, show func(journal.Record) error) (*pgwire.Conn, place,
	error) {
	from, _ := j.from(after)
	if !from.known { // it is not known how much would be read under the lock
		var err error
		if from, err = j.read(ctx, from, show); err != nil {
			return nil, from, err
		}
	}
	for round := 0; ; round++ {
		bytes := int64(lockedBytes)
		if round == maxRounds {
			bytes = 1 << 40
		}
		conn, at, last, rows, err := j.lock(ctx, from, bytes)
		if err != nil {
			return nil, from, err
		}
		if at.seq == last {
			j.s.step("locked")
			return conn, at, j.show(ctx, rows, show, conn)
		}
		j.s.release(conn) // others append while the records are shown
		if err = j.show(ctx, rows, show, nil); err == nil {
			from, err = j.read(ctx, at, show)
		}
		if err != nil {
			return nil, from, err
		}
	}
}

// show shows records to the caller. If that fails, it releases the connection with the lock.
func (j *Journal) show(ctx context.Context, rows []row, show func(journal.Record) error,
	held *pgwire.Conn) (err error) {
	shown := false
	defer func() {
		if !shown && held != nil {
			j.s.release(held)
		}
	}()
	for _, r := range rows {
		if err := j.ended(ctx); err != nil {
			return err
		}
		if err := show(journal.Record{Seq: r.seq, Data: r.data}); err != nil {
			return err
		}
	}
	shown = true
	return nil
}

// lock locks the row of the team, which waits for other writers. It returns the seq of the last
// record, and the rows after from that fit.
func (j *Journal) lock(ctx context.Context, from place, bytes int64) (conn *pgwire.Conn, at place, last int64,
	rows []row, err error) {
	var h head
	_, newest := j.from(from.seq)
	conn, err = j.s.start(ctx, func(ctx context.Context, conn *pgwire.Conn) error {
		var b pgwire.Batch
		b.Add(begin)
		b.Add(j.s.sql.lock, j.s.stall(), j.number)
		j.queuePage(&b, from, bytes, from.seq)
		return conn.Do(ctx, &b, func(r *pgwire.Results) (err error) {
			if _, err = r.Exec(); err == nil {
				h, rows, err = j.scanPage(r, true)
			}
			return err
		})
	})
	if err != nil {
		return nil, from, 0, nil, err
	}
	at, rows, err = j.accept(from, newest, h, rows)
	if err == nil && from.seq > h.last {
		err = fmt.Errorf("it ends with record %d, but the caller knows record %d", h.last, from.seq)
	}
	if err != nil {
		j.s.release(conn)
		return nil, from, 0, nil, err
	}
	return conn, at, h.last, rows, nil
}

// commit inserts the record and ends the transaction.
func (j *Journal) commit(ctx context.Context, conn *pgwire.Conn, at place, data []byte) error {
	id := j.s.newID()
	var b pgwire.Batch
	b.Add(j.s.sql.insert, j.number, at.seq, at.ends, at.digest[:], id, data)
	return j.s.finish(ctx, conn, &b, func(ctx context.Context, conn *pgwire.Conn) (there bool, err error) {
		// The lost transaction has the lock for as long as it can be committed.
		if _, err := j.s.lockTeam(ctx, conn, j.number); err != nil {
			return false, err
		}
		err = conn.Query(ctx, j.s.sql.find, j.number, id).Scan(&there)
		return there, err
	})
}

// appended remembers what this handle has appended. It reports whether others have appended since
// the last time.
func (j *Journal) appended(seq int64) (others bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	others = j.own > 0 && seq > j.own+1
	j.own = seq
	return others
}
