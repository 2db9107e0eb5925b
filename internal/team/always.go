package team

import (
	"path"
	"slices"
	"strings"
)

// Always is the [Task].When of a task that runs when nothing more can happen to its blockers. Each
// of them is done, is out of retries, or waits for one that is out of retries.
const Always = "always"

// checkPlace refuses an invalid environment, directory or When.
func (b *CreateTask) checkPlace() error {
	command := strings.TrimSpace(b.Run) != "" || b.Check != nil || b.ForEach != nil && b.ForEach.Run != ""
	switch {
	case b.When != "" && !slices.Contains(Whens, b.When):
		return refuse(Invalid, "%q is not a value of a task's when; use one of: %s, or leave it out", brief(b.When),
			strings.Join(Whens, ", "))
	case !command && len(b.Env) > 0:
		return refuse(Invalid, "a task without a command has no environment; add a command, or leave the environment "+
			"out")
	case !command && b.Dir != "":
		return refuse(Invalid, "a task without a command has no directory; add a command, or leave the directory out")
	case path.IsAbs(b.Dir) || b.place() == ".." || strings.HasPrefix(b.place(), "../"):
		return refuse(Invalid,
			"%q is not a directory below the member's directory; write a relative path, such as services/api",
			brief(b.Dir))
	}
	for _, one := range b.Env {
		if name, _, ok := strings.Cut(one, "="); !ok || name == "" || strings.ContainsAny(one, "\x00") {
			return refuse(Invalid, "%q is not an environment variable; write NAME=value", brief(one))
		}
	}
	return limit(text{"directory", b.Dir, MaxSubject}, text{"environment", strings.Join(b.Env, ""), MaxText})
}

// place returns the directory of the task in its shortest form; "" for the member's directory.
func (b *CreateTask) place() string {
	if dir := path.Clean(b.Dir); dir != "." {
		return dir
	}
	return ""
}

// runAgain is called when these tasks are no longer stuck. It returns to the queue the tasks with
// When always or failed that ran because they were, and all tasks that build on those. Their
// results describe a failure that may be obsolete.
func (d *decision) runAgain(unstuck []*Task, why string) {
	var again []*Task
	seen := map[*Task]bool{}
	add := func(b *Task, id string, behind bool) {
		w := d.task(id)
		if b.Verifies == id { // it waits for that only to be verified
			return
		}
		if w == nil || seen[w] || !w.begun() && w.Status != Completed || !w.afterFailure() && !behind ||
			w.Verifies != "" && w.Status == Completed { // its verdict stands
			return
		}
		seen[w] = true
		again = append(again, w)
	}
	for _, t := range unstuck {
		for _, id := range t.Blocks {
			add(t, id, false)
		}
	}
	for i := 0; i < len(again); i++ {
		for _, id := range again[i].Blocks {
			add(again[i], id, true)
		}
	}
	slices.SortFunc(again, func(a, b *Task) int { return taskIndex(a.ID) - taskIndex(b.ID) })
	for _, w := range again {
		d.release(w, why)
		if w.begun() && w.Owner != d.Actor {
			d.tell(w.Owner, w.ID, "Task %s was returned to the queue: %s. Stop working on it.", w.titled(), why)
		}
	}
}

// retried is runAgain for a task that was out of retries and gets another attempt.
func (d *decision) retried(t *Task) {
	if t.OutOfRetries() {
		d.runAgain(d.turning(t, false), "task "+t.Called()+", which had failed, is tried again")
	}
}
