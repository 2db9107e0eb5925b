package model

import (
	"fmt"

	"cadre/internal/team"
)

// recorder is the state of the observed team, and the record under construction.
type recorder struct {
	state *team.State // the last team's, if it was removed; nil before the first team
	lines int64       // number of lines so far

	recorded     func(*team.State, *team.Record)
	out          Report
	events       []team.Event // events of the record under construction
	taskCount    int          // number of tasks in the state, including these events
	messageCount int64        // number of messages in these events
}

// exists reports whether a team exists.
func (c *recorder) exists() bool { return c.state != nil && c.state.Exists() || c.founding() }

// founding reports whether the events under construction create a team.
func (c *recorder) founding() bool {
	for _, e := range c.events {
		if _, ok := e.(*team.TeamCreated); ok {
			return true
		}
	}
	return false
}

// emit adds events to the record under construction.
func (c *recorder) emit(events ...team.Event) { c.events = append(c.events, events...) }

// post adds a message to the record, as pending.
func (c *recorder) post(m *team.Message) {
	c.messageCount++
	m.Seq, m.Priority = c.state.MessageSeq()+c.messageCount, "normal"
	c.emit(&team.MessageSent{Message: *m})
}

// recordID returns the id of a record that comes from no call. It is unique, because a line makes
// at most one record of a kind for a member at a time.
func (c *recorder) recordID(kind string) string { return fmt.Sprintf("observed-%d-%s", c.lines, kind) }

// commit completes the record.
func (c *recorder) commit(id, actor string, at stamp) {
	c.messageCount = 0
	if len(c.events) == 0 {
		return
	}
	r := &team.Record{Seq: c.state.Seq() + 1, ID: id, Actor: actor, At: at.At, Events: c.events}
	c.events = nil
	c.state.Apply(r)
	c.out.Records = append(c.out.Records, r)
	c.recorded(c.state, r)
}

func (c *recorder) warn(format string, args ...any) {
	c.out.Warnings = append(c.out.Warnings, fmt.Sprintf(format, args...))
}

// remembers reports whether the journal already has a record with that id.
func (c *recorder) remembers(id string) bool { return c.state != nil && c.state.Remembers(id) }

// unblocked returns the tasks that wait only for t.
func (c *recorder) unblocked(t *team.Task) []string {
	var ids []string
	if t.Status != team.Pending && t.Status != team.InProgress {
		return nil
	}
	for _, id := range t.Blocks {
		if w, ok := c.state.Task(id); ok && w.Status == team.Pending && len(w.Blocked()) == 1 {
			ids = append(ids, id)
		}
	}
	return ids
}
