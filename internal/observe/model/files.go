package model

import (
	"fmt"
	"maps"
	"slices"

	"cadre/internal/observe/protocol"
	"cadre/internal/team"
)

// takeNote processes a note about the team's files.
func (w *Watcher) takeNote(name string, src *source, line []byte, now team.Time) {
	var n protocol.FileNote
	if err := protocol.ReadJSON(line, &n); err != nil || n.Team == "" {
		w.counts.Garbage++
		w.team.warn("%s: a note about files that cannot be read", name)
		return
	}
	if n.N > 0 && len(n.Entry) == 0 && !w.once(protocol.Hash(line)) { // notes about entries have keys instead
		return
	}
	at := src.stamp(n.At, now, w.team.lines)
	if len(n.Config) > 0 {
		w.team.configured(&n, at)
	}
	if !w.team.exists() || !w.team.matchesName(n.Team) {
		return
	}
	switch {
	case n.Gone:
		w.team.ended(w.team.recordID("files"), at, "its files were removed")
		return
	case len(n.Task) > 0:
		var t protocol.TaskFile
		if protocol.ReadJSON(n.Task, &t) == nil && !w.team.board.filed(&t, at) {
			w.team.warn("a task with the invalid id %.40q", t.ID)
		}
	case n.Removed != "":
		w.team.board.removed(n.Removed, at)
	case len(n.Entry) > 0 && n.Taken:
		w.takeDelivered(&n)
	case len(n.Entry) > 0:
		w.takeEntry(name, &n, at)
	case n.Whole != nil:
		w.team.reconcile(n.Whole, at)
	}
	w.team.recordChanges(w.team.recordID("files"), w.team.lead(), at)
	w.again()
}

// takeEntry processes a waiting entry of an inbox.
func (w *Watcher) takeEntry(name string, n *protocol.FileNote, at stamp) {
	var e protocol.InboxEntry
	if protocol.ReadJSON(n.Entry, &e) != nil || e.From == "" {
		return
	}
	if !w.isNew("inbox", n) {
		return
	}
	if p := w.team.roster.People[n.To]; p != nil && p.About.V.Prompt == e.Text && e.From == w.team.lead() {
		return // its prompt, which the roster has
	}
	if word, is := protocol.SignalOf(e.Text); is {
		w.signal(word, e.From, n.To, at)
		return
	}
	if w.team.mail.received(name, e.From, n.To, e.Text) {
		w.team.post(&team.Message{From: e.From, To: n.To, Type: team.TypeMessage, Body: e.Text, Summary: e.Summary})
	}
}

// isNew reports whether this is the first such note about an entry. A new follower reports all
// existing entries again.
func (w *Watcher) isNew(what string, n *protocol.FileNote) bool {
	// An earlier team may have had an equal entry.
	return w.once(protocol.Hash(fmt.Sprint(what, w.team.lifetime.Before, " ", n.To, " ", n.Key)))
}

// takeDelivered marks a message that waited in an inbox as delivered.
func (w *Watcher) takeDelivered(n *protocol.FileNote) {
	var e protocol.InboxEntry
	if protocol.ReadJSON(n.Entry, &e) != nil || w.team.state == nil || !w.isNew("taken", n) {
		return
	}
	for _, m := range w.team.state.Inbox(n.To) {
		if m.From == e.From && m.Body == e.Text {
			w.team.emit(&team.MessagesDelivered{Member: n.To, Seqs: []int64{m.Seq}})
			return
		}
	}
}

// configured applies the roster. A teammate on it has been a member since it joined, and is running
// unless its end was seen later. A teammate that returns to the roster is back. Creation and
// joining count as no later than the time of reading, in case a clock was ahead.
func (s *observedTeam) configured(n *protocol.FileNote, at stamp) {
	var c protocol.ConfigFile
	if protocol.ReadJSON(n.Config, &c) != nil {
		return
	}
	created := stamp{At: min(c.CreatedAt, at.At)}
	switch replaced := s.recreated(n.Team, c.LeadSession, c.CreatedAt); {
	case !s.exists() && !replaced && !s.mayObserve(n.Team, created): // another team, or the remains of one that has ended
		return
	case !s.exists(), replaced:
		for _, m := range c.Members {
			if m.AgentID == c.LeadID && m.Name != "" {
				s.options.Lead = m.Name
				if one := s.speakers.session(c.LeadSession); one.Dir == "" {
					one.Dir = m.Dir
				}
			}
		}
		s.beginTeam(n.Team, c.LeadSession, "", created, c.Description)
	case !s.matchesName(n.Team):
		return
	case s.lifetime.LeadSession == "" && c.LeadSession != "":
		s.setLeadSession(c.LeadSession, "", created)
	}
	s.lifetime.Created = c.CreatedAt
	listed := map[string]bool{}
	for _, m := range c.Members {
		listed[m.Name] = true
		if m.Name == s.lead() {
			continue
		}
		p := s.roster.at(m.Name)
		if p == nil {
			continue
		}
		joined := stamp{At: min(m.JoinedAt, at.At)}
		if p.Ended.V == left {
			joined = at
		}
		p.Joined.learn(true, joined)
		p.About.learn(about{AgentID: m.AgentID, Type: m.Type, Model: m.Model, Color: m.Color, Prompt: m.Prompt,
			Planned: m.Planned}, joined)
		p.Ended.learn("", joined)
		switch {
		case m.Active == nil:
			p.Doing.assume(active)
		case *m.Active:
			p.Doing.learn(active, at)
		default:
			p.Doing.learn(idle, at)
		}
	}
	for name, p := range s.roster.People {
		if !listed[name] && p.Joined.V && p.Ended.V != left && p.About.When.before(at) && p.Ended.When.before(at) {
			s.roster.at(name).Ended.learn(left, at)
		}
	}
	s.speakers.identify(s.roster)
	s.speakers.news = true
}

// reconcile finds out what was removed while no observer ran.
func (s *observedTeam) reconcile(w *protocol.Whole, at stamp) {
	if w.Tasks != nil {
		there := make(map[string]bool, len(w.Tasks))
		for _, id := range w.Tasks {
			there[id] = true
		}
		s.board.only(there, at)
	}
	for _, name := range slices.Sorted(maps.Keys(w.Waiting)) {
		waits := map[uint64]int{}
		for _, mark := range w.Waiting[name] {
			waits[mark]++
		}
		var taken []int64
		for _, m := range s.state.Inbox(name) {
			if mark := protocol.Mark(m.From, name, m.Body); waits[mark] > 0 {
				waits[mark]--
			} else {
				taken = append(taken, m.Seq)
			}
		}
		if len(taken) > 0 {
			s.emit(&team.MessagesDelivered{Member: name, Seqs: taken})
		}
	}
}
