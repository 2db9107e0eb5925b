package team

import "slices"

// Outside is what a look found outside the journal of a team: which processes are alive, and
// whether the files that the team works on exist. A nil *Outside says that no look was taken; then
// only what was recorded counts.
type Outside struct {
	At            Time             // when the look was
	Hosted        bool             // a process of this machine runs its sessions
	Led           bool             // a process of this machine leads it
	LeadActs      bool             // an external session acts as the lead, and gets the lead's mail
	Elsewhere     string           // another machine on which the session that leads may be running; "" for none
	Consolidating bool             // a process of this machine consolidates it
	Aborting      bool             // a process of this machine ends what an abort left
	Sealed        bool             // the record of its consolidation is written
	Directory     string           // why the team's directory is unusable; "" where it is usable
	Stale         []string         // names of the facts whose files changed
	Uncommitted   []string         // files of a complete team that are not committed, by their paths from the top
	Untrusted     []string         // events whose hooks of the project do not run, because the user does not trust them
	Sights        map[string]Sight // of the members, by name
	Children      []ChildSight     // of the teams in it that have not ended
}

// ChildSight is what a look found of a team in the team.
type ChildSight struct {
	Child
	Ended bool   // it is complete or aborted
	Waits int    // how many things wait for the user there, and in the teams in it
	First string // the first of them, as a sentence
}

// Life says what is known of a member's session.
type Life string

// The values of [Life].
const (
	LifeOnline  Life = "online"
	LifeOffline Life = "offline"
	LifePaused  Life = "paused" // it has no session at the moment, and will get one
	// an external member whose session cadre cannot see: it does not use cadre mcp, or has left
	LifeOutside Life = "outside"
	LifeEnded   Life = "ended"
	LifeUnknown Life = "unknown" // a clock is wrong, or the heartbeat is damaged
)

// Sight is what a look found of a member.
type Sight struct {
	Life     Life
	Why      string // why its life is what it is
	Seen     Time   // its last heartbeat; 0 for none
	HostGone bool   // the host that ran its session is known to have ended
}

// Away is the phase of a member that stopped sending heartbeats, or whose process is known to have
// ended.
const Away Phase = "offline"

// PausedReason is the reason for the end of a session whose team was stopped to be resumed later.
const PausedReason = "the team was paused"

// The other reasons for the end of a session that a host gives, and that a log explains.
const (
	RunEndedReason    = "the run ended"        // in order, while the team can continue
	BudgetSpentReason = "its budget was spent" // its own budget; it continues when that is raised
)

// Standing returns the member's phase, from what was recorded and what was seen.
func (s *State) Standing(member string, o *Outside) Phase {
	m := s.member(member)
	if m == nil || !s.retired(*m).Status.Running() {
		return s.Phase(member)
	}
	life := Life("")
	if o != nil {
		life = o.Sights[member].Life
	}
	switch {
	case m.Offline != 0 || life == LifeOffline:
		return Away
	case m.Name == s.team.Lead && (s.team.LeadLost != 0 || s.leadGone(o)):
		return Away
	case life == LifePaused && !o.Hosted:
		return Paused
	case m.Status == Spawning && m.Exhausted != "": // a host starts it when its budget is raised
		return Paused
	case m.Status == Spawning && m.Host == "" && (m.Summary == RunEndedReason || m.Summary == PausedReason):
		return Paused
	}
	return s.Phase(member)
}

// ledBySession reports whether a session leads that could be lost. The user, who leads by commands,
// is not one.
func (s *State) ledBySession() bool { return s.team.LeadSession != "" && s.team.LeadSession != User }

// leadGone reports whether the process that led is known to have ended.
func (s *State) leadGone(o *Outside) bool {
	return o != nil && s.ledBySession() && !o.Led && o.Elsewhere == ""
}

// Unhosted returns the names of the members whose sessions cadre should run while no process does.
func (s *State) Unhosted(o *Outside) (names []string) {
	if o == nil || o.Hosted || s.over() {
		return nil
	}
	for i := range s.members {
		if m := &s.members[i]; m.Agent != External && m.Status.Running() && len(m.RunsOn) == 0 {
			names = append(names, m.Name)
		}
	}
	return names
}

// Unfound returns what the groups are called whose items a host must find while no process is one.
func (s *State) Unfound(o *Outside) (groups []string) {
	if o == nil || o.Hosted || s.over() {
		return nil
	}
	for _, w := range s.appendExpandWants(nil) {
		if t := s.task(w.Task); !t.Expanded && t.ForEach.Outside() {
			groups = append(groups, t.Called())
		}
	}
	return groups
}

// Dormant reports whether no process of the team is alive although one should be. A team of people
// alone needs none.
func (s *State) Dormant(o *Outside) bool {
	if o == nil || o.Hosted || o.Led || o.Consolidating || o.Elsewhere != "" || s.over() {
		return false
	}
	for name, sight := range o.Sights {
		if m := s.member(name); m != nil && m.Agent == External && sight.Life == LifeOnline {
			return false
		}
	}
	return s.ledBySession() || len(s.Unhosted(o)) > 0
}

// Paused reports whether no host has a session of the team: the last one ended them in order, to be
// resumed later. A host that was killed still has its sessions here.
func (s *State) Paused() bool {
	for i := range s.members {
		if m := &s.members[i]; m.Status.Running() && m.Agent != External && m.Host != "" {
			return false
		}
	}
	return true
}

// Rests reports whether the team is paused and at least one of its sessions was ended in order: by
// a person, or because its run ended. Other than [State.Paused], it is false for a team that no
// host has run yet.
func (s *State) Rests() bool {
	return s.Paused() && slices.ContainsFunc(s.members, func(m Member) bool {
		return m.Status == Spawning && m.Agent != External && (m.Summary == RunEndedReason || m.Summary == PausedReason)
	})
}

// Interrupted reports whether a consolidation was begun and is not finished, and no process runs
// it. A look from before the consolidation began, or ended, does not say so.
func (s *State) Interrupted(o *Outside) bool {
	if o == nil || o.Consolidating || s.team.CleanedUp {
		return false
	}
	c := &s.team.Consolidation
	if o.At > 0 && o.At <= max(c.BeganAt, c.EndedAt) {
		return false
	}
	return c.Open() || s.team.Status == TeamComplete && c.Step == Done && !o.Sealed
}

// over reports whether the team has ended.
func (s *State) over() bool {
	return !s.Exists() || s.team.Status == TeamComplete || s.team.Status == TeamAborted
}
