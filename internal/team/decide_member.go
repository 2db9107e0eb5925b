package team

import (
	"fmt"
	"strconv"
	"strings"
)

// SpawnMember adds a teammate.
type SpawnMember struct {
	Name         string
	Agent        string
	Model        string
	Role         string
	Prompt       string
	Mode         string   // permission mode; "" for the lead's
	PlanApproval bool     // it may write nothing before the lead approved its plan
	Program      string   // executable instead of the agent's own
	Args         []string // added to the agent's arguments
	Env          []string // NAME=value, added to its environment
	Isolation    string   // [Worktree], or ""
	Resume       string   // the agent's own id of a session to go on with, of a member that failed
}

func (b *SpawnMember) decide(d *decision) error {
	if err := d.leads("spawn teammates"); err != nil {
		return err
	}
	if err := d.affordable(); err != nil {
		return err
	}
	if err := CheckNewMember(b.Name, d.team.Lead); err != nil {
		return err
	}
	if taken := d.sameName(b.Name); taken != "" {
		return refuse(Taken, "team %s has a member named %s already; a free name: %s", d.team.Name, taken,
			d.freeName(b.Name))
	}
	if err := d.hasRoom(); err != nil {
		return err
	}
	if b.Agent == Shell && b.PlanApproval {
		return refuse(Invalid, "a shell runs commands and submits no plan, so its plan cannot be asked for; leave "+
			"the task that needs one to another agent")
	}
	if Boundless(b.Agent) && b.PlanApproval {
		return refuse(Invalid, "%s may do things without asking anybody, so that nothing keeps it from writing "+
			"before its plan is approved; take another agent, or do without planApproval", brief(b.Agent))
	}
	if b.Agent == "" {
		return refuse(Invalid, "say which agent %s is, for example shell or external", b.Name)
	}
	if b.Isolation != "" && b.Isolation != Worktree {
		return refuse(Invalid, "%q is no isolation; it is %s, or left out", brief(b.Isolation), Worktree)
	}
	if b.Isolation != "" && b.Agent == External {
		return refuse(Invalid, "%s is external and works where it likes; isolation is for members with a session",
			b.Name)
	}
	mode := b.Mode
	if mode == "" {
		mode = d.lead().PermissionMode
	} else if err := d.gives(mode); err != nil {
		return err
	}
	if err := d.equips(b.Program, b.Args, b.Env); err != nil {
		return err
	}
	if err := limit(text{"session", b.Resume, MaxSubject}, text{"agent", b.Agent, MaxSubject},
		text{"model", b.Model, MaxSubject}, text{"role", b.Role, MaxSubject},
		text{"prompt", b.Prompt, MaxText}); err != nil {
		return err
	}
	status := Spawning
	if b.Agent == External {
		status = Active
	}
	if owner, t := d.awaitedAs(b.Name); owner != "" {
		return refuse(Taken, "task %s waits for a member named %s, and %s differs from that only in case; spawn %s, "+
			"or give the task to somebody else first", t, owner, b.Name, owner)
	}
	m := Member{Name: b.Name, Agent: b.Agent, Model: b.Model, Program: b.Program, Args: b.Args, Env: b.Env,
		Role: b.Role, Prompt: b.Prompt,
		Isolation: b.Isolation, Session: b.Resume, Status: status, Incarnation: 1,
		PermissionMode: mode, Plan: Plan{Required: b.PlanApproval}}
	waiting, err := d.waitingFor(&m)
	if err != nil {
		return err
	}
	d.emit(&MemberSpawned{Member: m})
	if m.Agent == External { // a session of ours is given the tasks themselves
		for _, t := range waiting {
			d.post(Message{To: m.Name, Type: TypeTaskAssignment, Ref: t.ID,
				Body: clip(fmt.Sprintf("Task %s is yours: %s", t.ID, Quoted(t.Subject))), Priority: "normal"})
		}
	}
	return nil
}

// DefaultMaxTeammates is how many teammates a lead may have that nobody set a limit for. What a
// model that is led astray can start is bounded by it.
const DefaultMaxTeammates = 10

// hasRoom refuses one more teammate where the team has as many as it may have. Those that have
// ended do not count.
func (d *decision) hasRoom() error {
	most := d.team.MaxTeammates
	if most == 0 && d.Actor != User {
		most = DefaultMaxTeammates
	}
	if running := len(d.Recipients()) - 1; most > 0 && int64(running) >= most { // the lead is the other one
		return Refuse(MaxTeammatesReached, "team %s has %s, and may have at most %d at a time (%s)", d.team.Name,
			word(running, "1 teammate", strconv.Itoa(running)+" teammates"), most, MaxTeammatesReached).
			With(d.team.hint(ActShutDown))
	}
	return nil
}

// waitingFor returns the tasks that were created for a member before it was spawned. It refuses a
// member that could not do one of them.
func (d *decision) waitingFor(m *Member) (waiting []*Task, err error) {
	for i := range d.tasks {
		if t := &d.tasks[i]; t.Owner == m.Name && t.Status == Pending {
			if err := d.sees(m, t, t.BlockedBy); err != nil {
				return nil, err
			}
			waiting = append(waiting, t)
		}
	}
	return waiting, nil
}

// awaitedAs returns the name that differs from this one only in case, and for whose member a task
// waits that is not on the team yet, with the task; "" for none.
func (d *decision) awaitedAs(name string) (owner, task string) {
	for i := range d.tasks {
		t := &d.tasks[i]
		if t.Owner != name && t.Status == Pending && strings.EqualFold(t.Owner, name) && d.awaits(t) {
			return t.Owner, t.ID
		}
	}
	return "", ""
}

// sameName returns the member's name that is the same but for case: files are named after members,
// and some disks do not tell Ann from ann. Nor do readers.
func (d *decision) sameName(name string) string {
	for i := range d.members {
		if strings.EqualFold(d.members[i].Name, name) {
			return d.members[i].Name
		}
	}
	return ""
}

func (d *decision) freeName(name string) string {
	for n := 2; ; n++ {
		if free := Numbered(name, n); d.sameName(free) == "" {
			return free
		}
	}
}

// Numbered is the name with a number, as long as a name may be.
func Numbered(name string, n int) string {
	suffix := "-" + strconv.Itoa(n)
	return name[:min(len(name), MaxName-len(suffix))] + suffix
}

// AttachMember takes the lease of a member for the host that sends it. From is the host that had it
// and is known to be dead, or "" for a member without one. Ending is the shutdown request that the
// sender knows of: a member that was asked to shut down ends when it is taken from a dead host, and
// what it saved of its tasks must be kept with them before that.
type AttachMember struct {
	Member string
	From   string
	Ending string
}

func (b *AttachMember) decide(d *decision) error {
	if !d.isHost() {
		return refuse(Denied, "only a host takes the lease of a member")
	}
	if err := limit(text{"id of the host", d.Actor, MaxSubject}); err != nil {
		return err
	}
	host := strings.TrimPrefix(d.Actor, hostPrefix)
	m, err := d.running(b.Member)
	switch {
	case err != nil:
		return err
	case m.Agent == External:
		return refuse(Invalid, "%s is external and has no session to run", m.Name)
	case m.Host == host:
		return nil
	case m.Host != b.From:
		return refuse(Conflict, "%s holds the lease of %s", holder(m), m.Name)
	case m.Host != "" && m.Shutdown.Request != b.Ending:
		return refuse(Conflict, "%s was asked to shut down in the meantime", m.Name)
	}
	if m.Host != "" && d.detach(m, "its host "+m.Host+" died") {
		return nil
	}
	d.emit(&MemberAttached{Member: m.Name, Host: host, Lease: m.Lease + 1})
	return nil
}

func holder(m *Member) string {
	if m.Host == "" {
		return "nobody"
	}
	return "host " + m.Host
}

// DetachMember gives the lease back: the session is gone and the member is to be started again, by
// this host or another one. A member that was asked to shut down has done so with that.
type DetachMember struct {
	Member, Reason string
	Fresh          bool   // a new session is to go on, and not to resume the one that is gone
	Note           string // what that one is told
}

func (b *DetachMember) decide(d *decision) error {
	m, err := d.hosted(b.Member)
	if err != nil {
		return err
	}
	if d.actor != nil {
		return refuse(Denied, "only a host gives the lease of a member back")
	}
	if m.Host == "" {
		return nil
	}
	d.detached(m, &MemberDetached{Member: m.Name, Reason: clipTo(b.Reason, MaxSubject), Fresh: b.Fresh,
		Note: clip(b.Note)})
	return nil
}

// detach ends the member's session, and the member with it if that was asked for; then it reports
// so.
func (d *decision) detach(m *Member, reason string) (ended bool) {
	return d.detached(m, &MemberDetached{Member: m.Name, Reason: reason})
}

func (d *decision) detached(m *Member, e *MemberDetached) (ended bool) {
	if m.Shutdown.Request != "" {
		d.end(m, &MemberStopped{Member: m.Name, Reason: AsAsked + ": " + e.Reason}, true)
		return true
	}
	// who goes on goes on with its task, whether or not its session is one that can be resumed
	for _, t := range d.holds(m.Name) {
		d.releaseTo(m.Name, t, e.Reason)
	}
	if e.Note == "" {
		switch m.Status {
		case Spawning:
			e.Note = m.Note
		case Active, Blocked: // it was in the middle of something
			e.Note = "The session before this one was cut off: " + e.Reason + "."
		}
	}
	d.denyAll(m, e.Reason)
	d.dropControl(m)
	d.emit(e)
	return false
}

// dropControl takes the messages out of the inbox that were for the session which is gone, and
// would mislead the next one.
func (d *decision) dropControl(m *Member) {
	var seqs []int64
	for _, seq := range m.Inbox {
		if msg := d.messages[seq]; msg != nil && msg.Incarnation == m.Incarnation {
			seqs = append(seqs, seq)
		}
	}
	if len(seqs) > 0 {
		d.emit(&MessagesReturned{Member: m.Name, Seqs: seqs})
	}
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
	if err := limit(text{"id of the session", b.Session, MaxSubject}); err != nil {
		return err
	}
	d.emit(&MemberStarted{Member: m.Name, Session: b.Session})
	return nil
}

// ReportStatus says what the member does: active, idle or blocked. The lead is told when a teammate
// goes idle because there is no task for it, and whenever there is a Report, the last text of a
// turn that ended without one.
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
	if err := oneOf("status of a member", string(b.Status), []string{string(Active), string(Idle),
		string(Blocked)}); err != nil {
		return err
	}
	if err := limit(text{"summary", b.Summary, MaxSubject}, text{"report", b.Report, MaxText}); err != nil {
		return err
	}
	changed := m.Status != b.Status && m.Status != ShuttingDown
	if changed || m.Summary != b.Summary {
		d.emit(&MemberStatusChanged{Member: m.Name, Status: b.Status, Summary: b.Summary})
	}
	// The lead knows of a plan that it is to answer, and that its member rests until then.
	rests := changed && b.Status == Idle && d.next(m) == nil && m.Plan.State != "submitted"
	goes := changed && b.Status == Idle && d.letsGo(m)
	if m.Name != d.team.Lead && (b.Report != "" || rests && !goes) {
		n := d.idleNotice(m, b)
		n.Quiet = n.Quiet || goes || m.Status == ShuttingDown // what somebody says who goes as asked wants no answer
		d.post(n)
	}
	if goes {
		d.answerShutdown(m, true, "it ended its turn without an answer")
	}
	return nil
}

// idleNotice tells the lead what came of a turn, and which task the member still holds. A notice
// without a report is worth no turn.
func (d *decision) idleNotice(m *Member, b *ReportStatus) Message {
	n := Message{From: m.Name, To: d.team.Lead, Type: TypeIdle, Priority: "normal", Body: b.Report,
		Quiet: b.Report == ""}
	held := d.holds(m.Name)
	if len(held) > 0 {
		n.Ref = held[0].ID
	}
	switch {
	case n.Body == "" && b.Summary != "":
		n.Body = b.Summary
	case n.Body == "" && len(held) == 0:
		n.Body = m.Name + " is idle: there is no task for it now."
	case n.Body == "":
		n.Body = fmt.Sprintf("%s is idle and still holds %s.", m.Name, labels(held))
		held = nil
	}
	if len(held) > 0 {
		n.Body += fmt.Sprintf("\n\n%s ended its turn and still holds %s.", m.Name, labels(held))
	}
	n.Body = clip(n.Body)
	return n
}

// labels names tasks by id and subject, the first ones where there are many.
func labels(tasks []*Task) string {
	var names []string
	for _, t := range tasks {
		names = append(names, fmt.Sprintf("task %s (%s)", t.ID, Inline(clipTo(t.Subject, 200))))
	}
	return andMore(names)
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
	d.end(m, &MemberStopped{Member: m.Name, Reason: clip(b.Reason)}, true)
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

// end lets go of everything that a member holds: its tasks, its mail, its requests. With tell set
// the lead is told.
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
		note := m.Name + " has " + why + because(reason)
		if len(back) > 0 {
			note += "\nBack on the list: task " + strings.Join(back, ", ") + "."
		}
		if why == "stopped" && len(back) == 0 { // as it was asked to, and nothing is left to be done about it
			d.hint(d.team.Lead, note)
		} else {
			d.tell(d.team.Lead, TypeSystem, "", "%s", note)
		}
	}
	d.returnMail(m, why)
}
