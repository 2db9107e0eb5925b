package model

import (
	"cmp"
	"strings"

	"cadre/internal/observe/protocol"
	"cadre/internal/team"
)

// sent processes a successful SendMessage.
func (s *observedTeam) sent(f *fact, out *protocol.Outcome, actor string) {
	var in protocol.SendInput
	if protocol.ReadJSON(f.Call.Input, &in) != nil {
		return
	}
	to, body, at := cmp.Or(in.Addressee(), strings.TrimPrefix(out.Target, "@")), in.Body(), f.Result.At
	request := cmp.Or(out.Request, in.RequestID())
	switch in.Kind() {
	case "message":
		to, body = cmp.Or(strings.TrimPrefix(out.Routing.Target, "@"), to), cmp.Or(body, out.Routing.Content)
		if s.mail.sent(actor, to, body) {
			s.send(&team.Message{From: actor, To: to, Type: team.TypeMessage, Body: body, Summary: in.Summary})
		}
	case "broadcast":
		s.broadcast(actor, out, body, in.Summary)
	case "shutdown_request":
		s.askedToShutDown(cmp.Or(strings.TrimPrefix(out.Target, "@"), to, askedOf(request)), request, body, at)
	case "shutdown_response":
		who := askedOf(request)
		if f.Call.By.Member != "" {
			if who != "" && who != f.Call.By.Member {
				s.warn("%s answered %s, a request to another member", f.Call.By.Member, request)
				return
			}
			who = f.Call.By.Member
		}
		s.answeredShutdown(who, request, in.Approved(), body, at)
	case "plan_approval_request":
		s.planned(actor, request, body, at)
	case "plan_approval_response":
		s.answeredPlan(cmp.Or(to, askedOf(request)), request, in.Approved(), body, at)
	}
}

// askedOf returns the member that a request concerns: "shutdown-1795219526319@alice",
// "plan_approval-1795219518352@carol@fx-team".
func askedOf(request string) string {
	parts := strings.Split(request, "@")
	if len(parts) < 2 {
		return ""
	}
	return parts[1]
}

func (s *observedTeam) broadcast(actor string, out *protocol.Outcome, body, summary string) {
	recipients := out.Recipient
	if recipients == nil {
		for _, name := range append([]string{s.lead()}, s.roster.joined()...) {
			if p := s.roster.People[name]; name != actor && (p == nil || p.end() == "") {
				recipients = append(recipients, name)
			}
		}
	}
	var fresh []string
	for _, name := range recipients {
		if s.mail.sent(actor, name, body) {
			fresh = append(fresh, name)
		}
	}
	if len(fresh) > 0 || len(recipients) == 0 {
		s.send(&team.Message{From: actor, To: "*", Recipients: fresh, Type: team.TypeBroadcast, Body: body,
			Summary: summary})
	}
}

// send adds a message to the record as delivered, because Claude Code delivers messages by itself
// unless something says otherwise.
func (s *observedTeam) send(m *team.Message) {
	if !s.exists() {
		return
	}
	s.post(m)
	to := m.Recipients
	if len(to) == 0 {
		to = []string{m.To}
	}
	for _, name := range to {
		if name == s.lead() || s.roster.isMember(name) {
			s.emit(&team.MessagesDelivered{Member: name, Seqs: []int64{m.Seq}})
		}
	}
}

// noDeadline is how long a teammate has to shut down, in milliseconds. Claude Code has no such
// deadline, so no teammate is ended at one here.
const noDeadline = 100 * 365 * 24 * 60 * 60 * 1000

func (s *observedTeam) askedToShutDown(member, request, reason string, at stamp) {
	p := s.roster.at(member)
	if p == nil || !s.exists() || !s.roster.firstReport(request, "asked") {
		return
	}
	if p.Asked.Some && at.before(p.Asked.When) {
		return // there was a later request
	}
	p.Asked.learn(request, at)
	p.Reason = reason
	s.emit(&team.ShutdownRequested{Member: member, Request: request, Reason: reason, Deadline: at.At + noDeadline})
}

func (s *observedTeam) answeredShutdown(member, request string, approved bool, reason string, at stamp) {
	if !s.exists() || member == "" || !s.roster.firstReport(request, answer(approved)) {
		return
	}
	p := s.roster.People[member]
	if p == nil {
		return // not a member of the team
	}
	if approved {
		s.roster.at(member).Ended.learn(shutdown, at)
	}
	s.emit(&team.ShutdownAnswered{Member: member, Request: request, Approved: approved, Reason: reason})
}

func answer(approved bool) string {
	if approved {
		return "approved"
	}
	return "rejected"
}

func (s *observedTeam) planned(member, request, plan string, at stamp) {
	p := s.roster.at(member)
	if p == nil || !s.exists() || !s.roster.firstReport(request, "asked") || p.Plan.Some && at.before(p.Plan.When) {
		return
	}
	p.Plan.learn("submitted", at)
	s.emit(&team.PlanSubmitted{Member: member, Request: request, Plan: plan})
}

func (s *observedTeam) answeredPlan(member, request string, approved bool, feedback string, at stamp) {
	p := s.roster.at(member)
	if p == nil || !s.exists() || !s.roster.firstReport(request, answer(approved)) || p.Plan.Some &&
		at.before(p.Plan.When) {
		return
	}
	p.Plan.learn(answer(approved), at)
	s.emit(&team.PlanAnswered{Member: member, Request: request, Approved: approved, Feedback: feedback})
}
