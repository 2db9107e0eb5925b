package model

import (
	"cmp"
	"encoding/json"
	"fmt"

	"cadre/internal/observe/protocol"
	"cadre/internal/team"
)

// observedTeam is the knowledge about the observed team, and the records made from it.
type observedTeam struct {
	recorder
	usageTotals
	options  Options
	speakers *speakers
	lifetime lifetime
	board    *board
	roster   *roster
	mail     *messageCounts
}

func newObservedTeam(options Options, who *speakers, recorded Recorded) *observedTeam {
	s := &observedTeam{options: options, speakers: who, board: newBoard(), roster: newRoster(),
		mail: newMessageCounts(), usageTotals: usageTotals{spent: map[string]*spent{}}}
	s.recorded = func(now *team.State, r *team.Record) { recorded(now, r, s.session()) }
	return s
}

// lead returns the lead's name.
func (s *observedTeam) lead() string {
	if s.state != nil && s.state.Team().Lead != "" {
		return s.state.Team().Lead
	}
	return s.options.Lead
}

// isMember reports whether the team has a member of that name.
func (s *observedTeam) isMember(name string) bool { return name == s.lead() || s.roster.isMember(name) }

// matchesName reports whether name is the team's name among its agents. If that is unknown, the
// first name seen becomes it. "" always matches.
func (s *observedTeam) matchesName(name string) bool {
	if s.lifetime.Name == "" {
		s.lifetime.Name = name
	}
	return name == "" || name == s.lifetime.Name
}

// session returns the observed session: the lead's, or else the first teammate's; "" if no line has
// named it.
func (s *observedTeam) session() string {
	if lead, _ := s.state.Member(s.lead()); lead.Session != unknownSession {
		return cmp.Or(lead.Session, s.lifetime.Mate)
	}
	return s.lifetime.Mate
}

// created processes a TeamCreate.
func (s *observedTeam) created(f *fact, out *protocol.Outcome) {
	var in struct {
		TeamName    string `json:"team_name"`
		Description string `json:"description"`
	}
	_ = json.Unmarshal(f.Call.Input, &in)
	name := cmp.Or(out.TeamName, in.TeamName)
	switch {
	case name == "" || f.Call.By.Member != "" || !s.mayObserve(name, f.Result.At):
	case !s.exists() || s.succeeds(name, f.Call.By.Session, f.Result.At):
		s.beginTeam(name, f.Call.By.Session, f.Call.Source, f.Result.At, in.Description)
	case s.leadsOtherTeam(f.Call.By.Session):
		s.ignoreEarlier(name, f.Result.At)
	case s.matchesName(name) && s.lifetime.LeadSession == "" && s.lifetime.LeadSource == "":
		s.setLeadSession(f.Call.By.Session, f.Call.Source, f.Result.At)
	case !s.matchesName(name):
		s.ignoreEarlier(name, f.Result.At)
	}
}

// deleted processes a TeamDelete by the lead.
func (s *observedTeam) deleted(f *fact, out *protocol.Outcome) {
	if f.Call.By.Member != "" || !s.exists() || !s.matchesName(out.TeamName) {
		return
	}
	s.recordChanges(f.Call.ID, s.lead(), f.Result.At)
	s.ended(f.Call.ID, f.Result.At, "its lead deleted it")
}

// spawned processes the spawn of a teammate.
func (s *observedTeam) spawned(f *fact, in *protocol.SpawnInput, out *protocol.Outcome) {
	name, of := cmp.Or(out.Name, in.Name), cmp.Or(out.TeamName, in.TeamName)
	own := of != "" && of == implicitTeam(f.Call.By.Session) && f.Call.By.Member == ""
	switch {
	case own && s.mayObserve(of, f.Result.At) && (!s.exists() || s.succeeds(of, f.Call.By.Session, f.Result.At)):
		s.beginTeam(of, f.Call.By.Session, f.Call.Source, f.Result.At, "")
	case s.exists() && (s.leads(f.Call.By.Session, f.Call.Source) || f.Call.By.Session != "" &&
		f.Call.By.Session == s.lifetime.Within):
		if s.precedes(f.Result.At) {
			return
		}
		if !s.matchesName(of) {
			s.warn("%s was spawned into %s, but %s is observed", name, of, s.lifetime.Name)
			return
		}
		if s.lifetime.LeadSession == "" && f.Call.By.Member == "" {
			s.setLeadSession(f.Call.By.Session, f.Call.Source, f.Result.At)
		}
	case s.exists() && f.Call.By.Member != "": // a teammate spawns another one
	case own:
		s.ignoreEarlier(of, f.Result.At)
		return
	default:
		s.warn("%s was spawned into %s, whose creation was not seen", name, cmp.Or(of, "a team"))
		return
	}
	p := s.roster.at(name)
	if p == nil || name == s.lead() {
		return
	}
	p.Joined.learn(true, f.Result.At)
	p.About.learn(about{AgentID: cmp.Or(out.AgentID, name+"@"+of), Type: cmp.Or(out.AgentType, in.Type),
		Model: cmp.Or(out.Model, in.Model), Color: out.Color,
		Prompt: in.Prompt, Planned: out.PlanMode || in.Mode == "plan"}, f.Result.At)
	p.Ended.learn("", f.Result.At)
	p.Doing.learn(active, f.Result.At)
	if len(s.roster.Spawns) < maxPeople {
		s.roster.Spawns[f.Call.ID] = name
	}
	s.speakers.identify(s.roster)
	s.speakers.news = true
}

// adopt continues with a state that was made elsewhere, or later than the present knowledge.
func (s *observedTeam) adopt(now *team.State) {
	if s.state == nil || s.state.Team().ID != now.Team().ID {
		s.board, s.roster, s.mail = newBoard(), newRoster(), newMessageCounts()
		before := s.lifetime.Before
		if s.state != nil {
			before++
		}
		s.lifetime = lifetime{Gone: s.lifetime.Gone, Before: before}
	}
	s.state, s.taskCount = now, countTasks(now)
	lead, _ := now.Member(now.Team().Lead)
	switch {
	case lead.Session == unknownSession:
		s.lifetime.LeadSource = anySource
	case s.lifetime.LeadSession == "":
		s.lifetime.LeadSession = lead.Session
	}
	if s.lifetime.Name == "" {
		s.lifetime.Name = cmp.Or(now.Team().Observed, now.Team().Name)
	}
	if s.lifetime.Name == unnamed {
		s.lifetime.Name = ""
	}
	s.lifetime.Founded = stamp{At: now.Team().CreatedAt}
	for n := 1; n <= s.taskCount; n++ {
		if t, ok := now.Task(fmt.Sprint(n)); ok && !skipped(t) {
			s.board.adopt(&t)
		}
	}
	for _, m := range now.Members() {
		if m.Name != now.Team().Lead {
			s.roster.adopt(&m)
		}
	}
	delete(s.roster.People, now.Team().Lead)
	clear(s.board.dirty)
	clear(s.roster.dirty)
	s.speakers.news = true
}
