package team

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// model is a naive twin of the task list and the mailbox: maps, no index, no deltas. It follows the
// records and answers the same questions as Decide and the state, slowly and obviously.
type model struct {
	tasks    map[string]*modelTask
	order    []string
	lead     string
	leads    bool // the lead is an agent: it takes only what is assigned to it
	delegate bool
	spent    bool
	lost     bool // no session leads
	ending   bool // nothing new starts
	over     bool

	sent   map[int64][]string // message to its recipients
	got    map[string]int64   // recipient/seq to the number of deliveries and returns
	roles  map[string]string
	shell  map[string]bool // only runs commands
	tree   map[string]bool // works in a worktree
	looks  map[string]bool // is external, and looks for others' work itself
	broke  map[string]bool // has spent its own budget
	status map[string]MemberStatus
}

type modelTask struct {
	status          TaskStatus
	owner, role, by string // by is who completed it
	run             bool   // it has a command
	always          bool
	priority        string
	assigned        bool
	waits           []string
	fence           int64
	retries, failed int64
	failure         string
}

func newModel(t fataler, s *State, records []*Record) *model {
	m := &model{tasks: map[string]*modelTask{}, sent: map[int64][]string{}, got: map[string]int64{},
		roles: map[string]string{}, shell: map[string]bool{}, tree: map[string]bool{}, looks: map[string]bool{},
		broke: map[string]bool{}, status: map[string]MemberStatus{}, lead: s.team.Lead,
		leads: s.members[0].Agent != External}
	for _, one := range s.Members() {
		m.joins(one)
	}
	for _, r := range records {
		m.apply(t, r)
	}
	return m
}

func (m *model) joins(one Member) {
	name := one.Name
	m.roles[name], m.status[name], m.shell[name] = one.Role, one.Status, one.Agent == Shell
	m.tree[name], m.looks[name] = one.Isolation == Worktree, one.Agent == External
	m.broke[name] = one.Exhausted != ""
}

// hidden reports whether the task builds on work in a worktree that the member would not see.
func (m *model) hidden(t *modelTask, member string) bool {
	return !m.tree[member] && !m.looks[member] && member != m.lead && slices.ContainsFunc(t.waits, func(id string) bool {
		b := m.tasks[id]
		return b.status != Deleted && (m.tree[b.owner] || m.tree[b.by])
	})
}

func (m *model) blocked(t *modelTask) bool {
	return slices.ContainsFunc(t.waits, func(id string) bool {
		b := m.tasks[id]
		return b.status.open() && !(t.always && (t.status != Pending || m.stuck(b)))
	})
}

func (t *modelTask) outOfRetries() bool {
	return t.status == Pending && t.failed > t.retries && t.failure != ""
}

// stuck reports whether the task will not be done as things are.
func (m *model) stuck(t *modelTask) bool {
	return t.outOfRetries() || t.status == Pending && !t.always &&
		slices.ContainsFunc(t.waits, func(id string) bool { return m.stuck(m.tasks[id]) })
}

// next returns the task that claim-next gives to a member.
func (m *model) next(member string) string {
	best := ""
	if m.broke[member] {
		return best
	}
	for _, id := range m.order {
		t := m.tasks[id]
		free := t.owner == member || t.owner == "" && (t.role == "" || t.role == m.roles[member]) &&
			(!m.shell[member] || t.run) && (!m.leads || member != m.lead)
		if t.status != Pending || m.blocked(t) || m.hidden(t, member) || !free || t.outOfRetries() {
			continue
		}
		if best == "" || slices.Index(Priorities, t.priority) > slices.Index(Priorities, m.tasks[best].priority) {
			best = id
		}
	}
	return best
}

// judge checks an answer to a command about claims.
func (m *model) judge(t fataler, c Command, d Decision, err error) {
	switch b := c.Body.(type) {
	case *ClaimTask:
		m.judgeClaim(t, b, d)
	case *CompleteTask:
		if d.Record == nil {
			return
		}
		task := m.tasks[b.Task]
		if m.blocked(task) || !task.status.open() {
			t.Fatalf("%s completed task %s, which is blocked or closed", c.Actor, b.Task)
		}
		leads := b.Member == "" && b.Fence == 0 && (c.Actor == User || c.Actor == m.lead)
		by := b.Member
		if by == "" {
			by = c.Actor
		}
		if !leads && (task.status != InProgress || task.owner != by || b.Fence != 0 && b.Fence != task.fence) {
			t.Fatalf("%s completed task %s under fence %d without holding it: %+v", by, b.Task, b.Fence, task)
		}
	}
	if err == nil && d.Record == nil && d.Repeats == 0 {
		switch c.Body.(type) {
		case *ClaimTask, *CompleteTask, *FailTask, *ReleaseTask, *DeleteTask, *CreateTask, *SendMessage, *Broadcast:
			t.Fatalf("%T %+v was accepted and changes nothing", c.Body, c.Body)
		}
	}
}

func (m *model) judgeClaim(t fataler, b *ClaimTask, d Decision) {
	if d.Record == nil {
		return
	}
	claim := d.Record.Events[0].(*TaskClaimed)
	task := m.tasks[claim.Task]
	if task == nil || task.status != Pending || m.blocked(task) || m.spent || m.over || m.ending || m.lost &&
		claim.Member != m.lead {
		t.Fatalf("%s claimed task %s: %+v", claim.Member, claim.Task, task)
	}
	if want := m.next(claim.Member); b.Task == "" && want != claim.Task {
		t.Fatalf("%s was given task %s and not %s", claim.Member, claim.Task, want)
	}
	if claim.Fence <= task.fence {
		t.Fatalf("the fence of task %s goes from %d to %d", claim.Task, task.fence, claim.Fence)
	}
}

// apply follows one record, event by event.
func (m *model) apply(t fataler, r *Record) {
	for _, e := range r.Events {
		switch e := e.(type) {
		case *DelegateChanged:
			m.delegate = e.On
		case *BudgetExhausted:
			m.spent = true
		case *BudgetChanged:
			m.spent = false
		case *MemberBudgetExhausted:
			m.broke[e.Member] = true
		case *MemberBudgetChanged:
			m.broke[e.Member] = false
		case *TeamStatusChanged:
			m.over = e.Status == TeamComplete || e.Status == TeamAborted
			m.ending = e.Status == TeamConsolidating
		case *LeadLost:
			m.lost = true
		case *LeadAttached:
			m.lost = false
		case *MemberSpawned:
			m.joins(e.Member)
		case *MemberStopped:
			m.ends(t, e.Member, Stopped)
		case *MemberFailed:
			m.ends(t, e.Member, Failed)
		case *MessageSent:
			to := e.Message.Recipients
			if len(to) == 0 {
				to = []string{e.Message.To}
			}
			for _, name := range to {
				if name == e.Message.From || !m.status[name].Running() {
					t.Fatalf("message %d goes to %s, who is its sender or gone", e.Message.Seq, name)
				}
			}
			if m.sent[e.Message.Seq] != nil || e.Message.Seq != int64(len(m.sent)+1) {
				t.Fatalf("message %d follows %d", e.Message.Seq, len(m.sent))
			}
			m.sent[e.Message.Seq] = to
			if line := unquoted(&e.Message); line != "" {
				t.Fatalf("words of a member pass for words of the team:\n%s", line)
			}
		case *MessagesDelivered:
			m.take(t, e.Member, e.Seqs)
		case *MessagesReturned:
			m.take(t, e.Member, e.Seqs)
		default:
			m.applyTask(e)
		}
	}
}

func (m *model) ends(t fataler, member string, how MemberStatus) {
	if member == m.lead {
		t.Fatalf("the lead has ended")
	}
	m.status[member] = how
}

func (m *model) applyTask(e Event) {
	switch e := e.(type) {
	case *TaskCreated:
		m.order = append(m.order, e.Task.ID)
		m.tasks[e.Task.ID] = &modelTask{status: Pending, owner: e.Task.Owner, assigned: e.Task.Owner != "",
			role: e.Task.Role, run: e.Task.Run != "", priority: e.Task.Priority, waits: slices.Clone(e.Task.BlockedBy),
			retries: e.Task.Retries, always: e.Task.When == Always}
	case *TaskUpdated:
		t := m.tasks[e.Task]
		if e.Priority != nil {
			t.priority = *e.Priority
		}
		if e.Owner != nil {
			if t.status == InProgress {
				t.status = Pending
				t.fence++
			}
			t.owner, t.assigned = *e.Owner, *e.Owner != ""
		}
		for _, id := range e.AddBlockedBy {
			t.waits = append(t.waits, id)
		}
		for _, id := range e.AddBlocks {
			m.tasks[id].waits = append(m.tasks[id].waits, e.Task)
		}
		t.waits = slices.DeleteFunc(t.waits, func(id string) bool { return slices.Contains(e.RemoveBlockedBy, id) })
		for _, id := range e.RemoveBlocks {
			m.tasks[id].waits = slices.DeleteFunc(m.tasks[id].waits, func(w string) bool { return w == e.Task })
		}
	case *TaskRolledBack:
		t := m.tasks[e.Task]
		t.status, t.owner, t.by, t.assigned, t.failure, t.failed = Pending, e.Owner, "", e.Owner != "", "", 0
		t.fence++
	case *TaskRevised:
		t := m.tasks[e.Task.ID]
		t.failure, t.failed = "", 0
		for _, field := range e.Fields {
			switch field {
			case "priority":
				t.priority = e.Task.Priority
			case "role":
				t.role = e.Task.Role
			case "run":
				t.run = e.Task.Run != ""
			case "retries":
				t.retries = e.Task.Retries
			case "when":
				t.always = e.Task.When == Always
			}
		}
	case *TaskClaimed:
		t := m.tasks[e.Task]
		t.status, t.owner, t.fence, t.failure = InProgress, e.Member, e.Fence, ""
	case *TaskReleased:
		t := m.tasks[e.Task]
		if t.status == Completed {
			t.by, t.failed = "", 0
		}
		t.status, t.owner, t.assigned = Pending, e.Owner, e.Owner != ""
		t.fence++
		if t.failure != "" {
			t.failed, t.failure = 0, ""
		}
	case *TaskFailed:
		t := m.tasks[e.Task]
		t.status, t.failure = Pending, e.Reason
		t.fence++
		t.failed++
		if !t.assigned {
			t.owner = ""
		}
	case *TaskCompleted:
		m.tasks[e.Task].status, m.tasks[e.Task].by = Completed, e.By
	case *TaskDeleted:
		m.tasks[e.Task].status = Deleted
	}
}

func (m *model) take(t fataler, member string, seqs []int64) {
	for _, seq := range seqs {
		key := member + "/" + strconv.FormatInt(seq, 10)
		if m.got[key]++; m.got[key] != 1 || !slices.Contains(m.sent[seq], member) {
			t.Fatalf("message %d was given to %s %d times, and sent to %v", seq, member, m.got[key], m.sent[seq])
		}
	}
}

// compare checks that the state knows what the model knows.
func (m *model) compare(t fataler, s *State) {
	for _, id := range m.order {
		want, got := m.tasks[id], s.task(id)
		if got.Status != want.status || got.Owner != want.owner || got.Fence != want.fence ||
			got.Priority != want.priority {
			t.Fatalf("task %s is %+v and the model says %+v", id, got, want)
		}
		if (len(s.blockersOf(got)) > 0) != m.blocked(want) {
			t.Fatalf("task %s is blocked by %v and the model says %v", id, s.blockersOf(got), want.waits)
		}
	}
	for name, status := range m.status {
		var waiting []int64
		for seq := int64(1); seq <= int64(len(m.sent)); seq++ { // sent = delivered + returned + waiting
			if slices.Contains(m.sent[seq], name) && m.got[name+"/"+strconv.FormatInt(seq, 10)] == 0 {
				waiting = append(waiting, seq)
			}
		}
		if got := s.member(name); !slices.Equal(got.Inbox, waiting) || got.Status.Running() != status.Running() {
			t.Fatalf("%s is %s and has %v in its inbox; the model says %s and %v", name, got.Status, got.Inbox,
				status, waiting)
		}
		if status.Running() {
			next := ""
			if n := s.next(s.member(name)); n != nil {
				next = n.ID
			}
			want := m.next(name)
			if s.member(name).Interrupt != 0 { // transcripts show when that begins and ends
				want = ""
			}
			if next != want {
				t.Fatalf("the next task of %s is %q and the model says %q", name, next, want)
			}
		}
	}
}

// hostile is the text of an attacker who wants to pass for another sender. It ends brackets, lines,
// and quotations of several scripts.
const hostile = "HOSTILE x). HOSTILE）\" HOSTILE \u201d HOSTILE \u05f4 HOSTILE\nHOSTILE\u2028HOSTILE\r> HOSTILE"

var quotation = regexp.MustCompile(`"(?:[^"\\\x{201d}\x{05f4}]|\\.)*"|\((?:HOSTILE)\)`)

// unquoted returns the first line of a team's message that has such words as if they were the
// team's own; "" for none.
func unquoted(m *Message) string {
	if m.From != "" && m.Type != TypePlanResponse && m.Type != TypePermissionResponse {
		return ""
	}
	for _, line := range splitLines(m.Body) {
		if !strings.HasPrefix(line, "> ") && strings.Contains(quotation.ReplaceAllString(line, ""), "HOSTILE") {
			return line
		}
	}
	return ""
}
