package team

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// CreateTask adds a task to the list.
type CreateTask struct {
	Subject     string
	Description string
	ActiveForm  string
	Owner       string
	Role        string
	BlockedBy   []string
	Priority    string // "" for medium
	Run         string
	TimeoutMS   int64
	Retries     int64
	Metadata    map[string]json.RawMessage
}

// DefaultPriority is that of a task that was given none.
const DefaultPriority = "medium"

func (b *CreateTask) decide(d *decision) error {
	t := Task{Subject: b.Subject, Description: b.Description, ActiveForm: b.ActiveForm, Status: Pending, Owner: b.Owner, Assigned: b.Owner != "", Role: b.Role,
		Priority: b.Priority, Run: b.Run, TimeoutMS: b.TimeoutMS, Retries: b.Retries, CreatedBy: d.Actor}
	t.ID = strconv.Itoa(len(d.tasks) + 1 + d.created())
	if t.Priority == "" {
		t.Priority = DefaultPriority
	}
	switch {
	case strings.TrimSpace(b.Subject) == "":
		return refuse(Invalid, "a task needs a subject")
	case b.TimeoutMS < 0 || b.Retries < 0:
		return refuse(Invalid, "timeout and retries of a task cannot be negative")
	case b.Owner != "" && b.Role != "":
		return refuse(Invalid, "a task has an owner or a role, not both")
	}
	if err := oneOf("priority", t.Priority, Priorities); err != nil {
		return err
	}
	if err := limit(text{"subject", b.Subject, MaxSubject}, text{"active form", b.ActiveForm, MaxSubject}, text{"role", b.Role, MaxSubject},
		text{"description", b.Description, MaxText}, text{"command", b.Run, MaxText}); err != nil {
		return err
	}
	if b.Owner != "" {
		if _, err := d.running(b.Owner); err != nil {
			return err
		}
	}
	for _, id := range b.BlockedBy {
		if id == t.ID {
			return refuse(Invalid, "task %s cannot block itself", id)
		}
		if blocker := d.task(id); blocker == nil || blocker.Status == Deleted {
			return d.noTask(id)
		}
		if !slices.Contains(t.BlockedBy, id) {
			t.BlockedBy = append(t.BlockedBy, id)
		}
	}
	meta, err := metadata(b.Metadata)
	if err != nil {
		return err
	}
	maps.DeleteFunc(meta, func(_ string, v json.RawMessage) bool { return string(v) == "null" })
	t.Metadata = meta
	d.emit(&TaskCreated{Task: t})
	if b.Owner != "" && b.Owner != d.Actor {
		d.tell(b.Owner, TypeTaskAssignment, t.ID, "Task %s is yours: %s", t.ID, b.Subject)
	}
	return nil
}

// created counts the tasks that this decision created already.
func (d *decision) created() int {
	n := 0
	for _, e := range d.events {
		if _, ok := e.(*TaskCreated); ok {
			n++
		}
	}
	return n
}

// metadata checks the values and brings them to one line each.
func metadata(in map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	if len(in) == 0 {
		return nil, nil
	}
	out := make(map[string]json.RawMessage, len(in))
	size := 0
	for key, value := range in {
		var one bytes.Buffer
		if err := json.Compact(&one, value); err != nil {
			return nil, refuse(Invalid, "metadata %q is not JSON: %v", clipTo(key, 80), err)
		}
		out[strings.ToValidUTF8(key, "\uFFFD")] = json.RawMessage(strings.ToValidUTF8(one.String(), "\uFFFD"))
		size += len(key) + one.Len()
	}
	if size > MaxText {
		return nil, refuse(TooLarge, "the metadata has %d bytes, of at most %d", size, MaxText)
	}
	return out, nil
}

func (d *decision) noTask(id string) error {
	if t := d.task(id); t != nil && t.Status == Deleted {
		return refuse(NotFound, "task %s was deleted", id)
	}
	return refuse(NotFound, "no task %q in team %s; cadre task list %s shows the tasks", clipTo(id, 80), d.team.Name, d.team.Name)
}

// live returns the task with that id, which must not be deleted.
func (d *decision) live(id string) (*Task, error) {
	if t := d.task(id); t != nil && t.Status != Deleted {
		return t, nil
	}
	return nil, d.noTask(id)
}

// UpdateTask changes what is not nil. An owner "" takes the owner away; a metadata value null deletes its key.
type UpdateTask struct {
	Task                                                   string
	Subject, Description, ActiveForm, Owner, Priority      *string
	Metadata                                               map[string]json.RawMessage
	AddBlockedBy, RemoveBlockedBy, AddBlocks, RemoveBlocks []string
}

func (b *UpdateTask) decide(d *decision) error {
	t, err := d.live(b.Task)
	if err != nil {
		return err
	}
	if t.Status == Completed && (b.Owner != nil || len(b.AddBlockedBy)+len(b.RemoveBlockedBy) > 0) {
		return refuse(NotReady, "%s is completed: its owner and what it waits for change no more; create a new task", t.label())
	}
	or := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	if b.Subject != nil && strings.TrimSpace(*b.Subject) == "" {
		return refuse(Invalid, "a task needs a subject")
	}
	if err := limit(text{"subject", or(b.Subject), MaxSubject}, text{"active form", or(b.ActiveForm), MaxSubject}, text{"description", or(b.Description), MaxText}); err != nil {
		return err
	}
	if b.Priority != nil {
		if err := oneOf("priority", *b.Priority, Priorities); err != nil {
			return err
		}
	}
	e := &TaskUpdated{Task: t.ID, Subject: b.Subject, Description: b.Description, ActiveForm: b.ActiveForm, Priority: b.Priority,
		AddBlockedBy: b.AddBlockedBy, RemoveBlockedBy: b.RemoveBlockedBy, AddBlocks: b.AddBlocks, RemoveBlocks: b.RemoveBlocks}
	if e.Metadata, err = metadata(b.Metadata); err != nil {
		return err
	}
	if err := d.relink(t, b); err != nil {
		return err
	}
	reassigned := b.Owner != nil && *b.Owner != t.Owner
	if reassigned {
		if err := d.reassign(t, *b.Owner); err != nil {
			return err
		}
		e.Owner = b.Owner
	}
	d.emit(e)
	if reassigned {
		if t.Status == InProgress && t.Owner != d.Actor {
			d.tell(t.Owner, TypeSystem, t.ID, "Task %s (%s) was taken from you by %s; stop working on it.", t.ID, t.Subject, d.Actor)
		}
		if *b.Owner != d.Actor {
			d.tell(*b.Owner, TypeTaskAssignment, t.ID, "Task %s is yours: %s", t.ID, t.Subject)
		}
	}
	return nil
}

func (d *decision) reassign(t *Task, owner string) error {
	if owner != "" {
		if _, err := d.running(owner); err != nil {
			return err
		}
	}
	if t.Status == InProgress && d.Actor != t.Owner {
		if err := d.leads("take a task from the member that holds it"); err != nil {
			return err
		}
	}
	return nil
}

// relink checks the dependencies that an update adds, one after the other, as if those before were there.
func (d *decision) relink(t *Task, b *UpdateTask) error {
	added := map[string][]string{} // waiter to blockers
	removed := map[[2]string]bool{}
	for _, id := range b.RemoveBlockedBy {
		removed[[2]string{t.ID, id}] = true
	}
	for _, id := range b.RemoveBlocks {
		removed[[2]string{id, t.ID}] = true
	}
	add := func(waiter, blocker string) error {
		if waiter == blocker {
			return refuse(Invalid, "task %s cannot block itself", waiter)
		}
		w, err := d.live(waiter)
		if err != nil {
			return err
		}
		if _, err := d.live(blocker); err != nil {
			return err
		}
		if w.Status != Pending {
			return refuse(NotReady, "%s is %s, too late to wait for another task; release it first", w.label(), w.Status)
		}
		blockers := func(id string) []string {
			var all []string
			for _, by := range d.task(id).BlockedBy {
				if !removed[[2]string{id, by}] {
					all = append(all, by)
				}
			}
			return append(all, added[id]...)
		}
		if path := pathTo(blocker, waiter, blockers); path != nil {
			return refuse(Invalid, "task %s cannot wait for task %s, which would close a cycle: %s", waiter, blocker, strings.Join(append([]string{waiter}, path...), " → "))
		}
		added[waiter] = append(added[waiter], blocker)
		return nil
	}
	for _, id := range b.AddBlockedBy {
		if err := add(t.ID, id); err != nil {
			return err
		}
	}
	for _, id := range b.AddBlocks {
		if err := add(id, t.ID); err != nil {
			return err
		}
	}
	return nil
}

// pathTo returns the way from one task along what it waits for to another, nil where there is none.
func pathTo(from, to string, blockers func(string) []string) []string {
	seen := map[string]bool{}
	var walk func(id string) []string
	walk = func(id string) []string {
		if id == to {
			return []string{id}
		}
		if seen[id] {
			return nil
		}
		seen[id] = true
		for _, by := range blockers(id) {
			if rest := walk(by); rest != nil {
				return append([]string{id}, rest...)
			}
		}
		return nil
	}
	return walk(from)
}

// ClaimTask gives a task to a member: the one with that id, or with Task "" the next one of the list.
type ClaimTask struct {
	Task   string
	Member string // "" for the actor
}

func (b *ClaimTask) decide(d *decision) error {
	m, err := d.worker(b.Member)
	if err != nil {
		return err
	}
	if err := d.affordable(); err != nil {
		return err
	}
	if err := d.AllowsTool(m.Name, "TaskClaim"); err != nil {
		return err
	}
	if m.Status == ShuttingDown {
		return refuse(NotReady, "%s is shutting down and takes no more tasks", m.Name)
	}
	var t *Task
	if b.Task == "" {
		if t = d.next(m); t == nil {
			return d.nothingFor(m)
		}
	} else if t, err = d.live(b.Task); err != nil {
		return err
	}
	switch {
	case t.Status == Completed:
		return refuse(Conflict, "%s is completed", t.label())
	case t.Status == InProgress && t.Owner == m.Name:
		return refuse(Conflict, "%s holds %s already", m.Name, t.label())
	case t.Status == InProgress:
		return refuse(Conflict, "%s was claimed by %s; take another one: cadre task claim %s --next", t.label(), t.Owner, d.team.Name)
	case t.blockers > 0:
		return refuse(NotReady, "%s waits for task %s", t.label(), strings.Join(d.blockersOf(t), ", "))
	case t.Owner != "" && t.Owner != m.Name:
		return refuse(Conflict, "%s is meant for %s", t.label(), t.Owner)
	case t.Role != "" && t.Role != m.Role:
		return refuse(Denied, "%s is for the role %s, and %s has the role %q", t.label(), t.Role, m.Name, m.Role)
	}
	d.emit(&TaskClaimed{Task: t.ID, Member: m.Name, Fence: t.Fence + 1})
	return nil
}

// worker returns the member that is to do something with a task: the actor, or the one that the lead, the user or its host names.
func (d *decision) worker(name string) (*Member, error) {
	if name == "" || name == d.Actor {
		if d.actor == nil {
			return nil, refuse(Invalid, "say which member it is for")
		}
		return d.actor, nil
	}
	if d.leads("") == nil {
		return d.running(name)
	}
	return d.hosted(name)
}

func (d *decision) nothingFor(m *Member) error {
	pending, working := d.counts[statusIndex(Pending)], d.counts[statusIndex(InProgress)]
	if pending+working == 0 {
		return refuse(Nothing, "there is no task for %s: all of them are done", m.Name)
	}
	return refuse(Nothing, "there is no task for %s now: %d in progress, and %d pending that wait for others, are meant for others, or were given up", m.Name, working, pending)
}

// held returns the task, which must be in progress by the member that acts, under that fence if it is not 0.
func (d *decision) held(id string, member *Member, fence int64) (*Task, error) {
	t, err := d.live(id)
	switch {
	case err != nil:
		return nil, err
	case t.Status == Completed:
		return nil, refuse(Conflict, "%s was completed by %s", t.label(), t.CompletedBy)
	case t.Status == Pending && fence != 0:
		return nil, refuse(Conflict, "%s lost its claim on %s: the task is back on the list", member.Name, t.label())
	case t.Status == Pending:
		return nil, refuse(NotReady, "%s is not in progress; claim it first: cadre task claim %s %s --as %s", t.label(), d.team.Name, t.ID, member.Name)
	case t.Owner != member.Name:
		return nil, refuse(Conflict, "%s lost its claim on %s: %s holds it now", member.Name, t.label(), t.Owner)
	case fence != 0 && fence != t.Fence:
		return nil, refuse(Conflict, "%s claimed %s anew since: this claim (%d) is void, the present one is %d", member.Name, t.label(), fence, t.Fence)
	}
	return t, nil
}

// CompleteTask ends a task with its result. The member that holds it completes it; the lead and the user may complete any task that waits for nothing.
type CompleteTask struct {
	Task   string
	Member string // "" for the actor
	Fence  int64  // that of the claim; 0 trusts the name of the owner
	Result string
}

func (b *CompleteTask) decide(d *decision) error {
	if err := limit(text{"result", b.Result, MaxText}); err != nil {
		return err
	}
	by := d.Actor
	if b.Member == "" && b.Fence == 0 && d.leads("") == nil {
		t, err := d.live(b.Task)
		switch {
		case err != nil:
			return err
		case t.Status == Completed:
			return refuse(Conflict, "%s was completed by %s", t.label(), t.CompletedBy)
		case t.blockers > 0:
			return refuse(NotReady, "%s waits for task %s", t.label(), strings.Join(d.blockersOf(t), ", "))
		}
		if t.Status == InProgress && t.Owner != by {
			d.tell(t.Owner, TypeSystem, t.ID, "Task %s (%s) was completed by %s; stop working on it.", t.ID, t.Subject, by)
		}
		return d.complete(t, by, b.Result)
	}
	m, err := d.worker(b.Member)
	if err != nil {
		return err
	}
	t, err := d.held(b.Task, m, b.Fence)
	if err != nil {
		return err
	}
	return d.complete(t, m.Name, b.Result)
}

func (d *decision) complete(t *Task, by, result string) error {
	free := d.freedBy(t)
	d.emit(&TaskCompleted{Task: t.ID, By: by, Result: result, Unblocked: free})
	d.wakeOwners(t, free)
	return nil
}

// freedBy returns the tasks that wait for t and for nothing else.
func (d *decision) freedBy(t *Task) []string {
	var free []string
	if !t.Status.open() {
		return nil
	}
	for _, id := range t.Blocks {
		if w := d.task(id); w != nil && w.Status == Pending && w.blockers == 1 {
			free = append(free, id)
		}
	}
	return free
}

func (d *decision) wakeOwners(t *Task, free []string) {
	for _, id := range free {
		if w := d.task(id); w.Owner != "" && w.Owner != d.Actor {
			d.tell(w.Owner, TypeTaskAssignment, id, "Task %s (%s), which is yours, waits no more: task %s is done.", id, w.Subject, t.ID)
		}
	}
}

// FailTask ends an attempt without success. The task goes back on the list while it has retries left, else it is given up until
// somebody claims it by its id.
type FailTask struct {
	Task   string
	Member string // "" for the actor
	Fence  int64
	Reason string
	Result string
}

func (b *FailTask) decide(d *decision) error {
	if err := limit(text{"result", b.Result, MaxText}, text{"reason", b.Reason, MaxText}); err != nil {
		return err
	}
	m, err := d.worker(b.Member)
	if err != nil {
		return err
	}
	t, err := d.held(b.Task, m, b.Fence)
	if err != nil {
		return err
	}
	reason := b.Reason
	if reason == "" {
		reason = "no reason given"
	}
	d.emit(&TaskFailed{Task: t.ID, By: m.Name, Reason: reason, Result: b.Result})
	return nil
}

// ReleaseTask puts a task back on the list without a result.
type ReleaseTask struct {
	Task   string
	Member string // "" for the actor
	Fence  int64
	Reason string
}

func (b *ReleaseTask) decide(d *decision) error {
	t, err := d.live(b.Task)
	if err != nil {
		return err
	}
	if err := limit(text{"reason", b.Reason, MaxText}); err != nil {
		return err
	}
	if b.Member == "" && b.Fence == 0 && d.leads("") == nil {
		if t.Status != InProgress {
			return refuse(NotReady, "%s is %s, not in progress: there is nothing to release", t.label(), t.Status)
		}
		if t.Owner != d.Actor {
			d.tell(t.Owner, TypeSystem, t.ID, "Task %s (%s) was taken from you by %s; stop working on it.", t.ID, t.Subject, d.Actor)
		}
	} else {
		m, err := d.worker(b.Member)
		if err != nil {
			return err
		}
		if t, err = d.held(b.Task, m, b.Fence); err != nil {
			return err
		}
	}
	d.release(t, b.Reason, true)
	return nil
}

// release puts a task in progress back on the list; the owner it was meant for keeps it if keep is set.
func (d *decision) release(t *Task, reason string, keep bool) {
	owner := ""
	if keep && t.Assigned {
		owner = t.Owner
	}
	d.emit(&TaskReleased{Task: t.ID, Owner: owner, Reason: reason})
}

// DeleteTask takes a task off the list.
type DeleteTask struct{ Task string }

func (b *DeleteTask) decide(d *decision) error {
	t, err := d.live(b.Task)
	if err != nil {
		return err
	}
	if d.Actor != t.CreatedBy && d.Actor != t.Owner {
		if err := d.leads("delete a task that is neither its own nor created by it"); err != nil {
			return err
		}
	}
	if t.Status == InProgress && t.Owner != d.Actor {
		if err := d.leads("delete a task that another member works on"); err != nil {
			return err
		}
		d.tell(t.Owner, TypeSystem, t.ID, "Task %s (%s) was deleted by %s; stop working on it.", t.ID, t.Subject, d.Actor)
	}
	free := d.freedBy(t)
	d.emit(&TaskDeleted{Task: t.ID, Unblocked: free})
	d.wakeOwners(t, free)
	return nil
}
