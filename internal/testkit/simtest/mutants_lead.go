package simtest

import "cadre/internal/team"

// ofLeads are the bugs in who leads, and in what goes on without a lead.
var ofLeads = []Mutant{
	// The core.
	{Name: "zombie-claims", What: "a teammate without a lead begins a new task",
		decide: func(s *team.State, c team.Command) (team.Decision, error) {
			return claimsAnyhow(s, c, s.Team().LeadLost != 0)
		}},
	{Name: "last-claims", What: "a team that is brought to its end begins a new task",
		decide: func(s *team.State, c team.Command) (team.Decision, error) {
			return claimsAnyhow(s, c, s.Team().Status == team.TeamConsolidating && s.Team().LeadLost == 0)
		}},
	{Name: "held-dropped", What: "what members said while there was no lead is forgotten",
		decide: func(s *team.State, c team.Command) (team.Decision, error) {
			d, err := team.Decide(s, c)
			if _, ok := c.Body.(*team.AttachLead); ok && d.Record != nil && s.Team().LeadLost != 0 {
				for _, m := range s.Members() {
					if n := len(s.Inbox(m.Name)); n < len(m.Inbox) {
						d.Record.Events = append(d.Record.Events, &team.MessagesDelivered{Member: m.Name,
							Seqs: m.Inbox[len(m.Inbox)-1:]})
					}
				}
			}
			return d, err
		}},
	{Name: "held-not", What: "who takes its mail itself gets what was to wait for a lead",
		decide: func(s *team.State, c team.Command) (team.Decision, error) {
			if b, ok := c.Body.(*team.ReceiveMessages); ok && b.Seqs == nil && s.Team().LeadLost != 0 {
				if m, ok := s.Member(c.Actor); ok && len(m.Inbox) > len(s.Inbox(m.Name)) {
					return recordOf(s, c, &team.MessagesDelivered{Member: m.Name, Seqs: m.Inbox}), nil
				}
			}
			return team.Decide(s, c)
		}},
	{Name: "lead-taken", What: "the lead is taken from a session that lives",
		decide: func(s *team.State, c team.Command) (team.Decision, error) {
			d, err := team.Decide(s, c)
			if b, ok := c.Body.(*team.AttachLead); ok && team.CodeOf(err) == team.Conflict {
				return recordOf(s, c, &team.LeadAttached{Session: b.Session, TakenOver: s.Team().LeadSession}), nil
			}
			return d, err
		}},
	{Name: "taken-since", What: "the lead is taken from a session that came back, on the word of what was seen before",
		decide: func(s *team.State, c team.Command) (team.Decision, error) {
			if b, ok := c.Body.(*team.AttachLead); ok && b.Since != 0 {
				again := *b
				again.Since = s.Team().LeadSince
				c.Body = &again
			}
			return team.Decide(s, c)
		}},
	{Name: "lost-since", What: "a lead that came back is lost on the word of what was seen before",
		decide: func(s *team.State, c team.Command) (team.Decision, error) {
			if b, ok := c.Body.(*team.LoseLead); ok {
				again := *b
				again.Since = s.Team().LeadSince
				c.Body = &again
			}
			return team.Decide(s, c)
		}},
	{Name: "late-untold", What: "late messages are marked, and nobody is told",
		decide: func(s *team.State, c team.Command) (team.Decision, error) {
			d, err := team.Decide(s, c)
			if _, ok := c.Body.(*team.MarkLate); ok && d.Record != nil {
				d.Record.Events = d.Record.Events[:1]
			}
			return d, err
		}},
	{Name: "late-again", What: "the lead is told of the same late messages again and again",
		decide: without(func(e team.Event) bool {
			_, ok := e.(*team.MessagesLate)
			return ok
		})},
	{Name: "late-forgotten", What: "nobody sees that messages are late", decide: func(s *team.State, c team.Command) (
		team.Decision, error) {
		if _, ok := c.Body.(*team.MarkLate); ok {
			return team.Decision{}, nil
		}
		return team.Decide(s, c)
	}},
	{Name: "resent-anew", What: "a message that is sent again is another message",
		decide: func(s *team.State, c team.Command) (team.Decision, error) {
			d, err := team.Decide(s, c)
			if b, ok := c.Body.(*team.ResendMessages); ok && d.Record != nil {
				for _, m := range s.Inbox(b.Member) {
					m.Seq = s.MessageSeq() + 1
					m.To, m.Recipients = b.Member, nil
					d.Record.Events = []team.Event{&team.MessageSent{Message: m}}
				}
			}
			return d, err
		}},
	{Name: "old-owner", What: "a task that was given to somebody else is completed by its old owner",
		decide: func(s *team.State, c team.Command) (team.Decision, error) {
			d, err := team.Decide(s, c)
			if b, ok := c.Body.(*team.CompleteTask); ok && err != nil {
				if t, _ := s.Task(b.Task); t.Status == team.Pending && t.Owner != "" && t.Owner != c.Actor {
					if _, member := s.Member(c.Actor); member {
						return recordOf(s, c, &team.TaskCompleted{Task: t.ID, By: c.Actor}), nil
					}
				}
			}
			return d, err
		}},

	// Hosts and leads.
	{Name: "age-alone", What: "a lead is silent because a clock says so"},
	{Name: "never-lost", What: "nobody looks for signs of life of the lead"},
	{Name: "never-leaves", What: "a lead that was taken over goes on to lead"},
	{Name: "gives-away", What: "a lead that was taken over gives the lead of its successor away when it ends"},
	{Name: "held-given", What: "a session is given what is to wait for a lead"},
	{Name: "again-anew", What: "a session is given again what it has, because it was sent again"},
	{Name: "never-rests", What: "a session without a lead goes on for ever"},
	{Name: "never-yields", What: "who is blocked without a lead keeps its task"},
	{Name: "save-lost", What: "saved work is removed before it is kept with the task"},
	{Name: "save-left", What: "what was saved for a member whose host died is forgotten"},
	{Name: "other-overwritten", What: "what was saved of a task is overwritten with what is saved of another one"},
	{Name: "newer-removed", What: "what was saved while older work was being kept is removed with that"},
	{Name: "broken-stays", What: "a host that can record nothing any more keeps its leases"},
	{Name: "refused-kept", What: "what was saved is taken for kept when another host has taken the member over"},
	{Name: "kept-by-all", What: "hosts that want to take a member over keep what was saved for it, one over the other"},
	{Name: "yields-once", What: "a task that could not be given back without a lead is never given back"},
	{Name: "aborted-stays", What: "sessions go on when their team has ended"},
	{Name: "worker-once", What: "a worker that was not allowed to begin a task is never asked again"},
}

// claimsAnyhow gives a member its next task although the rules say that nothing new is begun.
func claimsAnyhow(s *team.State, c team.Command, now bool) (team.Decision, error) {
	d, err := team.Decide(s, c)
	b, ok := c.Body.(*team.ClaimTask)
	if !now || !ok || team.CodeOf(err) != team.NotReady || b.Task != "" {
		return d, err
	}
	member := b.Member
	if member == "" {
		member = c.Actor
	}
	for _, t := range s.Claimable(member) {
		return recordOf(s, c, &team.TaskClaimed{Task: t.ID, Member: member, Fence: t.Fence + 1}), nil
	}
	return d, err
}
