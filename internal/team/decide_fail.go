package team

import (
	"cmp"
	"fmt"
)

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
	return d.fail(t, m, cmp.Or(b.Reason, "no reason given"), b.Result)
}

// fail ends an attempt of m without success.
func (d *decision) fail(t *Task, m *Member, reason, result string) error {
	failed := &TaskFailed{Task: t.ID, By: m.Name, Reason: reason, Result: result}
	d.emit(failed)
	d.givesUp(t, "has failed")
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
		d.tell(d.team.Lead, t.ID, "Task %s %s:%s\nIt is tried again when %syou release it, or when a member claims it "+
			"by its id.", t.titled(), failure, cited(clipTo(reason, MaxSubject)), d.whenRun())
	}
	failed.Unblocked = d.freedByFailure(t)
	d.wakeOwners(failed.Unblocked, "task "+t.Called()+" has failed (out of retries)")
	return nil
}

// whenRun begins the list of what has a failed task tried again. Only a team that was run from a
// file or a goal can be run again.
func (d *decision) whenRun() string {
	if d.team.Origin == "" {
		return ""
	}
	return "the team is run again, when "
}
