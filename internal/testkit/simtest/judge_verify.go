package simtest

import (
	"slices"

	"cadre/internal/team"
)

const verified = "a task that others verify is completed when they accepted it, and never by its author"

// verification checks an event of a task that others verify, or of a verification, before the
// record is applied.
func (j *judge) verification(r *team.Record, e team.Event) {
	forget := func(id string) {
		if t := j.tasks[id]; t != nil {
			t.authors, t.checks = nil, nil
		}
	}
	switch e := e.(type) {
	case *team.TaskSubmitted:
		t := j.tasks[e.Task]
		if t == nil || t.status == team.Completed || t.checks != nil {
			j.fail(verified, "task %s was submitted, and it is %+v", e.Task, t)
			return
		}
		t.authors, t.checks = []string{e.By}, e.Tasks
		if t.status == team.InProgress && t.holder != e.By {
			t.authors = append(t.authors, t.holder)
		}
		t.status = team.Pending
		t.fence++
	case *team.TaskRejected:
		forget(e.Task)
	case *team.TaskReleased:
		forget(e.Task)
	case *team.TaskDeleted:
		forget(e.Task)
	case *team.TaskClaimed:
		if v, _ := j.truth.Task(e.Task); v.Verifies != "" && slices.Contains(j.tasks[v.Verifies].authors, e.Member) {
			j.fail(verified, "%s verifies task %s, which is its own", e.Member, v.Verifies)
		}
	case *team.TaskCompleted:
		t := j.tasks[e.Task]
		if t.verdict = e.Verdict; e.Verdict != "" {
			return
		}
		if task, _ := j.truth.Task(e.Task); task.Verify == nil || task.Group() || r.Actor == team.User {
			return
		}
		for _, id := range t.checks {
			if v := j.tasks[id]; v.status != team.Deleted && v.verdict != team.VerdictAccepted {
				j.fail(verified, "task %s is completed, and its verification %s has the verdict %q", e.Task, id,
					v.verdict)
			}
		}
		if t.checks == nil || len(e.Verified) == 0 {
			j.fail(verified, "task %s is completed, and nobody verified it", e.Task)
		}
	}
}
