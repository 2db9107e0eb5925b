package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"cadre/internal/engine"
	"cadre/internal/team"
)

// frames are states of a team, one after the other.
type frames struct {
	Base    map[string]any  // the state before the patches; nil if it was not asked for
	Patches json.RawMessage // a list: what changed from each state to the next one
	Last    int64           // the last record of the team
	Marks   []point         // the marks after the record that was asked for; nil if they were not asked for
	Marked  int64           // the last record that was read for the marks
}

// WriteTo writes the frames as JSON. It does not look into the patches, which were encoded once for
// all pages that ask for them.
func (f frames) WriteTo(w io.Writer) (int64, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	if f.Base != nil {
		data, err := json.Marshal(f.Base)
		if err != nil {
			return 0, err
		}
		b.WriteString(`"base":`)
		b.Write(data)
		b.WriteByte(',')
	}
	b.WriteString(`"patches":`)
	b.Write(f.Patches)
	fmt.Fprintf(&b, `,"last":%d`, f.Last)
	if f.Marks != nil {
		data, err := json.Marshal(f.Marks)
		if err != nil {
			return 0, err
		}
		b.WriteString(`,"marks":`)
		b.Write(data)
		fmt.Fprintf(&b, `,"marked":%d`, f.Marked)
	}
	b.WriteByte('}')
	return b.WriteTo(w)
}

// listOf returns encoded values as a list.
func listOf(values []json.RawMessage) json.RawMessage {
	b := []byte{'['}
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, v...)
	}
	return append(b, ']')
}

// stretch is a part of a history: the states after every so many records, from one record to
// another.
type stretch struct{ after, to, every int64 }

// reels has the patches of the stretches that were asked for. The records of a history do not
// change, and neither do the patches.
type reels struct {
	mu    sync.Mutex
	kept  map[stretch]*reel
	bytes int
	next  *head // where the last stretch of an overview ended; nil for nowhere
}

// head is the state of the history at which the next stretch begins.
type head struct {
	seq, every int64
	at         team.Time
	state      *team.State
	tracker    *tracker
}

// reel is one stretch. A page that asks for it while it is made waits for it.
type reel struct {
	mu      sync.Mutex
	patches json.RawMessage // nil until they are made
}

// mostReels bounds the patches that are kept of one team, in bytes. 20,000 records take 6 MB.
const mostReels = 16 << 20

// of returns the reel of the stretch.
func (rs *reels) of(s stretch) *reel {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r := rs.kept[s]
	if r == nil {
		if rs.kept == nil || rs.bytes > mostReels {
			rs.kept, rs.bytes = map[stretch]*reel{}, 0
		}
		r = &reel{}
		rs.kept[s] = r
	}
	return r
}

// frames answers with the states of the stretch, as far as the history has them, and with the state
// before them if whole is set.
func (rs *reels) frames(ctx context.Context, t *engine.Team, s stretch, whole bool) (is frames, err error) {
	is.Last = t.Seq()
	r := &reel{}
	if s.to <= is.Last {
		r = rs.of(s)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.patches != nil && !whole {
		is.Patches = r.patches
		return is, nil
	}
	h, err := rs.head(ctx, t, s)
	if err != nil {
		return is, err
	}
	if whole {
		is.Base = h.tracker.whole(s.after, h.at)
	}
	if is.Patches = r.patches; is.Patches != nil {
		return is, nil
	}
	if is.Patches, err = h.run(ctx, t, s.to); err != nil {
		return is, err
	}
	if h.seq == s.to { // otherwise it still grows, or a part of it is lost
		r.patches = is.Patches
		rs.made(h, len(is.Patches))
	}
	return is, nil
}

// made counts the bytes of a reel. Where it ends, the next part of an overview begins, which a page
// asks for at once.
func (rs *reels) made(end *head, bytes int) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.bytes += bytes
	if end.every > 1 {
		rs.next = end
	}
}

// head returns the state before the stretch.
func (rs *reels) head(ctx context.Context, t *engine.Team, s stretch) (*head, error) {
	rs.mu.Lock()
	h := rs.next
	rs.next = nil
	rs.mu.Unlock()
	if h != nil && h.seq == s.after && h.every == s.every {
		return h, nil
	}
	h = &head{seq: s.after, every: s.every, state: empty(), tracker: newTracker()}
	if s.after > 0 {
		var err error
		if h.state, err = t.Past().At(ctx, s.after); err != nil {
			return nil, err
		}
		h.at = h.state.Team().UpdatedAt
		h.tracker.take(h.state, h.at)
	}
	return h, nil
}

// run moves the head forward to the record to, or to the end of the history, and returns the
// patches of the records that it passed.
func (h *head) run(ctx context.Context, t *engine.Team, to int64) (json.RawMessage, error) {
	all, step := []json.RawMessage{}, []*team.Record{}
	for r, err := range t.Records(ctx, h.seq) {
		if _, lost := errors.AsType[*engine.LostError](err); lost {
			break // the page asks again, after the gap
		}
		if err != nil {
			return nil, err
		}
		if r.Seq > to || len(all) == mostStates {
			break
		}
		h.state.Apply(r)
		if step = append(step, r); int64(len(step)) == h.every {
			all = append(all, encoded(h.tracker.update(h.state, step...)))
			step, h.seq, h.at = step[:0], r.Seq, r.At
		}
	}
	return listOf(all), nil
}

func encoded(patch map[string]any) json.RawMessage {
	data, err := json.Marshal(patch)
	if err != nil {
		panic(fmt.Sprint("a patch cannot be written: ", err)) // its parts were
	}
	return data
}
