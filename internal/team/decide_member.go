package team

import (
	"cmp"
	"fmt"
	"slices"
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
	PlanApproval bool     // it may not write before the lead has approved its plan
	Program      string   // executable instead of the agent's own
	Args         []string // added to the agent's arguments
	Env          []string // NAME=value, added to its environment
	Isolation    string   // [Worktree], or ""
	RunsOn       []string // labels of the machine that runs it; none where the team is run
	Budget       Budget   // of its own
	FileDigests  []string // see [Member]
	Nested       *Nested  // what its teams are made from; nil for a member that is not a team
	Resume       string   // the agent's own id of a failed member's session, which continues
	// Succeeds names a teammate that has ended. The use of that one counts against the budget of
	// this one.
	Succeeds string
}

func (b *SpawnMember) decide(d *decision) error {
	if err := d.leads("spawn teammates"); err != nil {
		return err
	}
	if err := d.affordable(); err != nil {
		return err
	}
	if err := cmp.Or(CheckNewMember(b.Name, d.team.Lead), d.notParent(b.Name)); err != nil {
		return err
	}
	if taken := d.sameName(b.Name); taken != "" {
		return b.taken(d, taken)
	}
	if err := d.hasRoom(); err != nil {
		return err
	}
	if err := cmp.Or(b.checkAgent(), b.placed(d)); err != nil {
		return err
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
	if err := cmp.Or(b.limits(), b.Budget.check(), checkDigests(b.FileDigests), b.checkMachine(d)); err != nil {
		return err
	}
	nested, err := d.nests(b)
	if err != nil {
		return err
	}
	status := Spawning
	if b.Agent == External {
		status = Active
	}
	if err := d.awaitedOtherwise(b); err != nil {
		return err
	}
	m := Member{Name: b.Name, Agent: b.Agent, Model: b.Model, Program: b.Program, Args: b.Args, Env: b.Env,
		Role: b.Role, Prompt: b.Prompt, Nested: nested,
		Isolation: b.Isolation, RunsOn: b.RunsOn, Session: b.Resume, Status: status, Incarnation: 1,
		PermissionMode: mode, Plan: Plan{Required: b.PlanApproval}, Budget: b.Budget, FileDigests: b.FileDigests}
	if err := d.succeeds(&m, b.Succeeds); err != nil {
		return err
	}
	waiting, err := d.waitingFor(&m)
	if err != nil {
		return err
	}
	d.emit(&MemberSpawned{Member: m})
	if m.Agent == External {
		d.tellWaiting(&m, waiting)
	}
	return nil
}

// tellWaiting tells a new member without a session of ours which tasks wait for it. A session is
// given them directly.
func (d *decision) tellWaiting(m *Member, waiting []*Task) {
	for _, t := range waiting {
		d.post(Message{To: m.Name, Type: TypeTaskAssignment, Ref: t.ID,
			Body: clip(fmt.Sprintf("Task %s is yours: %s", t.Called(), Quoted(t.Subject))), Priority: "normal"})
	}
}

// taken refuses a name that a member has already.
func (b *SpawnMember) taken(d *decision, by string) error {
	free := d.freeName(b.Name)
	refusal := Refuse(Taken, "team %s has a member named %s already; a free name: %s", d.team.Name, by, free).
		With(Hint{Action: ActSpawn, Team: d.team.Name, Name: free, Agent: b.Agent})
	if m := d.member(by); m != nil && m.Status.Running() {
		refusal = refusal.With(Hint{Action: ActAsk, Team: d.team.Name, Member: by})
	}
	return refusal
}

// limits checks the lengths of the texts.
func (b *SpawnMember) limits() error {
	return limit(text{"session", b.Resume, MaxSubject}, text{"agent", b.Agent, MaxSubject},
		text{"model", b.Model, MaxSubject}, text{"role", b.Role, MaxSubject}, text{"prompt", b.Prompt, MaxText})
}

// succeeds charges the budget of a new member with what the one that it succeeds has used. It
// refuses a member whose budget would be spent from the start.
func (d *decision) succeeds(m *Member, name string) error {
	if name == "" {
		return nil
	}
	if ended := d.member(name); ended != nil && len(m.RunsOn) > 0 {
		m.Machine = ended.Machine // which has the session that continues
	}
	old, err := d.teammate(name, "succeeded")
	switch {
	case err == nil:
		return Refuse(NotReady, "%s is %s: a member has a successor after it has ended", name, old.Status).
			With(Hint{Action: ActShutDown, Team: d.team.Name, Member: name})
	case CodeOf(err) != Finished:
		return err
	case m.Budget == Budget{}:
		return nil
	}
	old = d.member(name)
	m.Inherited, m.BudgetFrom = old.Charged(), old.BudgetSince()
	spending := m.Budget.spending(m.Inherited, m.BudgetFrom, d.At)
	m.Alerted = stillTold(spending, old.Alerted, "")
	if what := m.Budget.spent(m.Inherited, m.BudgetFrom, d.At); what != "" {
		return Refuse(Exhausted, "the %s is spent, and %s would inherit it", BudgetOf(what, name), m.Name).
			With(Hint{Action: ActRaiseBudget, Team: d.team.Name, Member: name, Budget: what})
	}
	return nil
}

// checkAgent refuses options that the agent does not support.
func (b *SpawnMember) checkAgent() error {
	switch {
	case b.Agent == Shell && b.PlanApproval:
		return refuse(Invalid, "a shell runs commands and submits no plan, so its plan cannot be asked for; leave "+
			"the task that needs one to another agent")
	case Boundless(b.Agent) && b.PlanApproval:
		return refuse(Invalid, "%s may act without asking for permission, so nothing keeps it from writing "+
			"before its plan is approved; take another agent, or do without planApproval", brief(b.Agent))
	case b.Agent == "":
		return refuse(Invalid, "say which agent %s is, for example shell or external", b.Name)
	case b.Isolation != "" && b.Isolation != Worktree:
		return refuse(Invalid, "%q is not an isolation; use %s, or leave it out", brief(b.Isolation), Worktree)
	case b.Isolation != "" && b.Agent == External:
		return refuse(Invalid, "%s is external and works where it likes; isolation is for members with a session",
			b.Name)
	}
	return nil
}

// DefaultMaxTeammates limits the teammates of a lead where no limit was set. It bounds what a
// misled model can start.
const DefaultMaxTeammates = 10

// hasRoom refuses one more teammate than the team's limit. Members that have ended do not count.
func (d *decision) hasRoom() error {
	most := d.team.MaxTeammates
	if most == 0 && d.Actor != User {
		most = DefaultMaxTeammates
	}
	if running := len(d.Recipients()) - 1; most > 0 && int64(running) >= most { // do not count the lead
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
			if err := cmp.Or(d.sees(m, t, t.BlockedBy), m.unable(t, t.Run)); err != nil {
				return nil, err
			}
			waiting = append(waiting, t)
		}
	}
	return waiting, nil
}

// awaitedOtherwise refuses a name that differs only in case from one that a task waits for.
func (d *decision) awaitedOtherwise(b *SpawnMember) error {
	owner, t := d.awaitedAs(b.Name)
	if owner == "" {
		return nil
	}
	return Refuse(Taken, "task %s waits for a member named %s, and %s differs from that only in case; spawn %s, "+
		"or give the task to another member first", t, owner, b.Name, owner).
		With(Hint{Action: ActSpawn, Team: d.team.Name, Name: owner, Agent: b.Agent})
}

// awaitedAs finds a task for a member that has not joined yet and whose name differs from this one
// only in case. It returns the owner and the task; "" for none.
func (d *decision) awaitedAs(name string) (owner, task string) {
	for i := range d.tasks {
		t := &d.tasks[i]
		if t.Owner != name && t.Status == Pending && strings.EqualFold(t.Owner, name) && d.awaits(t) {
			return t.Owner, t.Called()
		}
	}
	return "", ""
}

// sameName returns a member's name that differs only in case. Files are named after members, and
// some disks treat Ann and ann as the same name, as do readers.
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

// Numbered appends a number to the name, and shortens it to the limit for names.
func Numbered(name string, n int) string {
	suffix := "-" + strconv.Itoa(n)
	return name[:min(len(name), MaxName-len(suffix))] + suffix
}

// AttachMember takes the lease of a member for the host that sends it. From is the host that held
// the lease and is known to be dead, or "" for a member without one. Ending is the shutdown request
// that the sender knows of. A member that was asked to shut down ends when it is taken from a dead
// host, and its unfinished work must be saved before that.
type AttachMember struct {
	Member string
	From   string
	Ending string
	Pool   string // pool of its sessions on this host, whose rate limit they share; "" if it has none
	// Machine is the name of the machine, and Labels are its labels, for a host that runs members
	// by labels; zero for one that runs the team itself.
	Machine string
	Labels  []string
	Note    string // words for the session, if the one before it was on another machine
}

func (b *AttachMember) decide(d *decision) error {
	if !d.isHost() {
		return refuse(Denied, "only a host takes the lease of a member")
	}
	if err := limit(text{"id of the host", d.Actor, MaxSubject}, text{"pool", b.Pool, MaxSubject},
		text{"name of the machine", b.Machine, MaxName}, text{"note", b.Note, MaxText}); err != nil {
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
	if err := b.checkMachine(m); err != nil {
		return err
	}
	attached := &MemberAttached{Member: m.Name, Host: host, Lease: m.Lease + 1, Pool: b.Pool, Machine: b.Machine}
	if m.Machine != b.Machine && m.Session != "" {
		attached.Note = b.Note
	}
	d.emit(attached)
	return nil
}

func holder(m *Member) string {
	if m.Host == "" {
		return "no host"
	}
	return "host " + m.Host
}

// DetachMember returns the lease: the session has ended, and this host or another one starts the
// member again. A member that was asked to shut down has shut down with that.
type DetachMember struct {
	Member, Reason string
	Fresh          bool   // a new session continues instead of resuming the old one
	Note           string // words for the new session
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

// detach ends the member's session. If a shutdown was requested it ends the member too, and reports
// true.
func (d *decision) detach(m *Member, reason string) (ended bool) {
	return d.detached(m, &MemberDetached{Member: m.Name, Reason: reason})
}

func (d *decision) detached(m *Member, e *MemberDetached) (ended bool) {
	if m.Shutdown.Request != "" {
		d.end(m, &MemberStopped{Member: m.Name, Reason: AsAsked + ": " + e.Reason}, true)
		return true
	}
	// the member keeps its tasks, whether or not its session can be resumed
	for _, t := range d.holds(m.Name) {
		if m.BudgetSpent(d.At) != "" { // other members can continue what was not assigned to it
			d.release(t, e.Reason)
		} else {
			d.releaseTo(m.Name, t, e.Reason)
		}
	}
	if e.Note == "" {
		switch m.Status {
		case Spawning:
			e.Note = m.Note
		case Active, Blocked: // it was at work
			e.Note = "The session before this one was cut off: " + e.Reason + "."
		}
	}
	d.denyAll(m, e.Reason)
	d.dropControl(m)
	d.emit(e)
	return false
}

// dropControl removes messages from the member's inbox that were meant for the ended session and
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

// denyAll denies the permission requests of a session that has ended.
func (d *decision) denyAll(m *Member, reason string) {
	for _, p := range d.permissions {
		if p.Member == m.Name {
			d.emit(&PermissionAnswered{Request: p.Request, Member: m.Name, Outcome: "denied", Reason: reason})
		}
	}
}

// ReportStarted says that the member's session is running.
type ReportStarted struct {
	Member  string
	Session string // the agent's own session id, for resuming
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

// ReportStatus says what the member does: active, idle or blocked. The lead is notified when a
// teammate goes idle because it has no task. The lead also gets every Report, the last text of a
// turn that ended without one. Words become part of the summary of a task that was completed
// without a result.
type ReportStatus struct {
	Member  string
	Status  MemberStatus
	Summary string
	Report  string
	// the task that the ended turn was for, and the last text of that turn
	Task, Words string
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
	if err := limit(text{"summary", b.Summary, MaxSubject}, text{"report", b.Report, MaxText},
		text{"last text", b.Words, MaxText}); err != nil {
		return err
	}
	changed := m.Status != b.Status && m.Status != ShuttingDown
	if changed || m.Summary != b.Summary {
		d.emit(&MemberStatusChanged{Member: m.Name, Status: b.Status, Summary: b.Summary})
	}
	d.lastWords(m, b.Task, b.Words)
	// The lead knows of a plan that it must answer, and that the plan's member waits for the
	// answer.
	rests := changed && b.Status == Idle && d.next(m) == nil && m.Plan.State != "submitted"
	goes := changed && b.Status == Idle && d.letsGo(m)
	if m.Name != d.team.Lead && (b.Report != "" || rests && !goes) {
		n := d.idleNotice(m, b)
		// The last words of a member that shuts down on request need no answer.
		n.Quiet = n.Quiet || goes || m.Status == ShuttingDown || d.lastAtWork(m) && d.reportFollows()
		d.post(n)
	}
	if goes {
		d.answerShutdown(m, true, "it ended its turn without an answer")
	}
	return nil
}

// lastAtWork reports whether all tasks are done and no other teammate works or is about to.
func (d *decision) lastAtWork(m *Member) bool {
	return d.Count(Completed) > 0 && d.Count(Pending) == 0 && d.Count(InProgress) == 0 &&
		!slices.ContainsFunc(d.members, func(other Member) bool {
			return other.Name != m.Name && other.Name != d.team.Lead && other.Status.Running() &&
				(other.Agent == External || d.Busy(other.Name))
		})
}

// idleNotice tells the lead how a turn ended, and which task the member still holds. A notice
// without a report does not start a turn.
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
		n.Body = m.Name + " is idle: no task is ready for it."
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

// labels lists tasks by name and subject. It shortens a long list to the first ones.
func labels(tasks []*Task) string {
	var names []string
	for _, t := range tasks {
		names = append(names, "task "+t.with(clipTo(t.Subject, 200)))
	}
	return andMore(names)
}

// ReportStopped says that the member's session ended on request.
type ReportStopped struct{ Member, Reason string }

func (b *ReportStopped) decide(d *decision) error {
	if _, err := d.hosted(b.Member); err != nil {
		return err
	}
	m, err := d.teammate(b.Member, "stopped")
	if err != nil {
		return err
	}
	d.end(m, &MemberStopped{Member: m.Name, Reason: clip(b.Reason)}, true)
	return nil
}

// ReportFailed says that the member's session ended by itself, in the agent's own words.
type ReportFailed struct{ Member, Reason string }

func (b *ReportFailed) decide(d *decision) error {
	if _, err := d.hosted(b.Member); err != nil {
		return err
	}
	m, err := d.teammate(b.Member, "failed")
	if err != nil {
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

// end releases everything that a member holds: its tasks, its mail, its requests. With tell set the
// lead is notified.
func (d *decision) end(m *Member, how Event, tell bool) {
	d.leaves(m)
	back := d.returnTasks(m, m.Name+" has ended")
	d.denyAll(m, m.Name+" has ended")
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
			note += "\nReturned to the queue: task " + strings.Join(back, ", ") + "."
		}
		if why == "stopped" && len(back) == 0 { // it stopped on request, and nothing is left to do about it
			d.hint(d.team.Lead, note)
		} else {
			d.tell(d.team.Lead, "", "%s", note)
		}
	}
	d.returnMail(m, why)
}
