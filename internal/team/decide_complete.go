package team

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// CompleteTask ends a task with its result. Its owner completes it, once its plan is approved where
// it needs one. The lead and the user may complete any task that is not blocked. A task that others
// verify is submitted to them, unless the user completes it. A verification needs a verdict, and
// the result is the reason.
type CompleteTask struct {
	Task   string
	Member string // "" for the actor
	Fence  int64  // of the claim; 0 checks only the owner
	Result string
	// of a verification: [VerdictAccepted] or [VerdictRejected]
	Verdict string
	// the result fits the task's schema, and its check has passed. Only a replica's gate sets it
	Examined bool
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
			return Refuse(Conflict, "%s was completed by %s", t.label(),
				t.CompletedBy).With(t.Hint(&d.team, ActShowTask))
		case t.ForEach != nil:
			return refuse(NotReady, "%s is completed when the tasks that it makes are; delete those that are not needed",
				t.label())
		case t.Submission != nil && by == User: // it is accepted by hand
		case t.Submission != nil:
			return d.verifying(t, "only the user completes it by hand")
		case t.waits() > 0:
			return refuse(NotReady, "%s waits for task %s", t.label(), strings.Join(d.CalledAll(d.blockersOf(t)), ", "))
		}
		if err := d.unexamined(t, b); err != nil {
			return err
		}
		if t.Status == InProgress && t.Owner != by {
			d.tell(t.Owner, t.ID, "Task %s was completed by %s; stop working on it.", t.titled(), by)
		}
		return d.complete(t, by, b)
	}
	t, m, err := d.held(b.Task, b.Member, b.Fence)
	if err != nil {
		return err
	}
	if err := d.planned(m, "complete a task"); err != nil {
		return err
	}
	if err := d.unexamined(t, b); err != nil {
		return err
	}
	return d.complete(t, m.Name, b)
}

// complete ends a task, submits it to those who verify it, or takes the verdict of a verification.
func (d *decision) complete(t *Task, by string, b *CompleteTask) error {
	switch {
	case t.Verifies != "":
		return d.verify(t, by, b.Verdict, b.Result)
	case b.Verdict != "":
		return refuse(Invalid, "%s verifies no other task, so it has no verdict; complete it with its result",
			t.label())
	case t.Submission != nil:
		d.accept(t, cmp.Or(b.Result, t.Submission.Result), []string{by})
		return nil
	case t.Verify != nil && by != User:
		return d.submit(t, by, b.Result)
	}
	e := &TaskCompleted{Task: t.ID, By: by, Result: b.Result}
	if t.Verify != nil {
		e.Verified = []string{by}
	}
	d.completed(t, e)
	return nil
}

// completed ends a task, with what follows from that.
func (d *decision) completed(t *Task, e *TaskCompleted) {
	free, by := d.freedBy(t), e.By
	e.Unblocked = free
	d.emit(e)
	d.givesUp(t, "is done")
	if t.OutOfRetries() {
		d.runAgain(d.turning(t, false), "task "+t.Called()+", which had failed, is completed")
	}
	d.settle()
	if d.tellsLead(by) {
		note := fmt.Sprintf("Task %s is completed by %s.", t.titled(), strings.TrimPrefix(by, "@"))
		done := *t
		done.Status, done.Result, done.Verified, done.Submission = Completed, e.Result, e.Verified, nil
		note += done.Summary().told()
		// an external session is given only what waits behind a result, and may wait for it
		quiet := d.lead().Agent != External && d.continues(t, by, free)
		d.post(Message{To: d.team.Lead, Type: TypeSystem, Ref: t.ID, Body: clip(note), Priority: "normal",
			Quiet: quiet})
	}
	d.wakeOwners(free, "task "+t.Called()+" is done")
}

// tellsLead reports whether the lead gets messages about a task that the member completed. A person
// who leads is notified by the session of ours that did the task. For an external member only such
// a message reports.
func (d *decision) tellsLead(by string) bool {
	m := d.member(by)
	return by != d.team.Lead && (d.ledByAgent() || m != nil && m.Agent == External)
}

// continues reports whether the end of t leaves nothing for the lead to do. Teammates work, and
// more tasks are queued; or a member takes the next task; or nothing is left, and the lead's
// session asks for the report. A lead is notified when the queue is empty while others work: it may
// have more work for free members.
func (d *decision) continues(t *Task, by string, free []string) bool {
	pending, inProgress := d.counts[statusIndex(Pending)]+d.created-d.finished, d.counts[statusIndex(InProgress)]
	for _, ended := range append([]*Task{t}, d.unneeded...) {
		if ended.Status == InProgress {
			inProgress--
		} else {
			pending--
		}
	}
	switch {
	case pending == 0 && inProgress == 0:
		return d.reportFollows()
	case pending == 0:
		return false
	case d.created > 0 || d.awaited > 0 || d.worked(t):
		return true
	}
	takes := func(m *Member, w *Task) bool {
		return m.Name != d.team.Lead && m.Agent != External && m.Status.Running() &&
			m.Shutdown.Request == "" && m.BudgetSpent(d.At) == "" && d.takes(m, w)
	}
	for _, id := range slices.Concat(free, d.freed) {
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
		if m := d.member(other.Owner); other != t && !slices.Contains(d.unneeded, other) && m != nil &&
			m.Name != d.team.Lead &&
			m.Agent != External && m.Status.Running() && m.Status != Idle && m.BudgetSpent(d.At) == "" {
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
