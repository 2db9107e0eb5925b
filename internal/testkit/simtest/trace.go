package simtest

import (
	"fmt"
	"time"

	"cadre/internal/team"
)

// A commit is told by who had made how many changes by then.

func commit(member string, changes int) string { return fmt.Sprintf("%s %d", member, changes) }

func changesOf(commit string) (changes int) {
	var member string
	fmt.Sscanf(commit, "%s %d", &member, &changes)
	return changes
}

// tracePatience is how long a claim or a completion waits for the record of the task's work.
const tracePatience = 5 * time.Second

// trace has it recorded what a task starts from, or what it did, until nothing of that is wanted.
// It goes on like the tracer of a host.
func (h *host) trace(task string) {
	if !h.of.w.plan.Repo || h.tracing[task] || h.refused[task] || h.wantsTrace(task) == "" {
		return
	}
	h.tracing[task] = true
	h.of.spawn("trace", func(t *thread) {
		for h.wantsTrace(task) != "" && h.traceOnce(t, task) {
		}
		delete(h.tracing, task)
		h.traced.ring()
	})
}

func (h *host) wantsTrace(task string) (kind team.WantKind) {
	h.view(func(s *team.State) { kind = s.WorkWanted(task) })
	return kind
}

// traceOnce makes the commit and records it. It reports whether that is to go on: what could not be
// recorded is tried again after a moment.
func (h *host) traceOnce(t *thread, id string) (on bool) {
	w := h.of.w
	var task team.Task
	var kind team.WantKind
	h.view(func(s *team.State) { task, _ = s.Task(id); kind = s.WorkWanted(id) })
	work := team.Work{Member: task.Owner, Fence: task.Fence}
	changes := w.edited[task.Owner]
	if kind == team.WantRecord {
		work = team.Work{Member: task.Work.Member, Base: task.Work.Base, Fence: task.Work.Fence}
		changes = w.edited[work.Member]
	}
	if w.bug("traced-early") && kind == team.WantRecord {
		changes = changesOf(work.Base)
	}
	t.step()
	if work.Commit = commit(work.Member, changes); kind == team.WantBase {
		work.Base, work.Commit = work.Commit, ""
	}
	err := h.tell(t, &team.RecordWork{Task: id, Work: work}, 0)
	if code := team.CodeOf(err); err == nil || code == team.Conflict {
		return true
	}
	h.refused[id] = true
	if !w.bug("trace-once") {
		w.at(w.now+lookPause, func() {
			delete(h.refused, id)
			h.bell.ring()
		})
	}
	return false
}

// followTrace waits until it is recorded what the task starts from, or what it did, but not for
// long.
func (h *host) followTrace(t *thread, r *team.Record) {
	if r == nil || !h.of.w.plan.Repo {
		return
	}
	for _, e := range r.Events {
		task := ""
		switch e := e.(type) {
		case *team.TaskClaimed:
			task = e.Task
		case *team.TaskCompleted:
			task = e.Task
		default:
			continue
		}
		h.trace(task)
		for until := t.of.w.now + tracePatience; h.tracing[task] && t.of.w.now < until; {
			t.await(until, &h.traced)
		}
	}
}
