package model

import (
	"fmt"

	"cadre/internal/team"
)

// chronicle is the state of the team that is observed, and the record that is being made of it.
type chronicle struct {
	state *team.State // the last team's if it is gone; nil while there was none
	lines int64       // how many came

	recorded func(*team.State, *team.Record)
	out      Report
	events   []team.Event // of the record that is being made
	placed   int          // tasks that the state has, with those of these events
	mailed   int64        // messages of these events
}

// here reports whether there is a team.
func (c *chronicle) here() bool { return c.state != nil && c.state.Exists() || c.founding() }

// founding reports whether the events that are being gathered begin a team.
func (c *chronicle) founding() bool {
	for _, e := range c.events {
		if _, ok := e.(*team.TeamCreated); ok {
			return true
		}
	}
	return false
}

// emit puts events into the record that is being made.
func (c *chronicle) emit(events ...team.Event) { c.events = append(c.events, events...) }

// post puts a message into the record that waits for its recipient.
func (c *chronicle) post(m *team.Message) {
	c.mailed++
	m.Seq, m.Priority = c.state.MessageSeq()+c.mailed, "normal"
	c.emit(&team.MessageSent{Message: *m})
}

// anID is the id of a record that comes from no call: no line makes two of a kind for one member at
// one time.
func (c *chronicle) anID(kind string) string { return fmt.Sprintf("observed-%d-%s", c.lines, kind) }

// commit closes the record.
func (c *chronicle) commit(id, actor string, at stamp) {
	c.mailed = 0
	if len(c.events) == 0 {
		return
	}
	r := &team.Record{Seq: c.state.Seq() + 1, ID: id, Actor: actor, At: at.At, Events: c.events}
	c.events = nil
	c.state.Apply(r)
	c.out.Records = append(c.out.Records, r)
	c.recorded(c.state, r)
}

func (c *chronicle) warn(format string, args ...any) {
	c.out.Warnings = append(c.out.Warnings, fmt.Sprintf(format, args...))
}

// remembers reports whether the journal has a record with that id already.
func (c *chronicle) remembers(id string) bool { return c.state != nil && c.state.Remembers(id) }

// unblocked are the tasks that wait for t alone.
func (c *chronicle) unblocked(t *team.Task) []string {
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
