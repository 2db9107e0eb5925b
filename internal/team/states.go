package team

import "slices"

// Move is a transition between two statuses of a team or a member, and says when it happens.
type Move[S ~string] struct {
	From S // "" for something new
	To   S
	When string
}

// TeamMoves lists all transitions of a team. Decide allows no other.
var TeamMoves = []Move[TeamStatus]{
	{"", TeamPending, "it is created"},
	{TeamPending, TeamActive, "the first teammate is spawned"},
	{TeamActive, TeamConsolidating, "it winds down: no new work starts"},
	{TeamConsolidating, TeamActive, "a check failed, or there is more to do"},
	{TeamConsolidating, TeamComplete, "every check passed and the work is committed; or the lead ends it, or it was " +
		"complete before"},
	{TeamComplete, TeamConsolidating, "what it did is checked and committed after all"},
	{TeamComplete, TeamActive, "a task is rolled back, and nothing was consolidated"},
	{TeamPending, TeamComplete, "the lead ends it"},
	{TeamActive, TeamComplete, "the lead ends it"},
	{TeamPending, TeamAborted, "it is aborted"},
	{TeamActive, TeamAborted, "it is aborted"},
	{TeamConsolidating, TeamAborted, "it is aborted"},
}

// Phase is what a member does as people see it: its status, or what follows from the status while
// no session leads.
type Phase string

// The phases that are not statuses.
const (
	Zombie Phase = "zombie" // it continues its task and takes no new one, because no session leads
	// it has no session: no process runs its team, or no session leads; it resumes with its team
	Paused Phase = "paused"
)

// MemberMoves returns all transitions of a member.
func MemberMoves() []Move[Phase] {
	var all []Move[Phase]
	add := func(when string, to Phase, from ...Phase) {
		for _, f := range from {
			all = append(all, Move[Phase]{f, to, when})
		}
	}
	const (
		spawning, active, idle, blocked    = Phase(Spawning), Phase(Active), Phase(Idle), Phase(Blocked)
		shuttingDown, stopped, failed, new = Phase(ShuttingDown), Phase(Stopped), Phase(Failed), Phase("")
	)
	add("it is added", spawning, new)
	add("it is added, and external", active, new)
	add("it is added while no session leads", Paused, new)
	add("it is added, external, while no session leads", Zombie, new)
	add("its session runs", active, spawning)
	add("it reports a turn", active, idle, blocked)
	add("its turn ends", idle, spawning, active, blocked)
	add("it waits for an answer, or had a trouble", blocked, spawning, active, idle)
	add("its session has ended", spawning, active, idle, blocked, shuttingDown)
	add("it agrees to end", shuttingDown, spawning, active, idle, blocked, Zombie, Paused)
	add("no session leads any more", Zombie, active, idle, blocked)
	add("no session leads any more", Paused, spawning)
	add("its session runs", Zombie, Paused)
	add("its session has ended, or has waited for a lead for too long", Paused, Zombie)
	add("a lead is there again", spawning, Paused)
	for _, before := range []Phase{active, idle, blocked} {
		add("a lead is there again", before, Zombie)
	}
	add("it ends as it was asked to, or with its team", stopped, spawning, active, idle, blocked, shuttingDown,
		Zombie, Paused)
	add("its session ends by itself, for good", failed, spawning, active, idle, blocked, shuttingDown, Zombie, Paused)
	return all
}

// Phase returns the member's phase; "" if there is no such member.
func (s *State) Phase(member string) Phase {
	m := s.member(member)
	switch {
	case m == nil:
		return ""
	case !s.orphaned(m) || m.Status == ShuttingDown:
		return Phase(s.retired(*m).Status)
	case m.Status == Spawning:
		return Paused
	}
	return Zombie
}

func allowed[S ~string](moves []Move[S], from, to S) bool {
	return slices.ContainsFunc(moves, func(m Move[S]) bool { return m.From == from && m.To == to })
}

// Roster returns the members as people see them, with the lead first.
func (s *State) Roster() []Member {
	all := slices.Clone(s.members)
	for i := range all {
		all[i] = s.retired(all[i])
	}
	return all
}

// retired returns a lead as people see it. In a team that has ended, the lead's session ends with
// its host after the report, and nothing starts it again; a person has nothing more to lead. So it
// is shown as stopped, though it remains the lead: a rollback may reopen the team.
func (s *State) retired(lead Member) Member {
	over := s.team.Status == TeamComplete || s.team.Status == TeamAborted
	if over && lead.Name == s.team.Lead && lead.Status.Running() {
		lead.Status, lead.Summary, lead.Host = Stopped, "the team is "+string(s.team.Status), ""
	}
	return lead
}

// LedByUser reports whether the user leads the team as a person: no agent runs a session for the
// lead.
func (s *State) LedByUser() bool {
	t, lead := &s.team, s.member(s.team.Lead)
	return lead != nil && lead.Agent == External && t.Observed == "" &&
		(t.Origin != "" || t.LeadSession == "" || t.LeadSession == User)
}
