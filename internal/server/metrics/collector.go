package metrics

import (
	"fmt"
	"io"
	"sync"
	"time"

	"cadre/internal/team"
)

// Collector computes the figures about the teams that were added. The zero value has no teams. All
// methods may be called from any goroutine; a mutex orders them.
type Collector struct {
	mu        sync.Mutex
	teams     map[string]*history // by id
	conflicts int64
	appends   histogram
}

// Gauges is what is known only outside the histories at the time of a scrape.
type Gauges struct {
	// Now is the present time. Ages and budgets of time are computed with it.
	Now team.Time
	// Attention has the items of all teams. Those that an agent handles do not count.
	Attention []team.Item
	// Outside has what a look found of a team, by its id. For a team without an entry, only what
	// was recorded counts.
	Outside map[string]*team.Outside
	// JournalBytes is the size of all journals on disk.
	JournalBytes int64
	// StreamLag is how many records the slowest reader of a stream has still to read; 0 without
	// readers.
	StreamLag int64
}

// Add adds the next record of the team. It ignores a record that was added before, by its seq. A
// record 1 with another id begins another history of the team, which replaces the known one. Add
// returns an error, and adds nothing, if a record before this one is missing.
//
// The collector keeps texts of the record. The caller must not change it afterwards.
func (c *Collector) Add(teamID string, r *team.Record) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.teams[teamID]
	if h == nil || r.Seq == 1 && r.ID != h.first {
		h = &history{first: r.ID}
	}
	switch seq := h.seq(); {
	case r.Seq <= seq:
		return nil
	case r.Seq > seq+1:
		return fmt.Errorf("metrics: record %d of team %s cannot follow record %d; add the records between them",
			r.Seq, teamID, seq)
	}
	if c.teams == nil {
		c.teams = map[string]*history{}
	}
	c.teams[teamID] = h
	h.add(r)
	return nil
}

// Seq returns the seq of the last record of the team that was added; 0 for an unknown team, and for
// one that was forgotten. The next record to add follows it.
func (c *Collector) Seq(teamID string) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.teams[teamID]; h != nil {
		return h.seq()
	}
	return 0
}

// Forget removes the team from the gauges. What it added to counters and histograms remains,
// because Prometheus takes a smaller counter for a restart. If the team returns, its records must
// be added from the first one; those that counted before do not count again.
func (c *Collector) Forget(teamID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.teams[teamID]; h != nil {
		h.forget()
	}
}

// Conflict counts a claim that was refused because another member has the task. A refused command
// leaves no record, so this count begins at 0 when the server starts.
func (c *Collector) Conflict() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conflicts++
}

// ObserveAppend counts a write to a journal that took that long until it was durable. Its time is
// not in the record, so this count begins at 0 when the server starts.
func (c *Collector) ObserveAppend(took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.appends.observe(appendBounds, took)
}

// Totals are sums over the histories of all teams, forgotten ones too.
type Totals struct {
	SessionsSpawned  int64         // sessions that started, resumed ones too
	AverageSession   time.Duration // average time from start to end of the sessions that ended; 0 if none ended
	TasksProcessed   int64         // tasks that were completed, or ran out of retries
	SuccessRate      float64       // share of those that were completed, from 0 to 1; 0 before the first
	TokensUsed       int64         // tokens of all kinds
	TeamsCreated     int64         // teams that were created or restored
	TeammatesSpawned int64         // teammates that joined a team
	TasksCompleted   int64         // tasks that were completed
	Messages         int64         // messages that were sent; a broadcast is one
}

// Totals returns the sums over the histories of all teams.
func (c *Collector) Totals() Totals {
	c.mu.Lock()
	defer c.mu.Unlock()
	var s sums
	tokens := team.Usage{}
	for _, h := range c.teams {
		s.merge(&h.sums)
		for i := range h.sums.models {
			tokens = tokens.Plus(h.sums.models[i].usage)
		}
	}
	t := Totals{SessionsSpawned: s.sessions, TasksProcessed: s.completed + s.failed, TokensUsed: tokens.Tokens(),
		TeamsCreated: s.created, TeammatesSpawned: s.spawned, TasksCompleted: s.completed, Messages: s.messages}
	if s.ended > 0 {
		t.AverageSession = time.Duration(s.sessionTime/s.ended) * time.Millisecond
	}
	if t.TasksProcessed > 0 {
		t.SuccessRate = float64(s.completed) / float64(t.TasksProcessed)
	}
	return t
}

// ContentType is the media type of what [Collector.Write] writes.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Write writes all metrics in Prometheus's text format, version 0.0.4, with one call of w. Equal
// figures give equal bytes.
func (c *Collector) Write(w io.Writer, g Gauges) error {
	_, err := w.Write(c.text(g))
	return err
}

func (c *Collector) text(g Gauges) []byte {
	f := c.figures(g)
	p := page{}
	for i := range table {
		p.metric(&table[i])
		table[i].samples(&p, f)
	}
	return p.text
}
