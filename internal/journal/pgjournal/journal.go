package pgjournal

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"sync"

	"cadre/internal/journal"
	"cadre/internal/journal/pgjournal/pgwire"
	"cadre/internal/journal/store"
)

// Journal is a handle on the journal of a team. It implements [journal.Journal].
type Journal struct {
	s      *Store
	entry  store.Entry
	team   string // its name
	id     string
	number int64
	shared *shared

	life context.Context // ends when the handle is closed
	end  context.CancelFunc

	mu     sync.Mutex
	newest place    // the furthest place that this handle has verified
	recent [8]place // the last ones, where the next calls probably begin
	next   int      // where the next one goes in recent
	own    int64    // the last record that this handle has appended
	saved  saved    // the newest snapshot, as far as this handle knows
}

var _ journal.Journal = (*Journal)(nil)

// shared is what the handles of a store on one journal have in common.
type shared struct {
	handles int           // protected by the lock of the store
	turn    chan struct{} // capacity 1: full while one of them appends
	news    news
}

// Open returns a handle on the journal of the team with that id, or [journal.ErrNotFound].
func (s *Store) Open(ctx context.Context, id string) (*Journal, error) {
	j := &Journal{s: s, entry: store.Entry{ID: id}}
	err := s.ask(ctx, func(ctx context.Context, conn *pgwire.Conn) error {
		return conn.Query(ctx, s.sql.open, id).Scan(&j.number, &j.id, &j.team, &j.entry.Project, &j.entry.Archived)
	})
	if errors.Is(err, pgwire.ErrNoRows) {
		return nil, fmt.Errorf("%w: team %s in %s", journal.ErrNotFound, id, s.where)
	} else if err != nil {
		return nil, fmt.Errorf("open the journal of %s: %w", id, s.explain(err))
	}
	j.entry.Name = j.team
	j.life, j.end = context.WithCancel(context.Background())
	j.shared = s.join(j.number)
	return j, nil
}

// join returns what the handles on a journal share; part ends that.
func (s *Store) join(number int64) *shared {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.shared[number]
	if one == nil {
		one = &shared{turn: make(chan struct{}, 1), news: news{changed: make(chan struct{})}}
		s.shared[number] = one
	}
	one.handles++
	return one
}

func (s *Store) part(number int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.shared[number]
	if one.handles--; one.handles == 0 {
		delete(s.shared, number)
	}
}

// ID returns the id that the journal was created with.
func (j *Journal) ID() string { return j.id }

// Close implements [journal.Journal]. A commit in progress is finished.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.life.Err() == nil {
		j.end()
		j.s.part(j.number)
	}
	return nil
}

// enter begins a call: it returns a context that ends with the handle too. leave ends the call.
func (j *Journal) enter(ctx context.Context) (inner context.Context, leave func(), err error) {
	if err := j.ended(ctx); err != nil {
		return nil, nil, err
	}
	inner, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(j.life, cancel)
	return inner, func() { stop(); cancel() }, nil
}

// ended returns the reason why a call must end now, or nil.
func (j *Journal) ended(ctx context.Context) error {
	if j.life.Err() != nil {
		return fmt.Errorf("the journal of %s: %w", j.team, os.ErrClosed)
	}
	return ctx.Err()
}

// explain returns the error of a call with the reason that a caller asks for. ctx is the context of
// the caller.
func (j *Journal) explain(ctx context.Context, what string, err error) error {
	if err == nil || errors.Is(err, journal.ErrUncertain) {
		return err
	}
	if ended := j.ended(ctx); ended != nil {
		return fmt.Errorf("%s: %w", what, ended)
	}
	if errors.Is(err, journal.ErrGone) {
		return fmt.Errorf("%w: team %s in %s", journal.ErrGone, j.team, j.s.where)
	}
	if _, damaged := errors.AsType[*journal.DamageError](err); damaged || errors.Is(err, journal.ErrNewer) ||
		errors.Is(err, ErrOlder) {
		return err
	}
	return fmt.Errorf("%s: the journal of %s: %w", what, j.team, j.s.explain(err))
}

// Bounds of what is read at once.
const (
	pageRecords = 1024
	pageBytes   = 1 << 20
	// lockedBytes is how much is read under the lock. It fits into the buffers of a connection.
	lockedBytes = 64 << 10
)

// queuePage adds the statement that reads a page after a place. Records up to whole come however
// long they are. If it is not known at how many bytes of the history the place is, only these come,
// and say so for the next page.
func (j *Journal) queuePage(b *pgwire.Batch, from place, bytes int64, whole int64) {
	limit := int64(0)
	if from.known {
		limit = from.ends + bytes
	}
	b.Add(j.s.sql.page, j.number, from.seq, int64(pageRecords), limit, whole)
}

// scanPage reads the results of an end of the history and of a page after it.
func (j *Journal) scanPage(r *pgwire.Results, locked bool) (h head, rows []row, err error) {
	var guards []any
	if locked {
		guards = []any{nil, nil}
	}
	if err := scanHead(r.Rows(), &h, guards...); err != nil {
		return h, nil, err
	}
	if err := judgeVersion(j.s.opts.Schema, h.version); err != nil {
		return h, nil, err
	}
	rows, err = pgwire.Collect(r.Rows(), func(r pgwire.Row) (one row, err error) {
		err = r.Scan(&one.seq, &one.ends, &one.digest, &one.data)
		return one, err
	})
	return h, rows, err
}

// from returns the place after a record, as far as this handle knows it.
func (j *Journal) from(after int64) (from, newest place) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if after <= 0 {
		return place{digest: origin(j.id), known: true}, j.newest
	}
	for _, p := range j.recent {
		if p.seq == after {
			return p, j.newest
		}
	}
	return place{seq: after}, j.newest
}

// saw remembers a place.
func (j *Journal) saw(at place) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if at.seq > j.newest.seq {
		j.newest = at
	}
	for _, p := range j.recent {
		if p.seq == at.seq {
			return
		}
	}
	j.recent[j.next] = at
	j.next = (j.next + 1) % len(j.recent)
}

// accept verifies a page and returns the place after it, with the rows after the record from.
func (j *Journal) accept(from, newest place, h head, rows []row) (place, []row, error) {
	if h.last < newest.seq {
		return from, nil, j.older(h.last+1, newest.seq)
	}
	if from.seq > h.last {
		return from, nil, nil
	}
	at, err := j.verify(from, newest, h, rows)
	if err != nil {
		return from, nil, err
	}
	j.saw(at)
	if from.seq > 0 {
		rows = rows[1:]
	}
	return at, rows, nil
}

// read calls show with each record after from, up to the last one at this time, and returns the
// place after it.
func (j *Journal) read(ctx context.Context, from place, show func(journal.Record) error) (place, error) {
	for {
		var h head
		var rows []row
		_, newest := j.from(from.seq)
		err := j.s.ask(ctx, func(ctx context.Context, conn *pgwire.Conn) error {
			var b pgwire.Batch
			b.Add(j.s.sql.read, j.number)
			j.queuePage(&b, from, pageBytes, from.seq+1)
			return conn.Do(ctx, &b, func(r *pgwire.Results) (err error) {
				h, rows, err = j.scanPage(r, false)
				return err
			})
		})
		if err != nil {
			return from, err
		}
		at, rows, err := j.accept(from, newest, h, rows)
		if err != nil {
			return from, err
		}
		if at.seq == from.seq && at.seq < h.last {
			return from, j.damage(at.seq+1, "the record is missing")
		}
		if err := j.show(ctx, rows, show, nil); err != nil {
			return from, err
		}
		from = at
		if at.seq >= h.last {
			return at, nil
		}
	}
}

// errStopped ends a read whose reader has enough.
var errStopped = errors.New("the reader stopped")

// Read implements [journal.Journal].
func (j *Journal) Read(ctx context.Context, after int64) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		inner, leave, err := j.enter(ctx)
		if err == nil {
			defer leave()
			from, _ := j.from(after)
			_, err = j.read(inner, from, func(r journal.Record) error {
				if !yield(r, nil) {
					return errStopped
				}
				return nil
			})
			if err == nil {
				err = j.ended(ctx)
			}
		}
		if err != nil && err != errStopped {
			yield(journal.Record{}, j.explain(ctx, "read", err))
		}
	}
}
