package team

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// UpdateTask changes the fields that are not nil. An owner "" removes the owner; a null in the
// metadata deletes its key.
type UpdateTask struct {
	Task                                                   string
	Subject, Description, ActiveForm, Owner, Priority, Run *string // a new command resets the failures
	Metadata                                               map[string]json.RawMessage
	AddBlockedBy, RemoveBlockedBy, AddBlocks, RemoveBlocks []string
	// all of them; of a task in progress, added ones must be free
	Paths *[]string
}

func (b *UpdateTask) decide(d *decision) error {
	t, err := d.live(b.Task)
	if err != nil {
		return err
	}
	b = b.byID(d.State)
	if t.Status == Completed && (b.Owner != nil || len(b.AddBlockedBy)+len(b.RemoveBlockedBy) > 0) {
		return refuse(NotReady, "%s is completed: its owner and what it waits for are final; create a new task",
			t.label())
	}
	if err := b.check(d, t); err != nil {
		return err
	}
	e := &TaskUpdated{Task: t.ID, Subject: b.Subject, Description: b.Description, ActiveForm: b.ActiveForm,
		Priority: b.Priority, Run: b.Run,
		AddBlockedBy: b.AddBlockedBy, RemoveBlockedBy: b.RemoveBlockedBy, AddBlocks: b.AddBlocks,
		RemoveBlocks: b.RemoveBlocks}
	if e.Metadata, err = metadata(t.Metadata, b.Metadata); err != nil {
		return err
	}
	added, removed, err := d.relink(t, b)
	if err != nil {
		return err
	}
	held, err := d.setPaths(t, b.Paths, e)
	if err != nil {
		return err
	}
	reassigned := b.Owner != nil && *b.Owner != t.Owner
	if reassigned {
		if err := d.reassign(t, *b.Owner); err != nil {
			return err
		}
		e.Owner = b.Owner
	}
	changed := d.updated(t, e)
	d.pathsSet(t, held)
	if !changed {
		return nil
	}
	if e.Run != nil {
		d.retried(t)
	}
	d.relinked(added, removed)
	if reassigned {
		if t.Status == InProgress && t.Owner != d.Actor {
			d.tell(t.Owner, t.ID, "Task %s was taken from you by %s; stop working on it.",
				t.titled(), d.Actor)
		}
		d.givesUp(t, "was given to another member")
		if *b.Owner != d.Actor {
			d.assigned(*b.Owner, t.ID, "Task %s is yours: %s", t.Called(), Quoted(t.Subject))
		}
	}
	return nil
}

// check refuses invalid texts, and what the actor may not change.
func (b *UpdateTask) check(d *decision, t *Task) error {
	if err := b.checkTexts(); err != nil {
		return err
	}
	if b.steers(d.Actor, t) {
		if err := d.maySteer(t); err != nil {
			return err
		}
	}
	return cmp.Or(b.checkCommand(d, t), b.checkAble(d, t))
}

// steers reports whether the update changes what a task is, or who does it. A member that takes it
// itself does not.
func (b *UpdateTask) steers(actor string, t *Task) bool {
	return b.Subject != nil || b.Description != nil || b.Priority != nil || b.Paths != nil ||
		b.Owner != nil && *b.Owner != t.Owner && *b.Owner != actor ||
		len(b.AddBlockedBy)+len(b.RemoveBlockedBy)+len(b.AddBlocks)+len(b.RemoveBlocks) > 0
}

// checkCommand checks that the actor may change the command of the task now, if it is to change.
func (b *UpdateTask) checkCommand(d *decision, t *Task) error {
	if b.Run == nil {
		return nil
	}
	if err := d.leads("change the command of a task"); err != nil {
		return err
	}
	if err := d.verifying(t, "its command stays as it is meanwhile"); err != nil {
		return err
	}
	if t.Status != Pending {
		return refuse(NotReady, "%s is %s; its command can be changed only while no member runs it",
			t.label(), t.Status)
	}
	if t.Expanded {
		return refuse(NotReady, "%s has made its tasks, which have the command; change theirs", t.label())
	}
	return nil
}

// checkAble refuses the task, as it is after the update, to a member that cannot do it.
func (b *UpdateTask) checkAble(d *decision, t *Task) error {
	owner, run := t.Owner, t.Run
	if b.Owner != nil {
		owner = *b.Owner
	}
	if b.Run != nil {
		run = *b.Run
	}
	if m := d.member(owner); m != nil && (b.Owner != nil || b.Run != nil) {
		return m.unable(t, run)
	}
	return nil
}

// byID returns the update with the ids of the tasks that it links.
func (b *UpdateTask) byID(s *State) *UpdateTask {
	ids := func(refs []string) (ids []string) {
		for _, ref := range refs {
			if t := s.referred(ref); t != nil {
				ref = t.ID
			}
			ids = append(ids, ref)
		}
		return ids
	}
	same := *b
	same.AddBlockedBy, same.RemoveBlockedBy = ids(b.AddBlockedBy), ids(b.RemoveBlockedBy)
	same.AddBlocks, same.RemoveBlocks = ids(b.AddBlocks), ids(b.RemoveBlocks)
	return &same
}

// checkTexts refuses invalid texts.
func (b *UpdateTask) checkTexts() error {
	or := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	if b.Subject != nil && strings.TrimSpace(*b.Subject) == "" {
		return refuse(Invalid, "a task needs a subject")
	}
	if err := limit(text{"subject", or(b.Subject), MaxSubject}, text{"active form", or(b.ActiveForm), MaxSubject},
		text{"description", or(b.Description), MaxText}, text{"command", or(b.Run), MaxText}); err != nil {
		return err
	}
	if b.Priority != nil {
		return oneOf("priority", *b.Priority, Priorities)
	}
	return nil
}

func (d *decision) reassign(t *Task, owner string) error {
	if owner != "" {
		m, err := d.nextOwner(owner)
		if err != nil {
			return err
		}
		if m != nil {
			if err := cmp.Or(d.sees(m, t, t.BlockedBy), d.mayOwn(m, t)); err != nil {
				return err
			}
			if of := d.verified(t); of != nil && d.Actor != User && !t.suits(m) {
				return Refuse(Denied, "task %s is verified by %s, and %s is not one", of.Called(), t.Role, m.Name).
					With(t.Hint(&d.team, ActAssignTask))
			}
		}
	}
	if d.asks(t.ID) != nil {
		if err := d.leads("say who merges a branch"); err != nil {
			return err
		}
	}
	if t.begun() && d.Actor != t.Owner {
		if err := d.leads("take a task from the member that holds it"); err != nil {
			return err
		}
	}
	return nil
}

// edges maps a waiting task to the tasks that it waits for.
type edges map[string][]string

// relink checks the dependencies that an update adds and removes, and returns them.
func (d *decision) relink(t *Task, b *UpdateTask) (added, removed edges, err error) {
	added, removed = edges{}, edges{}
	add := func(waiter, blocker string) error {
		added[waiter] = append(added[waiter], blocker)
		return d.mayWait(waiter, blocker, removed)
	}
	remove := func(waiter, blocker string) error {
		removed[waiter] = append(removed[waiter], blocker)
		if w := d.task(waiter); w != nil && w.Submission != nil && slices.Contains(w.Submission.Tasks, blocker) {
			return d.verifying(w, "it waits for that")
		}
		if waiter != t.ID && d.task(waiter) == nil {
			return d.noTask(waiter)
		}
		b := d.task(blocker)
		if b == nil {
			return d.noTask(blocker)
		}
		if b.Of != "" && b.Of == waiter {
			return refuse(Invalid, "%s waits for %s because it made it; delete that task if it is not needed",
				d.task(waiter).label(), b.label())
		}
		return nil
	}
	for _, one := range []struct {
		ids    []string
		change func(id string) error
	}{
		{b.RemoveBlockedBy, func(id string) error { return remove(t.ID, id) }},
		{b.RemoveBlocks, func(id string) error { return remove(id, t.ID) }},
		{b.AddBlockedBy, func(id string) error { return add(t.ID, id) }},
		{b.AddBlocks, func(id string) error { return add(id, t.ID) }},
	} {
		for _, id := range one.ids {
			if err := one.change(id); err != nil {
				return nil, nil, err
			}
		}
	}
	if len(added) == 0 {
		return nil, removed, nil
	}
	if cycle := d.cycle(t.ID, added, removed); cycle != nil {
		return nil, nil, refuse(Invalid, "these tasks would wait for each other in a cycle: %s",
			spell(d.CalledAll(cycle)))
	}
	return added, removed, nil
}

// mayWait checks that a task can wait for another one. removed are the dependencies that the same
// update removes.
func (d *decision) mayWait(waiter, blocker string, removed edges) error {
	w, err := d.live(waiter)
	if err != nil {
		return err
	}
	if _, err := d.live(blocker); err != nil {
		return err
	}
	switch {
	case waiter == blocker:
		return refuse(Invalid, "task %s cannot block itself", d.Called(waiter))
	case slices.Contains(removed[waiter], blocker):
		return refuse(Invalid, "the update both adds and removes that task %s waits for task %s", d.Called(waiter),
			d.Called(blocker))
	case w.Submission != nil:
		return d.verifying(w, "that is too late to wait for another task")
	case d.maySteer(w) != nil:
		return d.maySteer(w)
	case w.Status != Pending:
		return Refuse(NotReady, "%s is %s, too late to wait for another task; release it first",
			w.label(), w.Status).With(w.Hint(&d.team, ActRetryTask))
	}
	if m := d.member(w.Owner); m != nil {
		return d.sees(m, w, []string{blocker})
	}
	return nil
}

// relinked runs the tasks with When always again that ran because a task waited for a failed one,
// and it waits for none any more.
func (d *decision) relinked(added, removed edges) {
	for _, id := range sorted(removed) {
		w := d.task(id)
		left := w.blockage.stuck
		for _, blocker := range distinct(removed[id]) {
			if slices.Contains(w.BlockedBy, blocker) && d.outlook(d.task(blocker)).stuck {
				left--
			}
		}
		for _, blocker := range distinct(added[id]) {
			if !slices.Contains(w.BlockedBy, blocker) && d.outlook(d.task(blocker)).stuck {
				left++
			}
		}
		if d.outlook(w).stuck && !w.OutOfRetries() && left == 0 {
			d.runAgain(d.turning(w, false), "task "+w.Called()+" waits for no failed task any more")
		}
	}
}

func distinct(ids []string) []string { return slices.Compact(slices.Sorted(slices.Values(ids))) }

// cycle returns a path from a task along its blockers back to itself, or nil. Every
// added dependency begins or ends at this task, and there was no cycle before. So one walk from
// here finds any.
func (d *decision) cycle(task string, added, removed edges) []string {
	parent := map[string]string{}
	for open := []string{task}; len(open) > 0; {
		id := open[len(open)-1]
		open = open[:len(open)-1]
		for _, by := range slices.Concat(d.task(id).BlockedBy, added[id]) {
			if slices.Contains(removed[id], by) {
				continue
			}
			if by == task {
				way := []string{task}
				for ; id != task; id = parent[id] {
					way = append(way, id)
				}
				way = append(way, task)
				slices.Reverse(way)
				return way
			}
			if _, seen := parent[by]; !seen && d.task(by) != nil {
				parent[by] = id
				open = append(open, by)
			}
		}
	}
	return nil
}

// spell writes a path from task to task. It leaves out the middle of a very long one.
func spell(way []string) string {
	const ends = 10
	if n := len(way) - 2*ends; n > 0 {
		way = slices.Concat(way[:ends], []string{"(" + strconv.Itoa(n) + " more)"}, way[len(way)-ends:])
	}
	return strings.Join(way, " → ")
}

// metadata checks an update of the metadata of a team, a task or a message, and the result, and
// brings each value to one line.
func metadata(old, set map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	if len(set) == 0 {
		return nil, nil
	}
	out := make(map[string]json.RawMessage, len(set))
	for _, key := range sorted(set) {
		value := strings.ToValidUTF8(string(set[key]), "\uFFFD")
		c := coder{mode: reading, in: value}
		c.skip(maxDepth / 2) // its event nests it deeper
		var one bytes.Buffer
		if err := json.Compact(&one, []byte(value)); err != nil || c.err != nil {
			return nil, refuse(Invalid, "the metadata %q is not JSON, or nested more than %d times",
				brief(key), maxDepth/2)
		}
		out[strings.ToValidUTF8(key, "\uFFFD")] = one.Bytes()
	}
	size := 0
	for key, value := range merged(old, out) {
		size += len(key) + len(value)
	}
	if size > MaxText {
		return nil, refuse(TooLarge, "the metadata would have %d bytes, of at most %d", size, MaxText)
	}
	return out, nil
}
