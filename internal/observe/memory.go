package observe

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"cadre/internal/team"
)

// memory is everything that an observer knows, as it is saved.
type memory struct {
	V int `json:"v"`
	// of a session without a team: then all of this is somebody else's
	Agent     string              `json:"agent,omitempty"`
	Seq       int64               `json:"seq"`
	State     json.RawMessage     `json:"state,omitempty"`
	Epoch     epoch               `json:"epoch"`
	Board     *board              `json:"board"`
	Roster    *roster             `json:"roster"`
	Mail      *mailbag            `json:"mail"`
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

// ErrNewer says that an observer was saved by a newer version of cadre.
var ErrNewer = errors.New("the observation was saved by a newer version of cadre; update cadre on this machine")

// ErrOther says that something else was observed than what is to be observed now: a team, and not a
// session without one, or the other way round, or another team.
var ErrOther = errors.New("it is of something else that was observed")

// Save writes everything that the observer knows, as one JSON object: the team's state, what waits
// for its other half, and what was counted already. An observer that was read back from it goes on
// as if nothing had happened.
func (o *Observer) Save() ([]byte, error) {
	m := memory{V: memoryVersion, Epoch: o.epoch, Board: o.board, Roster: o.roster, Mail: o.mail,
		Calls: o.correlation.calls, Early: o.correlation.early,
		Sessions: o.sessions, Order: o.order, Sides: o.sides, SideOrder: o.sideOrder, Sources: o.sources,
		Spent: o.spent, Held: o.held, Lines: o.lines, Counts: o.Counts()}
	if o.s != nil {
		m.Seq, m.State = o.s.Seq(), team.AppendSnapshot(nil, o.s)
	}
	for _, w := range slices.Concat(o.correlation.asked, o.correlation.told) {
		if o.correlation.waits(w) {
			m.Waiting = append(m.Waiting, w.id)
		}
	}
	for _, h := range o.correlation.done.inOrder() {
		m.Done = binary.LittleEndian.AppendUint64(m.Done, h)
	}
	for _, h := range o.foreign {
		if h == 0 {
			continue
		}
		m.Foreign = binary.LittleEndian.AppendUint64(m.Foreign, h)
	}
	return json.Marshal(m)
}

// Restore reads an observer back that [Observer.Save] wrote. A state that is newer than the saved
// one, because its journal is written more often, takes that one's place; nil for none. Without
// anything saved, the state is all there is.
func Restore(options Options, saved []byte, newer *team.State) (*Observer, error) {
	o := New(options)
	if len(saved) > 0 {
		if err := o.restore(saved); err != nil {
			return nil, fmt.Errorf("a saved observation: %w", err)
		}
	}
	if newer != nil && (o.s == nil || newer.Seq() != o.s.Seq() || newer.Team().ID != o.s.Team().ID) {
		o.adopt(newer)
	}
	if of := options.Of; of != "" && o.s != nil && o.epoch.Name != "" && o.epoch.Name != of {
		return nil, ErrOther
	}
	return o, nil
}

func (o *Observer) restore(saved []byte) error {
	m := memory{Board: o.board, Roster: o.roster, Mail: o.mail}
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
		o.s = s
	}
	o.epoch, o.board, o.roster, o.mail = m.Epoch, m.Board, m.Roster, m.Mail
	whole(&o.board.Tasks)
	whole(&o.roster.People)
	made(&o.roster.Spawns)
	made(&o.roster.Said)
	whole(&o.mail.Tallies)
	o.board.count()
	keep(o.sessions, m.Sessions)
	for _, one := range o.sessions {
		if one.Board == nil {
			one.Board = newBoard()
		}
		whole(&one.Board.Tasks)
		one.Board.dirty = map[string]bool{}
		one.Board.count()
	}
	for _, id := range m.Order {
		if o.sessions[id] != nil {
			o.order = append(o.order, id)
		}
	}
	keep(o.sides, m.Sides)
	for _, id := range m.SideOrder {
		if one := o.sides[id]; one != nil {
			o.sideOrder = append(o.sideOrder, id)
			o.tails[one.Last] = id
		}
	}
	keep(o.sources, m.Sources)
	keep(o.spent, m.Spent)
	for _, one := range o.spent {
		whole(&one.Of)
	}
	o.correlation.restore(&m)
	for at := 0; at+8 <= len(m.Foreign); at += 8 {
		o.none(binary.LittleEndian.Uint64(m.Foreign[at:]))
	}
	o.held, o.lines, o.counts = m.Held, m.Lines, m.Counts
	o.counts.Duplicates = 0                  // the correlation has them
	o.placed, o.unbilled = placed(o.s), true // whether something was not reported yet is looked up anew
	return nil
}

func (c *correlation) restore(m *memory) {
	keep(c.calls, m.Calls)
	keep(c.early, m.Early)
	for _, id := range m.Waiting {
		if one := c.calls[id]; one != nil {
			c.asked = append(c.asked, waiting{id, one.Came})
		} else if r := c.early[id]; r != nil {
			c.told = append(c.told, waiting{id, r.Came})
		}
	}
	for at := 0; at < len(m.Done); at += 8 {
		c.done.add(binary.LittleEndian.Uint64(m.Done[at:]))
	}
	c.discarded, c.orphaned, c.duplicates = m.Counts.Discarded, m.Counts.Orphaned, m.Counts.Duplicates
}

// whole makes a map that was saved as null, and takes out what was saved as nothing.
func whole[K comparable, V any](m *map[K]*V) {
	made(m)
	maps.DeleteFunc(*m, func(_ K, v *V) bool { return v == nil })
}

func made[K comparable, V any](m *map[K]V) {
	if *m == nil {
		*m = map[K]V{}
	}
}

func keep[V any](to, from map[string]*V) {
	for key, v := range from {
		if v != nil {
			to[key] = v
		}
	}
}

// count brings up to date what a board keeps beside what is saved of it.
func (b *board) count() {
	b.unseen = 0
	for _, e := range b.Tasks {
		if !e.There.V {
			b.unseen++
		}
	}
}

// placed is how many tasks a state has a place for.
func placed(s *team.State) int {
	if s == nil {
		return 0
	}
	return s.Count(team.Pending) + s.Count(team.InProgress) + s.Count(team.Completed) + s.Count(team.Deleted)
}

// adopt goes on with a state that was made elsewhere, or later than what is known.
func (o *Observer) adopt(s *team.State) {
	if o.s == nil || o.s.Team().ID != s.Team().ID {
		o.board, o.roster, o.mail = newBoard(), newRoster(), newMailbag()
		before := o.epoch.Before
		if o.s != nil {
			before++
		}
		o.epoch = epoch{Gone: o.epoch.Gone, Before: before}
	}
	o.s, o.placed = s, placed(s)
	lead, _ := s.Member(s.Team().Lead)
	switch {
	case lead.Session == unknownSession:
		o.epoch.LeadSource = anySource
	case o.epoch.LeadSession == "":
		o.epoch.LeadSession = lead.Session
	}
	if o.epoch.Name == "" {
		o.epoch.Name = first(s.Team().Observed, s.Team().Name)
	}
	if o.epoch.Name == unnamed {
		o.epoch.Name = ""
	}
	o.epoch.Founded = stamp{At: s.Team().CreatedAt}
	for n := 1; n <= o.placed; n++ {
		if t, ok := s.Task(fmt.Sprint(n)); ok && !skipped(t) {
			o.adoptTask(&t)
		}
	}
	for _, m := range s.Members() {
		if m.Name != s.Team().Lead {
			o.adoptMember(&m)
		}
	}
	delete(o.roster.People, s.Team().Lead)
	clear(o.board.dirty)
	clear(o.roster.dirty)
	o.retry = true
}

func (o *Observer) adoptTask(t *team.Task) {
	when := stamp{At: t.UpdatedAt}
	e := o.board.exists(t.ID, t.Status != team.Deleted, when)
	if e == nil {
		return
	}
	e.Subject.learn(t.Subject, when)
	e.Description.learn(t.Description, when)
	e.ActiveForm.learn(t.ActiveForm, when)
	e.Owner.learn(t.Owner, when)
	if t.Status != team.Deleted {
		e.Status.learn(string(t.Status), when)
	}
	e.meta(t.Metadata, when)
	e.CreatedBy = t.CreatedBy
	for _, blocker := range t.BlockedBy {
		o.board.blocks(blocker, t.ID, true, when)
	}
}

func (o *Observer) adoptMember(m *team.Member) {
	p := o.roster.at(m.Name)
	if p == nil {
		return
	}
	when, joined := stamp{At: m.Since}, stamp{At: m.JoinedAt}
	p.Joined.learn(true, joined)
	p.About.learn(about{AgentID: m.Session, Type: m.Role, Model: m.Model, Color: m.Color, Prompt: m.Prompt,
		Planned: m.Plan.Required}, joined)
	switch {
	case m.Status == team.Failed:
		p.Ended.learn(failed, when)
	case !m.Status.Running() || m.Status == team.ShuttingDown:
		p.Ended.learn(shutdown, when)
	case m.Status == team.Idle:
		p.Doing.learn(idle, when)
	default:
		p.Doing.learn(active, when)
	}
	o.roster.saidAnew(m.Shutdown.Request, "asked")
	o.roster.saidAnew(m.Plan.Request, "asked")
}

// FromTeamState goes on with a team of which only what consumers see was kept. The records that
// make it so are in Seen, for a journal.
func FromTeamState(options Options, t *TeamState, now team.Time) (*Observer, Seen) {
	return fromTeamState(New(options), t, now, false)
}

// FromAgents goes on with a session of which an older version kept the names of the agents alone.
// Its team has no name until one is seen.
func FromAgents(options Options, agents []string, now team.Time) (*Observer, Seen) {
	o := New(options)
	if len(agents) == 0 {
		return o, Seen{}
	}
	t := &TeamState{Name: unnamed, Role: RoleLead}
	for _, name := range agents {
		t.Members = append(t.Members, TeamMember{Name: name, Status: active})
	}
	return fromTeamState(o, t, now, true)
}

func fromTeamState(o *Observer, t *TeamState, now team.Time, nameless bool) (*Observer, Seen) {
	o.found(t.Name, "", "", stamp{At: now}, "")
	if t.Role == RoleLead {
		o.epoch.LeadSource = anySource
		o.events[0].(*team.TeamCreated).Lead.Session = unknownSession
	}
	if nameless {
		o.epoch.Name = ""
	}
	for _, m := range t.Members {
		p := o.roster.at(m.Name)
		if p == nil {
			continue
		}
		p.Joined.assume(true)
		p.About.assume(about{AgentID: m.AgentID, Type: m.AgentType, Model: m.Model, Color: m.Color})
		switch m.Status {
		case shutdown:
			p.Ended.assume(shutdown)
		default:
			p.Doing.assume(m.Status)
		}
	}
	for _, task := range t.Tasks {
		e := o.board.exists(task.ID, task.Status != string(team.Deleted), stamp{})
		if e == nil {
			continue
		}
		e.Subject.assume(task.Subject)
		e.Description.assume(task.Description)
		e.ActiveForm.assume(task.ActiveForm)
		e.Owner.assume(task.Owner)
		e.Status.assume(task.Status)
		for _, blocker := range task.BlockedBy {
			o.board.blocks(blocker, task.ID, true, stamp{})
		}
		for _, waiter := range task.Blocks {
			o.board.blocks(task.ID, waiter, true, stamp{})
		}
	}
	o.settle("restored", o.lead(), stamp{At: now})
	out := o.out
	o.out = Seen{}
	return o, out
}

// unknownSession stands for the lead's session where it is known that there is one, and not which.
const unknownSession = "unknown"
