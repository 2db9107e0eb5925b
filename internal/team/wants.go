package team

import (
	"fmt"
	"slices"
)

// WantKind is what sort of thing should be true of the outside world.
type WantKind string

// The kinds of wants.
const (
	WantSession          WantKind = "session"           // a session runs for this incarnation of the member
	WantDelivery         WantKind = "delivery"          // the messages Seqs are in that session
	WantWork             WantKind = "work"              // the idle session looks at the task list: there is something for it
	WantStop             WantKind = "stop"              // the session is ended, for Reason, and the member reported as stopped
	WantExpirePermission WantKind = "expire_permission" // the request is answered as timed out
	WantExpireShutdown   WantKind = "expire_shutdown"   // the member without a session is stopped
	WantBudgetCheck      WantKind = "budget_check"      // the time of the budget is over
)

// Want is one thing that should be true of the outside world. Wants are derived from the state and never queued, so a
// restart finds them again; making one true twice under the same Key is the same as once.
type Want struct {
	Kind        WantKind
	Key         string
	Member      string
	Incarnation int64
	Seqs        []int64 // delivery: which messages, in order
	Request     string  // expire_permission
	Reason      string  // stop
}

// Wants returns what should be true at that time, always in the same order, and the time at which more may be due though nothing happens; 0 for never.
// A session that runs although nothing wants it is to be ended.
func (s *State) Wants(now Time) (wants []Want, next Time) {
	if !s.Exists() || s.team.Status == TeamComplete || s.team.Status == TeamAborted {
		return nil, 0
	}
	due := func(at Time) bool {
		if at <= now {
			return true
		}
		if next == 0 || at < next {
			next = at
		}
		return false
	}
	if b := s.team.Budget.Millis; b > 0 && s.team.Exhausted == "" && due(plus(s.team.CreatedAt, Time(b))) {
		wants = append(wants, Want{Kind: WantBudgetCheck, Key: "budget"})
	}
	for _, p := range s.permissions {
		if due(p.Deadline) {
			wants = append(wants, Want{Kind: WantExpirePermission, Key: "expire/" + p.Request, Member: p.Member, Request: p.Request})
		}
	}
	for i := range s.members {
		m := &s.members[i]
		if !m.Status.Running() {
			continue
		}
		ends := m.Shutdown.Request != "" && (m.Shutdown.Answer == "approved" || due(m.Shutdown.Deadline))
		switch {
		case ends && (m.Agent == External || m.Host == ""):
			if due(m.Shutdown.Deadline) {
				wants = append(wants, Want{Kind: WantExpireShutdown, Key: "expire/" + m.Shutdown.Request, Member: m.Name})
			}
		case m.Agent == External:
		case ends:
			reason := "shut down as asked"
			if m.Shutdown.Answer != "approved" {
				reason = "shut down at the deadline"
			}
			wants = append(wants, Want{Kind: WantStop, Key: "stop/" + m.Shutdown.Request, Member: m.Name, Incarnation: m.Incarnation, Reason: reason})
		case s.team.Exhausted == "":
			wants = append(wants, s.sessionWants(m)...)
		}
	}
	return wants, next
}

// Overdue returns the commands that end what nobody ended in time and no host sees to: requests whose deadline has passed, and
// members without a session that were to shut down by now.
func (s *State) Overdue(now Time) (due []Body) {
	if !s.Exists() || s.team.Status == TeamComplete || s.team.Status == TeamAborted {
		return nil
	}
	for _, p := range s.permissions {
		if p.Deadline <= now {
			due = append(due, &ExpirePermission{Request: p.Request})
		}
	}
	for i := range s.members {
		if m := &s.members[i]; m.Shutdown.Request != "" && m.Shutdown.Deadline <= now && m.Status.Running() && (m.Agent == External || m.Host == "") {
			due = append(due, &ExpireShutdown{Member: m.Name})
		}
	}
	return due
}

func (s *State) sessionWants(m *Member) []Want {
	session := fmt.Sprintf("%s/%d", m.Name, m.Incarnation)
	wants := []Want{{Kind: WantSession, Key: "session/" + session, Member: m.Name, Incarnation: m.Incarnation}}
	if m.Status == Spawning {
		return wants
	}
	if n := len(m.Inbox); n > 0 {
		wants = append(wants, Want{Kind: WantDelivery, Key: fmt.Sprintf("delivery/%s/%d-%d", session, m.Inbox[0], m.Inbox[n-1]),
			Member: m.Name, Incarnation: m.Incarnation, Seqs: slices.Clone(m.Inbox)})
	}
	if m.Status == Idle && m.Shutdown.Request == "" && s.AllowsTool(m.Name, "TaskClaim") == nil {
		if t := s.next(m); t != nil {
			wants = append(wants, Want{Kind: WantWork, Key: fmt.Sprintf("work/%s/%s/%d", session, t.ID, t.Fence), Member: m.Name, Incarnation: m.Incarnation})
		}
	}
	return wants
}
