package simtest

import "cadre/internal/team"

// ofLeads are the bugs in leading a team, and in working without a lead.
var ofLeads = []Mutant{
	// The core.
	{Name: "zombie-claims", What: "a teammate without a lead starts a new task",
		decide: func(s *team.State, c team.Command) (team.Decision, error) {
			return claimsAnyhow(s, c, s.Team().LeadLost != 0)
		}},
	{Name: "last-claims", What: "a team that is winding down starts a new task",
		decide: func(s *team.State, c team.Command) (team.Decision, error) {
			return claimsAnyhow(s, c, s.Team().Status == team.TeamConsolidating && s.Team().LeadLost == 0)
		}},
	{Name: "held-dropped", What: "messages from the time without a lead are lost",
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
	{Name: "held-not", What: "a member that reads its own mail gets messages that wait for a lead",
		decide: func(s *team.State, c team.Command) (team.Decision, error) {
			if b, ok := c.Body.(*team.ReceiveMessages); ok && b.Seqs == nil && s.Team().LeadLost != 0 {
				if m, ok := s.Member(c.Actor); ok && len(m.Inbox) > len(s.Inbox(m.Name)) {
					return recordOf(s, c, &team.MessagesDelivered{Member: m.Name, Seqs: m.Inbox}), nil
				}
			}
			return team.Decide(s, c)
		}},
	{Name: "lead-taken", What: "the lead is taken from a running session",
		decide: func(s *team.State, c team.Command) (team.Decision, error) {
			d, err := team.Decide(s, c)
			if b, ok := c.Body.(*team.AttachLead); ok && team.CodeOf(err) == team.Conflict {
				return recordOf(s, c, &team.LeadAttached{Session: b.Session, TakenOver: s.Team().LeadSession}), nil
			}
			return d, err
		}},
	{Name: "taken-since", What: "the lead is taken from a session that came back, because of outdated heartbeats",
		decide: func(s *team.State, c team.Command) (team.Decision, error) {
			if b, ok := c.Body.(*team.AttachLead); ok && b.Since != 0 {
				again := *b
				again.Since = s.Team().LeadSince
				c.Body = &again
			}
			return team.Decide(s, c)
		}},
	{Name: "lost-since", What: "a lead that came back is declared lost because of outdated heartbeats",
		decide: func(s *team.State, c team.Command) (team.Decision, error) {
			if b, ok := c.Body.(*team.LoseLead); ok {
				again := *b
				again.Since = s.Team().LeadSince
				c.Body = &again
			}
			return team.Decide(s, c)
		}},
	{Name: "late-untold", What: "late messages are marked, but the lead is not told",
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
	{Name: "late-forgotten", What: "late messages are not noticed", decide: func(s *team.State, c team.Command) (
		team.Decision, error) {
		if _, ok := c.Body.(*team.MarkLate); ok {
			return team.Decision{}, nil
		}
		return team.Decide(s, c)
	}},
	{Name: "resent-new-id", What: "a message that is sent again gets a new id",
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
	{Name: "old-owner", What: "a reassigned task is completed by its old owner",
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
	{Name: "age-alone", What: "a lead counts as silent because of a wrong clock"},
	{Name: "never-lost", What: "the heartbeats of the lead are not checked"},
	{Name: "never-leaves", What: "a lead that was taken over continues to lead"},
	{Name: "gives-away", What: "a lead that was taken over releases the lead of its successor when it ends"},
	{Name: "held-given", What: "a session gets messages that wait for a lead"},
	{Name: "again-twice", What: "a session gets a message twice because the message was sent again"},
	{Name: "never-rests", What: "a session without a lead never ends"},
	{Name: "never-yields", What: "a blocked member without a lead keeps its task"},
	{Name: "save-lost", What: "saved work is removed before it is kept with the task"},
	{Name: "save-left", What: "the saved work of a member whose host died is lost"},
	{Name: "other-overwritten", What: "saved work of one task overwrites the saved work of another"},
	{Name: "newer-removed", What: "newer saved work is removed together with the older work that was kept"},
	{Name: "broken-stays", What: "a host that can no longer record anything keeps its leases"},
	{Name: "refused-kept", What: "saved work counts as kept although another host has taken the member over"},
	{Name: "kept-by-all", What: "hosts that compete for a member overwrite each other's copy of its saved work"},
	{Name: "yields-once", What: "a failed return of a task without a lead is never repeated"},
	{Name: "aborted-stays", What: "sessions continue after their team has ended"},
	{Name: "worker-once", What: "a worker whose claim was refused once is never asked again"},
}

// claimsAnyhow gives a member its next task although the rules forbid new tasks.
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
