package team

import (
	"encoding/json"
	"fmt"
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
	In          string // [InMerged], for a task with a command
	TimeoutMS   int64
	Retries     int64
	Metadata    map[string]json.RawMessage
}

// DefaultPriority is that of a task that was given none.
const DefaultPriority = "medium"

func (b *CreateTask) decide(d *decision) error {
	t := Task{Subject: b.Subject, Description: b.Description, ActiveForm: b.ActiveForm, Status: Pending, Owner: b.Owner,
		Assigned: b.Owner != "", Role: b.Role,
		Priority: b.Priority, Run: b.Run, In: b.In, TimeoutMS: b.TimeoutMS, Retries: b.Retries, CreatedBy: d.Actor}
	t.ID = d.nextTask()
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
	case b.In != "" && b.In != InMerged:
		return refuse(Invalid, "%q is not a place for a task; it is %s, or left out", brief(b.In), InMerged)
	case b.In != "" && strings.TrimSpace(b.Run) == "":
		return refuse(Invalid, "a task runs in the merged worktree by its command, and this one has none")
	}
	if err := oneOf("priority", t.Priority, Priorities); err != nil {
		return err
	}
	if err := limit(text{"subject", b.Subject, MaxSubject}, text{"active form", b.ActiveForm, MaxSubject},
		text{"role", b.Role, MaxSubject},
		text{"description", b.Description, MaxText}, text{"command", b.Run, MaxText}); err != nil {
		return err
	}
	var owner *Member
	if b.Owner != "" {
		var err error
		if owner, err = d.heir(b.Owner); err != nil {
			return err
		}
	}
	once := map[string]bool{}
	for _, id := range b.BlockedBy {
		if id == t.ID {
			return refuse(Invalid, "task %s cannot block itself", id)
		}
		if blocker := d.task(id); blocker == nil || blocker.Status == Deleted {
			return d.noTask(id)
		}
		if !once[id] {
			once[id] = true
			t.BlockedBy = append(t.BlockedBy, id)
		}
	}
	if owner != nil {
		if err := d.sees(owner, &t, t.BlockedBy); err != nil {
			return err
		}
	}
	meta, err := metadata(nil, b.Metadata)
	if err != nil {
		return err
	}
	t.Metadata = merged(nil, meta)
	d.emit(&TaskCreated{Task: t})
	if b.Owner != "" && b.Owner != d.Actor {
		d.assigned(b.Owner, t.ID, "Task %s is yours: %s", t.ID, Quoted(b.Subject))
	}
	return nil
}

// nextTask is the id of the task that is created next.
func (d *decision) nextTask() string { return strconv.Itoa(len(d.tasks) + 1) }

func (d *decision) noTask(id string) error {
	if t := d.task(id); t != nil && t.Status == Deleted {
		return refuse(NotFound, "task %s was deleted", id)
	}
	return Refuse(NotFound, "no task %q in team %s", brief(id), d.team.Name).With(d.team.hint(ActShowTasks))
}

// live returns the task with that id, which must not be deleted.
func (d *decision) live(id string) (*Task, error) {
	if t := d.task(id); t != nil && t.Status != Deleted {
		return t, nil
	}
	return nil, d.noTask(id)
}

// ClaimTask gives a task to a member: the one with that id, or with Task "" the next one of the
// list.
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
	switch {
	case m.Status == ShuttingDown:
		return refuse(NotReady, "%s is shutting down and takes no more tasks", m.Name)
	case d.orphaned(m):
		return Refuse(NotReady, "nobody leads team %s: %s may end what it is at, and takes nothing new before a lead "+
			"is back", d.team.Name, m.Name).With(d.team.hint(ActResume))
	case d.team.Status == TeamConsolidating:
		return refuse(NotReady, "team %s is being brought to its end, and nothing new is begun", d.team.Name)
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
		return Refuse(Conflict, "%s was claimed by %s", t.label(), t.Owner).
			With(Hint{Action: ActClaimNext, Team: d.team.Name, Member: m.Name})
	case t.blockers > 0:
		return refuse(NotReady, "%s waits for task %s", t.label(), strings.Join(d.blockersOf(t), ", "))
	case t.Owner != "" && t.Owner != m.Name:
		return refuse(Conflict, "%s is meant for %s", t.label(), t.Owner)
	case t.Owner == "" && t.Role != "" && t.Role != m.Role:
		return refuse(Denied, "%s is for the role %s, and %s has the role %s", t.label(), Quoted(brief(t.Role)),
			m.Name, Quoted(brief(m.Role)))
	}
	if err := d.sees(m, t, t.BlockedBy); err != nil {
		return err
	}
	d.emit(&TaskClaimed{Task: t.ID, Member: m.Name, Fence: t.Fence + 1})
	// it is told now: between here and its turn nobody is to think that nothing moves
	if d.isHost() && (m.Status == Idle || m.Status == Blocked) {
		d.emit(&MemberStatusChanged{Member: m.Name, Status: Active,
			Summary: clipTo("task "+t.ID+": "+t.Subject, MaxSubject)})
	}
	return nil
}

// worker returns the member that is to do something with a task: the actor, or the one that the
// lead, the user or its host names.
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
	return refuse(Nothing, "there is no task for %s now: %d in progress, and %d pending that wait for others, are "+
		"meant for others, or were given up", m.Name, working, pending)
}

// held returns the task, which must be in progress by the member that acts, under that fence if it
// is not 0.
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
		return nil, Refuse(NotReady, "%s is not in progress", t.label()).
			With(Hint{Action: ActClaimTask, Team: d.team.Name, Task: t.ID, Member: member.Name})
	case t.Owner != member.Name:
		return nil, refuse(Conflict, "%s lost its claim on %s: %s holds it now", member.Name, t.label(), t.Owner)
	case fence != 0 && fence != t.Fence:
		return nil, refuse(Conflict, "%s claimed %s anew since: this claim (%d) is void, the present one is %d",
			member.Name, t.label(), fence, t.Fence)
	}
	return t, nil
}

// CompleteTask ends a task with its result. The member that holds it completes it; the lead and the
// user may complete any task that waits for nothing.
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
			d.tell(t.Owner, TypeSystem, t.ID, "Task %s was completed by %s; stop working on it.", t.titled(), by)
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
	if by != d.team.Lead && d.ledByAgent() {
		note := fmt.Sprintf("Task %s is completed by %s.", t.titled(), strings.TrimPrefix(by, "@"))
		if result != "" {
			note += cited(clipTo(result, MaxSubject))
		}
		// a session outside is given what there is behind a result, and may wait for it
		quiet := d.lead().Agent != External && d.continues(t, by, free)
		d.post(Message{To: d.team.Lead, Type: TypeSystem, Ref: t.ID, Body: clip(note), Priority: "normal",
			Quiet: quiet})
	}
	d.wakeOwners(free, "task "+t.ID+" is done")
	return nil
}

// continues reports whether the end of t leaves the lead nothing to do. Teammates work, and more is
// on the list. Or somebody takes the next task. Or nothing is left, and the session that leads asks
// for the report. A lead whose list ran dry while others work is told: it may have more for who is
// free.
func (d *decision) continues(t *Task, by string, free []string) bool {
	pending, begun := d.counts[statusIndex(Pending)], d.counts[statusIndex(InProgress)]
	if t.Status == InProgress {
		begun--
	} else {
		pending--
	}
	switch {
	case pending == 0 && begun == 0:
		return d.team.LeadSession != "" && d.team.LeadSession != User && d.team.LeadLost == 0 && !d.team.ReportAsked
	case pending == 0:
		return false
	case d.worked(t):
		return true
	}
	takes := func(m *Member, w *Task) bool {
		return m.Name != d.team.Lead && m.Agent != External && m.Status.Running() &&
			m.Shutdown.Request == "" && d.takes(m, w)
	}
	for _, id := range free {
		if w := d.task(id); slices.ContainsFunc(d.members, func(m Member) bool { return takes(&m, w) }) {
			return true
		}
	}
	m := d.member(by)
	if m == nil {
		return false
	}
	w := d.next(m)
	return w != nil && takes(m, w)
}

// worked reports whether a teammate of ours works on another task than t, so that the lead hears of
// that end too. What the lead itself holds, or one that rests, or one outside of whom nobody can
// tell, moves nothing on.
func (d *decision) worked(t *Task) bool {
	for i := range d.under.all() {
		other := &d.tasks[i]
		if m := d.member(other.Owner); other != t && m != nil && m.Name != d.team.Lead && m.Agent != External &&
			m.Status.Running() && m.Status != Idle {
			return true
		}
	}
	return false
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

func (d *decision) wakeOwners(free []string, why string) {
	for _, id := range free {
		if w := d.task(id); w.Owner != "" && w.Owner != d.Actor {
			d.assigned(w.Owner, id, "Task %s, which is yours, waits no more: %s.", w.titled(), why)
		}
	}
}

// FailTask ends an attempt without success. The task goes back on the list while it has retries
// left, else it is given up until somebody claims it by its id.
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
	if t.Failures >= t.Retries && m.Name != d.team.Lead {
		d.tell(d.team.Lead, TypeSystem, t.ID, "Task %s is given up after failure %d:%s\nIt is tried again when you "+
			"release it, or when somebody claims it by its id.",
			t.titled(), t.Failures+1, cited(clipTo(reason, MaxSubject)))
	}
	return nil
}

// ReleaseTask puts a task back on the list without a result: one in progress, or one that was given
// up, whose failures are forgotten then. A given-up task is released by the lead and the user.
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
		if t.Status != InProgress && !t.GivenUp() {
			return refuse(NotReady, "%s is %s, not in progress: there is nothing to release", t.label(), t.Status)
		}
		if t.Status == InProgress && t.Owner != d.Actor {
			d.tell(t.Owner, TypeSystem, t.ID, "Task %s was taken from you by %s; stop working on it.",
				t.titled(), d.Actor)
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

// release puts a task in progress back on the list; the owner it was meant for keeps it if keep is
// set.
func (d *decision) release(t *Task, reason string, keep bool) {
	owner := ""
	if keep && t.Assigned {
		owner = t.Owner
	}
	d.releaseTo(owner, t, reason)
}

func (d *decision) releaseTo(owner string, t *Task, reason string) {
	d.emit(&TaskReleased{Task: t.ID, Owner: owner, Reason: reason})
}

// DeleteTask takes a task off the list.
type DeleteTask struct{ Task string }

func (b *DeleteTask) decide(d *decision) error {
	t, err := d.live(b.Task)
	if err != nil {
		return err
	}
	if d.asks(t.ID) != nil {
		if err := d.leads("decide that a branch is not merged"); err != nil {
			return err
		}
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
		d.tell(t.Owner, TypeSystem, t.ID, "Task %s was deleted by %s; stop working on it.", t.titled(), d.Actor)
	}
	free := d.freedBy(t)
	d.emit(&TaskDeleted{Task: t.ID, Unblocked: free})
	d.wakeOwners(free, "task "+t.ID+" was deleted")
	return nil
}
