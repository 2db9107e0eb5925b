package team

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// SetMode changes the permission mode of a member.
type SetMode struct {
	Member, Mode string
	// Spawns says that the mode of an external lead is meant for the members that it spawns.
	Spawns bool
}

func (b *SetMode) decide(d *decision) error {
	if err := d.leads("change permissions"); err != nil {
		return err
	}
	m, err := d.running(b.Member)
	if err != nil {
		return err
	}
	if d.Actor != User && m.Name == d.team.Lead {
		return refuse(Denied, "only the user changes the lead's permissions")
	}
	if m.Agent == Shell {
		return refuse(Invalid, "%s is a shell member: it runs the commands of its tasks, and no permission mode "+
			"limits them", m.Name)
	}
	if m.Name == d.team.Lead && m.Agent == External && !b.Spawns {
		return refuse(Invalid, "%s leads from outside cadre: a person or a program acts there, and no permission mode "+
			"limits it", m.Name)
	}
	if err := d.gives(b.Mode); err != nil {
		return err
	}
	if m.PermissionMode != b.Mode {
		d.emit(&ModeChanged{Member: m.Name, Mode: b.Mode})
		d.changed(m, "Your permission mode is now "+b.Mode+".")
	}
	return nil
}

// widening lists the permission modes, from the strictest to the one that allows everything.
var widening = []string{"plan", "dontAsk", "default", "acceptEdits", "auto", "bypassPermissions"}

// gives checks that the actor may put a teammate in that mode. A lead that is an agent gives at
// most its own mode.
func (d *decision) gives(mode string) error {
	if err := oneOf("permission mode", mode, PermissionModes); err != nil {
		return err
	}
	lead, p := d.lead(), d.team.Parent
	switch {
	case p.Mode != "" && narrower(mode, p.Mode) != mode:
		return Refuse(Denied, "mode %s allows more than mode %s, which %s has in team %s: change that first", mode, p.Mode,
			p.Member, p.Name).With(Hint{Action: ActShowTeam, Team: p.Name})
	case d.Actor == User:
	case mode == "bypassPermissions" && lead.PermissionMode != mode:
		return refuse(Denied, "a member skips permissions only where the lead was started so; %s is in mode %s",
			lead.Name, lead.PermissionMode)
	case lead.Agent != External && slices.Index(widening, mode) > slices.Index(widening, lead.PermissionMode):
		return refuse(Denied, "mode %s allows more than mode %s, which %s is in; the user may give it", mode,
			lead.PermissionMode, lead.Name)
	}
	return nil
}

// equips checks that the actor may change how a teammate's agent is started. By a program,
// arguments or variables a leading agent could give more rights than it has.
func (d *decision) equips(program string, args, env []string) error {
	if err := checkProgram(program, args, env); err != nil {
		return err
	}
	if d.Actor != User && d.lead().Agent != External && len(program)+len(args)+len(env) > 0 {
		return refuse(Denied, "only the user gives a teammate a program, arguments or variables of its own; leave "+
			"them out, or ask the user")
	}
	return nil
}

// Writes reports whether the member may change files. It may not while its plan waits for approval.
func (s *State) Writes(member string) bool {
	m := s.member(member)
	return m != nil && (!m.Plan.Required || m.Plan.State == "approved")
}

// planned refuses what the member may not do before its plan is approved.
func (d *decision) planned(m *Member, what string) error {
	switch {
	case d.Writes(m.Name):
		return nil
	case m.Plan.State == "submitted":
		return Refuse(NotReady, "%s cannot %s before its plan is approved, and %s has not answered yet", m.Name, what,
			d.team.Lead).With(Hint{Action: ActAnswerPlan, Team: d.team.Name, Request: m.Plan.Request})
	}
	return Refuse(NotReady, "%s cannot %s before its plan is approved", m.Name, what).
		With(Hint{Action: ActSubmitPlan, Team: d.team.Name, Member: m.Name})
}

// SubmitPlan submits the member's plan to the lead.
type SubmitPlan struct {
	Member   string // "" for the actor
	Plan     string
	Deadline Time // when it is rejected for want of an answer; 0 for never
}

func (b *SubmitPlan) decide(d *decision) error {
	m, err := d.self(b.Member)
	switch {
	case err != nil:
		return err
	case !m.Plan.Required:
		return refuse(Invalid, "%s needs no approval of a plan; continue with the work", m.Name)
	case m.Plan.State == "submitted":
		return refuse(NotReady, "the plan of %s waits for an answer already (%s)", m.Name, m.Plan.Request)
	case m.Plan.State == "approved":
		return refuse(Conflict, "the plan of %s is approved already; continue with the work", m.Name)
	case strings.TrimSpace(b.Plan) == "":
		return refuse(Invalid, "the plan is empty")
	case b.Deadline != 0 && b.Deadline <= d.At:
		return refuse(Invalid, "the deadline of a plan must lie ahead")
	}
	if err := limit(text{"plan", b.Plan, MaxText}); err != nil {
		return err
	}
	request := d.newRequest("plan", m.Name)
	d.emit(&PlanSubmitted{Member: m.Name, Request: request, Plan: b.Plan, Deadline: b.Deadline})
	d.post(Message{From: m.Name, To: d.team.Lead, Type: TypePlanRequest, Priority: "normal", Body: b.Plan,
		Ref: request})
	return nil
}

// AnswerPlan approves a plan or rejects it with feedback.
type AnswerPlan struct {
	Request  string
	Approved bool
	Feedback string
}

func (b *AnswerPlan) decide(d *decision) error {
	if err := d.leads("approve plans"); err != nil {
		return err
	}
	if err := limit(text{"feedback", b.Feedback, MaxText}); err != nil {
		return err
	}
	i := slices.IndexFunc(d.members, func(m Member) bool { return m.Plan.Request == b.Request && b.Request != "" })
	if i < 0 {
		if err := d.alreadyAnswered("plan", b.Request); err != nil {
			return err
		}
		return refuse(NotFound, "no plan was submitted as %q", brief(b.Request))
	}
	m := &d.members[i]
	switch {
	case m.Plan.State != "submitted":
		if err := d.alreadyAnswered("plan", b.Request); err != nil {
			return err
		}
		// it was so long ago that the state has forgotten who answered
		return refuse(Conflict, "the plan %s was %s already", b.Request, m.Plan.State)
	case !m.Status.Running():
		return refuse(Finished, "%s has %s", m.Name, ended(m.Status))
	case !b.Approved && strings.TrimSpace(b.Feedback) == "":
		return refuse(Invalid, "a rejection needs feedback: say what the plan lacks")
	}
	d.planAnswered(m, d.Actor, b.Approved, b.Feedback)
	return nil
}

// ExpirePlan rejects a plan that got no answer in time. The member's host sends it, or any process
// that finds it overdue.
type ExpirePlan struct{ Request string }

func (b *ExpirePlan) decide(d *decision) error {
	i := slices.IndexFunc(d.members, func(m Member) bool {
		return m.Plan.Request == b.Request && m.Plan.State == "submitted" && m.Plan.Deadline != 0 && m.Status.Running()
	})
	switch {
	case i < 0:
		return refuse(NotFound, "no plan %q waits for an answer with a deadline", brief(b.Request))
	case d.At < d.members[i].Plan.Deadline:
		return refuse(NotReady, "the plan %s has %s left", b.Request, Span(d.members[i].Plan.Deadline.Sub(d.At)))
	}
	d.planAnswered(&d.members[i], "", false, "It got no answer in time.")
	return nil
}

func (d *decision) planAnswered(m *Member, by string, approved bool, feedback string) {
	d.emit(&PlanAnswered{Member: m.Name, Request: m.Plan.Request, Approved: approved, Feedback: feedback, By: by})
	body := "Your plan is approved; continue with the work."
	if !approved {
		body = "Your plan is rejected; revise it and submit it again."
	}
	if feedback != "" {
		body += cited(feedback)
	}
	d.post(Message{From: by, To: m.Name, Type: TypePlanResponse, Priority: "normal", Body: clip(body),
		Ref: m.Plan.Request})
}

// RequestPermission asks whether the member may use a tool. The rules answer it at once where they
// can; else it waits until its deadline.
type RequestPermission struct {
	Member   string // "" for the actor
	Tool     string
	Input    string // JSON
	Deadline Time
	// the input was found to read only, inside the project or the member's worktree, and no rule of
	// the user's matches it
	Reads bool
}

func (b *RequestPermission) decide(d *decision) error {
	m, err := d.self(b.Member)
	switch {
	case err != nil:
		return err
	case b.Tool == "":
		return refuse(Invalid, "say which tool the permission is for")
	case b.Deadline <= d.At:
		return refuse(Invalid, "the deadline of a permission request must lie ahead")
	}
	if err := limit(text{"tool", b.Tool, MaxSubject}, text{"input", b.Input, MaxText}); err != nil {
		return err
	}
	p := Permission{Request: d.newRequest("permission", m.Name), Member: m.Name, Incarnation: m.Incarnation,
		Tool: b.Tool, Input: b.Input, Deadline: b.Deadline}
	d.emit(&PermissionRequested{Permission: p})
	settle := func(outcome, reason string) {
		d.emit(&PermissionAnswered{Request: p.Request, Member: m.Name, Outcome: outcome, Reason: reason})
	}
	if outcome, reason := d.ruling(m, b.Tool, b.Input, b.Reads); outcome != "" {
		settle(outcome, reason)
		return nil
	}
	// the user answers these
	if m.Name == d.team.Lead || d.team.Permissions.Policy == "user" || d.team.Permissions.Policy == "" &&
		d.lead().Agent != External {
		return nil
	}
	d.post(Message{From: m.Name, To: d.team.Lead, Type: TypePermissionRequest, Priority: "urgent",
		Body: clip(strings.TrimSpace(b.Tool + " " + b.Input)), Ref: p.Request})
	return nil
}

// AnswerPermission allows or denies a request. Only the lead and the user can answer, and never
// their own request.
type AnswerPermission struct {
	Request string
	Allow   bool
	Reason  string
}

func (b *AnswerPermission) decide(d *decision) error {
	if err := d.leads("answer permission requests"); err != nil {
		return err
	}
	p, err := d.pending(b.Request)
	switch {
	case err != nil:
		return err
	case p.Member == d.Actor:
		return refuse(Denied, "%s cannot allow itself anything; the user can", d.Actor)
	case d.At >= p.Deadline:
		return refuse(Conflict, "the request %s has timed out", b.Request)
	}
	if err := limit(text{"reason", b.Reason, MaxText}); err != nil {
		return err
	}
	outcome := "denied"
	if b.Allow {
		outcome = "allowed"
	}
	d.answered(p, outcome, d.Actor, b.Reason)
	return nil
}

// ExpirePermission ends a request that got no answer in time. The member's host sends it, or any
// process that finds it overdue.
type ExpirePermission struct{ Request string }

func (b *ExpirePermission) decide(d *decision) error {
	p, err := d.pending(b.Request)
	if err != nil {
		return err
	}
	if d.At < p.Deadline {
		return refuse(NotReady, "the request %s has %s left", b.Request, Span(p.Deadline.Sub(d.At)))
	}
	d.answered(p, "timed_out", "", "it got no answer in time")
	return nil
}

func (d *decision) answered(p Permission, outcome, by, reason string) {
	d.emit(&PermissionAnswered{Request: p.Request, Member: p.Member, Outcome: outcome, By: by, Reason: reason})
	// the host tells a session of ours
	if m := d.member(p.Member); m != nil && m.Incarnation == p.Incarnation && m.Agent == External {
		body := Quoted(p.Tool) + ": " + strings.ReplaceAll(outcome, "_", " ") + "."
		if reason != "" {
			body += cited(reason)
		}
		d.post(Message{From: by, To: p.Member, Type: TypePermissionResponse, Priority: "urgent", Body: body,
			Ref: p.Request, Incarnation: p.Incarnation})
	}
}

func (d *decision) pending(request string) (Permission, error) {
	for _, p := range d.permissions {
		if p.Request == request {
			return p, nil
		}
	}
	if err := d.alreadyAnswered("request", request); err != nil {
		return Permission{}, err
	}
	if !d.requested(request) {
		return Permission{}, Refuse(NotFound, "team %s never had a permission request %q", d.team.Name, brief(request)).
			With(d.team.hint(ActShowTeam))
	}
	return Permission{}, refuse(NotFound, "no permission request %q waits for an answer; its session ended, or it "+
		"was answered long ago", brief(request))
}

// requested reports whether a request may have had that id: [decision.newRequest] has reached its
// number.
func (s *State) requested(id string) bool {
	number, member, _ := strings.Cut(strings.TrimPrefix(id, "permission-"), "@")
	n, err := strconv.ParseInt(number, 10, 64)
	return err == nil && 0 < n && n <= s.requestSeq && fmt.Sprintf("permission-%d@%s", n, member) == id
}
