package host

import (
	"context"
	"time"

	"cadre/internal/agent"
	"cadre/internal/team"
)

// ask sends the session's permission request to the team. It returns the answer to the session,
// however the request ends.
func (s *slot) ask(ctx context.Context, u agent.PermissionAsked) {
	allow, reason := false, "the session is ending"
	defer func() { u.Answer(allow, reason) }()
	receipt, err := s.host.send(ctx, team.Command{Actor: team.Host(s.host.ID), Lease: s.lease,
		Body: &team.RequestPermission{Member: s.member, Tool: u.Tool, Input: clip(u.Input),
			Deadline: s.host.Replica.Now().Add(s.patience()),
			Reads:    !u.Ruled && s.reads(u.Tool, u.Input)}})
	if err != nil {
		reason = err.Error()
		return
	}
	request := ""
	if e, ok := team.EventIn[*team.PermissionRequested](receipt.Record); ok {
		request = e.Permission.Request
	}
	for r, err := range s.host.Replica.Watch(ctx, receipt.Record.Seq-1) {
		if err != nil {
			return
		}
		for _, e := range r.Events {
			if e, ok := e.(*team.PermissionAnswered); ok && e.Request == request {
				allow, reason = e.Outcome == "allowed", e.Reason
				return
			}
		}
	}
}

func (s *slot) patience() (d time.Duration) {
	s.host.Replica.View(func(st *team.State) {
		p := st.Team().Permissions
		d = p.Patience()
	})
	return d
}

// propose submits the session's plan to the lead, and returns the answer to the session.
func (s *slot) propose(ctx context.Context, u agent.PlanProposed) {
	approved, feedback := false, "the session is ending"
	defer func() { u.Answer(approved, feedback) }()
	receipt, err := s.host.send(ctx, team.Command{Actor: team.Host(s.host.ID), Lease: s.lease,
		Body: &team.SubmitPlan{Member: s.member, Plan: clip(u.Plan), Deadline: s.host.Replica.Now().Add(s.patience())}})
	if err != nil {
		s.host.Replica.View(func(st *team.State) { approved = st.Writes(s.member) })
		if !approved { // otherwise it needs no approval, or has it
			feedback = err.Error()
		}
		return
	}
	request := ""
	if e, ok := team.EventIn[*team.PlanSubmitted](receipt.Record); ok {
		request = e.Request
	}
	s.update(func(t *turn) { t.proposal = request })
	for r, err := range s.host.Replica.Watch(ctx, receipt.Record.Seq) {
		if err != nil {
			return
		}
		for _, e := range r.Events {
			if e, ok := e.(*team.PlanAnswered); ok && e.Request == request {
				approved, feedback = e.Approved, e.Feedback
				s.hasAnswer(r)
				return
			}
		}
	}
}

// hasAnswer records that the message with the answer to its plan was delivered: the session gets
// the answer directly.
func (s *slot) hasAnswer(r *team.Record) {
	for _, e := range r.Events {
		if m, ok := e.(*team.MessageSent); ok && m.Message.Type == team.TypePlanResponse && m.Message.To == s.member {
			s.arrived([]team.Message{m.Message})
		}
	}
}
