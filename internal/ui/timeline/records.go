package timeline

import (
	"iter"
	"slices"
	"strings"

	"cadre/internal/team"
)

// task is what the timeline tracks of a task.
type task struct {
	status   team.TaskStatus
	owner    string
	assigned bool // another actor set the owner, who keeps the task when it fails
	role     string
	retries  int64
	failures int64
	failure  bool     // its last attempt failed
	forced   bool     // it can start though a blocker is open, as a task with When always does
	waits    []string // its blockers
	blocks   []string

	counted *load // where it counts as pending; nil for nowhere
	blocked bool  // whether it counts as blocked
	holder  *lane // the lane that has it in progress
}

func (k *task) assign(owner string) { k.owner, k.assigned = owner, owner != "" }

func (k *task) open() bool { return k.status == team.Pending || k.status == team.InProgress }

// member handles an event about a member. It reports whether it is one.
func (t *Timeline) member(e team.Event, r *team.Record) bool {
	switch e := e.(type) {
	case *team.TeamCreated:
		t.lead = e.Lead.Name
		t.join(e.Lead)
	case *team.TeamRestored:
		t.agentLeads = e.Team.LeadAgent
		t.restore(e.Team.Lead, e.Members, slices.Values(e.Tasks), e.Permissions, e.Messages)
	case *team.MemberSpawned:
		t.join(e.Member)
	case *team.MemberReturned:
		if l := t.named[e.Member.Name]; l != nil && !l.status.Running() && l.name != t.lead {
			l.status, l.role, l.plan = e.Member.Status, e.Member.Role, e.Member.Plan.State == "submitted"
			t.touch(l)
		}
	case *team.MemberDescribed:
		t.role(e.Member, e.Role)
	case *team.MemberRevised:
		if slices.Contains(e.Fields, "role") {
			t.role(e.Member.Name, e.Member.Role)
		}
		if l := t.named[e.Member.Name]; l != nil && slices.Contains(e.Fields, "agent") {
			l.runs(e.Member.Agent)
			t.touch(l)
		}
	case *team.MemberStarted:
		t.alive(e.Member, func(l *lane) {
			l.limited = false
			if l.status == team.Spawning {
				l.status = team.Active
			}
		})
	case *team.MemberStatusChanged:
		t.alive(e.Member, func(l *lane) {
			if e.Status == team.Active && l.status != team.Active { // the interrupted turn is over
				l.interrupted = false
			}
			if l.status != team.ShuttingDown {
				l.status = e.Status
			}
			l.busy, l.limited = e.Status == team.Active, e.Trouble != ""
			if e.Trouble != "" {
				l.mark(Retry, t.last, r.Seq)
			}
			if e.Status != team.Active {
				l.tools = 0
			}
		})
	case *team.MemberTroubled:
		t.alive(e.Member, func(l *lane) { l.trouble(e, t.last, r.Seq) })
	case *team.RateLimited:
		if e.Ended {
			t.alive(e.By, func(l *lane) {
				l.trouble(&team.MemberTroubled{Member: e.By, Setbacks: 1}, t.last, r.Seq)
			})
		}
	case *team.InterruptRequested:
		t.alive(e.Member, func(l *lane) { l.interrupted = true })
	case *team.MemberDetached:
		t.alive(e.Member, func(l *lane) {
			l.status = team.Spawning
			l.ended()
		})
	case *team.MemberStopped:
		t.end(e.Member, team.Stopped)
	case *team.MemberFailed:
		if l := t.named[e.Member]; l != nil {
			l.mark(Failure, t.last, r.Seq)
		}
		t.end(e.Member, team.Failed)
	case *team.ShutdownAnswered:
		if e.Approved {
			t.alive(e.Member, func(l *lane) { l.status = team.ShuttingDown })
		}
	default:
		return false
	}
	return true
}

func (l *lane) trouble(e *team.MemberTroubled, at team.Time, seq int64) {
	l.limited = e.Setbacks > 0
	switch {
	case e.Setbacks == 0 && l.status == team.Blocked:
		l.status = team.Idle
	case e.Setbacks > 0:
		l.mark(Retry, at, seq)
		if l.status == team.Active || l.status == team.Idle {
			l.status = team.Blocked
		}
	}
}

// ended resets what belonged to the session that ended.
func (l *lane) ended() {
	l.session++
	l.requests, l.tools, l.busy, l.interrupted = 0, 0, false, false
}

func (t *Timeline) role(member, role string) {
	if l := t.named[member]; l != nil && role != "" {
		l.role = role
		t.touch(l)
	}
}

// alive changes the lane of a member that has not ended.
func (t *Timeline) alive(member string, change func(*lane)) {
	if l := t.named[member]; l != nil && l.status.Running() {
		change(l)
		t.touch(l)
	}
}

func (t *Timeline) end(member string, status team.MemberStatus) {
	if l := t.named[member]; l != nil {
		l.status, l.limited = status, false
		l.ended()
		t.touch(l)
	}
}

// request handles an event about a request or a plan. It reports whether it is one.
func (t *Timeline) request(e team.Event, r *team.Record) bool {
	switch e := e.(type) {
	case *team.PermissionRequested:
		t.ask(e.Permission)
	case *team.PermissionAnswered:
		if a, is := t.asked[e.Request]; is {
			delete(t.asked, e.Request)
			if a.session == a.lane.session {
				a.lane.requests--
				t.touch(a.lane)
			}
		}
	case *team.PlanSubmitted:
		if l := t.named[e.Member]; l != nil {
			l.plan = true
			l.mark(Plan, t.last, r.Seq)
			t.touch(l)
		}
	case *team.PlanAnswered:
		if l := t.named[e.Member]; l != nil {
			l.plan = false
			t.touch(l)
		}
	case *team.MessageSent:
		if l := t.named[e.Message.From]; l != nil && e.Message.Asks() && t.toLead(&e.Message) &&
			t.questions[e.Message.Seq] == nil {
			t.question(e.Message.Seq, l)
		}
	case *team.MessagesDelivered:
		t.read(e.Member, e.Seqs)
		t.alive(e.Member, func(l *lane) {
			if l.status == team.Idle || l.shell { // the message that it waited for
				l.interrupted = false
			}
		})
	case *team.MessagesReturned:
		t.read(e.Member, e.Seqs)
	case *team.LeadAttached:
		t.agentLeads, t.turned = e.Agent, true
	default:
		return false
	}
	return true
}

// toLead reports whether the message goes to the lead.
func (t *Timeline) toLead(msg *team.Message) bool {
	if len(msg.Recipients) > 0 {
		return slices.Contains(msg.Recipients, t.lead)
	}
	return msg.To == t.lead
}

// question counts a question that the lead has not read.
func (t *Timeline) question(seq int64, l *lane) {
	if t.questions == nil {
		t.questions = map[int64]*lane{}
	}
	t.questions[seq] = l
	l.questions++
	t.touch(l)
}

// read takes messages out of the inbox of a member.
func (t *Timeline) read(member string, seqs []int64) {
	if member != t.lead || len(t.questions) == 0 {
		return
	}
	for _, seq := range seqs {
		if l := t.questions[seq]; l != nil {
			delete(t.questions, seq)
			l.questions--
			t.touch(l)
		}
	}
}

func (t *Timeline) ask(p team.Permission) {
	l := t.named[p.Member]
	if l == nil {
		return
	}
	if t.asked == nil {
		t.asked = map[string]asked{}
	}
	t.asked[p.Request] = asked{l, l.session}
	l.requests++
	t.touch(l)
}

// task handles an event about a task.
func (t *Timeline) task(e team.Event, r *team.Record) {
	switch e := e.(type) {
	case *team.TaskCreated:
		t.create(e.Task)
	case *team.TaskUpdated:
		t.update(e)
	case *team.TaskExpanded:
		if k := t.tasks[e.Task]; k != nil {
			t.link(e.Task, with(k.waits, e.Tasks, nil))
		}
	case *team.TaskRevised:
		t.change(e.Task.ID, func(k *task) { k.revise(&e.Task, e.Fields) })
	case *team.TaskClaimed:
		t.change(e.Task, func(k *task) { k.status, k.owner, k.failure = team.InProgress, t.known(e.Member), false })
		if l := t.named[e.Member]; l != nil && l.status == team.Idle && !l.external {
			l.status, l.interrupted = team.Active, false
			t.touch(l)
		}
	case *team.TaskReleased:
		t.change(e.Task, func(k *task) {
			if k.failure || k.status == team.Completed {
				k.failures = 0
			}
			k.status, k.failure = team.Pending, false
			k.assign(t.known(e.Owner))
		})
	case *team.TaskRolledBack:
		t.change(e.Task, func(k *task) {
			if k.status != team.Deleted {
				k.status, k.failure, k.failures = team.Pending, false, 0
				k.assign(t.known(e.Owner))
			}
		})
	case *team.TaskFailed:
		if l := t.named[e.By]; l != nil {
			l.mark(Failure, t.last, r.Seq)
		}
		t.change(e.Task, func(k *task) {
			k.status, k.failure = team.Pending, true
			if k.failures++; !k.assigned {
				k.owner = ""
			}
		})
		t.free(e.Unblocked)
	case *team.TaskSubmitted:
		t.change(e.Task, func(k *task) { k.status, k.failure, k.assigned = team.Pending, false, true })
	case *team.TaskCompleted:
		t.change(e.Task, func(k *task) { k.status, k.failure = team.Completed, false })
		t.free(e.Unblocked)
	case *team.TaskSkipped:
		t.change(e.Task, func(k *task) { k.status, k.failure = team.Completed, false })
		t.free(e.Unblocked)
	case *team.TaskDeleted:
		t.change(e.Task, func(k *task) { k.status = team.Deleted })
		t.free(e.Unblocked)
	}
}

// known returns the name as its lane has it.
func (t *Timeline) known(name string) string {
	if l := t.named[name]; l != nil {
		return l.name
	}
	return strings.Clone(name)
}

func (t *Timeline) create(of team.Task) {
	if t.tasks == nil {
		t.tasks = map[string]*task{}
	}
	if old := t.tasks[of.ID]; old != nil {
		return
	}
	// The texts are parts of the record's line. Copies are kept, so that the record is not kept.
	t.tasks[strings.Clone(of.ID)] = &task{status: team.TaskStatus(strings.Clone(string(of.Status))),
		owner: t.known(of.Owner), assigned: of.Assigned, role: strings.Clone(of.Role), retries: of.Retries,
		failures: of.Failures, failure: of.Failure != ""}
	t.link(of.ID, of.BlockedBy)
}

// update changes a task as the core does: a new owner takes the task from the member that works on
// it.
func (t *Timeline) update(e *team.TaskUpdated) {
	t.change(e.Task, func(k *task) {
		if e.Run != nil {
			k.failures, k.failure = 0, false
		}
		if e.Owner != nil {
			if k.status == team.InProgress && k.owner != *e.Owner {
				k.status = team.Pending
			}
			k.assign(t.known(*e.Owner))
		}
	})
	if k := t.tasks[e.Task]; k != nil && len(e.AddBlockedBy)+len(e.RemoveBlockedBy) > 0 {
		t.link(e.Task, with(k.waits, e.AddBlockedBy, e.RemoveBlockedBy))
	}
	for _, id := range e.AddBlocks {
		if k := t.tasks[id]; k != nil {
			t.link(id, with(k.waits, []string{e.Task}, nil))
		}
	}
	for _, id := range e.RemoveBlocks {
		if k := t.tasks[id]; k != nil {
			t.link(id, with(k.waits, nil, []string{e.Task}))
		}
	}
}

func with(ids, added, removed []string) []string {
	var all []string
	for _, id := range append(slices.Clip(ids), added...) {
		if !slices.Contains(removed, id) && !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	return all
}

func (k *task) revise(to *team.Task, fields []string) {
	for _, field := range fields {
		switch field {
		case "role":
			k.role = strings.Clone(to.Role)
		case "retries":
			k.retries = to.Retries
		}
	}
	k.failures, k.failure = 0, false
}

// link sets the blockers of a task.
func (t *Timeline) link(id string, blockers []string) {
	k := t.tasks[id]
	if k == nil {
		return
	}
	for _, b := range k.waits {
		if blocker := t.tasks[b]; blocker != nil {
			blocker.blocks = slices.DeleteFunc(blocker.blocks, func(w string) bool { return w == id })
		}
	}
	k.waits, k.forced = nil, false
	for _, b := range blockers { // copies, as in create
		k.waits = append(k.waits, strings.Clone(b))
		if blocker := t.tasks[b]; blocker != nil {
			blocker.blocks = append(blocker.blocks, strings.Clone(id))
		}
	}
	t.count(k)
}

// free marks tasks as no longer blocked.
func (t *Timeline) free(ids []string) {
	for _, id := range ids {
		if k := t.tasks[id]; k != nil {
			k.forced = true
			t.count(k)
		}
	}
}

// change changes a task. If the task became completed or open again, it updates the tasks that it
// blocks.
func (t *Timeline) change(id string, f func(*task)) {
	k := t.tasks[id]
	if k == nil {
		return
	}
	before := k.open()
	f(k)
	t.count(k)
	if k.open() != before {
		for _, id := range k.blocks {
			if w := t.tasks[id]; w != nil {
				w.forced = false
				t.count(w)
			}
		}
	}
}

// count counts the task where it belongs now: in progress for a member, or pending for a member or
// a role. A task that is out of retries waits for a person, not for a member.
func (t *Timeline) count(k *task) {
	if k.counted != nil {
		t.weigh(k.counted, k.blocked, -1)
	}
	if k.holder != nil {
		k.holder.held--
		t.touch(k.holder)
	}
	k.counted, k.holder = nil, nil
	owner := t.named[k.owner]
	switch {
	case k.status == team.InProgress && owner != nil:
		k.holder = owner
		owner.held++
		t.touch(owner)
	case k.status != team.Pending || k.failure && k.failures > k.retries:
	case k.owner == "":
		k.counted = t.pools[k.role]
		if k.counted == nil {
			if t.pools == nil {
				t.pools = map[string]*load{}
			}
			k.counted = &load{}
			t.pools[k.role] = k.counted
		}
	case owner != nil:
		k.counted = &owner.own
		t.touch(owner)
	}
	if k.counted != nil {
		k.blocked = !k.forced && slices.ContainsFunc(k.waits, func(id string) bool {
			blocker := t.tasks[id]
			return blocker != nil && blocker.open()
		})
		t.weigh(k.counted, k.blocked, +1)
	}
}

// weigh adds to one of the two counts. Lanes depend on whether a count is zero.
func (t *Timeline) weigh(l *load, blocked bool, n int) {
	of := &l.ready
	if blocked {
		of = &l.blocked
	}
	before := *of > 0
	*of += n
	t.turned = t.turned || before != (*of > 0)
}

// Restore continues the lanes from a state whose earlier records are lost. Earlier spans stay.
func (t *Timeline) Restore(s *team.State) {
	if s.Seq() <= t.through || !s.Exists() {
		return
	}
	t.through = s.Seq()
	of := s.Team()
	t.clock(of.UpdatedAt)
	t.agentLeads = of.LeadAgent
	t.restore(of.Lead, s.Members(), s.Tasks(), s.Permissions(), s.Inbox(of.Lead))
	t.settle()
}

func (t *Timeline) restore(lead string, members []team.Member, tasks iter.Seq[team.Task], open []team.Permission,
	mail []team.Message) {
	t.lead, t.tasks, t.pools, t.asked, t.questions = lead, nil, nil, nil, nil
	var inbox []int64 // of the lead
	for _, m := range members {
		if m.Name == lead {
			inbox = m.Inbox
		}
		l := t.named[m.Name]
		if l == nil {
			t.join(m)
			continue
		}
		l.ended()
		l.runs(m.Agent)
		l.role, l.status, l.held, l.own, l.questions, l.interrupted = m.Role, m.Status, 0, load{}, 0, m.Interrupt != 0
		l.plan, l.limited = m.Plan.State == "submitted", limited(m)
		t.touch(l)
	}
	for k := range tasks {
		t.create(k)
	}
	for id, k := range t.tasks { // a task may be listed before its blockers
		t.link(id, k.waits)
	}
	for _, p := range open {
		t.ask(p)
	}
	for i := range mail {
		if l := t.named[mail[i].From]; l != nil && mail[i].Asks() && slices.Contains(inbox, mail[i].Seq) {
			t.question(mail[i].Seq, l)
		}
	}
	t.turned = true
}
