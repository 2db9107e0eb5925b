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

// listed is the board as TaskList shows it: what is not in it is not there. Blockers that are done
// are not listed, so that only open ones tell anything.
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

// got is a task as TaskGet shows it.
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

// created takes a TaskCreate. It reports false for a task with an id that cannot be one.
func (b *board) created(f *fact, out *protocol.Outcome, actor string) bool {
	var in protocol.TaskInput
	if protocol.ReadJSON(f.Call.Input, &in) != nil || out.Task == nil {
		return true
	}
	e := b.exists(out.Task.ID, true, f.Result.At)
	if e == nil {
		return false
	}
	// What it was created with holds as long as nobody says otherwise: that may have been read
	// before.
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

// link takes the dependencies that a call adds to a task.
func (b *board) link(id string, in *protocol.TaskInput, at stamp) {
	for _, blocker := range in.AddBlockedBy {
		b.blocks(blocker, id, true, at)
	}
	for _, waiter := range in.AddBlocks {
		b.blocks(id, waiter, true, at)
	}
}

// updated takes a TaskUpdate. It returns the status that it gave to the task, "" for none, and who
// owned the task then, as far as the call says it: the task may have another owner by now.
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
	if in.Owner == nil && slices.Contains(out.Updated, "owner") { // who begins a task of nobody owns it
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

// removed says that a task is not there. One that was never there stays unknown.
func (b *board) removed(id string, at stamp) {
	if b.Tasks[id] != nil {
		b.exists(id, false, at)
	}
}

// shown takes a TaskGet.
func (b *board) shown(f *fact, out *protocol.Outcome, r *roster) {
	var in protocol.TaskInput
	_ = protocol.ReadJSON(f.Call.Input, &in)
	switch {
	case out.Missing || !out.Structured && strings.TrimSpace(f.Result.R) == "Task not found":
		b.removed(in.TaskID, f.asked())
	case out.Task != nil && out.OK:
		b.got(out.Task, f.asked())
		// In 2.1.47 each spawn takes a task, which TaskList hides and TaskGet does not.
		if p, e := r.People[out.Task.Subject], b.Tasks[out.Task.ID]; p != nil && e != nil &&
			p.About.V.Prompt != "" && p.About.V.Prompt == out.Task.Description {
			e.Hidden = true
		}
	}
}

// filed takes a task as its file has it. It reports false for an id that cannot be one.
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

// waits says that the task waits for those, and for no others.
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

// only says that none but those tasks are there.
func (b *board) only(there map[string]bool, when stamp) {
	for id, e := range b.Tasks {
		if e.There.V && !there[id] && e.There.When.before(when) {
			b.exists(id, false, when)
		}
	}
}

// adopt takes a task as a state has it.
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

// recall takes a task as consumers saw it. It holds as long as nobody says otherwise.
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

// join adds what is known on another board of the same list.
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

// value is the text that s points to; "" for nil.
func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
