package team

// Outside is what was found of a team beside its journal, by somebody who looked: which processes
// are alive, and whether what the team works on is there. A nil *Outside says that nobody looked,
// and then only what was recorded counts.
type Outside struct {
	At            Time             // when it was looked at
	Hosted        bool             // a process of this machine runs its sessions
	Led           bool             // a process of this machine leads it
	LeadActs      bool             // a session outside acts as the lead, and gets the lead's mail
	Elsewhere     string           // another machine on which the session that leads may be running; "" for none
	Consolidating bool             // a process of this machine consolidates it
	Sealed        bool             // the record of its consolidation is written
	Directory     string           // why nobody can work in the team's directory; "" where it is as it should be
	Stale         []string         // names of the facts whose files changed
	Sights        map[string]Sight // of the members, by name
}

// Life is what is known of a member's session.
type Life string

// The lives of a member.
const (
	LifeOnline  Life = "online"
	LifeOffline Life = "offline"
	LifeResting Life = "resting" // it has no session at the moment, and is to get one
	// an external member, of whose session nothing is known: it does not use cadre mcp, or has
	// taken leave
	LifeOutside Life = "outside"
	LifeEnded   Life = "ended"
	LifeUnknown Life = "unknown" // a clock is wrong, or the sign of life is damaged
)

// Sight is what was seen of a member.
type Sight struct {
	Life     Life
	Why      string // of its life
	Seen     Time   // its last sign of life; 0 for none
	HostGone bool   // the host that ran its session is known to have ended
}

// Away is the phase of a member of which nothing is heard, or whose process is known to have ended.
const Away Phase = "offline"

// Standing returns what the member does, by what was recorded and by what was seen of it.
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
	case life == LifeResting && !o.Hosted:
		return Resting
	}
	return s.Phase(member)
}

// ledBySession reports whether a session leads that could be lost: neither nobody, nor the user,
// who leads by commands.
func (s *State) ledBySession() bool { return s.team.LeadSession != "" && s.team.LeadSession != User }

// leadGone reports whether the process that led is known to have ended.
func (s *State) leadGone(o *Outside) bool {
	return o != nil && s.ledBySession() && !o.Led && o.Elsewhere == ""
}

// Unhosted returns the names of the members whose sessions cadre is to run, where no process runs
// any.
func (s *State) Unhosted(o *Outside) (names []string) {
	if o == nil || o.Hosted || s.over() {
		return nil
	}
	for i := range s.members {
		if m := &s.members[i]; m.Agent != External && m.Status.Running() {
			names = append(names, m.Name)
		}
	}
	return names
}

// Dormant reports whether no process of the team is alive although one should be: a team of people
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

// Interrupted reports whether a consolidation was begun, is not finished, and nobody is at it.
func (s *State) Interrupted(o *Outside) bool {
	if o == nil || o.Consolidating || s.team.CleanedUp {
		return false
	}
	c := &s.team.Consolidation
	return c.Open() || s.team.Status == TeamComplete && c.Step == Done && !o.Sealed
}

// over reports whether the team is at its end.
func (s *State) over() bool {
	return !s.Exists() || s.team.Status == TeamComplete || s.team.Status == TeamAborted
}
