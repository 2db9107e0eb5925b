package observe

import (
	"encoding/json"
	"slices"

	"cadre/internal/team"
)

// call is a recognised tool use that waits for its result.
type call struct {
	ID       string          `json:"id"`
	Tool     string          `json:"tool"`
	Input    json.RawMessage `json:"input,omitempty"`
	By       speaker         `json:"by"`
	At       stamp           `json:"at"`
	ModelMsg string          `json:"msg,omitempty"` // the model's message that it is a part of
	Source   string          `json:"source,omitempty"`
	Came     team.Time       `json:"came"` // by the clock that was given, for the time to live
}

// early is a result that came before its call.
type early struct {
	result
	Came team.Time `json:"came"`
}

// correlation brings calls and results together by the id of the tool use, whichever comes first.
type correlation struct {
	ttl   team.Time
	calls map[string]*call
	early map[string]*early
	order []waiting // of both, the oldest first, with what is gone since
	done  seen

	discarded, orphaned, duplicates int64
}

type waiting struct {
	id   string
	came team.Time
}

const (
	// TTL is how long half of a call waits for the other, in milliseconds.
	TTL = 30_000
	// maxWaiting bounds the halves that wait; the oldest make room.
	maxWaiting = 4096
	// maxEarly bounds the text of a result whose call nobody has seen.
	maxEarly = 1 << 20
)

func newCorrelation(ttl team.Time) *correlation {
	return &correlation{ttl: ttl, calls: map[string]*call{}, early: map[string]*early{}}
}

// knows reports whether the call was taken already.
func (c *correlation) knows(id string) bool { return c.calls[id] != nil || c.done.has(hash(id)) }

// call takes a call, and gives its result if that is here already. Of two calls with one id the later counts, until the result came.
func (c *correlation) call(one *call, now team.Time) (*result, bool) {
	one.Came = now
	if c.done.has(hash(one.ID)) {
		c.duplicates++
		return nil, false
	}
	if r := c.early[one.ID]; r != nil {
		delete(c.early, one.ID)
		c.done.add(hash(one.ID))
		return &r.result, true
	}
	if before := c.calls[one.ID]; before != nil {
		c.duplicates++
		one.Came = before.Came
	} else {
		c.wait(one.ID, now)
	}
	c.calls[one.ID] = one
	return nil, false
}

// result takes a result, and gives its call if that is here already.
func (c *correlation) result(r *result, now team.Time) (*call, bool) {
	if c.done.has(hash(r.ID)) {
		c.duplicates++
		return nil, false
	}
	if one := c.calls[r.ID]; one != nil {
		delete(c.calls, r.ID)
		c.done.add(hash(r.ID))
		return one, true
	}
	switch {
	case c.early[r.ID] != nil:
		c.duplicates++
	case len(r.S)+len(r.R) > maxEarly:
		c.orphaned++
	default:
		c.wait(r.ID, now)
		c.early[r.ID] = &early{*r, now}
	}
	return nil, false
}

func (c *correlation) wait(id string, now team.Time) {
	c.order = append(c.order, waiting{id, now})
	if len(c.order) > 4*maxWaiting { // nearly all have found their other half, while time stood still: a file is read
		c.order = slices.DeleteFunc(c.order, func(w waiting) bool { return !c.waits(w) && w.id != id })
	}
	for len(c.calls)+len(c.early) >= maxWaiting && len(c.order) > 0 {
		c.drop(c.order[0])
		c.order = c.order[1:]
	}
}

// waits reports whether a half still waits.
func (c *correlation) waits(w waiting) bool {
	one, r := c.calls[w.id], c.early[w.id]
	return one != nil && one.Came == w.came || r != nil && r.Came == w.came
}

// drop gives up on a half, unless it has found the other or was seen again since.
func (c *correlation) drop(w waiting) bool {
	if one := c.calls[w.id]; one != nil && one.Came == w.came {
		delete(c.calls, w.id)
		c.discarded++
		return true
	}
	if r := c.early[w.id]; r != nil && r.Came == w.came {
		delete(c.early, w.id)
		c.orphaned++
		return true
	}
	return false
}

// resume has everything that waits wait from now on.
func (c *correlation) resume(now team.Time) {
	c.order = slices.DeleteFunc(c.order, func(w waiting) bool { return !c.waits(w) })
	for i, w := range c.order {
		if one := c.calls[w.id]; one != nil {
			one.Came = now
		} else {
			c.early[w.id].Came = now
		}
		c.order[i].came = now
	}
}

// expire gives up on what has waited for too long, and returns how many calls and results that were.
func (c *correlation) expire(now team.Time) (n int) {
	for len(c.order) > 0 && now-c.order[0].came > c.ttl {
		if c.drop(c.order[0]) {
			n++
		}
		c.order = c.order[1:]
	}
	return n
}
