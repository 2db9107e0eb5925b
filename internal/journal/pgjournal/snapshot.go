package pgjournal

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"

	"cadre/internal/journal"
	"cadre/internal/journal/pgjournal/pgwire"
)

// saved is a snapshot in the table, without its data.
type saved struct {
	seq  int64
	ends int64 // bytes of records up to it
	size int64 // its bytes
}

// Snapshot implements [journal.Journal].
func (j *Journal) Snapshot(ctx context.Context) (journal.Snapshot, error) {
	return j.snapshot(ctx, 1, math.MaxInt64)
}

// Keyframe implements [journal.Journal].
func (j *Journal) Keyframe(ctx context.Context, seq int64) (journal.Snapshot, error) {
	return j.snapshot(ctx, seq, seq)
}

// snapshot returns the newest usable snapshot between two records. It removes those that are
// damaged, or that belong to another history.
func (j *Journal) snapshot(ctx context.Context, first, last int64) (journal.Snapshot, error) {
	inner, leave, err := j.enter(ctx)
	if err != nil {
		return journal.Snapshot{}, err
	}
	defer leave()
	for {
		found, data, usable, err := j.load(inner, first, last)
		if err != nil {
			return journal.Snapshot{}, j.explain(ctx, "read a snapshot", err)
		}
		if usable {
			return journal.Snapshot{Seq: found.seq, Data: string(data)}, nil
		}
		if found.seq == 0 {
			return journal.Snapshot{}, nil
		}
		j.s.report("the snapshot of %s after record %d is damaged or of another history, and was ignored", j.team,
			found.seq)
		j.forgetSaved(found.seq)
		_ = j.s.ask(inner, func(ctx context.Context, conn *pgwire.Conn) error { // a standby refuses this
			_, err := conn.Exec(ctx, j.s.sql.dropSnapshot, j.number, found.seq)
			return err
		})
		last = found.seq - 1
	}
}

// load reads the newest snapshot between two records. Without one, the seq is 0.
func (j *Journal) load(ctx context.Context, first, last int64) (found saved, data []byte, usable bool, err error) {
	var record, sum, now []byte
	var h head
	err = j.s.ask(ctx, func(ctx context.Context, conn *pgwire.Conn) error {
		var b pgwire.Batch
		b.Add(j.s.sql.read, j.number)
		b.Add(j.s.sql.snapshot, j.number, first, last)
		return conn.Do(ctx, &b, func(r *pgwire.Results) error {
			if err := scanHead(r.Rows(), &h); err != nil {
				return err
			}
			return r.Rows().Scan(&found.seq, &found.ends, &record, &sum, &data, &now)
		})
	})
	if errors.Is(err, pgwire.ErrNoRows) {
		err = nil
	}
	if err == nil {
		err = judgeVersion(j.s.opts.Schema, h.version)
	}
	if err != nil || found.seq == 0 {
		return saved{}, nil, false, err
	}
	found.size = int64(len(data))
	usable = digest(sha256.Sum256(data)).is(sum) && len(record) > 0 && string(record) == string(now)
	if usable && first == 1 {
		j.setSaved(found)
	}
	return found, data, usable, nil
}

func (j *Journal) setSaved(s saved) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if s.seq > j.saved.seq {
		j.saved = s
	}
}

// forgetSaved forgets a snapshot that turned out to be unusable.
func (j *Journal) forgetSaved(seq int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.saved.seq == seq {
		j.saved = saved{}
	}
}

// snapshotEvery is the minimum history between two snapshots, in bytes.
const snapshotEvery = 64 << 10

// SnapshotDue implements [journal.Journal]. A snapshot is due when the history since the last one
// has an eighth of its size.
func (j *Journal) SnapshotDue(size int) bool {
	if !j.behind(size) {
		return false
	}
	// That was only this handle's view. Another process may have saved a snapshot since.
	ctx, leave, err := j.enter(context.Background())
	if err != nil {
		return false
	}
	defer leave()
	var newest saved
	err = j.s.ask(ctx, func(ctx context.Context, conn *pgwire.Conn) error {
		return conn.Query(ctx, j.s.sql.newest, j.number).Scan(&newest.seq, &newest.ends, &newest.size)
	})
	if err != nil && !errors.Is(err, pgwire.ErrNoRows) {
		return false
	}
	j.setSaved(newest)
	return j.behind(size)
}

func (j *Journal) behind(size int) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.newest.ends-j.saved.ends >= max(snapshotEvery, max(int64(size), j.saved.size)/8)
}

// chosen is what a call saves, and the snapshots that it removes.
type chosen struct {
	seq  int64 // 0 for nothing
	data []byte
	drop []int64
}

// SaveSnapshot implements [journal.Journal].
func (j *Journal) SaveSnapshot(ctx context.Context, take func() (int64, []byte)) error {
	return j.save(ctx, "save a snapshot", func(kept []saved) chosen {
		seq, data := take()
		if len(kept) > 0 && seq <= kept[len(kept)-1].seq {
			return chosen{}
		}
		return chosen{seq, data, j.s.opts.replaced(kept)}
	})
}

// SaveKeyframe implements [journal.Journal].
func (j *Journal) SaveKeyframe(ctx context.Context, s journal.Snapshot) error {
	return j.save(ctx, "save a keyframe", func(kept []saved) chosen {
		size := int64(len(s.Data))
		if s.Seq == 0 || !j.s.opts.room(kept, s.Seq, size) {
			return chosen{}
		}
		return chosen{s.Seq, []byte(s.Data), j.s.opts.thin(with(kept, saved{seq: s.Seq, size: size}))}
	})
}

// save saves what choose chooses from the snapshots that are there. Nothing happens if another
// process saves now.
func (j *Journal) save(ctx context.Context, what string, choose func(kept []saved) chosen) error {
	inner, leave, err := j.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	var h head
	var kept []saved
	busy := false
	conn, err := j.s.start(inner, func(ctx context.Context, conn *pgwire.Conn) (err error) {
		h, kept, busy, err = j.beginSave(ctx, conn)
		return err
	})
	if err != nil {
		return j.explain(ctx, what, err)
	}
	defer j.s.release(conn)
	if busy {
		return nil
	}
	c := choose(kept)
	if c.seq == 0 {
		return nil
	}
	return j.explain(ctx, what, j.store(inner, conn, h, c))
}

// beginSave begins a transaction that may save, and reads what is there.
func (j *Journal) beginSave(ctx context.Context, conn *pgwire.Conn) (h head, kept []saved, busy bool, err error) {
	var b pgwire.Batch
	b.Add(begin)
	b.Add("SELECT "+guard, milliseconds(j.s.opts.Timeout)) // the caller may take long to encode the state
	b.Add(tryAdvisoryLock, j.s.snapshotKey(j.number))
	b.Add(j.s.sql.read, j.number)
	b.Add(j.s.sql.snapshots, j.number)
	err = conn.Do(ctx, &b, func(r *pgwire.Results) (err error) {
		for range 2 {
			if _, err := r.Exec(); err != nil {
				return err
			}
		}
		locked := false
		if err := r.Rows().Scan(&locked); err != nil {
			return err
		}
		if busy = !locked; busy {
			return nil
		}
		if err := scanHead(r.Rows(), &h); err != nil {
			return err
		}
		if err := judgeVersion(j.s.opts.Schema, h.version); err != nil {
			return err
		}
		kept, err = pgwire.Collect(r.Rows(), scanSaved)
		return err
	})
	return h, kept, busy, err
}

func scanSaved(r pgwire.Row) (s saved, err error) {
	err = r.Scan(&s.seq, &s.ends, &s.size)
	return s, err
}

// store inserts a snapshot, removes others, and ends the transaction. If the connection breaks, it
// is unknown whether that was done, which is no harm: the history has everything.
func (j *Journal) store(ctx context.Context, conn *pgwire.Conn, h head, c chosen) error {
	if c.seq > h.last {
		return fmt.Errorf("it ends with record %d, and the snapshot is of the state after %d", h.last, c.seq)
	}
	ctx, stop := context.WithTimeout(ctx, j.s.opts.Timeout)
	defer stop()
	one := saved{seq: c.seq, size: int64(len(c.data))}
	var record []byte
	err := conn.Query(ctx, j.s.sql.at, j.number, c.seq).Scan(&one.ends, &record)
	if errors.Is(err, pgwire.ErrNoRows) {
		return j.damage(c.seq, "the record is missing")
	} else if err != nil {
		return err
	}
	sum := sha256.Sum256(c.data)
	var b pgwire.Batch
	b.Add(j.s.sql.keepSnapshot, j.number, c.seq, one.ends, one.size, record, sum[:], c.data)
	for _, seq := range c.drop {
		b.Add(j.s.sql.dropSnapshot, j.number, seq)
	}
	b.Add(commit)
	if err := conn.Do(ctx, &b, nil); err != nil {
		return err
	}
	j.setSaved(one)
	return nil
}

// Keyframes implements [journal.Journal].
func (j *Journal) Keyframes(ctx context.Context) (seqs []int64, err error) {
	inner, leave, err := j.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	err = j.s.ask(inner, func(ctx context.Context, conn *pgwire.Conn) error {
		seqs, err = pgwire.Collect(conn.Query(ctx, j.s.sql.snapshots, j.number),
			func(r pgwire.Row) (seq int64, err error) {
				err = r.Scan(&seq, nil, nil)
				return seq, err
			})
		return err
	})
	return seqs, j.explain(ctx, "list the keyframes", err)
}
