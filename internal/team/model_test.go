package team

import (
	"maps"
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
	notes  map[string]modelNote
}

// modelNote is a note, with everything that was said of it.
type modelNote struct {
	text string
	seq  int64
	by   []string // who changed it, in order
	at   []int64  // the numbers of these changes
}

type modelTask struct {
	status          TaskStatus
	owner, role, by string // by is who completed it
	run             bool   // it has a command
	always          bool   // it can run although a blocker has failed
	onFailure       bool   // and only then
	demands         bool   // its completion must be examined
	limit           int64
	misfits, fails  int64 // rejections of the present attempt
	priority        string
	assigned        bool
	waits           []string
	paths, holds    []string
	fence           int64
	retries, failed int64
	failure, failer string

	each      *ForEach
	expanded  bool
	of        string
	item      string
	verify    *Verify
	workers   []string // who had it in progress since it was last completed, where others verify it
	author    []string // who did what others verify now; nil for a task that they do not
	submitted []string // the verifications of it
	verifies  string   // the task that it verifies
	verdict   string
	rejected  int64 // how often the present attempt was sent back by others
}

func newModel(t fataler, s *State, records []*Record) *model {
	m := &model{tasks: map[string]*modelTask{}, sent: map[int64][]string{}, got: map[string]int64{},
		roles: map[string]string{}, shell: map[string]bool{}, tree: map[string]bool{}, looks: map[string]bool{},
		broke: map[string]bool{}, status: map[string]MemberStatus{}, notes: map[string]modelNote{}, lead: s.team.Lead,
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
	return !m.tree[member] && !m.looks[member] && member != m.lead && m.onTree(t)
}

// onTree reports whether the task builds on work in a worktree. The work of a group is that of the
// tasks for which it waits.
func (m *model) onTree(t *modelTask) bool {
	return slices.ContainsFunc(t.waits, func(id string) bool {
		b := m.tasks[id]
		if b.each != nil {
			return b.status != Deleted && m.onTree(b)
		}
		owner := b.owner
		if b.author != nil {
			owner = b.author[len(b.author)-1]
		}
		return b.status != Deleted && b.verifies == "" && (m.tree[owner] || m.tree[b.by])
	})
}

func (m *model) blocked(t *modelTask) bool {
	return slices.ContainsFunc(t.waits, func(id string) bool {
		b := m.tasks[id]
		return b.status.open() && !(t.always && t.author == nil && (t.status != Pending || m.stuck(b)))
	})
}

func (t *modelTask) outOfRetries() bool {
	retries := t.retries
	if t.each != nil && !t.each.Outside() { // a list cannot be made if it could not be made before
		retries = 0
	}
	return t.status == Pending && t.failed > retries && t.failure != ""
}

// stuck reports whether the task will not be done as things are.
func (m *model) stuck(t *modelTask) bool {
	if t.outOfRetries() || t.status != Pending {
		return t.outOfRetries()
	}
	return slices.ContainsFunc(t.waits, func(id string) bool {
		b := m.tasks[id]
		if t.author != nil { // only who verifies it matters
			return slices.Contains(t.submitted, id) && m.stuck(b)
		}
		return !t.always && m.stuck(b)
	})
}

// files are all files that the patterns of the random histories can tell apart.
var files = []string{"a/x", "a/y", "b/x", "b/z", "c", "c/x"}

// meets reports whether two lists of patterns cover a file in common.
func meets(a, b []string) bool {
	return slices.ContainsFunc(files, func(f string) bool {
		covers := func(p string) bool { return Covers(p, f) }
		return slices.ContainsFunc(a, covers) && slices.ContainsFunc(b, covers)
	})
}

// takes reports whether the member may take the task, once it waits for nothing.
func (m *model) takes(t *modelTask, member string) bool {
	if t.verify != nil && t.verify.By == member || t.verifies != "" && !m.mayVerify(t, member) {
		return false
	}
	return !m.broke[member] && !m.hidden(t, member) && (t.owner == member || t.owner == "" &&
		(t.role == "" || t.role == m.roles[member] || t.verifies != "" && t.role == member) &&
		(!m.shell[member] || t.run) && (!m.leads || member != m.lead))
}

// ahead returns the ids of the tasks for whose paths the task waits if the member is to take it;
// the member "" stands for whoever takes it.
func (m *model) ahead(id, member string) (all []string) {
	if m.tree[member] {
		return nil
	}
	var queue, waiting []string
	for _, id := range m.order {
		if t := m.tasks[id]; t.status == Pending && t.each == nil && !m.blocked(t) && !t.outOfRetries() &&
			!m.tree[t.owner] && t.author == nil {
			queue = append(queue, id)
		}
	}
	for _, one := range queue {
		t := m.tasks[one]
		var holders, behind []string
		for _, other := range m.order {
			if o := m.tasks[other]; o.status == InProgress && !m.tree[o.owner] && o.owner != t.owner &&
				meets(t.paths, o.holds) {
				holders = append(holders, other)
			}
		}
		for _, w := range waiting {
			if meets(t.paths, m.tasks[w].paths) {
				behind = append(behind, w)
			}
		}
		elsewhere := t.owner == "" && slices.ContainsFunc(slices.Collect(maps.Keys(m.tree)), func(name string) bool {
			return m.tree[name] && m.status[name].Running() && m.takes(t, name)
		})
		if one == id {
			switch {
			case elsewhere && member == "":
				return nil
			case member != "":
				holders = slices.DeleteFunc(holders, func(h string) bool { return m.tasks[h].owner == member })
			}
			if len(holders) == 0 {
				return behind
			}
			return holders
		}
		if len(holders)+len(behind) > 0 {
			waiting = append(waiting, one)
		}
	}
	return nil
}

// next returns the task that claim-next gives to a member.
func (m *model) next(member string) string {
	best := ""
	if m.broke[member] {
		return best
	}
	for _, id := range m.order {
		t := m.tasks[id]
		if t.status != Pending || t.each != nil || m.blocked(t) || !m.takes(t, member) || t.outOfRetries() ||
			t.author != nil ||
			len(m.ahead(id, member)) > 0 {
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
	case *SetNote:
		m.judgeNote(t, c, b.Key, b.IfSeq, d, err)
	case *DeleteNote:
		m.judgeNote(t, c, b.Key, b.IfSeq, d, err)
	case *AppendNote:
		m.judgeNote(t, c, b.Key, nil, d, err)
	case *CompleteTask:
		if d.Record == nil {
			return
		}
		task := m.tasks[b.Task]
		byHand := c.Actor == User && task.author != nil
		if task.demands && !b.Examined && !(byHand && b.Result == "") {
			t.Fatalf("%s completed task %s, and nothing examined it", c.Actor, b.Task)
		}
		if m.blocked(task) && !byHand || !task.status.open() || task.each != nil {
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
	if task == nil || task.each != nil || task.status != Pending || m.blocked(task) || task.author != nil || m.spent ||
		m.over || m.ending || m.lost &&
		claim.Member != m.lead || len(m.ahead(claim.Task, claim.Member)) > 0 {
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
	m.judgeExpansion(t, r)
	for _, e := range r.Events {
		switch e := e.(type) {
		case *NoteSet:
			m.write(t, e.Key, e.Text, r.Actor, e.Seq)
		case *NoteAppended:
			before := m.notes[e.Key].text
			if before != "" && !strings.HasSuffix(before, "\n") {
				before += "\n"
			}
			m.write(t, e.Key, before+e.Text, r.Actor, e.Seq)
		case *NoteDeleted:
			m.write(t, e.Key, "", r.Actor, e.Seq)
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
		case *TaskRejected:
			m.rejected(t, e, r)
			m.applyTask(e, r.Actor)
		case *TaskReleased:
			if by := m.tasks[e.Task]; r.Actor == User || r.Actor == m.lead && by.owner != m.lead {
				by.misfits, by.fails = 0, 0
			}
			m.applyTask(e, r.Actor)
		case *TaskCompleted:
			m.completes(t, e, r.Actor)
			m.applyTask(e, r.Actor)
		default:
			m.applyTask(e, r.Actor)
		}
	}
}

// demand sets what the completion of the task demands.
func (t *modelTask) demand(of *Task) {
	t.demands, t.limit = len(of.Schema) > 0 || of.Check != nil, 10
	if of.Check != nil && of.Check.Rounds > 0 {
		t.limit = of.Check.Rounds
	}
}

// rejected checks that a rejection counts on, and that the last one of an attempt fails it.
func (m *model) rejected(t fataler, e *TaskRejected, r *Record) {
	task := m.tasks[e.Task]
	n, limit := &task.misfits, int64(3)
	open := task.status == InProgress && task.owner == e.Member
	switch {
	case task.author != nil: // by those who verified it
		n, limit = &task.rejected, DefaultVerifyRounds
		if task.verify != nil {
			limit = task.verify.Rounds
		}
		open = task.status == Pending && e.Member == task.author[len(task.author)-1]
	case e.By == ByCheck:
		n, limit = &task.fails, task.limit
	}
	*n++
	failed := slices.ContainsFunc(r.Events, func(e Event) bool { _, is := e.(*TaskFailed); return is })
	if !open || e.Count != *n || e.Limit != limit || failed != (*n == limit) {
		t.Fatalf("%+v follows %d of %d rejections of %+v, failed: %v", e, *n-1, limit, task, failed)
	}
}

func (m *model) ends(t fataler, member string, how MemberStatus) {
	if member == m.lead {
		t.Fatalf("the lead has ended")
	}
	m.status[member] = how
}

func (m *model) applyTask(e Event, actor string) {
	if m.applyVerification(e, actor) {
		return
	}
	switch e := e.(type) {
	case *TaskCreated:
		m.order = append(m.order, e.Task.ID)
		m.tasks[e.Task.ID] = &modelTask{status: Pending, owner: e.Task.Owner, assigned: e.Task.Owner != "",
			role: e.Task.Role, run: e.Task.Run != "", priority: e.Task.Priority, waits: slices.Clone(e.Task.BlockedBy),
			retries: e.Task.Retries, always: e.Task.When != "", onFailure: e.Task.When == OnFailure,
			paths: e.Task.Paths, each: e.Task.ForEach, of: e.Task.Of, item: string(e.Task.Item),
			verify: e.Task.Verify, verifies: e.Task.Verifies}
		m.tasks[e.Task.ID].demand(&e.Task)
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
		if e.Run != nil {
			t.failure, t.failer, t.failed = "", "", 0
		}
		t.paths = m.patch(t.paths, e.AddPaths, e.RemovePaths)
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
		t.status, t.owner, t.by, t.assigned, t.failure, t.failer, t.failed = Pending, e.Owner, "", e.Owner != "", "",
			"", 0
		t.misfits, t.fails = 0, 0
		t.fence++
	case *TaskRevised:
		t := m.tasks[e.Task.ID]
		t.failure, t.failer, t.failed, t.misfits, t.fails = "", "", 0, 0, 0
		if t.status == Completed { // it was skipped
			t.status = Pending
		}
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
				t.always, t.onFailure = e.Task.When != "", e.Task.When == OnFailure
			case "paths":
				t.paths = e.Task.Paths
			case "forEach":
				t.each = e.Task.ForEach
			case "verify":
				t.verify = e.Task.Verify
			}
		}
	case *TaskClaimed:
		t := m.tasks[e.Task]
		t.status, t.owner, t.fence, t.failure, t.failer = InProgress, e.Member, e.Fence, "", ""
		t.holds = t.paths
		if t.verify != nil {
			t.workers = append(t.workers, e.Member)
		}
	case *PathsChanged:
		t := m.tasks[e.Task]
		t.holds = m.patch(t.holds, e.Added, e.Removed)
	case *TaskReleased:
		t := m.tasks[e.Task]
		if t.status == Completed {
			t.by, t.failed = "", 0
		}
		t.status, t.owner, t.assigned = Pending, e.Owner, e.Owner != ""
		t.fence++
		if t.failure != "" {
			t.failed, t.failure, t.failer = 0, "", ""
		}
	case *TaskFailed:
		t := m.tasks[e.Task]
		t.status, t.failure, t.failer = Pending, e.Reason, e.By
		t.misfits, t.fails = 0, 0
		t.fence++
		t.failed++
		if !t.assigned {
			t.owner = ""
		}
	case *TaskCompleted:
		t := m.tasks[e.Task]
		t.status, t.by, t.failer, t.misfits, t.fails = Completed, e.By, "", 0, 0
	case *TaskSkipped:
		t := m.tasks[e.Task]
		t.status, t.by, t.failer, t.misfits, t.fails = Completed, "", "", 0, 0
	case *TaskDeleted:
		m.tasks[e.Task].status = Deleted
	case *TaskExpanded:
		t := m.tasks[e.Task]
		t.expanded, t.failure, t.failer = true, "", ""
		t.waits = append(t.waits, e.Tasks...)
	case *TaskFolded:
		t := m.tasks[e.Task]
		t.expanded = false
		t.waits = slices.DeleteFunc(t.waits, func(id string) bool { return m.tasks[id].of == e.Task })
	}
}

func (m *model) patch(paths, added, removed []string) []string {
	return slices.DeleteFunc(slices.Concat(paths, added), func(p string) bool { return slices.Contains(removed, p) })
}

func (m *model) take(t fataler, member string, seqs []int64) {
	for _, seq := range seqs {
		key := member + "/" + strconv.FormatInt(seq, 10)
		if m.got[key]++; m.got[key] != 1 || !slices.Contains(m.sent[seq], member) {
			t.Fatalf("message %d was given to %s %d times, and sent to %v", seq, member, m.got[key], m.sent[seq])
		}
	}
}

// judgeNote checks an answer to a change of a note: one that saw another change is refused, with
// the present note, and an appended text never is because of a change.
func (m *model) judgeNote(t fataler, c Command, key string, ifSeq *int64, d Decision, err error) {
	now := m.notes[key]
	stale := ifSeq != nil && *ifSeq != now.seq
	if d.Record != nil && (stale || strings.HasPrefix(c.Actor, hostPrefix) || !ValidNoteKey(key)) {
		t.Fatalf("%s changed the note %q at %d with %+v", c.Actor, key, now.seq, c.Body)
	}
	if CodeOf(err) != Conflict {
		return
	}
	switch shown := NoteOf(err); {
	case !stale && shown != nil:
		t.Fatalf("%+v conflicts with the note at %d: %v", c.Body, now.seq, err)
	case shown != nil && (shown.Text != now.text || shown.Seq != now.seq):
		t.Fatalf("the refusal carries %+v, and the note is %+v", *shown, now)
	}
}

func (m *model) write(t fataler, key, text, by string, seq int64) {
	for _, n := range m.notes {
		if seq <= n.seq {
			t.Fatalf("change %d of the note %s comes after change %d", seq, key, n.seq)
		}
	}
	n := m.notes[key]
	if text == "" {
		delete(m.notes, key)
		return
	}
	m.notes[key] = modelNote{text, seq, append(slices.Clone(n.by), by), append(slices.Clone(n.at), seq)}
}

// compareNotes checks that the state has the notes of the model, and knows for every member what
// others changed last.
func (m *model) compareNotes(t fataler, s *State) {
	if len(s.Notes()) != len(m.notes) {
		t.Fatalf("there are %d notes, and the model has %d", len(s.Notes()), len(m.notes))
	}
	for key, want := range m.notes {
		got, _ := s.Note(key)
		last := len(want.by) - 1
		if got.Text != want.text || got.Seq != want.seq || got.SetBy != want.by[0] || got.UpdatedBy != want.by[last] {
			t.Fatalf("the note is %+v, and the model says %+v", got, want)
		}
		for name := range m.status {
			i := last
			for i >= 0 && want.by[i] == name {
				i--
			}
			by, seq := got.ChangedBy(name)
			if i < 0 && seq != 0 || i >= 0 && (seq != want.at[i] || by != want.by[i]) {
				t.Fatalf("%s is told that %s made change %d of %s; the model says %v %v", name, by, seq, key, want.by,
					want.at)
			}
		}
	}
}

// compareGroups checks that each item of a group has one task, made when nothing was left to wait
// for, and that the group is completed when all of its tasks are. settled says that every process
// has done what is overdue.
func (m *model) compareGroups(t fataler, s *State) {
	overdue, _ := s.Overdue(0)
	due := map[string]bool{}
	for _, body := range overdue {
		if b, is := body.(*ExpandTask); is {
			due[b.Task] = true
		}
	}
	for _, id := range m.order {
		g := m.tasks[id]
		if g.each == nil || g.status == Deleted {
			continue
		}
		made, open := 0, 0
		for _, other := range m.order {
			if o := m.tasks[other]; o.of == id && slices.Contains(g.waits, other) {
				made++
				if o.status.open() {
					open++
				}
			}
		}
		waits := m.blocked(g)
		switch {
		case !g.expanded && made > 0:
			t.Fatalf("task %s has %d tasks and was not expanded", id, made)
		case g.expanded && !g.each.Outside() && len(g.each.Items) != made:
			t.Fatalf("task %s has %d tasks for %d items", id, made, len(g.each.Items))
		case g.status == Completed && open > 0:
			t.Fatalf("task %s is completed, and %d of its tasks are open", id, open)
		case g.status == Pending && !waits && !g.outOfRetries() && (g.expanded || !g.each.Outside()) && !due[id]:
			t.Fatalf("task %s waits for nothing, and nobody is asked to go on with it", id)
		case due[id] && (waits || g.status != Pending):
			t.Fatalf("task %s is overdue, and it waits or is closed", id)
		}
	}
}

// judgeExpansion checks the tasks that a record makes for a group, before it is applied.
func (m *model) judgeExpansion(t fataler, r *Record) {
	for _, e := range r.Events {
		e, is := e.(*TaskExpanded)
		if !is {
			continue
		}
		closed := map[string]bool{}
		var each *ForEach
		if g := m.tasks[e.Task]; g != nil {
			each = g.each
		}
		var items []string
		var waits []string
		if g := m.tasks[e.Task]; g != nil {
			waits = g.waits
		}
		for _, other := range r.Events {
			switch o := other.(type) {
			case *TaskCompleted:
				closed[o.Task] = true
			case *TaskDeleted:
				closed[o.Task] = true
			case *TaskRevised:
				if o.Task.ID == e.Task && slices.Contains(o.Fields, "forEach") {
					each = o.Task.ForEach
				}
			case *TaskUpdated: // a batch may remove what it waits for
				return
			case *TaskCreated:
				if o.Task.ID == e.Task {
					each, waits = o.Task.ForEach, o.Task.BlockedBy
				}
				if o.Task.Of == e.Task {
					items = append(items, string(o.Task.Item))
				}
			}
		}
		for _, id := range waits {
			if b := m.tasks[id]; b != nil && b.status.open() && !closed[id] {
				t.Fatalf("task %s makes tasks while task %s is open", e.Task, id)
			}
		}
		var want []string
		for _, item := range each.items() {
			want = append(want, string(item))
		}
		if !each.Outside() && !slices.Equal(items, want) || len(items) != len(e.Tasks) {
			t.Fatalf("task %s makes tasks for %q; its items are %q", e.Task, items, want)
		}
	}
}

// compare checks that the state knows what the model knows.
func (m *model) compare(t fataler, s *State) {
	m.compareNotes(t, s)
	m.compareGroups(t, s)
	for _, id := range m.order {
		want, got := m.tasks[id], s.task(id)
		if got.Status != want.status || got.Owner != want.owner || got.Fence != want.fence ||
			got.Priority != want.priority || got.FailedBy != want.failer {
			t.Fatalf("task %s is %+v and the model says %+v", id, got, want)
		}
		ahead := m.ahead(id, "")
		if open := s.show(got).open; (len(open) > 0) != (m.blocked(want) || len(ahead) > 0) {
			t.Fatalf("task %s is blocked by %v and the model says %v, and the paths of %v", id, open, want.waits, ahead)
		}
		if ids, _ := s.line().blockers(got); !slices.Equal(ids, ahead[:min(len(ahead), len(ids))]) {
			t.Fatalf("task %s waits for the paths of %v and the model says %v", id, ids, ahead)
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
