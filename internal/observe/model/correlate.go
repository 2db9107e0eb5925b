package model

import (
	"encoding/json"
	"slices"

	"cadre/internal/observe/protocol"
	"cadre/internal/team"
)

// call is a recognised tool use that waits for its result.
type call struct {
	ID       string          `json:"id"`
	Tool     string          `json:"tool"`
	Input    json.RawMessage `json:"input,omitempty"`
	By       speaker         `json:"by"`
	At       stamp           `json:"at"`
	ModelMsg string          `json:"msg,omitempty"`   // id of the model's message that contains it
	Quiet    bool            `json:"quiet,omitempty"` // no supplement was made yet, because it may not belong to a team
	Source   string          `json:"source,omitempty"`
	Came     team.Time       `json:"came"` // by the given clock, for the time to live
}

// result is the result of a call, with its time.
type result struct {
	protocol.Result
	At stamp `json:"at"`
}

// early is a result that arrived before its call.
type early struct {
	result
	Came team.Time `json:"came"`
}

// correlation matches calls and results by the id of the tool use, in whatever order they arrive.
type correlation struct {
	ttl            team.Time // of results
	calls          map[string]*call
	early          map[string]*early
	waitingCalls   queue // waiting calls
	waitingResults queue // waiting results
	done           seen

	discarded, orphaned, duplicates int64
}

// queue holds the waiting ids, the oldest first. It may contain ids that no longer wait.
type queue []waiting

type waiting struct {
	id   string
	came team.Time
}

const (
	// TTL is how long a result waits for its call, in milliseconds. Both are lines of one stream,
	// whose order varies only a little.
	TTL = 30_000
	// CallTTL is how long a call waits for its result, in milliseconds. A permission prompt or a
	// hook may delay it for hours.
	CallTTL = 24 * 60 * 60 * 1000
	// maxWaiting limits the number of waiting calls and results; the oldest are dropped.
	maxWaiting = 4096
	// maxEarly limits the text of a result whose call is unknown.
	maxEarly = 1 << 20
)

func newCorrelation(ttl team.Time) *correlation {
	return &correlation{ttl: ttl, calls: map[string]*call{}, early: map[string]*early{}}
}

// knows reports whether the call was processed already.
func (c *correlation) knows(id string) bool {
	return c.calls[id] != nil || c.done.has(protocol.Hash(id))
}

// call adds a call and returns its result if that has arrived. Of two calls with the same id, the
// later one counts, until the result has arrived.
func (c *correlation) call(one *call, now team.Time) (*result, bool) {
	one.Came = now
	if c.done.has(protocol.Hash(one.ID)) {
		c.duplicates++
		return nil, false
	}
	if r := c.early[one.ID]; r != nil {
		delete(c.early, one.ID)
		c.done.add(protocol.Hash(one.ID))
		return &r.result, true
	}
	if before := c.calls[one.ID]; before != nil {
		c.duplicates++
		one.Came = before.Came
	} else {
		c.wait(&c.waitingCalls, one.ID, now)
	}
	c.calls[one.ID] = one
	return nil, false
}

// result adds a result and returns its call if that has arrived.
func (c *correlation) result(r *result, now team.Time) (*call, bool) {
	if c.done.has(protocol.Hash(r.ID)) {
		c.duplicates++
		return nil, false
	}
	if one := c.calls[r.ID]; one != nil {
		delete(c.calls, r.ID)
		c.done.add(protocol.Hash(r.ID))
		return one, true
	}
	switch {
	case c.early[r.ID] != nil:
		c.duplicates++
	case len(r.S)+len(r.R) > maxEarly:
		c.orphaned++
	default:
		c.wait(&c.waitingResults, r.ID, now)
		c.early[r.ID] = &early{*r, now}
	}
	return nil, false
}

func (c *correlation) wait(in *queue, id string, now team.Time) {
	if len(*in) >= 4*maxWaiting { // while a file is read, nothing expires, and nearly all entries are matched
		*in = slices.DeleteFunc(*in, func(w waiting) bool { return !c.waits(w) })
	}
	for len(c.calls)+len(c.early) >= maxWaiting && len(c.waitingCalls)+len(c.waitingResults) > 0 {
		oldest := &c.waitingCalls
		if len(c.waitingCalls) == 0 || len(c.waitingResults) > 0 && c.waitingResults[0].came < c.waitingCalls[0].came {
			oldest = &c.waitingResults
		}
		c.drop((*oldest)[0])
		*oldest = (*oldest)[1:]
	}
	*in = append(*in, waiting{id, now})
}

// waits reports whether a call or result still waits.
func (c *correlation) waits(w waiting) bool {
	one, r := c.calls[w.id], c.early[w.id]
	return one != nil && one.Came == w.came || r != nil && r.Came == w.came
}

// drop discards a call or result, unless it was matched or repeated in the meantime.
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

// resume restarts the waiting time of every call and result.
func (c *correlation) resume(now team.Time) {
	for _, q := range []*queue{&c.waitingCalls, &c.waitingResults} {
		*q = slices.DeleteFunc(*q, func(w waiting) bool { return !c.waits(w) })
		for i, w := range *q {
			if one := c.calls[w.id]; one != nil {
				one.Came = now
			} else {
				c.early[w.id].Came = now
			}
			(*q)[i].came = now
		}
	}
}

// expire discards calls and results that have waited too long, and returns their number.
func (c *correlation) expire(now team.Time) int {
	return c.expired(&c.waitingCalls, now-CallTTL) + c.expired(&c.waitingResults, now-c.ttl)
}

// expired discards entries older than since.
func (c *correlation) expired(q *queue, since team.Time) (n int) {
	for len(*q) > 0 && (*q)[0].came < since {
		if c.drop((*q)[0]) {
			n++
		}
		*q = (*q)[1:]
	}
	return n
}
