package simtest

import (
	"fmt"
	"slices"
	"strings"

	"cadre/internal/team"
)

// Mutant is a deliberate bug: some history must break a promise with it.
type Mutant struct {
	Name string
	What string
	// decide replaces the decision of the core. It is nil for other bugs: those are rows of bugs in
	// the tests, or a seam or a person asks for them by name.
	decide func(*team.State, team.Command) (team.Decision, error)
}

// mutants are the bugs that the simulation has to find.
var mutants = slices.Concat(ofTeams, ofLeads)

var ofTeams = []Mutant{
	// The journal.
	{Name: "early-ack", What: "a record is acknowledged before it is synced"},
	{Name: "sync-ignored", What: "a failed sync counts as successful"},
	{Name: "repeat-unsynced", What: "a repeated command is acknowledged before the first record is synced"},
	{Name: "no-lock", What: "writers decide without excluding each other"},
	{Name: "torn-kept", What: "a line is appended to a torn one"},
	{Name: "half-read", What: "readers see an unfinished line"},

	// The core.
	{Name: "claim-unchecked", What: "a task in progress can be claimed",
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
	{Name: "ending-unseen", What: "a host takes a member from a dead host and stops it, before the host knows of the " +
		"shutdown request",
		decide: func(s *team.State, c team.Command) (team.Decision, error) {
			if b, ok := c.Body.(*team.AttachMember); ok {
				m, _ := s.Member(b.Member)
				c.Body = &team.AttachMember{Member: b.Member, From: b.From, Ending: m.Shutdown.Request}
			}
			return team.Decide(s, c)
		}},
	{Name: "blocked-claimed", What: "a blocked task can be claimed",
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
	{Name: "paths-ignored", What: "a task can be claimed although a path of it belongs to another one",
		decide: func(s *team.State, c team.Command) (team.Decision, error) {
			d, err := team.Decide(s, c)
			b, ok := c.Body.(*team.ClaimTask)
			if !ok || team.CodeOf(err) != team.Nothing || b.Member == "" {
				return d, err
			}
			for t := range s.Tasks() {
				if t.Owner == "" && t.WaitsForPath() != "" {
					return recordOf(s, c, &team.TaskClaimed{Task: t.ID, Member: b.Member, Fence: t.Fence + 1}), nil
				}
			}
			return d, err
		}},
	{Name: "pool-ignored", What: "each member has a pool of its own",
		decide: func(s *team.State, c team.Command) (team.Decision, error) {
			if b, ok := c.Body.(*team.AttachMember); ok {
				own := *b
				own.Pool = b.Member
				c.Body = &own
			}
			return team.Decide(s, c)
		}},
	{Name: "limit-returns", What: "a rate limit returns the task, and is a setback",
		decide: func(s *team.State, c team.Command) (team.Decision, error) {
			if b, ok := c.Body.(*team.ReportTrouble); ok {
				old := *b
				old.Pool = ""
				c.Body = &old
			}
			return team.Decide(s, c)
		}},
	{Name: "back-together", What: "all members of a limited pool come back at one moment"},
	{Name: "no-probe", What: "all members of a limited pool try again, and not one first"},
	{Name: "turns-uncounted", What: "more teammates have a turn than the team allows"},
	{Name: "own-work-verified", What: "a member is given the verification of its own work",
		decide: func(s *team.State, c team.Command) (team.Decision, error) {
			d, err := team.Decide(s, c)
			b, ok := c.Body.(*team.ClaimTask)
			if !ok || team.CodeOf(err) != team.Nothing || b.Member == "" {
				return d, err
			}
			for t := range s.Tasks() {
				if of, _ := s.Task(t.Verifies); of.Submission != nil && of.Submission.By == b.Member &&
					t.Status == team.Pending {
					return recordOf(s, c, &team.TaskClaimed{Task: t.ID, Member: b.Member, Fence: t.Fence + 1}), nil
				}
			}
			return d, err
		}},
	{Name: "unverified", What: "a task is completed without those who verify it",
		decide: func(s *team.State, c team.Command) (team.Decision, error) {
			d, err := team.Decide(s, c)
			if e, is := team.EventIn[*team.TaskSubmitted](d.Record); is {
				return recordOf(s, c, &team.TaskCompleted{Task: e.Task, By: e.By, Result: e.Result}), nil
			}
			return d, err
		}},
	{Name: "check-ignored", What: "a task is completed although its check failed"},
	{Name: "misfit-completes", What: "a task is completed with a result that does not fit its schema"},
	{Name: "tries-unlimited", What: "a result is sent back without an end"},
	{Name: "group-early", What: "a group is completed with the first of its tasks",
		decide: func(s *team.State, c team.Command) (team.Decision, error) {
			d, err := team.Decide(s, c)
			if e, is := team.EventIn[*team.TaskCompleted](d.Record); is {
				of, _ := s.Task(e.Task)
				if g, _ := s.Task(of.Of); g.Status == team.Pending && !slices.ContainsFunc(d.Record.Events,
					func(o team.Event) bool { c, is := o.(*team.TaskCompleted); return is && c.Task == g.ID }) {
					d.Record.Events = append(d.Record.Events, &team.TaskCompleted{Task: g.ID, Result: "[]"})
				}
			}
			return d, err
		}},
	{Name: "group-twice", What: "a group makes two tasks for an item that a command printed",
		decide: func(s *team.State, c team.Command) (team.Decision, error) {
			if b, is := c.Body.(*team.ExpandTask); is && len(b.Items) > 0 {
				twice := *b
				twice.Items = append(slices.Clone(b.Items), b.Items[0])
				c.Body = &twice
			}
			return team.Decide(s, c)
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
	{Name: "lease-unchecked", What: "a host that lost a lease still acts under it",
		decide: func(s *team.State, c team.Command) (team.Decision, error) {
			if m, ok := s.Member(about(c.Body)); ok && c.Lease != 0 && m.Host != "" {
				c.Actor, c.Lease = team.Host(m.Host), 0
			}
			return team.Decide(s, c)
		}},
	{Name: "incarnation-unchecked", What: "a replaced session still acts",
		decide: func(s *team.State, c team.Command) (team.Decision, error) {
			c.Incarnation = 0
			return team.Decide(s, c)
		}},
	{Name: "ids-forgotten", What: "a command that is sent twice is carried out twice",
		decide: func(s *team.State, c team.Command) (team.Decision, error) {
			id := c.ID
			c.ID = fmt.Sprint(c.ID, "+", s.Seq())
			d, err := team.Decide(s, c)
			if d.Record != nil {
				d.Record.ID = id
			}
			return d, err
		}},
	{Name: "append-replaces", What: "a text that is added to a note replaces it",
		decide: func(s *team.State, c team.Command) (team.Decision, error) {
			if b, ok := c.Body.(*team.AppendNote); ok {
				c.Body = &team.SetNote{Key: b.Key, Text: b.Text}
			}
			return team.Decide(s, c)
		}},
	{Name: "note-overwritten", What: "a writer overwrites a change of a note that it has not seen",
		decide: func(s *team.State, c team.Command) (team.Decision, error) {
			if b, ok := c.Body.(*team.SetNote); ok {
				c.Body = &team.SetNote{Key: b.Key, Text: b.Text}
			}
			return team.Decide(s, c)
		}},
	{Name: "mail-dropped", What: "the sender is not told that its mail was returned",
		decide: without(func(e team.Event) bool {
			m, ok := e.(*team.MessageSent)
			return ok && strings.HasPrefix(m.Message.Body, "Not delivered")
		})},
	{Name: "mail-kept", What: "mail for a member that ended is not returned", decide: without(func(e team.Event) bool {
		_, ok := e.(*team.MessagesReturned)
		return ok
	})},
	{Name: "request-left", What: "the requests of a session that ended stay open",
		decide: without(func(e team.Event) bool {
			a, ok := e.(*team.PermissionAnswered)
			return ok && a.By == "" && a.Outcome == "denied" && a.Reason != ""
		})},
	{Name: "never-expires", What: "a permission request never expires", decide: func(s *team.State, c team.Command) (
		team.Decision, error) {
		if _, ok := c.Body.(*team.ExpirePermission); ok {
			return team.Decision{}, nil
		}
		return team.Decide(s, c)
	}},
	{Name: "self-approval", What: "a member approves its own request",
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
	{Name: "rule-of-another", What: "a permission rule for one member allows another one",
		decide: func(s *team.State, c team.Command) (team.Decision, error) {
			d, err := team.Decide(s, c)
			if d.Record == nil || len(s.Team().Rules) == 0 {
				return d, err
			}
			asks, is := d.Record.Events[0].(*team.PermissionRequested)
			answered := slices.ContainsFunc(d.Record.Events, func(e team.Event) bool {
				return e.Kind() == new(team.PermissionAnswered).Kind()
			})
			if is && !answered {
				d.Record.Events = append(d.Record.Events, &team.PermissionAnswered{Request: asks.Permission.Request,
					Member: asks.Permission.Member, Outcome: "allowed", Reason: "the rule allows it"})
			}
			return d, err
		}},
	{Name: "mode-of-another", What: "the permission mode of one member allows what another one asks",
		decide: func(s *team.State, c team.Command) (team.Decision, error) {
			d, err := team.Decide(s, c)
			skips := slices.ContainsFunc(s.Members(), func(m team.Member) bool {
				return m.Agent != team.Shell && m.PermissionMode == "bypassPermissions"
			})
			if d.Record == nil || !skips {
				return d, err
			}
			if asks, is := d.Record.Events[0].(*team.PermissionRequested); is {
				d.Record.Events = []team.Event{asks, &team.PermissionAnswered{Request: asks.Permission.Request,
					Member: asks.Permission.Member, Outcome: "allowed", Reason: "permissions are skipped"}}
			}
			return d, err
		}},
	{Name: "lead-ended", What: "a shutdown of the lead is accepted", decide: func(s *team.State, c team.Command) (
		team.Decision, error) {
		if b, ok := c.Body.(*team.ReportStopped); ok && b.Member == s.Team().Lead {
			return recordOf(s, c, &team.MemberStopped{Member: b.Member, Reason: b.Reason}), nil
		}
		return team.Decide(s, c)
	}},

	{Name: "revised-at-work", What: "a changed team file changes a task in progress",
		decide: func(s *team.State, c team.Command) (team.Decision, error) {
			d, err := team.Decide(s, c)
			if b, ok := c.Body.(*team.ReviseTask); ok && team.CodeOf(err) == team.NotReady && !b.Delete {
				if t, _ := s.Task(b.Task); t.Status == team.InProgress {
					return recordOf(s, c, &team.TaskRevised{Task: team.Task{ID: t.ID, Subject: b.To.Subject},
						Fields: []string{"subject"}}), nil
				}
			}
			return d, err
		}},
	{Name: "interrupt-forgotten", What: "an interrupted member is given the next task"},

	// The host.
	{Name: "news-again", What: "a member is told of the same task with each message",
		decide: func(s *team.State, c team.Command) (team.Decision, error) {
			d, err := team.Decide(s, c)
			if d.Record == nil {
				return d, err
			}
			for i, e := range d.Record.Events {
				if sent, is := e.(*team.MessageSent); is && len(sent.Message.News) > 0 {
					again := *sent
					again.Message.News = slices.Clone(again.Message.News)
					for n := range again.Message.News {
						again.Message.News[n].Told = team.Told{}
					}
					d.Record.Events[i] = &again
				}
			}
			return d, err
		}},
	{Name: "pause-keeps-session", What: "a host that is paused leaves its sessions running"},
	{Name: "pause-keeps-member", What: "a host that is paused keeps its members"},
	{Name: "take-living", What: "a host takes members over without checking whether their host is alive"},
	{Name: "unleased", What: "a session is started before its lease is recorded"},
	{Name: "old-slot-stays", What: "a host that lost a lease leaves its session running"},
	{Name: "no-deadline", What: "the deadline of a shutdown is forgotten"},
	{Name: "no-timer", What: "a host ignores its timers and reacts only to changes"},
	{Name: "given-is-received", What: "a message counts as delivered when it is sent to the session"},
	{Name: "receipts-ignored", What: "a resumed session gets messages again that its transcript has"},
	{Name: "way-forgotten", What: "a message that is on its way is sent again"},
	{Name: "arrival-forgotten", What: "a message is sent again while its arrival is being recorded"},
	{Name: "replaced-reads", What: "a replaced session gets mail for its successor"},
	{Name: "unsynced-given", What: "a message is sent to the session before it is durable"},
	{Name: "work-once", What: "a task whose claim failed once is not offered again"},
	{Name: "traced-early", What: "the changes of a task are collected before it is done"},
	{Name: "trace-once", What: "a failed recording of a task's changes is never repeated"},
	{Name: "late-claim", What: "a session is not told of a task that was claimed for it after its turn"},
	{Name: "keeps-mixed", What: "older saved work replaces newer saved work"},
	{Name: "turns-mixed", What: "mail behind a tool of the next turn counts as delivered at the end of the last turn"},
	{Name: "clock-order", What: "mail is delivered in the order of clocks"},
	{Name: "report-dropped", What: "a report that could not be recorded is dropped"},
	{Name: "no-gate", What: "tools run without a check of the permission"},

	{Name: "overdue-left", What: "a command is carried out before overdue requests are expired"},
	{Name: "arrival-unrecorded", What: "the arrival of a message is not recorded"},
	{Name: "idle-unrecorded", What: "a turn ends, and its member stays active"},
	{Name: "answer-lost", What: "a session never gets the answer to its request"},
	{Name: "change-unseen", What: "a host ignores changes until its next deadline"},
	{Name: "looked-early", What: "a heartbeat counts as seen from the start of the check"},
	{Name: "slot-kept", What: "a session that is over blocks the next one"},
	{Name: "lead-stays-lost", What: "a lead that was recorded as lost, but is alive, does not come back"},
	{Name: "mail-behind-lost", What: "mail counts as sent behind a tool's result, but the result lacks it"},

	// Around the host.
	{Name: "kept-unflushed", What: "an observer saves its knowledge before its journal has it"},
	{Name: "removed-early", What: "the folder of a team is removed while one of its processes runs"},

	// People.
	{Name: "new-id", What: "a command is sent again under another id"},
}

// mutantOf returns the mutant of that name, or nil.
func mutantOf(name string) *Mutant {
	i := slices.IndexFunc(mutants, func(m Mutant) bool { return m.Name == name })
	if i < 0 {
		return nil
	}
	return &mutants[i]
}

// recordOf returns a decision for those events, whatever the rules say.
func recordOf(s *team.State, c team.Command, events ...team.Event) team.Decision {
	return team.Decision{Record: &team.Record{Seq: s.Seq() + 1, ID: c.ID, Actor: c.Actor, At: c.At, Events: events}}
}

// without decides by the rules and then drops some of the events.
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
