package tui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"cadre/internal/engine"
	"cadre/internal/inspect/attention"
	"cadre/internal/inspect/history"
	"cadre/internal/team"
	"cadre/internal/ui/costs"
	"cadre/internal/ui/timeline"
)

// recalled is the history of the open team, as far as it was read. It grows record by record.
type recalled struct {
	lanes timeline.Timeline
	costs costs.Costs
	marks history.Marks
	tasks history.Tasks
	seq   int64 // of the last record
	whole bool  // the history was read to the end that it had on opening
	gaps  int   // gaps, each of records lost to damage
	seen  int64 // the last record that was shown on the person's last visit; 0 for none
	since *history.Summary
}

// These messages are about the history of the open team.
type (
	// recordsMsg carries the next records. state is the state after records that are lost to
	// damage.
	recordsMsg struct {
		ref     string
		fresh   bool  // they are the first ones
		looked  int64 // with fresh: the last record that an earlier program showed
		records []*team.Record
		lost    *team.State
		whole   bool
	}
	// momentMsg carries the team as it was after a record.
	momentMsg struct {
		ref   string
		seq   int64
		view  *teamView
		feed  []feedLine
		items []itemRow // that waited then
		err   string
	}
)

// batch is the highest number of records in a message. Between messages, the screen handles keys.
const batch = 4_000

// recall sends the records after the record after, and returns the number of the last one.
func (s *source) recall(ctx context.Context, ref string, t *engine.Team, after int64, fresh bool) (int64, error) {
	msg := recordsMsg{ref: ref, fresh: fresh}
	if fresh {
		msg.looked = t.Looked(ctx)
	}
	flush := func() {
		s.send(msg)
		msg = recordsMsg{ref: ref}
	}
	for r, err := range t.Records(ctx, after) {
		var lost *engine.LostError
		switch {
		case errors.As(err, &lost):
			if lost.Next == 0 {
				break
			}
			state, err := t.Past().At(ctx, lost.Next)
			if err != nil {
				return after, err
			}
			flush()
			msg.lost, after = state, lost.Next
			flush()
		case err != nil:
			return after, err
		default:
			msg.records = append(msg.records, r)
			if after = r.Seq; len(msg.records) == batch {
				flush()
			}
		}
	}
	if len(msg.records) > 0 || fresh {
		msg.whole = true
		flush()
	}
	return after, nil
}

// reads makes t the team whose moments can be read. The function that it returns ends that, and
// waits for reads that are running.
func (s *source) reads(ctx context.Context, ref string, t *engine.Team) func() {
	one := &opened{ref: ref, team: t}
	ctx, stop := context.WithCancel(ctx)
	one.readers.Go(func() { _ = t.Past().Prepare(ctx) }) // a jump reports the error
	s.mu.Lock()
	s.opened = one
	s.mu.Unlock()
	return func() {
		stop()
		s.mu.Lock()
		if s.opened == one {
			s.opened = nil
		}
		s.mu.Unlock()
		one.readers.Wait()
	}
}

// opened is an open team, and its current readers.
type opened struct {
	ref     string
	team    *engine.Team
	readers sync.WaitGroup
}

// reading returns the open team. The caller must call done when it has read.
func (s *source) reading(ref string) (t *engine.Team, done func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.opened
	if one == nil || one.ref != ref {
		return nil, nil, errors.New("the team is not open yet")
	}
	one.readers.Add(1)
	return one.team, one.readers.Done, nil
}

// Moment implements [outside].
func (s *source) Moment(ref string, seq int64) tea.Msg {
	msg := momentMsg{ref: ref, seq: seq}
	fail := func(err error) tea.Msg {
		msg.err = oneLine(explain(err))
		return msg
	}
	t, done, err := s.reading(ref)
	if err != nil {
		return fail(err)
	}
	defer done()
	state, err := t.Past().At(s.ctx, seq)
	if err != nil {
		return fail(err)
	}
	msg.view = viewOf(ref, state, nil)
	msg.items = itemsAt(ref, state)
	ctx, cancel := context.WithTimeout(s.ctx, time.Second)
	defer cancel()
	var records []*team.Record
	for r, err := range t.Records(ctx, max(0, seq-mostFeed)) {
		if err != nil || r.Seq > seq {
			break // a moment without its lines is still useful
		}
		records = append(records, r)
	}
	msg.feed = feedOf(records, state)
	return msg
}

// itemsAt returns what waited in the team in that state. What only outside observation shows is not
// known of the past.
func itemsAt(ref string, state *team.State) []itemRow {
	of := state.Team()
	return itemsOf(attention.Found{Folder: ref, Team: of, Items: state.Attention(of.UpdatedAt, nil)})
}

// recalls stores new records of the open team.
func (m *Model) recalls(msg recordsMsg) {
	if msg.ref != m.ref {
		return
	}
	if msg.fresh || m.past == nil {
		m.past = &recalled{seen: max(m.looked[m.ref], msg.looked)}
	}
	p := m.past
	if msg.lost != nil {
		p.gaps++
		p.lanes.Restore(msg.lost)
		p.costs.Restore(msg.lost)
		p.seq = msg.lost.Seq()
	}
	for _, r := range msg.records {
		p.lanes.Add(r)
		p.costs.Add(r)
		p.marks.Add(r)
		p.tasks.Add(r)
		p.seq = max(p.seq, r.Seq)
		if p.seen > 0 && r.Seq > p.seen {
			if p.since == nil {
				p.since = &history.Summary{Reader: m.reader()}
			}
			p.since.Add(r)
		}
	}
	if !msg.whole {
		return
	}
	if p.since != nil && !p.whole {
		if n := len(p.since.Lines(m.called)); n > 0 {
			m.notice = notice{fmt.Sprintf("%s since you last looked at %s; s shows what.", team.Count(n, "change"),
				m.name()), waits}
		}
	}
	p.whole = true
	if m.travel.seq == 0 {
		m.looked[m.ref] = p.seq
	}
}

// called returns the name of a task of the open team, or its number.
func (m *Model) called(id string) string {
	if v := m.presentView(); v != nil {
		if i := slices.IndexFunc(v.everyTask, func(t taskRow) bool { return t.id == id }); i >= 0 {
			return v.everyTask[i].called
		}
	}
	return "#" + id
}

// presentView is the open team as it is now.
func (m *Model) presentView() *teamView {
	if m.away() {
		return m.travel.live
	}
	return m.team
}

// reader returns the name of the lead if the lead is a person; otherwise "". That person reads the
// lead's mail.
func (m *Model) reader() string {
	if v := m.presentView(); v != nil && slices.ContainsFunc(v.members, func(r memberRow) bool {
		return r.lead && r.agent == team.External
	}) {
		return v.lead
	}
	return ""
}

// name returns the name of the open team.
func (m *Model) name() string {
	if v := m.presentView(); v != nil {
		return v.name
	}
	return m.teamName(m.ref)
}
