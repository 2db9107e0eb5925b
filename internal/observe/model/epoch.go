package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"cadre/internal/observe/protocol"
	"cadre/internal/team"
)

// One team is observed at a time: the one that began last. A team may end without a word, because
// its session ended, and its successor is in the same folder of transcripts or log. Which one began
// last is told by the time of each one's beginning, so that it does not matter which is read first.

// epoch is one team's life, as far as it is no part of its state.
type epoch struct {
	// by which its agents know it; "" while that is not known, because what it was read back from
	// does not say
	Name        string `json:"name,omitempty"`
	LeadSession string `json:"leadSession,omitempty"`
	LeadSource  string `json:"leadSource,omitempty"`
	// the session that teammates without a process of their own work in: their lead's
	Within  string `json:"within,omitempty"`
	Mate    string `json:"mate,omitempty"` // session of the teammate who was heard first
	Founded stamp  `json:"founded"`
	// as its config.json says, where that was read: a team that is made anew under the same name
	// has another
	Created team.Time        `json:"created,omitempty"`
	Gone    map[string]stamp `json:"gone,omitempty"`   // teams that are not observed any more, and since when
	Before  int              `json:"before,omitempty"` // how many teams were observed before this one
}

// leads reports whether the session leads the team: it made it, or has had it from its start, or
// comes from where that one came from.
func (s *subject) leads(session, source string) bool {
	if !s.here() {
		return false
	}
	e := &s.epoch
	switch {
	case session != "" && (e.LeadSession == session || implicit(session) == e.Name):
		return true
	case e.LeadSource == anySource:
		return true
	}
	return e.LeadSource != "" && e.LeadSource == source
}

// precedes reports whether that was before the team was made: its lead had a list of its own then,
// or another team of that name. A session that has its team from its start had no other.
func (s *subject) precedes(at stamp) bool {
	e := &s.epoch
	return s.here() && at.At < min(e.Created, e.Founded.At) && e.Name != implicit(e.LeadSession)
}

// anySource leads a team that was read back and whose lead's session is not known.
const anySource = "*"

// unnamed is what a team is called whose name nobody has said yet.
const unnamed = "team"

// joins reports whether a teammate's doings are the observed team's. A teammate shows that there is
// one, also where it does not name it.
func (s *subject) joins(by speaker, at stamp, source string) bool {
	if s.here() {
		if s.older(at, source) || s.precedes(at) || !s.called(by.Team) {
			return false
		}
	} else {
		if by.Team == "" && s.unnameable() || !s.wanted(by.Team, at) {
			return false
		}
		s.found(by.Team, "", "", at, "")
	}
	if by.Side && s.epoch.Within == "" {
		s.epoch.Within = by.Session
	}
	if s.epoch.Mate == "" {
		s.epoch.Mate = by.Session
	}
	if p := s.roster.at(by.Member); p != nil && !p.Joined.V {
		p.Joined.learn(true, at)
		p.Doing.assume(active)
		s.cast.news = true
	}
	return true
}

// unnameable reports whether a team that nobody has named is not to be observed: a certain one is,
// or it may be one that was there before.
func (s *subject) unnameable() bool { return s.state != nil || s.options.Of != "" }

// found begins the observation of a team, in the place of another one if that was observed. A
// lead's own list of tasks becomes the team's where the team is one that its session has from its
// start.
func (s *subject) found(name, session, source string, at stamp, goal string) {
	if s.here() {
		s.settle(s.anID("last"), s.lead(), at)
		s.ended(s.anID("end"), at, fmt.Sprintf("%s began after it", name))
	}
	before := s.epoch.Before
	if s.state != nil {
		before++
	}
	s.state, s.placed, s.mailed = &team.State{}, 0, 0
	s.board, s.roster, s.mail = newBoard(), newRoster(), newMailbag()
	s.epoch = epoch{Name: name, LeadSession: session, LeadSource: source, Founded: at, Gone: s.epoch.Gone,
		Before: before}
	id := s.options.ID
	if id == "" || before > 0 {
		origin := fmt.Sprint(cmp.Or(s.options.ID, session), before)
		id = fmt.Sprintf("%s-%08x", word(name), uint32(protocol.Hash(origin)))
	}
	dir := ""
	if one := s.cast.sessions[session]; one != nil {
		dir = one.Dir
	}
	name = cmp.Or(name, unnamed)
	s.emit(&team.TeamCreated{Team: team.Team{ID: id, Name: cmp.Or(s.options.Name, name), Observed: name,
		Status: team.TeamPending, Goal: goal, Dir: dir},
		Lead: team.Member{Name: s.options.Lead, Agent: team.External, Status: team.Active, Session: session,
			Incarnation: 1}})
	for _, id := range slices.Clone(s.cast.order) {
		if implicit(id) == name {
			s.board.join(s.cast.sessions[id].Board)
			s.cast.sessions[id].Board = newBoard()
		}
	}
	s.cast.news, s.unbilled = true, true
}

// word is what of a name can be the beginning of a team's id, which is the name of a folder
// somewhere: the name was chosen by an agent, and may be a path, or of any length.
func word(name string) string {
	name = strings.Map(func(r rune) rune {
		if !team.ValidName("a" + string(r)) {
			return '-'
		}
		return r
	}, name)
	const suffix = len("-01234567")
	if name = strings.TrimLeft(name, "-_"); len(name) > team.MaxName-suffix {
		name = name[:team.MaxName-suffix]
	}
	return cmp.Or(name, "team")
}

// wanted reports whether a team of that name that was there at that time may be observed: it is not
// one that has ended since.
func (s *subject) wanted(name string, at stamp) bool {
	gone, past := s.epoch.Gone[name]
	return (s.options.Of == "" || s.options.Of == name) && !(past && at.before(gone))
}

// succeeds reports whether a team that the session has begun at that time takes the place of the
// one that is observed.
func (s *subject) succeeds(name, session string, at stamp) bool {
	e := &s.epoch
	switch _, past := e.Gone[name]; {
	case s.strangeLead(session):
	case e.Name == "", session == "":
		return false
	case name == e.Name && (session == e.LeadSession || e.LeadSession == ""):
		return false
	case past && name == implicit(session): // of which a session has but one
		return false
	}
	return e.Founded.before(at)
}

// strangeLead reports whether a session leads another team than the one that is observed, of which
// nothing is known but the session that its teammates work in.
func (s *subject) strangeLead(session string) bool {
	e := &s.epoch
	return e.Name == "" && e.LeadSession == "" && e.Within != "" && session != "" && session != e.Within
}

// madeAnew reports whether a config.json of the observed team's name is of another team, which was
// made when that one was gone, while nobody looked.
func (s *subject) madeAnew(name, session string, created team.Time) bool {
	e := &s.epoch
	switch {
	case name != e.Name, created == 0, name == implicit(session):
		return false
	case e.Created != 0:
		return e.Created != created
	}
	return e.LeadSession != "" && e.LeadSession != session && e.Founded.At < created
}

// past takes note of a team that began before the one that is observed.
func (s *subject) past(name string, began stamp) {
	if _, known := s.epoch.Gone[name]; !known && s.options.Of == "" {
		s.warn("team %s began before %s, which is the one that is observed", name, s.epoch.Name)
		s.epoch.gone(name, began)
	}
}

func (e *epoch) gone(name string, since stamp) {
	if e.Gone == nil {
		e.Gone = map[string]stamp{}
	}
	e.Gone[name] = since
}

// ended ends the observation of the team.
func (s *subject) ended(id string, at stamp, reason string) {
	for _, m := range s.state.Members() {
		if m.Name != s.lead() && m.Status.Running() {
			s.emit(&team.MemberStopped{Member: m.Name, Reason: "its team ended"})
		}
	}
	s.emit(&team.TeamStatusChanged{Status: team.TeamComplete, Reason: reason}, &team.TeamCleanedUp{})
	for session, one := range s.spent {
		if s.pays(session, one) {
			one.Before = one.most()
		}
	}
	s.epoch.gone(s.epoch.Name, at)
	s.commit(id, s.lead(), at)
	s.board, s.roster = newBoard(), newRoster()
}

// strange reports whether a teammate is of another team than the one that is observed, which may
// begin after it.
func (s *subject) strange(by speaker) bool {
	e := &s.epoch
	_, past := e.Gone[by.Team]
	switch {
	case !s.here() || past:
		return false
	case by.Team == "":
		return by.Side && by.Session != "" && (e.LeadSession != "" && !s.leads(by.Session, "") || e.LeadSession == "" &&
			e.Within != "" && e.Within != by.Session)
	}
	return s.options.Of == "" && e.Name != "" && by.Team != e.Name // none but one is waited for
}

// older reports whether that was before the team began, by clocks that can be compared.
func (s *subject) older(at stamp, source string) bool {
	return at.before(s.epoch.Founded) &&
		(s.epoch.Before > 0 || s.cast.timed(source) && s.cast.timed(s.epoch.LeadSource))
}

// led says that the session leads the team, which was known through its teammates alone until now.
func (s *subject) led(session, source string, at stamp) {
	s.epoch.LeadSession, s.epoch.LeadSource = session, source
	if at.before(s.epoch.Founded) {
		s.epoch.Founded = at
	}
	s.emit(&team.MemberDescribed{Member: s.lead(), Session: session})
	s.unbilled = true
}

// waits reports whether a teammate's doings wait until more is known: whose it is, or of a team
// whose beginning was not read yet.
func (s *subject) waits(by speaker, at stamp, source string) bool {
	return by.Team == "" && !s.here() && s.unnameable() || s.strange(by) && !s.older(at, source)
}

// ownerOf is the member whom a TaskUpdate is about: the owner that it names, else that of the task,
// else whoever makes it.
func (s *subject) ownerOf(in protocol.TaskInput, actor string) string {
	if in.Owner != nil {
		return *in.Owner
	}
	if e := s.board.Tasks[in.TaskID]; e != nil && e.Owner.V != "" {
		return e.Owner.V
	}
	return actor
}
