package team

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// CreateTask adds a task to the list.
type CreateTask struct {
	Name        string // "" for its number
	Subject     string
	Description string
	ActiveForm  string
	Owner       string
	Role        string
	BlockedBy   []string // ids, or names as [ByName] has them
	Priority    string   // "" for medium
	Run         string
	In          string   // [InMerged], for a task with a command
	Dir         string   // below the directory of its member, for a task with a command
	Env         []string // NAME=value, for a task with a command
	When        string   // [Always], or "" for when all its blockers are done
	Timeout     time.Duration
	Retries     int64
	Metadata    map[string]json.RawMessage
	FileDigests []string // see [Task]
}

// DefaultPriority is the priority of a task that was given none.
const DefaultPriority = "medium"

func (b *CreateTask) decide(d *decision) error {
	t := Task{Name: b.Name, Subject: b.Subject, Description: b.Description, ActiveForm: b.ActiveForm,
		Status: Pending, Owner: b.Owner,
		Assigned: b.Owner != "", Role: b.Role,
		Priority: b.Priority, Run: b.Run, In: b.In, Dir: b.place(), Env: b.Env, When: b.When, Timeout: b.Timeout,
		Retries: b.Retries, CreatedBy: d.Actor, FileDigests: b.FileDigests}
	t.ID = d.nextTask()
	if t.Priority == "" {
		t.Priority = DefaultPriority
	}
	if err := cmp.Or(b.check(t.Priority), d.checkTaskName(b.Name), checkDigests(b.FileDigests)); err != nil {
		return err
	}
	var owner *Member
	if b.Owner != "" {
		var err error
		if owner, err = d.nextOwner(b.Owner); err != nil {
			return err
		}
	}
	once := map[string]bool{}
	for _, ref := range b.BlockedBy {
		if ref == t.ID {
			return refuse(Invalid, "task %s cannot block itself", t.ID)
		}
		blocker, err := d.live(ref)
		if err != nil {
			return err
		}
		if !once[blocker.ID] {
			once[blocker.ID] = true
			t.BlockedBy = append(t.BlockedBy, blocker.ID)
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
		d.assigned(b.Owner, t.ID, "Task %s is yours: %s", t.Called(), Quoted(b.Subject))
	}
	return nil
}

// check refuses an invalid task or a text that is too long.
func (b *CreateTask) check(priority string) error {
	switch {
	case strings.TrimSpace(b.Subject) == "":
		return refuse(Invalid, "a task needs a subject")
	case b.Timeout < 0 || b.Retries < 0:
		return refuse(Invalid, "timeout and retries of a task cannot be negative")
	case b.Owner != "" && b.Role != "":
		return refuse(Invalid, "a task has an owner or a role, not both")
	case b.In != "" && b.In != InMerged:
		return refuse(Invalid, "%q is not a place for a task; it is %s, or left out", brief(b.In), InMerged)
	case b.In != "" && strings.TrimSpace(b.Run) == "":
		return refuse(Invalid, "a task runs in the merged worktree by its command, and this one has none")
	}
	if err := b.checkPlace(); err != nil {
		return err
	}
	return cmp.Or(oneOf("priority", priority, Priorities),
		limit(text{"subject", b.Subject, MaxSubject}, text{"active form", b.ActiveForm, MaxSubject},
			text{"role", b.Role, MaxSubject},
			text{"description", b.Description, MaxText}, text{"command", b.Run, MaxText}))
}

// nextTask returns the id of the next task.
func (d *decision) nextTask() string { return strconv.Itoa(len(d.tasks) + 1) }

func (s *State) noTask(ref string) error {
	if t := s.referred(ref); t != nil && t.Status == Deleted {
		return refuse(NotFound, "task %s was deleted", t.Called())
	}
	return Refuse(NotFound, "no task %q in team %s", brief(strings.TrimPrefix(ref, byName)), s.team.Name).
		With(s.team.hint(ActShowTasks))
}

// live returns the task that the command names, which must not be deleted.
func (d *decision) live(ref string) (*Task, error) {
	if t := d.referred(ref); t != nil && t.Status != Deleted {
		return t, nil
	}
	return nil, d.noTask(ref)
}

// ClaimTask gives a task to a member: the named one, or with Task "" the next one of the list.
type ClaimTask struct {
	Task   string
	Member string // "" for the actor
	// Merged are the tasks whose work was merged into the place where the member works. A claim of a
	// task that builds on another one is refused with Conflict. nil for a claimer that looks for such
	// work itself.
	Merged []string
}

func (b *ClaimTask) decide(d *decision) error {
	m, err := d.worker(b.Member)
	if err != nil {
		return err
	}
	if err := d.affordable(); err != nil {
		return err
	}
	if err := d.affords(m); err != nil {
		return err
	}
	if err := d.AllowsTool(m.Name, "TaskClaim"); err != nil {
		return err
	}
	if m.Agent == External { // a session of ours may claim a task to plan it: it cannot write
		if err := d.planned(m, "claim a task"); err != nil {
			return err
		}
	}
	switch {
	case m.Status == ShuttingDown:
		return refuse(NotReady, "%s is shutting down and takes no more tasks", m.Name)
	case d.orphaned(m):
		return Refuse(NotReady, "team %s has no lead now: %s finishes its task and takes no other before the lead "+
			"is back", d.team.Name, m.Name).With(d.team.hint(ActResume))
	case d.team.Status == TeamConsolidating:
		return refuse(NotReady, "team %s winds down, and no new work starts", d.team.Name)
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
	case t.waits() > 0:
		return refuse(NotReady, "%s waits for task %s", t.label(), strings.Join(d.CalledAll(d.blockersOf(t)), ", "))
	case t.Owner != "" && t.Owner != m.Name:
		return refuse(Conflict, "%s is meant for %s", t.label(), t.Owner)
	case t.Owner == "" && t.Role != "" && t.Role != m.Role:
		return refuse(Denied, "%s is for the role %s, and %s has the role %s", t.label(), Quoted(brief(t.Role)),
			m.Name, Quoted(brief(m.Role)))
	}
	if err := d.sees(m, t, t.BlockedBy); err != nil {
		return err
	}
	if b.Merged != nil {
		for _, done := range d.BuildsOn(t.ID) {
			if !slices.Contains(b.Merged, done.ID) {
				return refuse(Conflict, "%s builds on task %s, which was completed only now", t.label(), done.Called())
			}
		}
	}
	d.emit(&TaskClaimed{Task: t.ID, Member: m.Name, Fence: t.Fence + 1})
	d.retried(t)
	// record the new status now, not with the member's turn, so that the team does not look stalled
	if d.isHost() && (m.Status == Idle || m.Status == Blocked) {
		d.emit(&MemberStatusChanged{Member: m.Name, Status: Active,
			Summary: clipTo("task "+t.Called()+": "+t.Subject, MaxSubject)})
	}
	return nil
}

// worker returns the member that acts on a task: the actor, or the member that the lead, the user
// or its host names.
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

// nothingFor says why the queue has no task for m: what is in progress, and why m takes none of the
// others.
func (d *decision) nothingFor(m *Member) error {
	var failed, others int
	var blocked, blockers []string
	for i := range d.tasks {
		switch t := &d.tasks[i]; {
		case t.Status != Pending:
		case t.OutOfRetries():
			failed++
		case t.waits() == 0:
			others++
		default:
			blocked = append(blocked, t.ID)
			for _, id := range d.blockersOf(t) {
				if !slices.Contains(blockers, id) && len(blockers) <= mostBlockers {
					blockers = append(blockers, id)
				}
			}
		}
	}
	var parts []string
	part := func(n int, what string) {
		if n > 0 {
			parts = append(parts, strconv.Itoa(n)+" "+what)
		}
	}
	part(d.counts[statusIndex(InProgress)], "in progress")
	switch by := d.CalledAll(blockers); {
	case len(by) > mostBlockers:
		part(len(blocked), "blocked by other tasks")
	case len(by) > 1:
		part(len(blocked), "blocked by tasks "+strings.Join(by[:len(by)-1], ", ")+" and "+by[len(by)-1])
	case len(by) == 1:
		part(len(blocked), "blocked by task "+by[0])
	default:
		part(len(blocked), "blocked")
	}
	part(others, "for other members")
	part(failed, "failed")
	if len(parts) == 0 {
		return refuse(Nothing, "no task for %s: all of them are done", m.Name)
	}
	return refuse(Nothing, "no task for %s yet: %s", m.Name, strings.Join(parts, ", "))
}

// mostBlockers bounds how many blocking tasks a refusal names.
const mostBlockers = 3

// held returns the task and the [decision.worker] that acts on it. The worker must hold the task,
// under that fence if it is not 0.
func (d *decision) held(id, worker string, fence int64) (*Task, *Member, error) {
	m, err := d.worker(worker)
	if err != nil {
		return nil, nil, err
	}
	t, err := d.live(id)
	switch {
	case err != nil:
	case t.Status == Completed:
		err = refuse(Conflict, "%s was completed by %s", t.label(), t.CompletedBy)
	case t.Status == Pending && m.BudgetSpent(d.At) != "":
		err = d.affords(m)
	case t.Status == Pending && fence != 0:
		err = refuse(Conflict, "%s lost its claim on %s: the task is in the queue again", m.Name, t.label())
	case t.Status == Pending:
		err = Refuse(NotReady, "%s is not in progress", t.label()).
			With(Hint{Action: ActClaimTask, Team: d.team.Name, Task: t.ID, TaskName: t.Name, Member: m.Name})
	case t.Owner != m.Name:
		err = refuse(Conflict, "%s lost its claim on %s: %s holds it now", m.Name, t.label(), t.Owner)
	case fence != 0 && fence != t.Fence:
		err = refuse(Conflict, "%s has claimed %s again since: this claim (%d) is void, the present one is %d", m.Name,
			t.label(), fence, t.Fence)
	}
	return t, m, err
}

// CompleteTask ends a task with its result. Its owner completes it, once its plan is approved where
// it needs one. The lead and the user may complete any task that is not blocked.
type CompleteTask struct {
	Task   string
	Member string // "" for the actor
	Fence  int64  // of the claim; 0 checks only the owner
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
		case t.waits() > 0:
			return refuse(NotReady, "%s waits for task %s", t.label(), strings.Join(d.CalledAll(d.blockersOf(t)), ", "))
		}
		if t.Status == InProgress && t.Owner != by {
			d.tell(t.Owner, t.ID, "Task %s was completed by %s; stop working on it.", t.titled(), by)
		}
		return d.complete(t, by, b.Result)
	}
	t, m, err := d.held(b.Task, b.Member, b.Fence)
	if err != nil {
		return err
	}
	if err := d.planned(m, "complete a task"); err != nil {
		return err
	}
	return d.complete(t, m.Name, b.Result)
}

func (d *decision) complete(t *Task, by, result string) error {
	free := d.freedBy(t)
	d.emit(&TaskCompleted{Task: t.ID, By: by, Result: result, Unblocked: free})
	if t.OutOfRetries() {
		d.runAgain(d.turning(t, false), "task "+t.Called()+", which had failed, is completed")
	}
	// A person who leads is notified by the session of ours that did the task. For an external
	// member only this message reports.
	outside := d.member(by) != nil && d.member(by).Agent == External
	if by != d.team.Lead && (d.ledByAgent() || outside) {
		note := fmt.Sprintf("Task %s is completed by %s.", t.titled(), strings.TrimPrefix(by, "@"))
		if result != "" {
			note += cited(clipTo(result, MaxSubject))
		}
		// an external session is given only what waits behind a result, and may wait for it
		quiet := d.lead().Agent != External && d.continues(t, by, free)
		d.post(Message{To: d.team.Lead, Type: TypeSystem, Ref: t.ID, Body: clip(note), Priority: "normal",
			Quiet: quiet})
	}
	d.wakeOwners(free, "task "+t.Called()+" is done")
	return nil
}

// continues reports whether the end of t leaves nothing for the lead to do. Teammates work, and
// more tasks are queued; or a member takes the next task; or nothing is left, and the lead's
// session asks for the report. A lead is notified when the queue is empty while others work: it may
// have more work for free members.
func (d *decision) continues(t *Task, by string, free []string) bool {
	pending, inProgress := d.counts[statusIndex(Pending)], d.counts[statusIndex(InProgress)]
	if t.Status == InProgress {
		inProgress--
	} else {
		pending--
	}
	switch {
	case pending == 0 && inProgress == 0:
		return d.reportFollows()
	case pending == 0:
		return false
	case d.worked(t):
		return true
	}
	takes := func(m *Member, w *Task) bool {
		return m.Name != d.team.Lead && m.Agent != External && m.Status.Running() &&
			m.Shutdown.Request == "" && m.BudgetSpent(d.At) == "" && d.takes(m, w)
	}
	for _, id := range free {
		if w := d.task(id); !w.OutOfRetries() && slices.ContainsFunc(d.members,
			func(m Member) bool { return takes(&m, w) }) {
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

// reportFollows reports whether the lead's session asks the lead for its report once all members
// are idle. That turn also delivers all waiting mail.
func (d *decision) reportFollows() bool {
	return d.lead().Agent != External && d.team.LeadSession != "" && d.team.LeadSession != User &&
		d.team.LeadLost == 0 && !d.team.ReportAsked
}

// worked reports whether a teammate of ours works on another task than t, so that the lead is
// notified of that end too. Tasks of the lead do not count, nor those of idle or external members:
// it is unknown whether they will end.
func (d *decision) worked(t *Task) bool {
	for i := range d.under.all() {
		other := &d.tasks[i]
		if m := d.member(other.Owner); other != t && m != nil && m.Name != d.team.Lead && m.Agent != External &&
			m.Status.Running() && m.Status != Idle && m.BudgetSpent(d.At) == "" {
			return true
		}
	}
	return false
}

func (d *decision) wakeOwners(free []string, why string) {
	for _, id := range free {
		if w := d.task(id); w.Owner != "" && w.Owner != d.Actor {
			d.assigned(w.Owner, id, "Task %s, which is yours, is no longer blocked: %s.", w.titled(), why)
		}
	}
}

// FailTask ends an attempt without success. The task returns to the queue while it has retries
// left. Otherwise it has failed, until a member claims it by its id.
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
	t, m, err := d.held(b.Task, b.Member, b.Fence)
	if err != nil {
		return err
	}
	reason := b.Reason
	if reason == "" {
		reason = "no reason given"
	}
	failed := &TaskFailed{Task: t.ID, By: m.Name, Reason: reason, Result: b.Result}
	d.emit(failed)
	if t.Assigned && d.meantFor(t) == "" { // its owner cannot try again
		none := ""
		d.updated(t, &TaskUpdated{Task: t.ID, Owner: &none})
	}
	if t.Failures < t.Retries {
		return nil
	}
	if m.Name != d.team.Lead {
		failure := fmt.Sprintf("is out of retries after failure %d", t.Failures+1)
		if t.Retries == 0 {
			failure = "failed, and has no retries"
		}
		d.tell(d.team.Lead, t.ID, "Task %s %s:%s\nIt is tried again when the team is run again, when you release it, "+
			"or when a member claims it by its id.", t.titled(), failure, cited(clipTo(reason, MaxSubject)))
	}
	failed.Unblocked = d.freedByFailure(t)
	d.wakeOwners(failed.Unblocked, "task "+t.Called()+" has failed (out of retries)")
	return nil
}

// ReleaseTask returns a task to the queue without a result. The task is in progress, or has failed
// after its last retry; its failures are then forgotten. Only the lead and the user may release a
// failed task. Tasks with When always that ran because of the failure return to the queue with it.
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
		if t.Status != InProgress && !t.OutOfRetries() {
			return refuse(NotReady, "%s is %s, not in progress: there is nothing to release", t.label(), t.Status)
		}
		if t.Status == InProgress && t.Owner != d.Actor {
			d.tell(t.Owner, t.ID, "Task %s was taken from you by %s; stop working on it.",
				t.titled(), d.Actor)
		}
	} else if t, _, err = d.held(b.Task, b.Member, b.Fence); err != nil {
		return err
	}
	d.release(t, b.Reason)
	d.retried(t)
	return nil
}

// release returns a task to the queue. It keeps the owner that it was meant for.
func (d *decision) release(t *Task, reason string) { d.releaseTo(d.meantFor(t), t, reason) }

// meantFor returns who does the task again when it returns to the queue: the member that another
// actor assigned it to, unless that member has ended. A member whose budget is spent keeps the task
// until the budget is raised. "" is for any member.
func (d *decision) meantFor(t *Task) string {
	m := d.member(t.Owner)
	if !t.Assigned || m != nil && !m.Status.Running() {
		return ""
	}
	return t.Owner
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
		d.tell(t.Owner, t.ID, "Task %s was deleted by %s; stop working on it.", t.titled(), d.Actor)
	}
	free := d.freedBy(t)
	d.emit(&TaskDeleted{Task: t.ID, Unblocked: free})
	if t.OutOfRetries() { // the tasks behind it can be done now
		d.runAgain(d.turning(t, false)[1:], "task "+t.Called()+", which had failed, was deleted")
	}
	d.wakeOwners(free, "task "+t.Called()+" was deleted")
	return nil
}
