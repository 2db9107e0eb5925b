package team

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// ClaimTask gives a task to a member: the named one, or with Task "" the next one of the list.
type ClaimTask struct {
	Task   string
	Member string // "" for the actor
	// Merged are the tasks whose work was merged into the place where the member works. A claim of
	// a task that builds on another one is refused with Conflict. nil for a claimer that looks for
	// such work itself.
	Merged []string
}

func (b *ClaimTask) decide(d *decision) error {
	m, err := d.worker(b.Member)
	if err != nil {
		return err
	}
	if err := cmp.Or(d.claims(m), d.unlimited(m)); err != nil {
		return err
	}
	var t *Task
	if b.Task == "" {
		if t = d.next(m); t == nil {
			return d.nothingFor(m)
		}
	} else if t, err = d.live(b.Task); err != nil {
		return err
	}
	if err := d.free(t, m); err != nil {
		return err
	}
	if b.Task != "" { // the next one waits for no path
		if err := d.mayTakePaths(t, m); err != nil {
			return err
		}
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

// free checks that the task is free for the member.
func (d *decision) free(t *Task, m *Member) error {
	if err := cmp.Or(d.mayOwn(m, t), m.unable(t, t.Run)); err != nil { // whoever has it now
		return err
	}
	switch {
	case t.Status == Completed:
		return Refuse(Conflict, "%s is completed", t.label()).With(t.Hint(&d.team, ActShowTask))
	case t.ForEach != nil:
		return Refuse(NotReady, "%s is done by the tasks that it makes; claim one of those", t.label()).
			With(Hint{Action: ActClaimNext, Team: d.team.Name, Member: m.Name})
	case t.Status == InProgress && t.Owner == m.Name:
		return refuse(Conflict, "%s holds %s already", m.Name, t.label())
	case t.Status == InProgress:
		return Refuse(Conflict, "%s was claimed by %s", t.label(), t.Owner).
			With(Hint{Action: ActClaimNext, Team: d.team.Name, Member: m.Name})
	case t.Submission != nil:
		return d.verifying(t, "nobody takes it meanwhile")
	case t.waits() > 0:
		return Refuse(NotReady, "%s waits for task %s", t.label(), strings.Join(d.CalledAll(d.blockersOf(t)), ", ")).
			With(Hint{Action: ActClaimNext, Team: d.team.Name, Member: m.Name})
	case t.Owner != "" && t.Owner != m.Name:
		return refuse(Conflict, "%s is meant for %s", t.label(), t.Owner)
	case t.Owner == "" && !t.suits(m):
		return refuse(Denied, "%s is for the role %s, and %s has the role %s", t.label(), Quoted(brief(t.Role)),
			m.Name, Quoted(brief(m.Role)))
	}
	return nil
}

// claims checks that the member may claim a task now.
func (d *decision) claims(m *Member) error {
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
	return nil
}

// nothingFor says why the queue has no task for m: what is in progress, and why m takes none of the
// others.
func (d *decision) nothingFor(m *Member) error {
	var failed, others, groups int
	var blocked, blockers []string
	l := d.line()
	for i := range d.tasks {
		switch t := &d.tasks[i]; {
		case t.Status != Pending:
		case t.OutOfRetries():
			failed++
		case t.isDue():
			groups++
		case len(d.shown(t, l).open) == 0:
			others++
		default:
			blocked = append(blocked, t.ID)
			for _, id := range d.shown(t, l).open {
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
	part(groups, "about to make its tasks")
	part(failed, "failed")
	if len(parts) == 0 {
		return refuse(Nothing, "no task for %s: all of them are done", m.Name)
	}
	return refuse(Nothing, "no task for %s yet: %s", m.Name, strings.Join(parts, ", "))
}

// mostBlockers bounds how many blocking tasks a refusal names.
const mostBlockers = 3

// ReleaseTask returns a task to the queue without a result. The task is in progress, or has failed
// after its last retry; its failures are then forgotten. Only the lead and the user may release a
// failed task. Tasks with When always that ran because of the failure return to the queue with it.
// A member that was interrupted in its last attempt gets a message, with which it continues.
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
		if t.Status == Completed && t.Work != nil && t.Work.Machine != "" { // its work may be lost with the machine
			return (&RedoTask{Task: t.ID, Reason: b.Reason}).decide(d)
		}
		if !t.begun() && !t.OutOfRetries() {
			return refuse(NotReady, "%s is %s, not in progress: there is nothing to release", t.label(), t.Status)
		}
		if t.Status == InProgress && t.Owner != d.Actor {
			d.tell(t.Owner, t.ID, "Task %s was taken from you by %s; stop working on it.",
				t.titled(), d.Actor)
		}
		if t.Submission != nil && t.Owner != d.Actor {
			d.assigned(t.Owner, t.ID, "Task %s is yours again: %s returned it to the queue.", t.titled(),
				strings.TrimPrefix(d.Actor, "@"))
		}
		if m := d.member(t.FailedBy); m != nil && m.Interrupt != 0 { // it waits for a message
			d.tell(m.Name, t.ID, "Task %s was returned to the queue by %s.", t.titled(), d.Actor)
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
	d.dropVerifications(t, "was returned to the queue")
	d.givesUp(t, "was returned to the queue")
}
