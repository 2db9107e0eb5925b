package api

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"cadre/internal/engine"
	"cadre/internal/team"
)

// What a feed keeps of the last records, and how many older ones a reader is given at a time.
const (
	feedRecords = 4096
	feedBytes   = 4 << 20
	feedBatch   = 256
)

// How long readers of a feed rest; see [feed.rest].
const (
	restEach    = time.Millisecond
	longestRest = 250 * time.Millisecond
)

// Frame is an encoded record.
type Frame struct {
	Seq  int64
	Data []byte
}

// Feed has the last records of a team, encoded once for all its readers. A goroutine adds records
// while there are readers. A reader that is further behind reads the journal by itself.
type Feed struct {
	team    *engine.Team
	encoder Encoder
	end     context.CancelFunc
	users   atomic.Int64 // changed under Feeds.mu

	mu    sync.Mutex
	grown chan struct{} // closed and replaced at each new record, and when err is set
	from  int64         // the feed has the records after this one
	last  []Frame       // those records, without a gap
	bytes int
	err   error // why no more records come
}

// Encoder returns what encodes the records of the team after the record after, each once and in
// their order.
type Encoder func(ctx context.Context, t *engine.Team, after int64) (func(*team.Record) []byte, error)

// Feeds are the feeds of all teams that have readers. The zero Feeds encode records as JSON.
type Feeds struct {
	// Encoder encodes the records otherwise; nil for JSON.
	Encoder Encoder

	mu  sync.Mutex
	all map[string]*Feed // by the ids of the teams
}

// Follow returns the feed of the team, and how to leave it. open opens the team for the feed.
func (f *Feeds) Follow(id string, open func() (*engine.Team, error)) (*Feed, func(), error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	is := f.all[id]
	if is == nil {
		t, err := open()
		if err != nil {
			return nil, nil, err
		}
		ctx, end := context.WithCancel(context.Background())
		is = &Feed{team: t, encoder: f.Encoder, end: end, from: t.Seq(), grown: make(chan struct{})}
		if is.encoder == nil {
			is.encoder = encodeJSON
		}
		if f.all == nil {
			f.all = map[string]*Feed{}
		}
		f.all[id] = is
		go is.run(ctx)
	}
	is.users.Add(1)
	return is, sync.OnceFunc(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if is.users.Add(-1) == 0 {
			delete(f.all, id)
			is.end()
		}
	}), nil
}

// run adds the records to the feed as they come, until ctx ends.
func (f *Feed) run(ctx context.Context) {
	defer f.team.Close()
	err := f.watch(ctx)
	if err == nil {
		err = errors.New("the team is no longer followed")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
	close(f.grown)
}

func (f *Feed) watch(ctx context.Context) error {
	began := f.from // nobody else changes it
	encode, err := f.encoder(ctx, f.team, began)
	if err != nil {
		return err
	}
	for r, err := range f.team.Watch(ctx, began) {
		if err != nil {
			return err
		}
		f.add(Frame{r.Seq, encode(r)})
	}
	return nil
}

// encodeJSON is the [Encoder] to JSON.
func encodeJSON(context.Context, *engine.Team, int64) (func(*team.Record) []byte, error) {
	return func(r *team.Record) []byte {
		data, err := json.Marshal(r)
		if err != nil { // a record was read from the journal, and can be written again
			panic(err)
		}
		return data
	}, nil
}

func (f *Feed) add(one Frame) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = append(f.last, one)
	f.bytes += len(one.Data)
	if len(f.last) > 2*feedRecords || f.bytes > 2*feedBytes {
		f.drop()
	}
	close(f.grown)
	f.grown = make(chan struct{})
}

// drop removes the oldest records. It leaves room, so that it copies each record about once.
func (f *Feed) drop() {
	n := 0
	for len(f.last)-n > feedRecords || f.bytes > feedBytes && len(f.last)-n > 1 {
		f.bytes -= len(f.last[n].Data)
		n++
	}
	f.from = f.last[n].Seq - 1
	f.last = slices.Clone(f.last[n:])
}

// rest returns how long a reader waits after it was sent something, so that records that come in
// quick succession are sent at once. The more readers there are, the longer it is: together they
// cost a writer no more than a few.
func (f *Feed) rest() time.Duration {
	return max(together, min(time.Duration(f.users.Load())*restEach, longestRest))
}

// Next returns the records after seq after, at least one, as soon as there are some.
func (f *Feed) Next(ctx context.Context, after int64) ([]Frame, error) {
	for {
		f.mu.Lock()
		grown, err := f.grown, f.err
		var found []Frame
		behind := after < f.from
		if !behind {
			found = f.last[min(int(after-f.from), len(f.last)):]
		}
		f.mu.Unlock()
		if len(found) > 0 {
			return found, nil
		}
		if behind {
			if found, err := f.older(ctx, after); len(found) > 0 || err != nil {
				return found, err
			}
		}
		if err != nil {
			return nil, err
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// older reads records that the feed does not have. Its error is an [*engine.LostError] where the
// next ones are lost to damage.
func (f *Feed) older(ctx context.Context, after int64) (found []Frame, err error) {
	encode, err := f.encoder(ctx, f.team, after)
	if err != nil {
		return nil, err
	}
	for r, err := range f.team.Records(ctx, after) {
		if err != nil && len(found) > 0 { // the next call meets it again
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		if found = append(found, Frame{r.Seq, encode(r)}); len(found) == feedBatch {
			break
		}
	}
	return found, nil
}
