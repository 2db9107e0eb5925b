package simtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"cadre/internal/team"
)

const (
	demanded = "a task is completed when its result fits and its check has passed, and fails after its last try"
	grouped  = "a group makes one task for each of its items, and is completed when all of them are done"
)

// demandBook is what the judge knows of what a task demands.
type demandBook struct {
	check  *team.TaskCheck
	schema bool
	tries  map[string]int64 // how often its result was rejected, by what rejected it
}

// groupBook is what the judge knows of a group.
type groupBook struct {
	expanded bool
	made     []string // the tasks that it made
	items    []string // their items
}

// aSchema is the schema of results, where tasks have one; fits is the model of it.
const aSchema = `{"type":"object","required":["done"]}`

func fits(result string) bool {
	var is map[string]any
	return json.Unmarshal([]byte(result), &is) == nil && is["done"] != nil
}

// resultFor returns a result that fits the task, or else one that may not.
func resultFor(task team.Task, fit bool, otherwise string) string {
	if len(task.Schema) > 0 && fit {
		return `{"done":true}`
	}
	return otherwise
}

// check runs the check of a task. It fails now and then, until everything heals.
func (w *world) check(task team.Task) (failure string) {
	w.checked[task.ID]++
	if !w.calm && sum(fmt.Sprint(task.ID, " ", w.checked[task.ID]))%3 == 0 {
		w.logf("the check of task %s fails", task.ID)
		return "a test fails"
	}
	w.logf("the check of task %s passes, under the claim %d", task.ID, task.Fence)
	w.judge.passed[passKey{task.ID, task.Fence}] = true
	w.judge.passed[passKey{task.ID, anyClaim}] = true
	return ""
}

// passKey is a task and the claim under which its check has passed.
type passKey struct {
	task  string
	fence int64
}

// anyClaim stands for any claim in a [passKey].
const anyClaim = -1

// printed returns what the command of a group prints.
func printed(group string) (items []string) {
	n, _ := strconv.Atoi(group)
	for i := range n % 4 {
		items = append(items, fmt.Sprint("printed ", i))
	}
	return items
}

// itemsOf returns the items that a group has.
func itemsOf(group team.Task) (items []string) {
	if group.ForEach.Run != "" {
		return printed(group.ID)
	}
	for _, item := range group.ForEach.Items {
		items = append(items, team.ItemText(item))
	}
	return items
}

// demands checks an event of a task that has a check or a schema, and of a group and what it makes,
// before the record is applied.
func (j *judge) demands(r *team.Record, e team.Event) {
	switch e := e.(type) {
	case *team.TaskCreated:
		j.made(&e.Task)
	case *team.TaskExpanded:
		j.expanded(e)
	case *team.TaskFolded:
		j.groups[e.Task] = &groupBook{}
	case *team.TaskClaimed:
		if j.groups[e.Task] != nil {
			j.fail(grouped, "%s claimed task %s, which is done by the tasks that it makes", e.Member, e.Task)
		}
	case *team.TaskRejected:
		if e.By == team.ByCheck || e.By == team.ByResult {
			j.rejected(r, e)
		}
	case *team.TaskCompleted:
		if g := j.groups[e.Task]; g != nil {
			j.groupDone(e.Task, g)
			return
		}
		j.meets(r, e)
	}
}

// made notes a new task, and checks that it is the only one of its item.
func (j *judge) made(t *team.Task) {
	if t.Check != nil || len(t.Schema) > 0 {
		j.tasks[t.ID].demands = &demandBook{check: t.Check, schema: len(t.Schema) > 0, tries: map[string]int64{}}
	}
	if t.ForEach != nil {
		j.groups[t.ID] = &groupBook{}
	}
	if t.Of == "" {
		return
	}
	g, item := j.groups[t.Of], team.ItemText(t.Item)
	if g == nil || g.expanded || slices.Contains(g.items, item) {
		j.fail(grouped, "task %s is made for %q of task %s, and that has %+v", t.ID, item, t.Of, g)
		return
	}
	g.made, g.items = append(g.made, t.ID), append(g.items, item)
}

// expanded checks that a group made its tasks once nothing was left to wait for, and for all items.
func (j *judge) expanded(e *team.TaskExpanded) {
	g := j.groups[e.Task]
	task, is := j.truth.Task(e.Task)
	if g == nil || g.expanded {
		j.fail(grouped, "task %s makes tasks, and it is %+v", e.Task, g)
		return
	}
	g.expanded = true
	if !slices.Equal(g.made, e.Tasks) {
		j.fail(grouped, "task %s made %v, and names %v", e.Task, g.made, e.Tasks)
	}
	if !is { // it is created in this record
		return
	}
	if want := itemsOf(task); !slices.Equal(g.items, want) {
		j.fail(grouped, "task %s made tasks for %q, and its items are %q", e.Task, g.items, want)
	}
	for _, id := range task.BlockedBy {
		if b := j.tasks[id]; b.status != team.Completed && b.status != team.Deleted {
			j.fail(grouped, "task %s made its tasks while task %s is %s", e.Task, id, b.status)
		}
	}
}

// groupDone checks a group that is completed.
func (j *judge) groupDone(group string, g *groupBook) {
	if !g.expanded {
		j.fail(grouped, "task %s is completed, and has made no tasks", group)
	}
	for _, id := range g.made {
		if t := j.tasks[id]; t.status != team.Completed && t.status != team.Deleted {
			j.fail(grouped, "task %s is completed, and its task %s is %s", group, id, t.status)
		}
	}
}

// ofGroup follows the status of a group, which no member does, and reports whether the event is
// about one.
func (j *judge) ofGroup(e team.Event) bool {
	switch e := e.(type) {
	case *team.TaskCompleted:
		if j.groups[e.Task] != nil {
			j.tasks[e.Task].status = team.Completed
			return true
		}
	case *team.TaskFailed:
		return j.groups[e.Task] != nil
	}
	return false
}

// meets checks that the result of a completed task is what the task demands.
func (j *judge) meets(r *team.Record, e *team.TaskCompleted) {
	t := j.tasks[e.Task]
	if t == nil || t.demands == nil {
		return
	}
	claim := t.fence
	if r.Actor == team.User || r.Actor == j.truth.Team().Lead { // their completion is bound to no claim
		claim = anyClaim
	}
	if t.demands.check != nil && !j.passed[passKey{e.Task, claim}] {
		j.fail(demanded, "%s completed task %s under %d, and its check has not passed", e.By, e.Task, t.fence)
	}
	if t.demands.schema && !fits(e.Result) {
		j.fail(demanded, "%s completed task %s with the result %q", e.By, e.Task, e.Result)
	}
}

// rejected checks that the rejections of a result are counted, and that the last one ends the
// attempt.
func (j *judge) rejected(r *team.Record, e *team.TaskRejected) {
	t := j.tasks[e.Task]
	if t == nil || t.demands == nil || t.status != team.InProgress || t.holder != e.Member {
		j.fail(demanded, "a result of task %s by %s was rejected, and the task is %+v", e.Task, e.Member, t)
		return
	}
	d := t.demands
	m, _ := j.truth.Member(e.Member)
	limit := int64(3)
	switch {
	case e.By == team.ByCheck && d.check.Rounds > 0:
		limit = d.check.Rounds
	case m.Agent == team.Shell:
		limit = 1
	case e.By == team.ByCheck:
		limit = 10
	}
	if d.tries[e.By]++; e.Count == 1 {
		d.tries[e.By] = 1 // another attempt
	}
	ended := slices.ContainsFunc(r.Events, func(o team.Event) bool {
		failed, is := o.(*team.TaskFailed)
		return is && failed.Task == e.Task
	})
	if e.Limit != limit || e.Count != d.tries[e.By] || ended != (e.Count == limit) {
		j.fail(demanded, "rejection %d of %d of task %s ends its attempt: %t; it is number %d of %d", e.Count, e.Limit,
			e.Task, ended, d.tries[e.By], limit)
	}
	if ended {
		clear(d.tries)
	}
}
