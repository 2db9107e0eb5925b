package team

import "strings"

// The values of [Task].When beside [Always]. A task with OnFailure runs when nothing more can
// happen to its blockers and one of them is out of retries, or waits for such a task. OnSuccess is
// what a task without When does: it waits until its blockers are done.
const (
	OnFailure = "failed"
	OnSuccess = "completed"
)

// Whens are the values of [Task].When.
var Whens = []string{Always, OnFailure, OnSuccess}

// when returns the value that a task keeps: "" is OnSuccess.
func when(value string) string {
	if value == OnSuccess {
		return ""
	}
	return value
}

// afterFailure reports whether the task can run although one of its blockers has failed.
func (t *Task) afterFailure() bool { return t.When == Always || t.When == OnFailure }

// outlasts reports whether the task waits until nothing more can happen to its blockers, so that it
// can run although one of them has failed. A submitted task waits for each of its verifications.
func (t *Task) outlasts() bool { return t.afterFailure() && t.Submission == nil }

// moot reports whether the task will never run: it waits for a failure, and all of its blockers are
// done. A task that has failed itself stays failed, and a submitted one was run.
func (t *Task) moot() bool {
	return t.When == OnFailure && t.Status == Pending && !t.OutOfRetries() && t.Submission == nil &&
		t.blockage.open == 0
}

// TaskSkipped ends a task that can never run, because its When cannot come true any more. Those
// that wait for it continue. Unblocked lists the tasks that are no longer blocked.
type TaskSkipped struct {
	Task, Reason string
	Unblocked    []string
}

// Kind returns the event's name in the journal.
func (*TaskSkipped) Kind() string { return "task_skipped" }

func (e *TaskSkipped) fields(c *coder) {
	c.str("task", &e.Task)
	c.str("reason", &e.Reason)
	c.strs("unblocked", &e.Unblocked)
}

func (e *TaskSkipped) apply(s *State, r *Record) {
	s.change(e.Task, r, func(t *Task) {
		t.Status, t.Skipped, t.CompletedAt, t.CompletedBy = Completed, strings.Clone(e.Reason), r.At, ""
		if t.Skipped == "" { // so that it can be told from one that was done
			t.Skipped = OnFailure
		}
		t.Result, t.Failure, t.FailedBy, t.Rejected, t.Submission = "", "", "", nil, nil
	})
	s.childrenOver(e.Task)
}

const neverFailed = "none of the tasks that it waits for has failed"

// settleSkips adds what follows from the events of this decision for tasks with When failed: it
// skips those that can never run any more, and returns skipped ones to the queue whose blockers are
// open again. It does nothing in nearly every decision.
func (d *decision) settleSkips() error {
	if _, is := d.Body.(*Batch); is { // each of its commands has settled
		return nil
	}
	touched := d.touched()
	if len(touched) == 0 {
		return nil
	}
	// The events so far are applied to a copy, because the rules read only a state.
	s, err := DecodeSnapshot(d.seq, string(AppendSnapshot(nil, d.State)))
	if err != nil {
		return err
	}
	r := &Record{Seq: d.seq + 1, ID: d.ID, Actor: d.Actor, At: d.At, Events: d.events}
	clean(r)
	for _, e := range r.Events {
		e.apply(s, r)
	}
	for i := 0; i < len(touched); i++ {
		t := s.task(touched[i])
		if t == nil {
			continue
		}
		switch {
		case t.moot():
			e := &TaskSkipped{Task: t.ID, Reason: neverFailed, Unblocked: s.freedBy(t)}
			e.apply(s, r)
			d.emit(e)
			d.wakeOwners(e.Unblocked, "task "+t.Called()+" was skipped")
		case t.Skipped != "" && t.blockage.open > 0:
			e := &TaskReleased{Task: t.ID, Owner: (&decision{State: s}).meantFor(t),
				Reason: "a task that it waits for is open again"}
			e.apply(s, r)
			d.emit(e)
		default:
			continue
		}
		touched = append(touched, t.Blocks...)
	}
	return nil
}

// touched returns the tasks whose When may come true, or cannot any more, because of the events of
// this decision. It is empty if none of them has When failed.
func (d *decision) touched() (ids []string) {
	some := false
	add := func(all ...string) {
		for _, id := range all {
			ids = append(ids, id)
			t := d.task(id)
			some = some || t != nil && t.When == OnFailure
		}
	}
	behind := func(id string) {
		if t := d.task(id); t != nil {
			add(t.Blocks...)
		}
	}
	for _, e := range d.events {
		switch e := e.(type) {
		case *TaskCreated:
			add(e.Task.ID)
			some = some || e.Task.When == OnFailure
		case *TaskRevised:
			add(e.Task.ID)
			some = some || e.Task.When == OnFailure
			behind(e.Task.ID) // it may have been skipped
		case *TaskUpdated:
			add(e.Task)
			add(e.AddBlocks...)
			add(e.RemoveBlocks...)
		case *TaskCompleted:
			behind(e.Task)
		case *TaskDeleted:
			behind(e.Task)
		case *TaskFailed:
			add(e.Task)
		case *TaskReleased:
			add(e.Task)
			behind(e.Task)
		case *TaskRolledBack:
			add(e.Task)
			behind(e.Task)
		}
	}
	if !some {
		return nil
	}
	return ids
}
