package teams

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cadre/internal/team"
)

// Teammate acts as a member in its team. It is the handle of a program that acts as the member, and
// part of the [Slot] of a session. After another session replaced this one, its methods return
// ErrConflict. After the member has ended, they return ErrFinished.
type Teammate struct{ actor }

// Name returns the member's name.
func (m *Teammate) Name() string { return m.name }

// Team returns the name of its team.
func (m *Teammate) Team() string { return m.team.name }

// Lead returns the name of its lead.
func (m *Teammate) Lead() string { return m.team.lead }

// Tasks returns the task list, as this member uses it.
func (m *Teammate) Tasks() *TaskList { return tasksOf(m.actor) }

// Mail returns this member's mailbox.
func (m *Teammate) Mail() *Mailbox { return &Mailbox{m.actor} }

// Member returns the member's present state.
func (m *Teammate) Member(ctx context.Context) (is Member, err error) {
	err = m.look(ctx, func(s *team.State) {
		core, _ := s.Member(m.name)
		is = memberOf(core)
	})
	return is, err
}

// Busy reports that the member works. summary describes the work.
func (m *Teammate) Busy(ctx context.Context, summary string) error {
	_, err := m.do(ctx, &team.ReportStatus{Status: team.Active, Summary: summary, Member: m.name})
	return err
}

// Idle reports that the member waits for work. The lead gets the report. Without a report, the lead
// is notified only if no task is ready for the member. If the hook TeammateIdle rejects it, Idle
// returns ErrRejected with the feedback. The member must then continue to work; it gets the same
// feedback as a message.
func (m *Teammate) Idle(ctx context.Context, report string) error {
	_, err := m.do(ctx, &team.ReportStatus{Status: team.Idle, Report: report, Member: m.name})
	return err
}

// ApproveShutdown agrees to a request to end. The request's id is the Ref of its message. The
// member ends when its session ends.
func (m *Teammate) ApproveShutdown(ctx context.Context, request string) error {
	_, err := m.do(ctx, &team.AnswerShutdown{Request: request, Approved: true})
	return err
}

// RejectShutdown says why the member should not end now. Unless the lead withdraws the request, the
// session is ended at the deadline anyway.
func (m *Teammate) RejectShutdown(ctx context.Context, request, reason string) error {
	_, err := m.do(ctx, &team.AnswerShutdown{Request: request, Reason: reason})
	return err
}

// Writes reports whether the member may change anything. A member that needs an approved plan may
// not before it has one.
func (m *Teammate) Writes(ctx context.Context) (may bool, err error) {
	err = m.look(ctx, func(s *team.State) { may = s.Writes(m.name) })
	return may, err
}

// SubmitPlan submits a plan to the lead and returns the request's id. It returns ErrInvalid for a
// member that needs no approval.
func (m *Teammate) SubmitPlan(ctx context.Context, plan string) (request string, err error) {
	r, err := m.do(ctx, &team.SubmitPlan{Plan: plan})
	if err != nil {
		return "", err
	}
	e, _ := team.EventIn[*team.PlanSubmitted](r)
	return e.Request, nil
}

// PlanAnswer is the answer to a plan.
type PlanAnswer struct {
	Approved bool
	Feedback string // what a rejected plan lacks
}

// AwaitPlan waits for the answer to a plan. The member should revise a rejected plan and submit it
// again.
func (m *Teammate) AwaitPlan(ctx context.Context, request string) (PlanAnswer, error) {
	var plan team.Plan
	var is team.Member
	err := m.team.until(ctx, func(s *team.State) bool {
		is, _ = s.Member(m.name)
		plan = is.Plan
		return plan.Request != request || plan.State != "submitted" || !is.Status.Running()
	})
	switch {
	case err != nil:
		return PlanAnswer{}, err
	case plan.Request != request:
		return PlanAnswer{}, refuse(ErrConflict, fmt.Sprintf("%s submitted another plan since (%s)", m.name,
			plan.Request))
	case plan.State == "submitted":
		return PlanAnswer{}, refuse(ErrFinished, m.name+" has ended")
	}
	return PlanAnswer{Approved: plan.State == "approved", Feedback: plan.Feedback}, nil
}

// PermissionAnswer is the answer to a permission request.
type PermissionAnswer struct {
	Allowed bool
	Outcome Outcome
	By      string // who answered; "" if the team's rules did, or if it timed out
	Reason  string
}

// GiveReport submits the lead's report on the team's work. [Team.Run] asks for the report with a
// message of the type [MessageSystem] that has [ReportRef] as Ref. GiveReport returns ErrConflict
// if there is new work since, and ErrDenied for a teammate.
func (m *Teammate) GiveReport(ctx context.Context, report string) error {
	_, err := m.do(ctx, &team.GiveReport{Text: report})
	return err
}

// ReportRef is the Ref of the message that asks the lead for its report.
const ReportRef = team.ReportRef

// AskPermission asks whether the member may use a tool, with its input as JSON, and waits for the
// answer. The member's mode and delegate mode answer some requests at once. The others go to the
// lead, and those of the lead to the user. A request without an answer in time is denied, with the
// outcome [OutcomeTimedOut]. A denial is not an error.
func (m *Teammate) AskPermission(ctx context.Context, tool, input string,
	within time.Duration) (PermissionAnswer, error) {
	deadline := time.Now().Add(within)
	r, err := m.do(ctx, &team.RequestPermission{Tool: tool, Input: input, Deadline: millis(deadline)})
	if err != nil {
		return PermissionAnswer{}, err
	}
	asked, _ := team.EventIn[*team.PermissionRequested](r)
	request := asked.Permission.Request
	waiting, cancel := context.WithDeadline(ctx, deadline.Add(time.Millisecond))
	defer cancel()
	answer, err := m.answered(waiting, request, r.Seq-1)
	if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return answer, err
	}
	if err := m.expire(ctx, request); err != nil {
		return PermissionAnswer{}, err
	}
	return m.answered(ctx, request, r.Seq-1)
}

// expire ends the request, unless it has ended already.
func (m *Teammate) expire(ctx context.Context, request string) error {
	_, err := m.do(ctx, &team.ExpirePermission{Request: request})
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrConflict) || errors.Is(err, ErrFinished) {
		return nil
	}
	return err
}

// answered waits for the answer in the history, after the record with that seq.
func (m *Teammate) answered(ctx context.Context, request string, after int64) (PermissionAnswer, error) {
	for r, err := range m.team.records(ctx, after) {
		if err != nil {
			return PermissionAnswer{}, public(err)
		}
		for _, e := range r.Events {
			if a, ok := e.(*team.PermissionAnswered); ok && a.Request == request {
				return PermissionAnswer{Allowed: a.Outcome == "allowed", Outcome: Outcome(a.Outcome), By: a.By,
					Reason: a.Reason}, nil
			}
		}
	}
	return PermissionAnswer{}, refuse(ErrFinished, fmt.Sprintf("team %s ended before the request was answered",
		m.team.name))
}
