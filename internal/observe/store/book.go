package store

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"cadre/internal/journal"
	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// Book journals an observed team under a name in cadre's home, so that every command that shows a
// team can show it. It skips records that the journal has already. When a new team begins, it takes
// over the name, and the previous team is archived under its id.
type Book struct {
	home layout.Home
	name string
	note func(string)

	// Fields of the writer.
	journal journal.Journal // nil if there is no team
	dir     string          // the team's folder
	team    string          // the team's id
	seq     int64           // seq of its last record
	length  int             // length of the last snapshot, in bytes

	mu     sync.Mutex
	moved  *sync.Cond // signalled when the queue has grown or shrunk
	queue  []page
	busy   bool // the writer has taken pages and not written them yet
	closed bool
	err    error
	done   chan struct{}
}

// page is a record to be written.
type page struct {
	team string
	seq  int64
	data []byte
}

// maxQueue is how many records may wait for the disk before Add blocks.
const maxQueue = 4096

// OpenBook opens the journal of that name if it exists. If the name belongs to a team that is not
// observed, the error has the code taken.
func OpenBook(ctx context.Context, h layout.Home, name string, note func(string)) (*Book, error) {
	if err := team.CheckName("team", name); err != nil {
		return nil, err
	}
	b := &Book{home: h, name: name, note: note, done: make(chan struct{})}
	b.moved = sync.NewCond(&b.mu)
	s, err := b.state(ctx)
	switch {
	case team.CodeOf(err) == team.NotFound:
	case err != nil:
		return nil, err
	case s.Team().Observed == "":
		return nil, &team.Error{Code: team.Taken, Text: fmt.Sprintf("%s is one of your own teams. Choose another "+
			"name for the observed team", name)}
	default:
		b.team, b.seq = s.Team().ID, s.Seq()
		if b.journal, b.dir, err = h.Open(name, note); err != nil {
			return nil, err
		}
	}
	go b.write()
	return b, nil
}

// state returns the journal's state.
func (b *Book) state(ctx context.Context) (s *team.State, err error) {
	j, _, err := b.home.Open(b.name, b.note)
	if err != nil {
		return nil, err
	}
	rep, err := replica.Open(ctx, j, replica.Options{Log: b.note})
	if err != nil {
		return nil, err
	}
	rep.View(func(now *team.State) { s = now }) // it does not change after the replica is closed
	return s, rep.Close()
}

// Add queues records in this order. s is the team before them, nil for none; another team may begin
// among them. Add blocks only if very many records are waiting.
func (b *Book) Add(s *team.State, records []*team.Record) error {
	if len(records) == 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	of := ""
	if s != nil {
		of = s.Team().ID
	}
	for _, r := range records {
		if created, ok := r.Events[0].(*team.TeamCreated); ok {
			of = created.Team.ID
		}
		for len(b.queue) >= maxQueue && b.err == nil {
			b.moved.Wait()
		}
		b.queue = append(b.queue, page{of, r.Seq, team.AppendRecord(nil, r)})
	}
	b.moved.Broadcast()
	return b.err
}

// Flush waits until all added records are durable.
func (b *Book) Flush() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for (len(b.queue) > 0 || b.busy) && b.err == nil {
		b.moved.Wait()
	}
	return b.err
}

// Close writes the added records and closes the journal.
func (b *Book) Close() error {
	b.mu.Lock()
	b.closed = true
	b.moved.Broadcast()
	b.mu.Unlock()
	<-b.done
	if b.journal != nil {
		return errors.Join(b.err, b.journal.Close())
	}
	return b.err
}

// write is the writer. It has a goroutine of its own, so that viewers see a line before it is on
// the disk.
func (b *Book) write() {
	defer close(b.done)
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		for len(b.queue) == 0 && !b.closed {
			b.moved.Wait()
		}
		if len(b.queue) == 0 || b.err != nil {
			return
		}
		pages := b.queue
		b.queue, b.busy = nil, true
		b.mu.Unlock()
		err := b.writePages(context.Background(), pages)
		b.mu.Lock()
		b.busy = false
		if err != nil {
			b.err = fmt.Errorf("journal the observed team %s: %w", b.name, err)
		}
		b.moved.Broadcast()
	}
}

func (b *Book) writePages(ctx context.Context, pages []page) error {
	for len(pages) > 0 {
		n := 1
		for n < len(pages) && pages[n].team == pages[0].team {
			n++
		}
		if err := b.writeTeam(ctx, pages[:n]); err != nil {
			return err
		}
		pages = pages[n:]
	}
	return nil
}

// writeTeam writes records of one team.
func (b *Book) writeTeam(ctx context.Context, pages []page) error {
	if id := pages[0].team; id != b.team {
		if _, err := b.home.Folder(id); err == nil { // it was archived, with all of its records
			return nil
		}
		return b.createJournal(pages)
	}
	for len(pages) > 0 && pages[0].seq <= b.seq {
		pages = pages[1:]
	}
	for len(pages) > 0 {
		n := min(len(pages), maxConcurrent)
		if err := b.append(ctx, pages[:n]); err != nil {
			return err
		}
		pages = pages[n:]
	}
	return nil
}

// missingError returns the error for an observed team whose journal is missing.
func (b *Book) missingError() error {
	return team.Refuse(team.NotFound, "%s was observed before, but its journal does not exist any more", b.name).
		With(team.Hint{Action: team.ActCleanUp, Team: b.name})
}

// checkMissing returns that error if the observer knows a team and there is no journal. It is
// called after all records of the observer were written.
func (b *Book) checkMissing(s *team.State) error {
	if s == nil || b.journal != nil {
		return nil
	}
	return b.missingError()
}

// createJournal creates the journal of a team with its first records.
func (b *Book) createJournal(pages []page) error {
	if pages[0].seq != 1 {
		return b.missingError()
	}
	if b.journal != nil {
		err := b.journal.Close()
		if _, err2 := b.home.PutInArchive(b.dir, b.team); errors.Join(err, err2) != nil {
			return errors.Join(err, err2)
		}
		b.journal = nil
	}
	var records [][]byte
	for _, p := range pages {
		records = append(records, p.data)
	}
	var err error
	if b.dir, err = b.home.Found(b.name, pages[0].team, records); err != nil {
		return err
	}
	b.team, b.seq, b.length = pages[0].team, pages[len(pages)-1].seq, 0
	b.journal, err = b.home.OpenFolder(b.dir, b.note)
	return err
}

// maxConcurrent is how many records are appended concurrently, to share the disk's syncs.
const maxConcurrent = 16

// append appends records in their order: each goroutine that gets the journal's lock writes the
// next record, and all wait for one sync together.
func (b *Book) append(ctx context.Context, pages []page) error {
	var appending sync.WaitGroup
	errs := make([]error, len(pages))
	next, seq := 0, b.seq
	for i := range pages {
		appending.Go(func() {
			last := seq
			_, errs[i] = b.journal.Append(ctx, seq, func(r journal.Record) error { last = r.Seq; return nil },
				func() ([]byte, error) {
					p := pages[next]
					if p.seq != last+1 {
						return nil,
							fmt.Errorf("another program has written to its journal: record %d cannot follow record %d",
								p.seq, last)
					}
					next++
					return p.data, nil
				})
		})
	}
	appending.Wait()
	b.seq = pages[len(pages)-1].seq
	return errors.Join(errs...)
}

// newer returns the journal's state if it differs from the observer's, after all records of the
// observer were written; otherwise nil.
func (b *Book) newer(ctx context.Context, s *team.State) (*team.State, error) {
	if b.journal == nil || s != nil && s.Team().ID == b.team && s.Seq() >= b.seq {
		return nil, nil
	}
	return b.state(ctx)
}

// snapshot saves the state if a snapshot is due, after all records of the observer were written.
func (b *Book) snapshot(ctx context.Context, s *team.State) error {
	if b.journal == nil || s.Team().ID != b.team || s.Seq() != b.seq || !b.journal.SnapshotDue(b.length) {
		return nil
	}
	return b.journal.SaveSnapshot(ctx, func() (int64, []byte) {
		data := team.AppendSnapshot(nil, s)
		b.length = len(data)
		return s.Seq(), data
	})
}
