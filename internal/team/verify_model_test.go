package team

import (
	"slices"
)

// mayVerify reports whether the member may do the verification v: it is not its own work, it only
// runs no commands, and it verifies nothing else of that round.
func (m *model) mayVerify(v *modelTask, member string) bool {
	of := m.tasks[v.verifies]
	if of.author == nil {
		return true
	}
	if slices.Contains(of.author, member) || m.shell[member] {
		return false
	}
	return !slices.ContainsFunc(of.submitted, func(id string) bool {
		o := m.tasks[id]
		return o != v && (o.status == Completed && o.by == member || o.status == InProgress && o.owner == member)
	})
}

// completes checks that a task that others verify is completed only if enough of them accepted it
// since its last submission, or the user completes it.
func (m *model) completes(t fataler, e *TaskCompleted, actor string) {
	task := m.tasks[e.Task]
	if task.verifies != "" && (!slices.Contains(Verdicts, e.Verdict) || e.Result == "") {
		t.Fatalf("the verification %s is completed with %+v", e.Task, e)
	}
	if task.verify == nil || task.each != nil || actor == User && slices.Equal(e.Verified, []string{User}) {
		return
	}
	if task.author == nil {
		t.Fatalf("task %s is completed, and was not submitted: %+v", e.Task, e)
	}
	accepted, all := 0, 0
	var by []string
	for _, id := range task.submitted {
		switch v := m.tasks[id]; {
		case v.status == Deleted:
			continue
		case v.status == Completed && v.verdict == VerdictAccepted:
			accepted++
			if slices.Contains(task.author, v.by) || v.by != User && slices.Contains(by, v.by) {
				t.Fatalf("%s accepted task %s, which is its own or which it accepted already", v.by, e.Task)
			}
			by = append(by, v.by)
		}
		all++
	}
	if accepted == 0 || task.verify.Rule == RuleAll && accepted < all || 2*accepted <= all {
		t.Fatalf("task %s is completed by the rule %s with %d acceptances of %d", e.Task, task.verify.Rule, accepted,
			all)
	}
	if !slices.Equal(e.Verified, by) {
		t.Fatalf("task %s was accepted by %v, and the record says %v", e.Task, by, e.Verified)
	}
}

// applyVerification follows the events of verifications, and forgets the submission of a task that
// returns to the queue. It reports whether nothing else changes with the event.
func (m *model) applyVerification(e Event, actor string) bool {
	withdraw := func(id string) {
		if t := m.tasks[id]; t != nil {
			t.author, t.submitted = nil, nil
		}
	}
	switch e := e.(type) {
	case *TaskSubmitted:
		t := m.tasks[e.Task]
		t.author = append(slices.Clone(t.workers), e.By)
		if t.status == InProgress && t.owner != e.By {
			t.author = append(t.author, t.owner)
		}
		t.submitted, t.waits = e.Tasks, slices.Concat(t.waits, e.Tasks)
		t.status, t.failure, t.failer, t.assigned = Pending, "", "", true
		t.fence++
		if t.owner == "" {
			t.owner = e.By
		}
		return true
	case *TaskRejected:
		withdraw(e.Task)
		return true
	case *TaskFailed:
		withdraw(e.Task)
		m.tasks[e.Task].rejected = 0
	case *TaskReleased:
		if t := m.tasks[e.Task]; actor == User || actor == m.lead && t.owner != actor {
			t.rejected = 0
		}
		withdraw(e.Task)
	case *TaskDeleted:
		withdraw(e.Task)
	case *TaskRolledBack:
		withdraw(e.Task)
		m.tasks[e.Task].rejected = 0
	case *TaskRevised:
		m.tasks[e.Task.ID].rejected = 0
	case *TaskCompleted:
		t := m.tasks[e.Task]
		t.verdict, t.rejected, t.workers = e.Verdict, 0, nil
		withdraw(e.Task)
	}
	return false
}
