package simtest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"cadre/internal/render"
	"cadre/internal/team"
)

// The promises. A report of a broken promise shows this text.
const (
	readable  = "every line in the journal can be read"
	kept      = "an acknowledged record is never lost"
	single    = "a command happens once, however often it is sent"
	claims    = "a task is claimed by one member, and completed once, by its holder"
	onceGiven = "a sent message is in its recipient's context once, and in order"
	notLost   = "a message counts as delivered only after it entered a context, and is not lost before"
	returned  = "mail for a member that ended is returned"
	leases    = "a member has one session, on the host that holds its lease"
	gone      = "a shutdown completes by its deadline"
	asked     = "every permission and plan request ends, and only those who may answer it"
	approval  = "nothing is written before a plan's approval is recorded"
	crowned   = "no message stops the lead or impersonates the user"
	rest      = "when the faults are over, all work is completed"
	agreed    = "every process sees the same team"
	recorded  = "the changes of a task are recorded when it is completed"
	paused    = "an interrupted member is given nothing before it gets a message"
	inOrder   = "a host that is paused leaves no session and no member behind"
	unchanged = "a task that a member works on is not changed"
	shared    = "members that share a rate limit wait for it, and nobody loses a task or counts a setback over it"
	noted     = "a note has every text that was added to it, once, and nobody overwrites what it has not seen"
)

// Broken is a promise that did not hold.
type Broken struct{ Promise, What string }

func (b *Broken) Error() string { return "broken: " + b.Promise + ": " + b.What }

// judge follows the history as it is written, and what reaches contexts and files. It keeps its own
// books, so that it does not repeat a mistake of the core.
type judge struct {
	w      *world
	broken *Broken

	intended   int
	intentions map[string]intention // by the id of a command
	// reassigned says when the saved work of a task was looked for, by the id of the command that
	// reassigns the task.
	reassigned map[string]time.Duration
	at         map[string]team.Time // by the id of a command: when it was sent, by the sender's clock
	acks       map[int64]string     // by seq: the id of an acknowledged command
	seen       map[seenKey]bool
	passed     map[passKey]bool // checks that have passed
	live       []*session
	again      bool // the record was written before, and is only checked again
	heartbeatBook

	books
}

// books hold what follows from the history alone.
type books struct {
	truth    *team.State
	happened map[int]int64 // by intention: the record that carried it out
	ids      map[string]bool
	tasks    map[string]*taskBook
	mail     map[mailKey]*mailBook
	lastSeq  int64
	open     map[string]string // open permission requests and plans by id: the member
	tools    map[string]string // the tools of open permission requests
	lost     map[string]bool   // members that ended
	members  []sitting         // the members in the order of the list
	roll     []team.Member     // the list itself, after the last record
	host     map[string]string
	cut      map[string]bool // interrupted members, and whether their turn has ended
	lead     leadBook
	told     map[string]bool // tasks that members were told of, as member/task
	limited  team.Time       // until when the provider refuses all models
	notes    map[string]*noteBook
	groups   map[string]*groupBook
	wrote    map[string]int64 // the last change of a note by one writer, as writer/key
}

// sitting is what the judge knows of a member.
type sitting struct {
	incarnation int64
	running     bool
}

type taskBook struct {
	status team.TaskStatus
	holder string
	fence  int64
	done   int // changes that its holder had made when it completed the task

	taken   string        // the member that lost it to another actor since the last claim
	onlyFor string        // the only member whose saved work of the task still matters
	looked  time.Duration // until when that work was saved; 0 for any time

	authors []string // who did what others verify now; nil for a task that they do not
	checks  []string // the tasks that verify it
	verdict string
	demands *demandBook // nil for a task that demands nothing
}

type mailKey struct {
	member string
	seq    int64
}

type mailBook struct {
	command   string // the id of the command that sent it
	message   team.Message
	delivered bool
	returned  bool
	held      int // the loss of the lead since which it waits for a lead
}

type seenKey struct {
	mailKey
	command string
}

func newJudge(w *world) *judge {
	return &judge{w: w, intentions: map[string]intention{}, at: map[string]team.Time{}, acks: map[int64]string{},
		seen: map[seenKey]bool{}, passed: map[passKey]bool{},
		reassigned: map[string]time.Duration{}, books: newBooks(),
		heartbeatBook: heartbeatBook{given: map[string]time.Duration{}, seen: map[*process]sight{},
			losing: map[string]int64{},
			taking: map[string]look{}}}
}

func newBooks() books {
	return books{truth: &team.State{}, happened: map[int]int64{}, ids: map[string]bool{}, tasks: map[string]*taskBook{},
		mail: map[mailKey]*mailBook{},
		open: map[string]string{}, tools: map[string]string{}, lost: map[string]bool{}, host: map[string]string{},
		told: map[string]bool{}, notes: map[string]*noteBook{}, groups: map[string]*groupBook{}, wrote: map[string]int64{},
		cut:  map[string]bool{},
		lead: leadBook{late: map[mailKey]bool{}}}
}

func (j *judge) fail(promise, format string, args ...any) {
	if j.broken == nil {
		j.broken = &Broken{promise, fmt.Sprintf(format, args...)}
		j.w.logf("BROKEN: %s: %s", promise, j.broken.What)
	}
}

// intend registers what a caller wants done once.
func (j *judge) intend(c team.Command) intention {
	j.intended++
	return intention{c, j.intended}
}

func (j *judge) sent(in intention) { j.intentions[in.ID] = in }

// acked registers that a caller learned that its command is done.
func (j *judge) acked(r *team.Record) { j.acks[r.Seq] = r.ID }

// cutTo checks the history after a loss of power: every acknowledged record must still be in it.
func (j *judge) cutTo(left int) {
	j.books = newBooks()
	tell := j.w.tell
	j.w.tell, j.again = nil, true
	for _, line := range j.w.disk.lines {
		j.record(line)
	}
	j.w.tell, j.again = tell, false
	for _, seq := range slices.Sorted(maps.Keys(j.acks)) {
		if seq > int64(left) {
			j.fail(kept, "record %d (command %s) was acknowledged, but only %d are left", seq, j.acks[seq], left)
		}
	}
}

// record checks a record as it is written.
func (j *judge) record(line []byte) {
	r, err := team.DecodeRecord(j.truth.Seq()+1, string(line))
	if err != nil {
		j.fail(readable, "%v", err)
		return
	}
	if j.w.tell != nil {
		for _, l := range render.Lines(r, nil) {
			j.w.logf("  %d %s: %s", r.Seq, r.Actor, l)
		}
	}
	j.command(r)
	j.lateness(r)
	for _, e := range r.Events {
		j.event(r, e)
	}
	j.truth.Apply(r)
	j.noteTexts()
	j.afterwards(r)
}

// command checks whether the command may have produced the record.
func (j *judge) command(r *team.Record) {
	if j.ids[r.ID] {
		j.fail(single, "the command %s is in the history twice, the second time as record %d", r.ID, r.Seq)
	}
	j.ids[r.ID] = true
	in, ours := j.intentions[r.ID]
	if !ours {
		return // a replica ends overdue items by itself
	}
	if before := j.happened[in.number]; before != 0 {
		j.fail(single, "%s wanted one %T, which happened as record %d and again as %d", in.Actor, in.Body,
			before, r.Seq)
	}
	j.happened[in.number] = r.Seq
	if !j.again { // otherwise it may have been sent again since
		j.inTime(r.ID, in.Body)
	}
	if m, ok := j.truth.Member(in.Actor); ok && in.Incarnation != 0 && in.Incarnation != m.Incarnation {
		j.fail(leases, "session %d of %s acted after session %d had taken its place", in.Incarnation, in.Actor,
			m.Incarnation)
	}
	if m, ok := j.truth.Member(about(in.Body)); ok && in.Lease != 0 && m.Status.Running() &&
		(m.Lease != in.Lease || team.Host(m.Host) != in.Actor) {
		j.fail(leases, "%s acted for %s under the lease %d, but %s holds the lease %d", in.Actor, m.Name, in.Lease,
			m.Host, m.Lease)
	}
	if task, fence := claimOf(in.Body); fence != 0 {
		if t := j.tasks[task]; t == nil || t.fence != fence || t.status != team.InProgress {
			j.fail(claims, "a %T under the claim %d of task %s was accepted, but the task is %+v", in.Body,
				fence, task, *t)
		}
	}
}

// inTime checks that an answer arrives before its deadline, by the clock of the member that gives
// it.
func (j *judge) inTime(id string, body team.Body) {
	switch b := body.(type) {
	case *team.AnswerPermission:
		for _, p := range j.truth.Permissions() {
			if p.Request == b.Request && p.Deadline < j.at[id] {
				j.fail(asked, "the request %s was answered %d ms after its deadline", b.Request, j.at[id]-p.Deadline)
			}
		}
	case *team.AnswerPlan:
		for _, m := range j.truth.Members() {
			if p := m.Plan; p.Request == b.Request && p.Deadline != 0 && p.Deadline < j.at[id] {
				j.fail(asked, "the plan %s was answered %d ms after its deadline", b.Request, j.at[id]-p.Deadline)
			}
		}
	}
}

// about returns the member for which a host acts with that body.
func about(body team.Body) string {
	switch b := body.(type) {
	case *team.ReportStarted:
		return b.Member
	case *team.ReportStatus:
		return b.Member
	case *team.ReportStopped:
		return b.Member
	case *team.ReportFailed:
		return b.Member
	case *team.ReportTrouble:
		return b.Member
	case *team.DetachMember:
		return b.Member
	case *team.ReceiveMessages:
		return b.Member
	case *team.ClaimTask:
		return b.Member
	case *team.RequestPermission:
		return b.Member
	}
	return ""
}

func claimOf(body team.Body) (task string, fence int64) {
	switch b := body.(type) {
	case *team.CompleteTask:
		return b.Task, b.Fence
	case *team.FailTask:
		return b.Task, b.Fence
	case *team.ReleaseTask:
		return b.Task, b.Fence
	}
	return "", 0
}

// interrupted follows who was interrupted, and checks that such a member is given no task before it
// got a message. A claim of a task for it by name makes it continue.
func (j *judge) interrupted(r *team.Record, e team.Event) {
	switch e := e.(type) {
	case *team.InterruptRequested:
		if _, known := j.cut[e.Member]; !known {
			j.cut[e.Member] = false
		}
	case *team.MemberStatusChanged:
		if _, known := j.cut[e.Member]; known && e.Status == team.Idle {
			j.cut[e.Member] = true
		} else if m, _ := j.truth.Member(e.Member); e.Status == team.Active && m.Status != team.Active {
			delete(j.cut, e.Member)
		}
	case *team.MessagesDelivered:
		if m, _ := j.truth.Member(e.Member); j.cut[e.Member] || m.Agent == team.Shell {
			delete(j.cut, e.Member)
		}
	case *team.TaskClaimed:
		if body, ok := j.intentions[r.ID].Body.(*team.ClaimTask); j.cut[e.Member] && (!ok || body.Task == "") {
			j.fail(paused, "%s was interrupted, and got task %s", e.Member, e.Task)
		}
		if j.cut[e.Member] {
			delete(j.cut, e.Member)
		}
	case *team.MemberDetached:
		delete(j.cut, e.Member)
	case *team.MemberStopped:
		delete(j.cut, e.Member)
	case *team.MemberFailed:
		delete(j.cut, e.Member)
	case *team.TaskRevised:
		if t := j.tasks[e.Task.ID]; t == nil || t.status == team.InProgress {
			j.fail(unchanged, "the file changed task %s while %s worked on it", e.Task.ID, t.holder)
		}
	}
}

// event checks one event of a record before the record is applied.
func (j *judge) event(r *team.Record, e team.Event) {
	j.interrupted(r, e)
	j.limits(r, e)
	switch e := e.(type) {
	case *team.TaskCreated:
		j.tasks[e.Task.ID] = &taskBook{status: team.Pending}
		j.demands(r, e)
	case *team.TaskExpanded, *team.TaskFolded:
		j.demands(r, e)
	case *team.TaskClaimed, *team.TaskReleased, *team.TaskFailed, *team.TaskCompleted, *team.TaskDeleted,
		*team.TaskUpdated:
		j.verification(r, e)
		j.demands(r, e)
		if !j.ofGroup(e) {
			j.task(r, e)
		}
	case *team.TaskSubmitted, *team.TaskRejected:
		j.verification(r, e)
		j.demands(r, e)
	case *team.MessageSent, *team.MessagesDelivered, *team.MessagesReturned:
		j.message(r, e)
	case *team.PermissionRequested:
		j.open[e.Permission.Request] = e.Permission.Member
		j.tools[e.Permission.Request] = e.Permission.Tool
	case *team.PermissionAnswered:
		if j.open[e.Request] == "" {
			j.fail(asked, "the request %s was answered, but it was not open", e.Request)
		}
		tool := j.tools[e.Request]
		delete(j.open, e.Request)
		delete(j.tools, e.Request)
		m, _ := j.truth.Member(e.Member)
		ruled := e.By == "" && (m.PermissionMode == "bypassPermissions" ||
			slices.ContainsFunc(j.truth.Team().Rules, func(r team.Rule) bool {
				return r.Rule == tool && (r.Member == "" || r.Member == e.Member)
			}))
		if e.Outcome == "allowed" && !ruled && (e.By == e.Member || e.By != team.User && e.By != j.truth.Team().Lead) {
			j.fail(asked, "%q allowed the request of %s", e.By, e.Member)
		}
	case *team.PlanSubmitted:
		j.open[e.Request] = e.Member
	case *team.PlanAnswered:
		if j.open[e.Request] == "" {
			j.fail(asked, "the plan %s was answered, but it was not open", e.Request)
		}
		delete(j.open, e.Request)
		if e.Approved && r.Actor != team.User && r.Actor != j.truth.Team().Lead {
			j.fail(asked, "%s approved the plan of %s", r.Actor, e.Member)
		}
	case *team.WorkSaved:
		if t := j.tasks[e.Task]; t != nil && t.status == team.InProgress && t.holder != e.Saved.Member {
			j.fail(workKept, "the work that %s saved of task %s is kept with it, but %s holds the task", e.Saved.Member,
				e.Task, t.holder)
		}
		j.newer(e)
	case *team.WorkRecorded:
		j.workRecorded(e)
	case *team.NoteSet, *team.NoteAppended, *team.NoteDeleted:
		j.note(r, e)
	case *team.LeadAttached:
		j.leadAttached(r, e)
	case *team.LeadLost:
		j.leadLost(r, e)
	case *team.MemberStopped:
		j.end(e.Member)
	case *team.MemberFailed:
		j.end(e.Member)
	case *team.ShutdownRequested:
		if e.Member == j.truth.Team().Lead {
			j.fail(crowned, "%s asked the lead to shut down", r.Actor)
		}
	case *team.MemberDetached:
		j.host[e.Member] = ""
	case *team.MemberAttached:
		if had := j.host[e.Member]; had != "" {
			j.fail(leases, "%s was assigned to %s while %s had it", e.Member, e.Host, had)
		}
		j.host[e.Member] = e.Host
		m, _ := j.truth.Member(e.Member)
		if h := j.w.hostNamed(e.Host); h != nil && m.Host != "" && h.taken != m.Host && !j.again {
			j.fail(leases, "%s took %s from %s without having found it dead", e.Host, e.Member, m.Host)
		}
	}
}

// pausedInOrder checks what a host left behind that says it has ended in order.
func (j *judge) pausedInOrder(h *host) {
	for _, s := range h.slots {
		if s.session != nil && s.session.of.alive {
			j.fail(inOrder, "%s ended, and the session of %s runs", h.id(), s.member)
		}
	}
	for _, m := range j.truth.Members() {
		if m.Status.Running() && m.Host == h.id() {
			j.fail(inOrder, "%s ended, and has %s", h.id(), m.Name)
		}
	}
}

func (j *judge) end(member string) {
	j.lost[member] = true
	j.host[member] = ""
	if member == j.truth.Team().Lead {
		j.fail(crowned, "the lead was stopped")
	}
}

// sharesPaths returns the task in progress of another member in the same directory that has a path
// in common with the claimed one.
func (j *judge) sharesPaths(e *team.TaskClaimed) string {
	claimed, _ := j.truth.Task(e.Task)
	m, _ := j.truth.Member(e.Member)
	for t := range j.truth.Underway() {
		o, _ := j.truth.Member(t.Owner)
		if o.Name != m.Name && o.Isolation == m.Isolation && m.Isolation == "" && claimed.In == "" && t.In == "" &&
			team.PathsMeet(claimed.Paths, t.Holds) {
			return t.ID
		}
	}
	return ""
}

func (j *judge) task(r *team.Record, e team.Event) {
	at := func(id string) *taskBook {
		if t := j.tasks[id]; t != nil {
			return t
		}
		return &taskBook{}
	}
	leads := r.Actor == team.User || r.Actor == j.truth.Team().Lead
	switch e := e.(type) {
	case *team.TaskClaimed:
		j.claimed(at(e.Task), e)
	case *team.TaskCompleted:
		t := at(e.Task)
		if t.taken != "" && e.By == t.taken && e.By != j.truth.Team().Lead {
			j.fail(handedOn, "%s completed task %s after it was taken from it", e.By, e.Task)
		}
		leads = leads || len(e.Verified) > 0 && t.checks != nil // j.verification checks that
		if t.status != team.InProgress && !(leads && t.status == team.Pending) || t.holder != e.By && !leads {
			j.fail(claims, "%s completed task %s, but the task is %+v", e.By, e.Task, *t)
		}
		t.status, t.authors, t.checks = team.Completed, nil, nil
		if t.holder == e.By && !j.again {
			t.done = j.w.edited[e.By]
		}
	case *team.TaskReleased:
		at(e.Task).status = team.Pending
		at(e.Task).fence++
		if !strings.HasPrefix(r.Actor, team.Host("")) {
			at(e.Task).onlyFor = "" // the user reassigned it on purpose
		}
	case *team.TaskFailed:
		if t := at(e.Task); (t.status != team.InProgress || t.holder != e.By) && r.Events[0] == e {
			j.fail(claims, "%s failed task %s, but the task is %+v", e.By, e.Task, *t)
		}
		at(e.Task).status, at(e.Task).onlyFor = team.Pending, ""
		at(e.Task).fence++
	case *team.TaskDeleted:
		at(e.Task).status = team.Deleted
	case *team.TaskUpdated:
		if t := at(e.Task); e.Owner != nil && t.status == team.InProgress && t.holder != *e.Owner {
			t.status, t.taken = team.Pending, t.holder
			t.fence++
		}
		if looked, ok := j.reassigned[r.ID]; e.Owner != nil && ok {
			at(e.Task).looked = looked
		} else if e.Owner != nil {
			at(e.Task).onlyFor = "" // only the reassigning command looks for saved work
		}
	}
}

// claimed judges a claim of a task.
func (j *judge) claimed(t *taskBook, e *team.TaskClaimed) {
	if t.status != team.Pending || e.Fence <= t.fence {
		j.fail(claims, "%s claimed task %s under %d, but the task is %+v", e.Member, e.Task, e.Fence, *t)
	}
	if task, _ := j.truth.Task(e.Task); len(task.Blocked()) > 0 && task.WaitsForPath() == "" {
		j.fail(claims, "%s claimed task %s, which is blocked by %v", e.Member, e.Task, task.Blocked())
	}
	if by := j.sharesPaths(e); by != "" {
		j.fail(claims, "%s claimed task %s, and a path of it belongs to task %s", e.Member, e.Task, by)
	}
	if team := j.truth.Team(); j.lead.lost && e.Member != team.Lead {
		j.fail(nothing, "%s claimed task %s while there was no lead", e.Member, e.Task)
	} else if team.Status == "consolidating" {
		j.fail(nothing, "%s claimed task %s while the team was winding down", e.Member, e.Task)
	}
	j.begins(e.Task, e.Member)
	t.status, t.holder, t.fence, t.taken = team.InProgress, e.Member, e.Fence, ""
}

func (j *judge) message(r *team.Record, e team.Event) {
	switch e := e.(type) {
	case *team.MessageSent:
		m := e.Message
		if m.Seq != j.lastSeq+1 {
			j.fail(onceGiven, "message #%d follows #%d", m.Seq, j.lastSeq)
		}
		j.lastSeq = m.Seq
		if m.From == team.User && r.Actor != team.User {
			j.fail(crowned, "%s sent a message as the user", r.Actor)
		}
		to := m.Recipients
		if len(to) == 0 {
			to = []string{m.To}
		}
		for _, n := range m.News {
			j.news(m, to, n)
		}
		for _, name := range to {
			if j.lost[name] {
				j.fail(returned, "message #%d was sent to %s, which has ended", m.Seq, name)
			}
			l := &mailBook{command: r.ID, message: m}
			if j.lead.lost && m.From != "" && m.From != team.User && m.From != j.truth.Team().Lead {
				l.held = j.lead.losses
			}
			j.mail[mailKey{name, m.Seq}] = l
		}
	case *team.MessagesDelivered:
		lead := j.truth.Team().Lead
		m, _ := j.truth.Member(e.Member)
		for _, seq := range e.Seqs {
			key := mailKey{e.Member, seq}
			l := j.mail[key]
			switch {
			case l == nil || l.returned || l.delivered:
				j.fail(onceGiven, "%s received #%d, which did not wait for it: %+v", e.Member, seq, l)
				return
			case !(e.Member == lead && m.Agent == team.External) && !j.seen[seenKey{key, l.command}]:
				j.fail(notLost, "#%d counts as delivered, but %s has not read it", seq, e.Member)
			case j.waits(l):
				j.fail(held, "%s received #%d while there was no lead", e.Member, seq)
			}
			l.delivered = true
		}
	case *team.MessagesReturned:
		for _, seq := range e.Seqs {
			if l := j.mail[mailKey{e.Member, seq}]; l != nil {
				l.returned = true
				j.comesBack(r, e.Member, l)
			}
		}
	}
}

// taskNews is what news say of tasks.
var taskNews = regexp.MustCompile(`(?:^Task (\S+) was added|^\d+ tasks were added: ([^.]*))\.`)

// teamNews matches news of tasks and members, which the lead knows.
var teamNews = regexp.MustCompile(`added[.:]|joined the team|ha(s|ve) ended`)

// news checks what a message tells one of its recipients of tasks, members and notes. It is told
// once, with a message that starts a turn.
func (j *judge) news(m team.Message, to []string, n team.News) {
	switch {
	case m.Quiet || !slices.Contains(to, n.Member):
		j.fail(onceGiven, "#%d to %v has news for %s", m.Seq, to, n.Member)
	case n.Member == j.truth.Team().Lead && teamNews.MatchString(n.Text):
		j.fail(onceGiven, "#%d has news for the lead of what it knows: %s", m.Seq, n.Text)
	}
	j.noteNews(m, n)
	if found := taskNews.FindStringSubmatch(n.Text); found != nil {
		for task := range strings.SplitSeq(found[1]+found[2], ", ") {
			if j.told[n.Member+"/"+task] {
				j.fail(onceGiven, "#%d tells %s again of task %s", m.Seq, n.Member, task)
			}
			j.told[n.Member+"/"+task] = true
		}
	}
}

// workRecorded checks the record of what a task did. It must contain everything that the holder did
// before it completed the task.
func (j *judge) workRecorded(e *team.WorkRecorded) {
	t := j.tasks[e.Task]
	if t == nil || j.again {
		return
	}
	if e.Work.Done && t.status == team.Completed && t.holder == e.Work.Member && changesOf(e.Work.Commit) < t.done {
		j.fail(recorded, "the record of task %s ends with %q, but %s had made %d changes when it completed it", e.Task,
			e.Work.Commit, t.holder, t.done)
	}
}

// comesBack checks that the sender learns that its message was returned.
func (j *judge) comesBack(r *team.Record, member string, l *mailBook) {
	m := l.message
	if m.Type != team.TypeMessage && m.Type != team.TypeBroadcast || m.Incarnation != 0 {
		return
	}
	for _, e := range r.Events {
		if s, ok := e.(*team.MessageSent); ok && strings.Contains(s.Message.Body,
			fmt.Sprintf("#%d from %s", m.Seq, m.From)) {
			return
		}
	}
	j.fail(returned, "no member was told that #%d from %s to %s was returned", m.Seq, m.From, member)
}

// afterwards checks the team after the record.
func (j *judge) afterwards(r *team.Record) {
	j.roll = j.truth.AppendMembers(j.roll[:0])
	for i, m := range j.roll { // members never leave the list
		now := sitting{m.Incarnation, m.Status.Running()}
		if i >= len(j.members) {
			j.members = append(j.members, now)
			continue
		}
		was := j.members[i]
		j.members[i] = now
		switch {
		case m.Incarnation != was.incarnation || !m.Status.Running():
			for request, of := range j.open {
				if of == m.Name && strings.HasPrefix(request, "permission") {
					j.fail(asked, "the session of %s ended with record %d, but its request %s stayed open", m.Name,
						r.Seq, request)
				}
			}
			if m.Status.Running() {
				continue
			}
			for request, of := range j.open {
				if of == m.Name {
					delete(j.open, request) // the plan of a member that ended
				}
			}
			if was.running {
				j.orphans(m.Name)
			}
		}
	}
}

// orphans checks that nothing waits for a member that ended.
func (j *judge) orphans(member string) {
	for key, l := range j.mail {
		if key.member == member && !l.delivered && !l.returned {
			j.fail(returned, "%s ended, but #%d still waits for it", member, key.seq)
		}
	}
	for id, t := range j.tasks {
		if t.holder == member && t.status == team.InProgress {
			j.fail(claims, "%s ended, but still holds task %s", member, id)
		}
	}
}

// starts registers a running session.
func (j *judge) starts(a *session) {
	j.live = slices.DeleteFunc(j.live, func(b *session) bool { return !b.of.alive })
	for _, b := range j.live {
		if b.member.Name == a.member.Name && b.member.Incarnation == a.member.Incarnation {
			j.fail(leases, "session %d of %s runs twice, on %s and on %s", a.member.Incarnation, a.member.Name,
				b.slot.host.id(), a.slot.host.id())
		}
	}
	j.live = append(j.live, a)
	j.w.logf("%s starts for %s, in %s with %v", a.of.name, a.slot.host.id(), a.context.id, a.context.seqs)
}

// reads checks a message that enters a context.
func (j *judge) reads(a *session, m team.Message, road string) {
	name := a.member.Name
	j.w.logf("%s reads #%d (%s)", a.of.name, m.Seq, road)
	l := j.mail[mailKey{name, m.Seq}]
	if l == nil || l.message.Body != m.Body {
		j.fail(onceGiven, "%s reads #%d, which is not in the history", name, m.Seq)
		return
	}
	// It is unknown whether a message behind the result of a tool survived a failed turn.
	again := road != byTool && a.failed && a.behind[m.Seq]
	if slices.Contains(a.context.seqs, m.Seq) && !again {
		j.fail(onceGiven, "%s reads #%d twice in one context", name, m.Seq)
	}
	if j.waits(l) {
		j.fail(held, "%s reads #%d while there is no lead", name, m.Seq)
	}
	if road == byTool {
		a.behind[m.Seq] = true
	} else if !a.behind[m.Seq] {
		last := &a.last
		if l.held != 0 { // a message that was not held came earlier
			last = &a.lastHeld
		}
		if m.Seq < *last {
			j.fail(onceGiven, "%s reads #%d after #%d", name, m.Seq, *last)
		}
		*last = m.Seq
	}
	if m.Incarnation != 0 && m.Incarnation != a.member.Incarnation {
		j.fail(onceGiven, "session %d of %s reads #%d, which is for session %d", a.member.Incarnation, name, m.Seq,
			m.Incarnation)
	}
	j.seen[seenKey{mailKey{name, m.Seq}, l.command}] = true
}

// assigned registers that a member was told that a task is its own.
func (j *judge) assigned(member, task string) {
	for key, l := range j.mail {
		if key.member == member && l.message.Type == team.TypeTaskAssignment && l.message.Ref == task {
			j.seen[seenKey{key, l.command}] = true
		}
	}
}

// edits checks a session that changes a file.
func (j *judge) edits(a *session) {
	if !j.truth.Writes(a.member.Name) {
		j.fail(approval, "%s changes a file before its plan is approved", a.member.Name)
	}
}
