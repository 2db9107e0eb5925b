package team

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// SpawnMember adds a teammate. It starts with the lead's permission mode; another one can be set once it is there.
type SpawnMember struct {
	Name         string
	Agent        string
	Model        string
	Role         string
	Prompt       string
	PlanApproval bool // it may write nothing before the lead approved its plan
}

func (b *SpawnMember) decide(d *decision) error {
	if err := d.leads("spawn teammates"); err != nil {
		return err
	}
	if err := d.affordable(); err != nil {
		return err
	}
	if err := CheckName("member", b.Name); err != nil {
		return err
	}
	if d.member(b.Name) != nil {
		return refuse(Taken, "team %s has a member named %s already; a free name: %s", d.team.Name, b.Name, d.freeName(b.Name))
	}
	if b.Agent == "" {
		return refuse(Invalid, "say which agent %s is, for example shell or external", b.Name)
	}
	if err := limit(text{"agent", b.Agent, MaxSubject}, text{"model", b.Model, MaxSubject}, text{"role", b.Role, MaxSubject}, text{"prompt", b.Prompt, MaxText}); err != nil {
		return err
	}
	status := Spawning
	if b.Agent == External {
		status = Active
	}
	d.emit(&MemberSpawned{Member: Member{Name: b.Name, Agent: b.Agent, Model: b.Model, Role: b.Role, Prompt: b.Prompt, Status: status, Incarnation: 1,
		PermissionMode: d.lead().PermissionMode, Plan: Plan{Required: b.PlanApproval}}})
	return nil
}

func (d *decision) freeName(name string) string {
	for n := 2; ; n++ {
		suffix := "-" + strconv.Itoa(n)
		free := name[:min(len(name), 64-len(suffix))] + suffix
		if d.member(free) == nil {
			return free
		}
	}
}

// AttachMember takes the lease of a member for the host that sends it. From is the host that had it and is known to be dead,
// or "" for a member without one.
type AttachMember struct {
	Member string
	From   string
}

func (b *AttachMember) decide(d *decision) error {
	host, isHost := strings.CutPrefix(d.Actor, hostPrefix)
	if !isHost || host == "" {
		return refuse(Denied, "only a host takes the lease of a member")
	}
	m, err := d.running(b.Member)
	switch {
	case err != nil:
		return err
	case m.Agent == External:
		return refuse(Invalid, "%s is external and has no session to run", m.Name)
	case m.Host == host:
		return nil
	case m.Host != b.From:
		return refuse(Conflict, "host %s holds the lease of %s", m.Host, m.Name)
	}
	if m.Host != "" {
		d.detach(m, "its host "+m.Host+" died")
	}
	d.emit(&MemberAttached{Member: m.Name, Host: host, Lease: m.Lease + 1})
	return nil
}

// DetachMember gives the lease back: the session is gone and the member is to be started again, by this host or another one.
type DetachMember struct{ Member, Reason string }

func (b *DetachMember) decide(d *decision) error {
	m, err := d.hosted(b.Member)
	if err != nil {
		return err
	}
	if m.Host == "" {
		return nil
	}
	d.detach(m, b.Reason)
	return nil
}

func (d *decision) detach(m *Member, reason string) {
	for _, t := range d.holds(m.Name) {
		d.release(t, reason, true)
	}
	d.denyAll(m, reason)
	d.emit(&MemberDetached{Member: m.Name, Reason: reason})
}

// denyAll ends the permission requests of a session that is gone.
func (d *decision) denyAll(m *Member, reason string) {
	for _, p := range d.permissions {
		if p.Member == m.Name {
			d.emit(&PermissionAnswered{Request: p.Request, Member: m.Name, Outcome: "denied", Reason: reason})
		}
	}
}

// ReportStarted says that the member's session runs.
type ReportStarted struct {
	Member  string
	Session string // the agent's own id of it, for resuming
}

func (b *ReportStarted) decide(d *decision) error {
	m, err := d.hosted(b.Member)
	if err != nil {
		return err
	}
	if m.Status != Spawning && m.Session == b.Session {
		return nil
	}
	d.emit(&MemberStarted{Member: m.Name, Session: b.Session})
	return nil
}

// ReportStatus says what the member does: active, idle or blocked. Going idle tells the lead, with Report, the last text of
// a turn that ended without one.
type ReportStatus struct {
	Member  string
	Status  MemberStatus
	Summary string
	Report  string
}

func (b *ReportStatus) decide(d *decision) error {
	m, err := d.hosted(b.Member)
	if err != nil {
		return err
	}
	if err := oneOf("status of a member", string(b.Status), []string{string(Active), string(Idle), string(Blocked)}); err != nil {
		return err
	}
	if err := limit(text{"summary", b.Summary, MaxSubject}, text{"report", b.Report, MaxText}); err != nil {
		return err
	}
	if m.Status == b.Status && m.Summary == b.Summary && b.Report == "" || m.Status == ShuttingDown {
		return nil
	}
	d.emit(&MemberStatusChanged{Member: m.Name, Status: b.Status, Summary: b.Summary})
	if b.Report != "" && m.Name != d.team.Lead {
		d.post(Message{From: m.Name, To: d.team.Lead, Type: TypeIdle, Priority: "normal", Body: b.Report})
	}
	return nil
}

// ReportStopped says that the member's session has ended as it was asked to.
type ReportStopped struct{ Member, Reason string }

func (b *ReportStopped) decide(d *decision) error {
	m, err := d.hosted(b.Member)
	if err != nil {
		return err
	}
	if m, err = d.teammate(b.Member, "stopped"); err != nil {
		return err
	}
	d.end(m, &MemberStopped{Member: m.Name, Reason: b.Reason}, true)
	return nil
}

// ReportFailed says that the member's session ended by itself, in the agent's own words.
type ReportFailed struct{ Member, Reason string }

func (b *ReportFailed) decide(d *decision) error {
	m, err := d.hosted(b.Member)
	if err != nil {
		return err
	}
	if m, err = d.teammate(b.Member, "failed"); err != nil {
		return err
	}
	d.end(m, &MemberFailed{Member: m.Name, Reason: clip(b.Reason)}, true)
	return nil
}

func (d *decision) leaves(m *Member) {
	if d.ending == nil {
		d.ending = map[string]bool{}
	}
	d.ending[m.Name] = true
}

// end lets go of everything that a member holds: its tasks, its mail, its requests. With tell set the lead is told.
func (d *decision) end(m *Member, how Event, tell bool) {
	d.leaves(m)
	var back []string
	for i := range d.tasks {
		if t := &d.tasks[i]; t.Owner == m.Name && t.Status == InProgress {
			d.release(t, m.Name+" is gone", false)
			back = append(back, t.ID)
		} else if t.Owner == m.Name && t.Status == Pending {
			nobody := ""
			d.emit(&TaskUpdated{Task: t.ID, Owner: &nobody})
			back = append(back, t.ID)
		}
	}
	d.denyAll(m, m.Name+" is gone")
	d.emit(how)
	why, reason := "stopped", ""
	switch e := how.(type) {
	case *MemberFailed:
		why, reason = "failed", e.Reason
	case *MemberStopped:
		reason = e.Reason
	}
	if tell {
		note := fmt.Sprintf("%s has %s", m.Name, why)
		if reason != "" {
			note += ": " + reason
		}
		if len(back) > 0 {
			note += "\nBack on the list: task " + strings.Join(back, ", ") + "."
		}
		d.tell(d.team.Lead, TypeSystem, "", "%s", note)
	}
	d.returnMail(m, why)
}

// SetMode changes the permission mode of a member.
type SetMode struct{ Member, Mode string }

func (b *SetMode) decide(d *decision) error {
	if err := d.leads("change permissions"); err != nil {
		return err
	}
	m, err := d.running(b.Member)
	if err != nil {
		return err
	}
	if err := oneOf("permission mode", b.Mode, PermissionModes); err != nil {
		return err
	}
	if d.Actor != User && m.Name == d.team.Lead {
		return refuse(Denied, "only the user changes the lead's permissions")
	}
	if b.Mode == "bypassPermissions" && d.lead().PermissionMode != b.Mode {
		return refuse(Denied, "a member skips permissions only where the lead was started so; %s is in mode %s", d.team.Lead, d.lead().PermissionMode)
	}
	if m.PermissionMode != b.Mode {
		d.emit(&ModeChanged{Member: m.Name, Mode: b.Mode})
	}
	return nil
}

// Writes reports whether the member may change anything: not while a plan of it waits for approval.
func (s *State) Writes(member string) bool {
	m := s.member(member)
	return m != nil && (!m.Plan.Required || m.Plan.State == "approved")
}

// RequestShutdown asks a teammate to end. At the deadline its session is ended, whatever it answered.
type RequestShutdown struct {
	Member   string
	Reason   string
	Deadline Time // must be at or after the command's time
}

func (b *RequestShutdown) decide(d *decision) error {
	if err := d.leads("shut teammates down"); err != nil {
		return err
	}
	m, err := d.teammate(b.Member, "shut down")
	switch {
	case err != nil:
		return err
	case m.Shutdown.Request != "" && b.Deadline >= m.Shutdown.Deadline:
		return refuse(Conflict, "%s was asked to shut down already (%s)", m.Name, m.Shutdown.Request)
	case b.Deadline < d.At:
		return refuse(Invalid, "the deadline of a shutdown cannot lie in the past")
	}
	if err := limit(text{"reason", b.Reason, MaxText}); err != nil {
		return err
	}
	request := d.newRequest("shutdown", m.Name)
	d.emit(&ShutdownRequested{Member: m.Name, Request: request, Incarnation: m.Incarnation, Reason: b.Reason, Deadline: b.Deadline})
	body := b.Reason
	if body == "" {
		body = "Please finish and shut down."
	}
	from := d.Actor
	d.post(Message{From: from, To: m.Name, Type: TypeShutdownRequest, Priority: "normal", Body: body, Ref: request, Incarnation: m.Incarnation})
	return nil
}

// AnswerShutdown is the teammate's answer to a request.
type AnswerShutdown struct {
	Member   string // "" for the actor
	Request  string
	Approved bool
	Reason   string
}

func (b *AnswerShutdown) decide(d *decision) error {
	m, err := d.reader(b.Member)
	switch {
	case err != nil:
		return err
	case m.Shutdown.Request == "" || m.Shutdown.Request != b.Request:
		return refuse(Conflict, "there is no shutdown request %q for the present session of %s", b.Request, m.Name)
	case m.Shutdown.Answer != "":
		return refuse(Conflict, "%s has %s this request already", m.Name, m.Shutdown.Answer)
	}
	if err := limit(text{"reason", b.Reason, MaxText}); err != nil {
		return err
	}
	d.emit(&ShutdownAnswered{Member: m.Name, Request: b.Request, Approved: b.Approved, Reason: b.Reason})
	word := "refuses to shut down and is ended at the deadline unless the request is withdrawn"
	if b.Approved {
		word = "agrees to shut down"
	}
	if b.Reason != "" {
		word += ": " + b.Reason
	}
	d.post(Message{From: m.Name, To: d.team.Lead, Type: TypeShutdownResponse, Priority: "normal", Body: m.Name + " " + word, Ref: b.Request})
	if b.Approved && m.Agent == External {
		d.end(m, &MemberStopped{Member: m.Name, Reason: "shut down as asked"}, false)
	}
	return nil
}

// WithdrawShutdown takes a request back, for example after the teammate gave a good reason.
type WithdrawShutdown struct{ Member string }

func (b *WithdrawShutdown) decide(d *decision) error {
	if err := d.leads("withdraw a shutdown"); err != nil {
		return err
	}
	m, err := d.running(b.Member)
	switch {
	case err != nil:
		return err
	case m.Shutdown.Request == "":
		return refuse(Conflict, "%s was not asked to shut down", m.Name)
	case m.Shutdown.Answer == "approved":
		return refuse(Conflict, "%s agreed to shut down and is ending", m.Name)
	}
	d.emit(&ShutdownWithdrawn{Member: m.Name, Request: m.Shutdown.Request})
	d.tell(m.Name, TypeSystem, m.Shutdown.Request, "The request to shut down is withdrawn; go on.")
	return nil
}

// ExpireShutdown ends an external member at the deadline of its shutdown; the session of any other member is ended by its host.
type ExpireShutdown struct{ Member string }

func (b *ExpireShutdown) decide(d *decision) error {
	m, err := d.teammate(b.Member, "shut down")
	switch {
	case err != nil:
		return err
	case m.Shutdown.Request == "":
		return nil
	case d.At < m.Shutdown.Deadline:
		return refuse(NotReady, "%s has %d ms left to shut down", m.Name, m.Shutdown.Deadline-d.At)
	case m.Agent != External && m.Host != "":
		return refuse(NotReady, "the session of %s is ended by its host", m.Name)
	}
	d.end(m, &MemberStopped{Member: m.Name, Reason: "shut down at the deadline"}, true)
	return nil
}

// SubmitPlan lays the member's plan before the lead.
type SubmitPlan struct {
	Member string // "" for the actor
	Plan   string
}

func (b *SubmitPlan) decide(d *decision) error {
	m, err := d.reader(b.Member)
	switch {
	case err != nil:
		return err
	case !m.Plan.Required:
		return refuse(Invalid, "%s needs no approval of a plan; go on with the work", m.Name)
	case m.Plan.State == "submitted":
		return refuse(NotReady, "the plan of %s waits for an answer already (%s)", m.Name, m.Plan.Request)
	case m.Plan.State == "approved":
		return refuse(Conflict, "the plan of %s is approved already; go on with the work", m.Name)
	case strings.TrimSpace(b.Plan) == "":
		return refuse(Invalid, "the plan is empty")
	}
	if err := limit(text{"plan", b.Plan, MaxText}); err != nil {
		return err
	}
	request := d.newRequest("plan", m.Name)
	d.emit(&PlanSubmitted{Member: m.Name, Request: request, Plan: b.Plan})
	d.post(Message{From: m.Name, To: d.team.Lead, Type: TypePlanRequest, Priority: "normal", Body: b.Plan, Ref: request})
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
		return refuse(NotFound, "no plan was submitted as %q", clipTo(b.Request, 80))
	}
	m := &d.members[i]
	switch {
	case m.Plan.State != "submitted":
		return refuse(Conflict, "the plan %s was %s already", b.Request, m.Plan.State)
	case !m.Status.Running():
		return refuse(Finished, "%s has %s", m.Name, ended(m.Status))
	case !b.Approved && strings.TrimSpace(b.Feedback) == "":
		return refuse(Invalid, "a rejection needs feedback: say what the plan lacks")
	}
	d.emit(&PlanAnswered{Member: m.Name, Request: b.Request, Approved: b.Approved, Feedback: b.Feedback})
	body := "The plan is approved; go on with the work."
	if !b.Approved {
		body = "The plan is rejected; revise it and submit it again."
	}
	if b.Feedback != "" {
		body += "\n" + b.Feedback
	}
	d.post(Message{From: d.Actor, To: m.Name, Type: TypePlanResponse, Priority: "normal", Body: clip(body), Ref: b.Request, Incarnation: m.Incarnation})
	return nil
}

// RequestPermission asks whether the member may use a tool. It is answered at once where the rules settle it, else it waits until its deadline.
type RequestPermission struct {
	Member   string // "" for the actor
	Tool     string
	Input    string // JSON
	Deadline Time
}

func (b *RequestPermission) decide(d *decision) error {
	m, err := d.reader(b.Member)
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
	p := Permission{Request: d.newRequest("permission", m.Name), Member: m.Name, Incarnation: m.Incarnation, Tool: b.Tool, Input: b.Input, Deadline: b.Deadline}
	d.emit(&PermissionRequested{Permission: p})
	settle := func(outcome, reason string) {
		d.emit(&PermissionAnswered{Request: p.Request, Member: m.Name, Outcome: outcome, Reason: reason})
	}
	if err := d.AllowsTool(m.Name, b.Tool); err != nil {
		settle("denied", err.Error())
		return nil
	}
	if m.PermissionMode == "bypassPermissions" && d.Writes(m.Name) {
		settle("allowed", "permissions are skipped")
		return nil
	}
	if m.PermissionMode == "dontAsk" {
		settle("denied", m.Name+" is in mode dontAsk")
		return nil
	}
	d.post(Message{From: m.Name, To: d.team.Lead, Type: TypePermissionRequest, Priority: "urgent", Body: clip(b.Tool + " " + b.Input), Ref: p.Request})
	return nil
}

// AnswerPermission allows or denies a request. Only the lead and the user answer, and nobody answers for itself.
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

// ExpirePermission ends a request that nobody answered in time; its host or anybody who finds it sends it.
type ExpirePermission struct{ Request string }

func (b *ExpirePermission) decide(d *decision) error {
	p, err := d.pending(b.Request)
	if err != nil {
		return err
	}
	if d.At < p.Deadline {
		return refuse(NotReady, "the request %s has %d ms left", b.Request, p.Deadline-d.At)
	}
	d.answered(p, "timed_out", "", "nobody answered in time")
	return nil
}

func (d *decision) answered(p Permission, outcome, by, reason string) {
	d.emit(&PermissionAnswered{Request: p.Request, Member: p.Member, Outcome: outcome, By: by, Reason: reason})
	if m := d.member(p.Member); m != nil && m.Incarnation == p.Incarnation {
		word := strings.ReplaceAll(outcome, "_", " ")
		d.post(Message{From: by, To: p.Member, Type: TypePermissionResponse, Priority: "urgent", Body: strings.TrimSuffix(p.Tool+": "+word+". "+reason, ". "), Ref: p.Request, Incarnation: p.Incarnation})
	}
}

func (d *decision) pending(request string) (Permission, error) {
	for _, p := range d.permissions {
		if p.Request == request {
			return p, nil
		}
	}
	return Permission{}, refuse(NotFound, "no permission request %q waits for an answer; it was answered, timed out, or its session ended", clipTo(request, 80))
}
