package model

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"cadre/internal/observe/protocol"
	"cadre/internal/team"
)

// listed applies the result of TaskList: tasks that are not in it do not exist. Completed blockers
// are not listed, so only open ones count.
func (b *board) listed(tasks []protocol.ListedTask, when stamp) {
	open := map[string]bool{}
	shown := make(map[string]bool, len(tasks))
	for _, t := range tasks {
		shown[t.ID] = true
		open[t.ID] = t.Status != string(team.Completed)
	}
	for _, t := range tasks {
		e := b.exists(t.ID, true, when)
		if e == nil {
			continue
		}
		e.Subject.learn(t.Subject, when)
		e.Status.learn(t.Status, when)
		e.Owner.learn(t.Owner, when)
		for _, blocker := range t.BlockedBy {
			b.blocks(blocker, t.ID, true, when)
		}
		for blocker := range e.BlockedBy {
			if open[blocker] && !slices.Contains(t.BlockedBy, blocker) {
				b.blocks(blocker, t.ID, false, when)
			}
		}
	}
	b.only(shown, when)
}

// got applies a task from the result of TaskGet.
func (b *board) got(t *protocol.ListedTask, when stamp) {
	e := b.exists(t.ID, true, when)
	if e == nil {
		return
	}
	e.Subject.learn(t.Subject, when)
	e.Description.learn(t.Description, when)
	e.Status.learn(t.Status, when)
	b.waits(t.ID, e, t.BlockedBy, when)
	for _, waiter := range t.Blocks {
		b.blocks(t.ID, waiter, true, when)
	}
	for _, waiter := range e.Waiters {
		if !slices.Contains(t.Blocks, waiter) {
			b.blocks(t.ID, waiter, false, when)
		}
	}
}

// created applies a TaskCreate. It returns false if the task's id is invalid.
func (b *board) created(f *fact, out *protocol.Outcome, actor string) bool {
	var in protocol.TaskInput
	if protocol.ReadJSON(f.Call.Input, &in) != nil || out.Task == nil {
		return true
	}
	e := b.exists(out.Task.ID, true, f.Result.At)
	if e == nil {
		return false
	}
	// The initial values are only assumptions, because later changes may already have been read.
	e.Subject.assume(cmp.Or(out.Task.Subject, value(in.Subject)))
	e.Description.assume(cmp.Or(value(in.Description), out.Task.Description))
	e.ActiveForm.assume(value(in.ActiveForm))
	e.Status.assume(string(team.Pending))
	e.Owner.assume(value(in.Owner))
	e.meta(in.Metadata, stamp{})
	e.CreatedBy = actor
	b.link(out.Task.ID, &in, f.Result.At)
	return true
}

// link applies the dependencies that a call adds to a task.
func (b *board) link(id string, in *protocol.TaskInput, at stamp) {
	for _, blocker := range in.AddBlockedBy {
		b.blocks(blocker, id, true, at)
	}
	for _, waiter := range in.AddBlocks {
		b.blocks(id, waiter, true, at)
	}
}

// updated applies a TaskUpdate. It returns the new status of the task, "" for none, and the task's
// owner at that time as far as the call says. By now the task may have another owner.
func (b *board) updated(f *fact, out *protocol.Outcome, actor string) (owner string, _ team.TaskStatus) {
	var in protocol.TaskInput
	if protocol.ReadJSON(f.Call.Input, &in) != nil {
		return "", ""
	}
	at, status := f.Result.At, team.TaskStatus(value(in.Status))
	if out.Change != nil && out.Change.To != "" {
		status = team.TaskStatus(out.Change.To)
	}
	if status == team.Deleted {
		b.removed(in.TaskID, at)
		return "", ""
	}
	e := b.at(in.TaskID)
	if e == nil {
		return "", ""
	}
	for _, set := range []struct {
		to   *known[string]
		from *string
	}{{&e.Subject, in.Subject}, {&e.Description, in.Description}, {&e.ActiveForm, in.ActiveForm},
		{&e.Owner, in.Owner}} {
		if set.from != nil {
			set.to.learn(*set.from, at)
		}
	}
	owner = value(in.Owner)
	if in.Owner == nil && slices.Contains(out.Updated, "owner") { // the actor becomes the owner
		owner = actor
		e.Owner.learn(actor, at)
	}
	e.meta(in.Metadata, at)
	b.link(in.TaskID, &in, at)
	switch status {
	case team.Pending, team.InProgress, team.Completed:
		e.Status.learn(string(status), at)
		return cmp.Or(owner, e.Owner.V, actor), status
	}
	return "", ""
}

// removed records that a task does not exist. A task that was never seen stays unknown.
func (b *board) removed(id string, at stamp) {
	if b.Tasks[id] != nil {
		b.exists(id, false, at)
	}
}

// shown applies a TaskGet.
func (b *board) shown(f *fact, out *protocol.Outcome, r *roster) {
	var in protocol.TaskInput
	_ = protocol.ReadJSON(f.Call.Input, &in)
	switch {
	case out.Missing || !out.Structured && strings.TrimSpace(f.Result.R) == "Task not found":
		b.removed(in.TaskID, f.asked())
	case out.Task != nil && out.OK:
		b.got(out.Task, f.asked())
		// In 2.1.47 each spawn creates a task, which TaskList hides and TaskGet does not.
		if p, e := r.People[out.Task.Subject], b.Tasks[out.Task.ID]; p != nil && e != nil &&
			p.About.V.Prompt != "" && p.About.V.Prompt == out.Task.Description {
			e.Hidden = true
		}
	}
}

// filed applies the content of a task's file. It returns false if the id is invalid.
func (b *board) filed(t *protocol.TaskFile, at stamp) bool {
	e := b.exists(t.ID, true, at)
	if e == nil {
		return false
	}
	e.Subject.learn(t.Subject, at)
	e.Description.learn(t.Description, at)
	e.ActiveForm.learn(t.ActiveForm, at)
	e.Owner.learn(t.Owner, at)
	switch team.TaskStatus(t.Status) {
	case team.Pending, team.InProgress, team.Completed:
		e.Status.learn(t.Status, at)
	}
	metadata := map[string]json.RawMessage{}
	for key := range e.Metadata {
		metadata[key] = json.RawMessage("null")
	}
	maps.Copy(metadata, t.Metadata)
	e.meta(metadata, at)
	b.waits(t.ID, e, t.BlockedBy, at)
	return true
}

// waits records that a task depends on exactly these blockers.
func (b *board) waits(id string, e *entry, blockers []string, when stamp) {
	for _, blocker := range blockers {
		b.blocks(blocker, id, true, when)
	}
	for blocker := range e.BlockedBy {
		if !slices.Contains(blockers, blocker) {
			b.blocks(blocker, id, false, when)
		}
	}
}

// only records that no other tasks than these exist.
func (b *board) only(there map[string]bool, when stamp) {
	for id, e := range b.Tasks {
		if e.There.V && !there[id] && e.There.When.before(when) {
			b.exists(id, false, when)
		}
	}
}

// adopt applies a task from a state.
func (b *board) adopt(t *team.Task) {
	when := stamp{At: t.UpdatedAt}
	e := b.exists(t.ID, t.Status != team.Deleted, when)
	if e == nil {
		return
	}
	e.Subject.learn(t.Subject, when)
	e.Description.learn(t.Description, when)
	e.ActiveForm.learn(t.ActiveForm, when)
	e.Owner.learn(t.Owner, when)
	if t.Status != team.Deleted {
		e.Status.learn(string(t.Status), when)
	}
	e.meta(t.Metadata, when)
	e.CreatedBy = t.CreatedBy
	for _, blocker := range t.BlockedBy {
		b.blocks(blocker, t.ID, true, when)
	}
}

// recall applies a task as consumers saw it, as an assumption.
func (b *board) recall(t *team.Task) {
	e := b.exists(t.ID, t.Status != team.Deleted, stamp{})
	if e == nil {
		return
	}
	e.Subject.assume(t.Subject)
	e.Description.assume(t.Description)
	e.ActiveForm.assume(t.ActiveForm)
	e.Owner.assume(t.Owner)
	e.Status.assume(string(t.Status))
	b.link(t.ID, &protocol.TaskInput{AddBlockedBy: t.BlockedBy, AddBlocks: t.Blocks}, stamp{})
}

// join merges the knowledge of another board of the same list.
func (b *board) join(o *board) {
	for id, from := range o.Tasks {
		to := b.at(id)
		if to == nil {
			continue
		}
		if from.There.Some {
			b.exists(id, from.There.V, from.There.When)
		}
		to.Hidden = to.Hidden || from.Hidden
		for _, pair := range [][2]*known[string]{{&to.Subject, &from.Subject}, {&to.Description, &from.Description},
			{&to.ActiveForm, &from.ActiveForm},
			{&to.Status, &from.Status}, {&to.Owner, &from.Owner}} {
			if pair[1].Some {
				pair[0].learn(pair[1].V, pair[1].When)
			}
		}
		for _, key := range slices.Sorted(maps.Keys(from.Metadata)) {
			to.meta(map[string]json.RawMessage{key: json.RawMessage(from.Metadata[key].V)}, from.Metadata[key].When)
		}
		for blocker, edge := range from.BlockedBy {
			b.blocks(blocker, id, edge.V, edge.When)
		}
		if to.CreatedBy == "" {
			to.CreatedBy = from.CreatedBy
		}
	}
}

// value returns *s, or "" if s is nil.
func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
