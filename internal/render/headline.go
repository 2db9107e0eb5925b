package render

import (
	"cmp"
	"fmt"
	"slices"

	"cadre/internal/team"
)

// Headline says in a line what a person who watches a team wants to know of an event of the record.
// s is the state after it. "" is for an event that only the log shows.
func Headline(e team.Event, r *team.Record, s *team.State) string {
	return headlineOf(e, r, s, func(id string) team.Task {
		t, _ := s.Task(id)
		return t
	})
}

// Headlines calls yield with each event of the records that has a headline or is a step of a
// consolidation. The records follow each other, and s is a state after them. The titles of tasks
// and the times that they took are those of the records, whatever happened to the tasks since.
func Headlines(records []*team.Record, s *team.State, yield func(r *team.Record, line string)) {
	past := pastTasks(records, s)
	task := func(id string) team.Task {
		if t, known := past[id]; known {
			return *t
		}
		t, _ := s.Task(id)
		return t
	}
	for _, r := range records {
		for _, e := range r.Events {
			switch e := e.(type) {
			case *team.TaskClaimed:
				past[e.Task].StartedAt = r.At
			case *team.TaskUpdated:
				if e.Subject != nil {
					past[e.Task].Subject = *e.Subject
				}
			case *team.TaskRevised: // does not have the old subject, so pastTasks leaves it out
				if t := past[e.Task.ID]; t != nil && slices.Contains(e.Fields, "subject") {
					t.Subject = e.Task.Subject
				}
			}
			if line := cmp.Or(headlineOf(e, r, s, task), Step(e)); line != "" {
				yield(r, line)
			}
		}
	}
}

// pastTasks returns the tasks that the records change, with the names and subjects that they had
// before the first record. The start of a task that is claimed in the records is unknown before
// that.
func pastTasks(records []*team.Record, s *team.State) map[string]*team.Task {
	past := map[string]*team.Task{}
	take := func(id string) *team.Task {
		if past[id] == nil {
			t, _ := s.Task(id)
			past[id] = &t
		}
		return past[id]
	}
	for _, r := range slices.Backward(records) {
		for _, e := range slices.Backward(r.Events) {
			switch e := e.(type) {
			case *team.TaskCreated:
				*take(e.Task.ID) = e.Task
			case *team.TaskClaimed:
				take(e.Task).StartedAt = 0
			case *team.TaskUpdated:
				if t := take(e.Task); e.Was != nil && e.Was.Subject != nil {
					t.Subject = *e.Was.Subject
				}
			}
		}
	}
	return past
}

// headlineOf is [Headline], given what the tasks are.
func headlineOf(e team.Event, r *team.Record, s *team.State, task func(id string) team.Task) string {
	switch e := e.(type) {
	case *team.TeamStatusChanged:
		return windingLine(e, r)
	case *team.TaskClaimed:
		return fmt.Sprintf("▸ %s  %s", e.Member, title(task(e.Task)))
	case *team.TaskExpanded:
		return "· " + expanded(e, s.Called)
	case *team.TaskCompleted:
		return completedLine(e, r, task(e.Task))
	case *team.TaskSubmitted:
		return fmt.Sprintf("… %s  %s: is being verified", e.By, title(task(e.Task)))
	case *team.TaskRejected:
		return fmt.Sprintf("↺ %s  %s: %s: %s", e.Member, title(task(e.Task)), e.Words(), e.Feedback)
	case *team.TaskFailed:
		if e.By == "" {
			return fmt.Sprintf("✗ %s: %s", title(task(e.Task)), e.Reason)
		}
		return fmt.Sprintf("✗ %s  %s: %s", e.By, title(task(e.Task)), e.Reason)
	case *team.TaskSkipped:
		return fmt.Sprintf("· %s: skipped", title(task(e.Task)))
	case *team.TaskRolledBack:
		return fmt.Sprintf("↺ %s: rolled back", title(task(e.Task)))
	case *team.TaskReleased:
		return fmt.Sprintf("↺ %s: %s", title(task(e.Task)), cmp.Or(e.Reason, "back in the queue"))
	case *team.MemberSpawned:
		return fmt.Sprintf("+ %s (%s)", e.Member.Name, e.Member.Agent)
	case *team.TaskCreated:
		if e.Task.Of != "" { // the line of its group names it
			return ""
		}
		return "· task " + titled(s.Called(e.Task.ID), e.Task, "  ")
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
	case *team.RateLimited:
		if e.Ended { // else its agent tries again by itself, which is said already
			return "! " + Lines(&team.Record{At: r.At, Events: []team.Event{e}}, s.Called)[0]
		}
	case *team.ReportAsked, *team.MemberTroubled, *team.RateLimitLifted, *team.HandoverRequested,
		*team.InterruptRequested:
		return "  " + Lines(&team.Record{At: r.At, Events: []team.Event{e}}, s.Called)[0]
	case *team.PermissionRequested:
		return permissionLine(e, r, s)
	case *team.PermissionAnswered:
		return answerLine(e, r, s)
	case *team.MemberFailed, *team.HookRejected, *team.BudgetExhausted, *team.BudgetAlerted,
		*team.MemberBudgetExhausted, *team.PlanSubmitted:
		return alarm(e, s)
	}
	return ""
}

// alarm is the headline of an event that a person should see. The failure of a command whose result
// a hook rejected has a line of its own, which says why.
func alarm(e team.Event, s *team.State) string {
	if hook, is := e.(*team.HookRejected); is {
		if m, _ := s.Member(hook.Member); m.Agent == team.Shell && hook.Hook == "TaskCompleted" {
			return ""
		}
	}
	return "! " + Lines(&team.Record{Events: []team.Event{e}}, s.Called)[0]
}

// windingLine is the headline of a team that cadre shutdown --graceful lets wind down. A run or a
// consolidation that does so has lines of its own.
func windingLine(e *team.TeamStatusChanged, r *team.Record) string {
	if e.Status != team.TeamConsolidating || e.Report != "" || len(r.Events) > 1 {
		return ""
	}
	return "! the team winds down: no task is started any more"
}

// completedLine is the headline of a completion.
func completedLine(e *team.TaskCompleted, r *team.Record, t team.Task) string {
	if e.By == "" {
		return "✓ " + title(t)
	}
	if t.StartedAt == 0 || t.StartedAt > r.At { // it was never claimed, or is being done again since
		return fmt.Sprintf("✓ %s  %s", e.By, title(t))
	}
	return fmt.Sprintf("✓ %s  %s (%s)", e.By, title(t), team.Span(r.At.Sub(t.StartedAt)))
}

// titled names a task by what it is called, with its subject where that says more.
func titled(called string, t team.Task, between string) string {
	if t.Subject == t.Name {
		return t.Name
	}
	return called + between + t.Subject
}

// title is a task's subject, with its name where that differs.
func title(t team.Task) string {
	if t.Name == "" {
		return t.Subject
	}
	return titled(t.Name, t, "  ")
}

// answerLine describes the answer to a request that had to wait for it. permissionLine describes
// the other requests.
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
