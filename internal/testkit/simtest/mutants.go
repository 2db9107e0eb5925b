package simtest

import (
	"fmt"
	"slices"
	"strings"

	"cadre/internal/team"
)

// Mutant is a bug that is put in on purpose: a history has to break a promise with it.
type Mutant struct {
	Name string
	What string
	// decide decides in the place of the core; nil where the bug is in the real code, as bugs of the
	// tests has it, or in a seam or a person that asks for it by name.
	decide func(*team.State, team.Command) (team.Decision, error)
}

// mutants are the bugs that the simulation has to find.
var mutants = slices.Concat(ofTeams, ofLeads)

var ofTeams = []Mutant{
	// The journal.
	{Name: "early-ack", What: "a record is acknowledged before it is synced"},
	{Name: "sync-ignored", What: "a sync that failed is taken for one that did not"},
	{Name: "repeat-unsynced", What: "a repetition is acknowledged while the first record is not synced"},
	{Name: "no-lock", What: "writers decide without holding the others off"},
	{Name: "torn-kept", What: "a torn line is written on"},
	{Name: "half-read", What: "readers see a line that is not finished"},

	// The core.
	{Name: "claim-unchecked", What: "a task that somebody holds can be claimed",
		decide: func(s *team.State, c team.Command) (team.Decision, error) {
			d, err := team.Decide(s, c)
			b, ok := c.Body.(*team.ClaimTask)
			if !ok || team.CodeOf(err) != team.Nothing {
				return d, err
			}
			for t := range s.Tasks() {
				if member := b.Member; t.Status == team.InProgress {
					if member == "" {
						member = c.Actor
					}
					return recordOf(s, c, &team.TaskClaimed{Task: t.ID, Member: member, Fence: t.Fence + 1}), nil
				}
			}
			return d, err
		}},
	{Name: "ending-unseen", What: "a member is taken from a dead host, and ends with that, before the host has heard " +
		"that it was asked to shut down",
		decide: func(s *team.State, c team.Command) (team.Decision, error) {
			if b, ok := c.Body.(*team.AttachMember); ok {
				m, _ := s.Member(b.Member)
				c.Body = &team.AttachMember{Member: b.Member, From: b.From, Ending: m.Shutdown.Request}
			}
			return team.Decide(s, c)
		}},
	{Name: "blocked-claimed", What: "a task that waits for another one can be claimed",
		decide: func(s *team.State, c team.Command) (team.Decision, error) {
			d, err := team.Decide(s, c)
			b, ok := c.Body.(*team.ClaimTask)
			if !ok || team.CodeOf(err) != team.Nothing || b.Member == "" {
				return d, err
			}
			for t := range s.Tasks() {
				if t.Status == team.Pending && t.Owner == "" && len(t.Blocked()) > 0 {
					return recordOf(s, c, &team.TaskClaimed{Task: t.ID, Member: b.Member, Fence: t.Fence + 1}), nil
				}
			}
			return d, err
		}},
	{Name: "unfenced-completion", What: "a task is completed under an old claim",
		decide: func(s *team.State, c team.Command) (team.Decision, error) {
			if b, ok := c.Body.(*team.CompleteTask); ok && b.Fence != 0 {
				old := *b
				old.Fence = 0
				c.Body = &old
			}
			return team.Decide(s, c)
		}},
	{Name: "unfenced-release", What: "a task is released, or failed, under an old claim",
		decide: func(s *team.State, c team.Command) (team.Decision, error) {
			switch b := c.Body.(type) {
			case *team.ReleaseTask:
				old := *b
				old.Fence = 0
				c.Body = &old
			case *team.FailTask:
				old := *b
				old.Fence = 0
				c.Body = &old
			}
			return team.Decide(s, c)
		}},
	{Name: "lease-unchecked", What: "a host that lost a lease goes on to act under it",
		decide: func(s *team.State, c team.Command) (team.Decision, error) {
			if m, ok := s.Member(about(c.Body)); ok && c.Lease != 0 && m.Host != "" {
				c.Actor, c.Lease = team.Host(m.Host), 0
			}
			return team.Decide(s, c)
		}},
	{Name: "incarnation-unchecked", What: "a session that was replaced goes on to act",
		decide: func(s *team.State, c team.Command) (team.Decision, error) {
			c.Incarnation = 0
			return team.Decide(s, c)
		}},
	{Name: "ids-forgotten", What: "a command that comes again happens again",
		decide: func(s *team.State, c team.Command) (team.Decision, error) {
			id := c.ID
			c.ID = fmt.Sprint(c.ID, "+", s.Seq())
			d, err := team.Decide(s, c)
			if d.Record != nil {
				d.Record.ID = id
			}
			return d, err
		}},
	{Name: "mail-dropped", What: "mail for a member that ended does not come back",
		decide: without(func(e team.Event) bool {
			m, ok := e.(*team.MessageSent)
			return ok && strings.HasPrefix(m.Message.Body, "Not delivered")
		})},
	{Name: "mail-kept", What: "mail of a member that ended stays where it is", decide: without(func(e team.Event) bool {
		_, ok := e.(*team.MessagesReturned)
		return ok
	})},
	{Name: "request-left", What: "the requests of a session that ended stay open",
		decide: without(func(e team.Event) bool {
			a, ok := e.(*team.PermissionAnswered)
			return ok && a.By == "" && a.Outcome == "denied" && a.Reason != ""
		})},
	{Name: "never-expires", What: "a permission request waits for ever", decide: func(s *team.State, c team.Command) (
		team.Decision, error) {
		if _, ok := c.Body.(*team.ExpirePermission); ok {
			return team.Decision{}, nil
		}
		return team.Decide(s, c)
	}},
	{Name: "self-approval", What: "a member allows itself what it asked for",
		decide: func(s *team.State, c team.Command) (team.Decision, error) {
			b, ok := c.Body.(*team.RequestPermission)
			d, err := team.Decide(s, c)
			if ok && err == nil && d.Record != nil {
				for _, e := range d.Record.Events {
					if p, ok := e.(*team.PermissionRequested); ok {
						d.Record.Events = append(d.Record.Events,
							&team.PermissionAnswered{Request: p.Permission.Request,
								Member: b.Member, Outcome: "allowed", By: b.Member})
					}
				}
			}
			return d, err
		}},
	{Name: "lead-ended", What: "a shutdown of the lead is taken", decide: func(s *team.State, c team.Command) (
		team.Decision, error) {
		if b, ok := c.Body.(*team.ReportStopped); ok && b.Member == s.Team().Lead {
			return recordOf(s, c, &team.MemberStopped{Member: b.Member, Reason: b.Reason}), nil
		}
		return team.Decide(s, c)
	}},

	// The host.
	{Name: "take-living", What: "a host takes members over without looking whether their host lives"},
	{Name: "unleased", What: "a session is started before the lease is had"},
	{Name: "old-seat-stays", What: "a host that lost a lease leaves its session running"},
	{Name: "no-deadline", What: "the deadline of a shutdown is forgotten"},
	{Name: "no-timer", What: "a host looks again only when something happens"},
	{Name: "given-is-received", What: "a message counts as delivered when it is handed over"},
	{Name: "receipts-ignored", What: "what the transcript of a resumed session has is given to it again"},
	{Name: "way-forgotten", What: "a message that is on its way is given again"},
	{Name: "arrival-forgotten", What: "a message is given again while it is being recorded that it arrived"},
	{Name: "replaced-reads", What: "a session that was replaced is given what is for the next one"},
	{Name: "unsynced-given", What: "a message is given before it is durable"},
	{Name: "work-once", What: "a task that was wanted, and not taken then, is not offered again"},
	{Name: "traced-early", What: "what a task did is looked at before it is done"},
	{Name: "trace-once", What: "what a task did, and could not be recorded then, is never recorded"},
	{Name: "late-claim", What: "a session is not told of a task that was claimed for it after its turn"},
	{Name: "keeps-mixed", What: "what was saved before is kept in the place of what was saved since"},
	{Name: "turns-mixed", What: "what a tool of the next turn carries counts as delivered at the end of the last one"},
	{Name: "clock-order", What: "mail is given in the order of clocks"},
	{Name: "report-dropped", What: "what could not be recorded is forgotten"},
	{Name: "no-gate", What: "nobody asks whether a tool may be used"},

	{Name: "overdue-left", What: "a command is carried out although what is overdue has not been ended"},
	{Name: "arrival-unrecorded", What: "nobody records that a message has arrived"},
	{Name: "idle-unrecorded", What: "a turn ends, and its member stays active"},
	{Name: "answer-lost", What: "a session never hears what became of its request"},
	{Name: "change-unseen", What: "a host looks again at its next deadline only, whatever changes"},
	{Name: "looked-early", What: "a sign of life counts as seen when the look for it began"},
	{Name: "seat-kept", What: "a session that is over keeps the place of the next one"},
	{Name: "lead-stays-lost", What: "a lead that was recorded as lost, and lives, is not taken up again"},
	{Name: "mail-behind-lost", What: "the mail behind a tool's result counts as handed over, and is not there"},

	// Around the host.
	{Name: "kept-unflushed", What: "what an observer knows is kept before its journal has it"},
	{Name: "removed-early", What: "the folder of a team goes while a process of it is there"},

	// People.
	{Name: "new-id", What: "a command is tried again under another id"},
}

// mutantOf is the mutant of that name; nil for none.
func mutantOf(name string) *Mutant {
	i := slices.IndexFunc(mutants, func(m Mutant) bool { return m.Name == name })
	if i < 0 {
		return nil
	}
	return &mutants[i]
}

// recordOf is the decision for those events, whatever the rules say.
func recordOf(s *team.State, c team.Command, events ...team.Event) team.Decision {
	return team.Decision{Record: &team.Record{Seq: s.Seq() + 1, ID: c.ID, Actor: c.Actor, At: c.At, Events: events}}
}

// without decides by the rules and leaves some events out.
func without(drop func(team.Event) bool) func(*team.State, team.Command) (team.Decision, error) {
	return func(s *team.State, c team.Command) (team.Decision, error) {
		d, err := team.Decide(s, c)
		if d.Record != nil {
			if d.Record.Events = slices.DeleteFunc(d.Record.Events, drop); len(d.Record.Events) == 0 {
				d.Record = nil
			}
		}
		return d, err
	}
}
