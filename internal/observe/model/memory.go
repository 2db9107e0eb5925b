package model

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"cadre/internal/team"
)

// memory is the saved form of a watcher.
type memory struct {
	V int `json:"v"`
	// Agent is set for a session without a team. The data then belongs to package session.
	Agent     string              `json:"agent,omitempty"`
	Seq       int64               `json:"seq"`
	State     json.RawMessage     `json:"state,omitempty"`
	Lifetime  lifetime            `json:"epoch"`
	Board     *board              `json:"board"`
	Roster    *roster             `json:"roster"`
	Mail      *messageCounts      `json:"mail"`
	Calls     map[string]*call    `json:"calls,omitempty"`
	Early     map[string]*early   `json:"early,omitempty"`
	Waiting   []string            `json:"waiting,omitempty"`
	Done      []byte              `json:"done,omitempty"`
	Foreign   []byte              `json:"foreign,omitempty"`
	Sessions  map[string]*session `json:"sessions,omitempty"`
	Order     []string            `json:"order,omitempty"`
	Sides     map[string]*side    `json:"sides,omitempty"`
	SideOrder []string            `json:"sideOrder,omitempty"`
	Sources   map[string]*source  `json:"sources,omitempty"`
	Spent     map[string]*spent   `json:"spent,omitempty"`
	Held      []fact              `json:"held,omitempty"`
	Lines     int64               `json:"lines"`
	Counts    Counts              `json:"counts"`
}

const memoryVersion = 1

// ErrNewer reports that an observer was saved by a newer version of cadre.
var ErrNewer = errors.New("the observation was saved by a newer version of cadre; update cadre on this machine")

// ErrOther reports that the saved observation is of another kind or team: a team instead of a
// session without one, the reverse, or another team.
var ErrOther = errors.New("it belongs to another observation")

// Save encodes the watcher's knowledge as one JSON object: the team's state, waiting calls and
// results, and ids that were counted already. A watcher restored from it continues as if nothing
// had happened.
func (w *Watcher) Save() ([]byte, error) {
	m := memory{V: memoryVersion, Lifetime: w.team.lifetime, Board: w.team.board, Roster: w.team.roster,
		Mail: w.team.mail, Calls: w.correlation.calls, Early: w.correlation.early,
		Sessions: w.speakers.sessions, Order: w.speakers.order, Sides: w.speakers.sides,
		SideOrder: w.speakers.sideOrder, Sources: w.speakers.sources, Spent: w.team.spent, Held: w.held,
		Lines: w.team.lines, Counts: w.Counts()}
	if w.team.state != nil {
		m.Seq, m.State = w.team.state.Seq(), team.AppendSnapshot(nil, w.team.state)
	}
	for _, half := range slices.Concat(w.correlation.waitingCalls, w.correlation.waitingResults) {
		if w.correlation.waits(half) {
			m.Waiting = append(m.Waiting, half.id)
		}
	}
	for _, h := range w.correlation.done.inOrder() {
		m.Done = binary.LittleEndian.AppendUint64(m.Done, h)
	}
	for _, h := range w.filter.Ignored() {
		m.Foreign = binary.LittleEndian.AppendUint64(m.Foreign, h)
	}
	return json.Marshal(m)
}

// Restore returns a watcher with the knowledge that [Watcher.Save] saved. newer is the journal's
// state, or nil. It replaces the saved state if it is newer, because the journal is written more
// often. Without saved data, newer is all there is.
func Restore(options Options, recorded Recorded, saved []byte, newer *team.State) (*Watcher, error) {
	w := New(options, recorded)
	if len(saved) > 0 {
		if err := w.restore(saved); err != nil {
			return nil, fmt.Errorf("restore the saved observation: %w", err)
		}
	}
	have := w.team.state
	if newer != nil && (have == nil || newer.Seq() != have.Seq() || newer.Team().ID != have.Team().ID) {
		w.team.adopt(newer)
	}
	if of := options.Of; of != "" && w.team.state != nil && w.team.lifetime.Name != "" && w.team.lifetime.Name != of {
		return nil, ErrOther
	}
	return w, nil
}

func (w *Watcher) restore(saved []byte) error {
	m := memory{Board: w.team.board, Roster: w.team.roster, Mail: w.team.mail}
	if err := json.Unmarshal(saved, &m); err != nil {
		return err
	}
	switch {
	case m.Agent != "":
		return ErrOther
	case m.V > memoryVersion:
		return ErrNewer
	}
	if m.Board == nil || m.Roster == nil || m.Mail == nil || len(m.Done)%8 != 0 {
		return errors.New("it is not complete")
	}
	if len(m.State) > 0 {
		s, err := team.DecodeSnapshot(m.Seq, string(m.State))
		if err != nil {
			return err
		}
		w.team.state = s
	}
	w.team.lifetime, w.team.board, w.team.roster, w.team.mail = m.Lifetime, m.Board, m.Roster, m.Mail
	dropNil(&w.team.board.Tasks)
	dropNil(&w.team.roster.People)
	ensureMap(&w.team.roster.Spawns)
	ensureMap(&w.team.roster.Said)
	dropNil(&w.team.mail.Tallies)
	w.team.board.count()
	w.speakers.restore(&m)
	copyNonNil(w.team.spent, m.Spent)
	for _, one := range w.team.spent {
		dropNil(&one.Of)
	}
	w.correlation.restore(&m)
	for at := 0; at+8 <= len(m.Foreign); at += 8 {
		w.filter.Ignore(binary.LittleEndian.Uint64(m.Foreign[at:]))
	}
	w.held, w.team.lines, w.counts = m.Held, m.Lines, m.Counts
	w.counts.Duplicates = 0 // the correlation counts them
	w.team.taskCount = countTasks(w.team.state)
	w.team.unreported = true // the state says what was reported
	return nil
}

func (c *speakers) restore(m *memory) {
	copyNonNil(c.sessions, m.Sessions)
	for _, one := range c.sessions {
		if one.Board == nil {
			one.Board = newBoard()
		}
		dropNil(&one.Board.Tasks)
		one.Board.dirty = map[string]bool{}
		one.Board.count()
	}
	for _, id := range m.Order {
		if c.sessions[id] != nil {
			c.order = append(c.order, id)
		}
	}
	copyNonNil(c.sides, m.Sides)
	for _, id := range m.SideOrder {
		if one := c.sides[id]; one != nil {
			c.sideOrder = append(c.sideOrder, id)
			c.tails[one.Last] = id
		}
	}
	copyNonNil(c.sources, m.Sources)
}

func (c *correlation) restore(m *memory) {
	copyNonNil(c.calls, m.Calls)
	copyNonNil(c.early, m.Early)
	for _, id := range m.Waiting {
		if one := c.calls[id]; one != nil {
			c.waitingCalls = append(c.waitingCalls, waiting{id, one.Came})
		} else if r := c.early[id]; r != nil {
			c.waitingResults = append(c.waitingResults, waiting{id, r.Came})
		}
	}
	for at := 0; at < len(m.Done); at += 8 {
		c.done.add(binary.LittleEndian.Uint64(m.Done[at:]))
	}
	c.discarded, c.orphaned, c.duplicates = m.Counts.Discarded, m.Counts.Orphaned, m.Counts.Duplicates
}

// remember adds the key to the order in which keys were added to the map. If there are more than
// most then, it forgets the oldest.
func remember[K comparable, V any](all map[K]V, order []K, key K, most int) []K {
	if order = append(order, key); len(order) > most {
		delete(all, order[0])
		order = order[1:]
	}
	return order
}

// dropNil replaces a nil map, and removes nil values.
func dropNil[K comparable, V any](m *map[K]*V) {
	ensureMap(m)
	maps.DeleteFunc(*m, func(_ K, v *V) bool { return v == nil })
}

func ensureMap[K comparable, V any](m *map[K]V) {
	if *m == nil {
		*m = map[K]V{}
	}
}

func copyNonNil[V any](to, from map[string]*V) {
	for key, v := range from {
		if v != nil {
			to[key] = v
		}
	}
}

// count restores the fields of a board that are not saved.
func (b *board) count() {
	b.unseen = 0
	for _, e := range b.Tasks {
		if !e.There.V {
			b.unseen++
		}
	}
}

// countTasks returns the number of tasks in a state, including deleted ones.
func countTasks(s *team.State) int {
	if s == nil {
		return 0
	}
	return s.Count(team.Pending) + s.Count(team.InProgress) + s.Count(team.Completed) + s.Count(team.Deleted)
}

// Known returns a watcher for a team that was kept only as consumers saw it. name is "" if it is
// unknown. led says that the lead's session is observed. The report has the records that create the
// team, for a journal.
func Known(options Options, recorded Recorded, name string, led bool, members []team.Member, tasks []team.Task,
	now team.Time) (*Watcher, Report) {
	w := New(options, recorded)
	s := w.team
	s.beginTeam(name, "", "", stamp{At: now}, "")
	if led {
		s.lifetime.LeadSource = anySource
		s.events[0].(*team.TeamCreated).Lead.Session = unknownSession
	}
	for _, m := range members {
		s.roster.recall(&m)
	}
	for _, t := range tasks {
		s.board.recall(&t)
	}
	s.recordChanges("restored", s.lead(), stamp{At: now})
	return w, w.report()
}

// unknownSession stands for the lead's session if it is known to exist, but not by id.
const unknownSession = "unknown"
