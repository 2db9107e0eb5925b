package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"cadre/internal/observe/protocol"
	"cadre/internal/team"
)

// One team is observed at a time: the one that began last. A team may end without notice because
// its session ended, and its successor may be in the same folder of transcripts or in the same log.
// The time of its beginning decides which team began last, so it does not matter which is read
// first.

// lifetime is the part of one team's life that is not in its state.
type lifetime struct {
	// Name is the name by which the team's agents know it; "" while it is unknown, because the
	// restored data does not say it.
	Name        string `json:"name,omitempty"`
	LeadSession string `json:"leadSession,omitempty"`
	LeadSource  string `json:"leadSource,omitempty"`
	// Within is the session in which teammates without a process of their own work: their lead's.
	Within  string `json:"within,omitempty"`
	Mate    string `json:"mate,omitempty"` // session of the first teammate that was seen
	Founded stamp  `json:"founded"`
	// Created is the time in the team's config.json, if it was read. A team created again under the
	// same name has another one.
	Created team.Time        `json:"created,omitempty"`
	Gone    map[string]stamp `json:"gone,omitempty"`   // teams that are no longer observed, and since when
	Before  int              `json:"before,omitempty"` // number of teams observed before this one
}

// leads reports whether the session leads the team: it created the team, or has had it from its
// start, or comes from the same source as the session that did.
func (s *observedTeam) leads(session, source string) bool {
	if !s.exists() {
		return false
	}
	e := &s.lifetime
	switch {
	case session != "" && (e.LeadSession == session || implicitTeam(session) == e.Name):
		return true
	case e.LeadSource == anySource:
		return true
	}
	return e.LeadSource != "" && e.LeadSource == source
}

// precedes reports whether at is before the creation of the team. Its lead then had a task list of
// its own, or another team of that name. If the session has had the team from its start, precedes
// always returns false.
func (s *observedTeam) precedes(at stamp) bool {
	e := &s.lifetime
	return s.exists() && at.At < min(e.Created, e.Founded.At) && e.Name != implicitTeam(e.LeadSession)
}

// anySource marks a restored team whose lead's session is unknown: any source may be its lead's.
const anySource = "*"

// unnamed is the name of a team whose name is unknown.
const unnamed = "team"

// joins reports whether a teammate's actions belong to the observed team. A teammate proves that
// there is a team, even if it does not name it.
func (s *observedTeam) joins(by speaker, at stamp, source string) bool {
	if s.exists() {
		if s.beforeFounding(at, source) || s.precedes(at) || !s.matchesName(by.Team) {
			return false
		}
	} else {
		if by.Team == "" && s.unnameable() || !s.mayObserve(by.Team, at) {
			return false
		}
		s.beginTeam(by.Team, "", "", at, "")
	}
	if by.Side && s.lifetime.Within == "" {
		s.lifetime.Within = by.Session
	}
	if s.lifetime.Mate == "" {
		s.lifetime.Mate = by.Session
	}
	if p := s.roster.at(by.Member); p != nil && !p.Joined.V {
		p.Joined.learn(true, at)
		p.Doing.assume(active)
		s.speakers.news = true
	}
	return true
}

// unnameable reports whether a team without a known name must not be observed, because only a
// certain team is to be observed, or because it may be an earlier one.
func (s *observedTeam) unnameable() bool { return s.state != nil || s.options.Of != "" }

// beginTeam begins to observe a team, and ends the observation of an earlier one. If a session has
// had the team from its start, the session's own list of tasks becomes the team's.
func (s *observedTeam) beginTeam(name, session, source string, at stamp, goal string) {
	if s.exists() {
		s.recordChanges(s.recordID("last"), s.lead(), at)
		s.ended(s.recordID("end"), at, fmt.Sprintf("%s began after it", name))
	}
	before := s.lifetime.Before
	if s.state != nil {
		before++
	}
	s.state, s.taskCount, s.messageCount = &team.State{}, 0, 0
	s.board, s.roster, s.mail = newBoard(), newRoster(), newMessageCounts()
	s.lifetime = lifetime{Name: name, LeadSession: session, LeadSource: source, Founded: at, Gone: s.lifetime.Gone,
		Before: before}
	id := s.options.ID
	if id == "" || before > 0 {
		origin := fmt.Sprint(cmp.Or(s.options.ID, session), before)
		id = fmt.Sprintf("%s-%08x", idPrefix(name), uint32(protocol.Hash(origin)))
	}
	dir := ""
	if one := s.speakers.sessions[session]; one != nil {
		dir = one.Dir
	}
	name = cmp.Or(name, unnamed)
	s.emit(&team.TeamCreated{Team: team.Team{ID: id, Name: cmp.Or(s.options.Name, name), Observed: name,
		Status: team.TeamPending, Goal: goal, Dir: dir},
		Lead: team.Member{Name: s.options.Lead, Agent: team.External, Status: team.Active, Session: session,
			Incarnation: 1}})
	for _, id := range slices.Clone(s.speakers.order) {
		if implicitTeam(id) == name {
			s.board.join(s.speakers.sessions[id].Board)
			s.speakers.sessions[id].Board = newBoard()
		}
	}
	s.speakers.news, s.unreported = true, true
}

// idPrefix turns a name into the beginning of a team's id, which is used as the name of a folder.
// The name was chosen by an agent, and may be a path or very long.
func idPrefix(name string) string {
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

// mayObserve reports whether a team of that name that existed at that time may be observed. It must
// not have ended since.
func (s *observedTeam) mayObserve(name string, at stamp) bool {
	gone, past := s.lifetime.Gone[name]
	return (s.options.Of == "" || s.options.Of == name) && !(past && at.before(gone))
}

// succeeds reports whether a team that the session created at that time replaces the observed one.
func (s *observedTeam) succeeds(name, session string, at stamp) bool {
	e := &s.lifetime
	switch _, past := e.Gone[name]; {
	case s.leadsOtherTeam(session):
	case e.Name == "", session == "":
		return false
	case name == e.Name && (session == e.LeadSession || e.LeadSession == ""):
		return false
	case past && name == implicitTeam(session): // a session has only one such team
		return false
	}
	return e.Founded.before(at)
}

// leadsOtherTeam reports whether a session leads another team than the observed one. It returns
// false unless the teammates' session is the only session that is known of the observed team.
func (s *observedTeam) leadsOtherTeam(session string) bool {
	e := &s.lifetime
	return e.Name == "" && e.LeadSession == "" && e.Within != "" && session != "" && session != e.Within
}

// recreated reports whether a config.json with the observed team's name belongs to another team.
// That team was created after the observed one was removed, while no observer ran.
func (s *observedTeam) recreated(name, session string, created team.Time) bool {
	e := &s.lifetime
	switch {
	case name != e.Name, created == 0, name == implicitTeam(session):
		return false
	case e.Created != 0:
		return e.Created != created
	}
	return e.LeadSession != "" && e.LeadSession != session && e.Founded.At < created
}

// ignoreEarlier records a team that began before the observed one.
func (s *observedTeam) ignoreEarlier(name string, began stamp) {
	if _, known := s.lifetime.Gone[name]; !known && s.options.Of == "" {
		s.warn("team %s began before the observed team %s and is ignored", name, s.lifetime.Name)
		s.lifetime.markGone(name, began)
	}
}

func (e *lifetime) markGone(name string, since stamp) {
	if e.Gone == nil {
		e.Gone = map[string]stamp{}
	}
	e.Gone[name] = since
}

// ended ends the observation of the team.
func (s *observedTeam) ended(id string, at stamp, reason string) {
	for _, m := range s.state.Members() {
		if m.Name != s.lead() && m.Status.Running() {
			s.emit(&team.MemberStopped{Member: m.Name, Reason: "its team ended"})
		}
	}
	s.emit(&team.TeamStatusChanged{Status: team.TeamComplete, Reason: reason}, &team.TeamCleanedUp{})
	for session, one := range s.spent {
		if s.countsUsage(session, one) {
			one.Before = one.most()
		}
	}
	s.lifetime.markGone(s.lifetime.Name, at)
	s.commit(id, s.lead(), at)
	s.board, s.roster = newBoard(), newRoster()
}

// ofOtherTeam reports whether a teammate belongs to another team than the observed one. That team
// may have begun later.
func (s *observedTeam) ofOtherTeam(by speaker) bool {
	e := &s.lifetime
	_, past := e.Gone[by.Team]
	switch {
	case !s.exists() || past:
		return false
	case by.Team == "":
		return by.Side && by.Session != "" && (e.LeadSession != "" && !s.leads(by.Session, "") || e.LeadSession == "" &&
			e.Within != "" && e.Within != by.Session)
	}
	return s.options.Of == "" && e.Name != "" && by.Team != e.Name // unless only one team is to be observed
}

// beforeFounding reports whether at is before the beginning of the team, if their clocks can be
// compared.
func (s *observedTeam) beforeFounding(at stamp, source string) bool {
	return at.before(s.lifetime.Founded) &&
		(s.lifetime.Before > 0 || s.speakers.timed(source) && s.speakers.timed(s.lifetime.LeadSource))
}

// setLeadSession records the session that leads the team. It is called if only teammates were known
// before.
func (s *observedTeam) setLeadSession(session, source string, at stamp) {
	s.lifetime.LeadSession, s.lifetime.LeadSource = session, source
	if at.before(s.lifetime.Founded) {
		s.lifetime.Founded = at
	}
	s.emit(&team.MemberDescribed{Member: s.lead(), Session: session})
	s.unreported = true
}

// mustWait reports whether a teammate's actions must wait, because its team is unknown, or is one
// whose beginning was not read yet.
func (s *observedTeam) mustWait(by speaker, at stamp, source string) bool {
	return by.Team == "" && !s.exists() && s.unnameable() || s.ofOtherTeam(by) && !s.beforeFounding(at, source)
}

// ownerOf returns the member that a TaskUpdate concerns: the owner in the call, or the task's
// owner, or the caller.
func (s *observedTeam) ownerOf(in protocol.TaskInput, actor string) string {
	if in.Owner != nil {
		return *in.Owner
	}
	if e := s.board.Tasks[in.TaskID]; e != nil && e.Owner.V != "" {
		return e.Owner.V
	}
	return actor
}
