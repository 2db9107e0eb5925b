package render

import (
	"cmp"
	"fmt"

	"cadre/internal/team"
)

// Headline says in a line what a person who watches a team wants to know of an event of the record.
// s is the state after it. "" is for an event that only the log shows.
func Headline(e team.Event, r *team.Record, s *team.State) string {
	task := func(id string) team.Task {
		t, _ := s.Task(id)
		return t
	}
	switch e := e.(type) {
	case *team.TaskClaimed:
		return fmt.Sprintf("▸ %s  %s", e.Member, title(task(e.Task)))
	case *team.TaskCompleted:
		t := task(e.Task)
		if t.StartedAt == 0 || t.StartedAt > r.At { // it was never claimed, or is being done again since
			return fmt.Sprintf("✓ %s  %s", e.By, title(t))
		}
		return fmt.Sprintf("✓ %s  %s (%s)", e.By, title(t), team.Span(r.At.Sub(t.StartedAt)))
	case *team.TaskFailed:
		return fmt.Sprintf("✗ %s  %s: %s", e.By, title(task(e.Task)), e.Reason)
	case *team.TaskRolledBack:
		return fmt.Sprintf("↺ %s: rolled back", title(task(e.Task)))
	case *team.TaskReleased:
		return fmt.Sprintf("↺ %s: %s", title(task(e.Task)), cmp.Or(e.Reason, "back in the queue"))
	case *team.MemberSpawned:
		return fmt.Sprintf("+ %s (%s)", e.Member.Name, e.Member.Agent)
	case *team.TaskCreated:
		return "· task " + titled(e.Task, "  ")
	case *team.MessageSent:
		if e.Message.From == "" || e.Message.Type != team.TypeMessage && e.Message.Type != team.TypeBroadcast &&
			(e.Message.Type != team.TypeIdle || e.Message.Quiet) {
			return ""
		}
		return fmt.Sprintf("✉ %s → %s: %s", e.Message.From, e.Message.To, e.Message.Body)
	case *team.MemberStatusChanged:
		if e.Trouble != "" { // its agent retries by itself, maybe for minutes
			return fmt.Sprintf("! %s has trouble: %s", e.Member, e.Summary)
		}
	case *team.ReportAsked, *team.MemberTroubled, *team.HandoverRequested, *team.InterruptRequested:
		return "  " + Lines(&team.Record{At: r.At, Events: []team.Event{e}}, s.Called)[0]
	case *team.PermissionRequested:
		return permissionLine(e, r, s)
	case *team.PermissionAnswered:
		return answerLine(e, r, s)
	case *team.MemberFailed, *team.HookRejected, *team.BudgetExhausted, *team.BudgetAlerted,
		*team.MemberBudgetExhausted,
		*team.PlanSubmitted:
		return "! " + Lines(&team.Record{Events: []team.Event{e}}, s.Called)[0]
	}
	return ""
}

// titled names a task, with its subject where that says more.
func titled(t team.Task, between string) string {
	if t.Subject == t.Name {
		return t.Name
	}
	return t.Called() + between + t.Subject
}

// title is a task's subject, with its name where that differs.
func title(t team.Task) string {
	if t.Name == "" {
		return t.Subject
	}
	return titled(t, "  ")
}

// answerLine describes the answer to a request that had to wait for it. permissionLine describes the
// other requests.
func answerLine(e *team.PermissionAnswered, r *team.Record, s *team.State) string {
	if e.Outcome == "timed_out" {
		return "! " + Lines(&team.Record{Events: []team.Event{e}}, s.Called)[0]
	}
	for _, other := range r.Events {
		if asked, is := other.(*team.PermissionRequested); is && asked.Permission.Request == e.Request {
			return ""
		}
	}
	sign, by := "✓", cmp.Or(e.By, "the rules of the team")
	if e.Outcome != "allowed" {
		sign = "✗"
	}
	if by == team.User {
		by = "the user"
	}
	return fmt.Sprintf("%s %s  %s is %s by %s", sign, e.Member, e.Request, e.Outcome, by) + tail(e.Reason)
}

// permissionLine describes a request that waits, or that the rules have denied in the same record.
// A request that the rules allow is not worth a line.
func permissionLine(e *team.PermissionRequested, r *team.Record, s *team.State) string {
	p := e.Permission
	for _, other := range r.Events {
		if a, ok := other.(*team.PermissionAnswered); ok && a.Request == p.Request {
			if a.Outcome == "allowed" {
				return ""
			}
			what := p.Tool
			if input := Input(p.Tool, p.Input); input != "" {
				what += ": " + input
			}
			return fmt.Sprintf("! %s may not use %s: %s", p.Member, what, a.Reason)
		}
	}
	return "! " + Lines(&team.Record{Events: []team.Event{e}}, s.Called)[0]
}
