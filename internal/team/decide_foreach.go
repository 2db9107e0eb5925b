package team

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// ExpandTask makes the tasks of a group that is due, or completes it if its tasks are done. A host
// sends it with the items that it found, or with why it found none. Under an older fence, and for a
// group that has its tasks, it changes nothing: another host was faster.
type ExpandTask struct {
	Task    string
	Fence   int64             // of the task, when the host began to look
	Items   []json.RawMessage // for a pattern or a command
	Failure string            // why there are no items; the attempt has failed then
	Output  string            // what the command printed that failed
}

func (b *ExpandTask) decide(d *decision) error {
	if d.Actor != User && !d.isHost() {
		return refuse(Denied, "only a host finds the items of a task")
	}
	t, err := d.live(b.Task)
	if err != nil {
		return err
	}
	if err := limit(text{"reason", b.Failure, MaxText}, text{"output", b.Output, MaxText}); err != nil {
		return err
	}
	switch {
	case t.ForEach == nil || t.Fence != b.Fence || t.Status != Pending || t.OutOfRetries():
		return nil
	case t.waits() > 0 && !t.Expanded:
		return refuse(NotReady, "%s waits for task %s", t.label(), strings.Join(d.CalledAll(d.blockersOf(t)), ", "))
	case t.waits() > 0:
		return nil
	case t.Expanded || !t.ForEach.Outside():
		d.advance(t)
	case b.Failure != "":
		d.groupFails(t, b.Failure, b.Output)
	case len(b.Items) > MaxItems:
		d.groupFails(t, tooMany(len(b.Items)).Error(), "")
	default:
		items, err := cleanItems(b.Items)
		if err != nil {
			d.groupFails(t, err.Error(), "")
			return nil
		}
		d.expand(t, items)
	}
	return nil
}

// expand makes one task for each item, and lets the group wait for them.
func (d *decision) expand(t *Task, items []json.RawMessage) {
	size := 0
	for _, item := range items {
		size += 2 * len(item) // it is in the subject, too
	}
	if len(items) > 0 {
		one := d.made(t, items[0])
		size += len(items) * len(encode(&one, false, nil))
	}
	switch there := len(d.tasks) + d.created; {
	case there+len(items) > MaxTasks:
		d.groupFails(t, fmt.Sprintf("its %s items would make more than %s tasks in the team, which has had %s so far, "+
			"counting deleted ones",
			thousands(len(items)), thousands(MaxTasks), thousands(there)), "")
		return
	case size > maxMade:
		d.groupFails(t, fmt.Sprintf("its %s tasks would have %d MiB of texts, of at most %d; put the description into a "+
			"file and name it", thousands(len(items)), size>>20, maxMade>>20), "")
		return
	}
	d.madeBytes += size
	e := &TaskExpanded{Task: t.ID}
	taken := map[string]bool{}
	var made []*Task
	for i, item := range items {
		one := d.made(t, item)
		one.ID, one.Name = d.nextTask(), d.madeName(t.Name, i+1, taken)
		e.Tasks = append(e.Tasks, one.ID)
		d.create(one)
		made = append(made, &one)
	}
	d.emit(e)
	if len(made) == 0 {
		d.finishGroup(t)
		return
	}
	if t.Owner != "" {
		which := made[0].Called()
		if n := len(made); n > 1 {
			which += " to " + made[n-1].Called()
		}
		d.assigned(t.Owner, t.ID, "Task %s has its tasks now, and they are yours: %s.", t.titled(), which)
	}
}

// create adds the task.
func (d *decision) create(t Task) {
	d.emit(&TaskCreated{Task: t})
	d.created++
}

// made returns the task of a group for the item. It waits for the blockers of the group, which are
// closed: it builds on their work and finds their results.
func (d *decision) made(t *Task, item json.RawMessage) Task {
	subject := clipTo(t.Subject, MaxSubject-MaxID) + ": " + ItemLine(item)
	if t.Run == "" && t.ForEach.Run != "" && t.Check == nil { // these are for the command that printed the items
		t = &Task{ID: t.ID, Description: t.Description, ActiveForm: t.ActiveForm, Owner: t.Owner, Assigned: t.Assigned,
			Role: t.Role, BlockedBy: t.BlockedBy, Priority: t.Priority, Retries: t.Retries, Paths: t.Paths,
			Schema: t.Schema, Check: t.Check, Verify: t.Verify, CreatedBy: t.CreatedBy}
	}
	return Task{Subject: subject, Description: t.Description, ActiveForm: t.ActiveForm, Status: Pending,
		Owner: t.Owner, Assigned: t.Assigned, Role: t.Role, BlockedBy: t.BlockedBy, Priority: t.Priority, Run: t.Run,
		In: t.In, Dir: t.Dir, Env: t.Env, Timeout: t.Timeout, Retries: t.Retries, Paths: t.Paths,
		Schema: t.Schema, Check: t.Check, Verify: t.Verify, CreatedBy: t.CreatedBy, Of: t.ID, Item: item}
}

// madeName returns the name of the nth task of a group with that name; "" for a group without one.
// A name that another task has is not used.
func (d *decision) madeName(group string, n int, taken map[string]bool) string {
	if group == "" {
		return ""
	}
	for again := 1; ; again++ {
		suffix := "-" + strconv.Itoa(n)
		if again > 1 {
			suffix += "-" + strconv.Itoa(again)
		}
		name := group[:min(len(group), MaxName-len(suffix))] + suffix
		if t := d.byName(name); !taken[name] && (t == nil || t.Status == Deleted) {
			taken[name] = true
			return name
		}
	}
}

// groupFails ends an attempt to find the items of a group, or to make its tasks.
func (d *decision) groupFails(t *Task, reason, output string) {
	failed := &TaskFailed{Task: t.ID, Reason: clip(reason), Result: output}
	d.emit(failed)
	if t.Failures < t.retries() {
		return
	}
	d.tell(d.team.Lead, t.ID, "Task %s could not make its tasks:%s\nIt is tried again when the team is run again, or "+
		"when you release it.", t.titled(), cited(clipTo(reason, MaxSubject)))
	failed.Unblocked = d.freedByFailure(t)
	d.wakeOwners(failed.Unblocked, "task "+t.Called()+" has failed (out of retries)")
}

// finishGroup completes a group whose tasks are done.
func (d *decision) finishGroup(t *Task) {
	free := d.freedAfter(t)
	d.emit(&TaskCompleted{Task: t.ID, Result: d.groupResult(t), Unblocked: free})
	d.close(t.ID)
	d.finished++
	d.freed = append(d.freed, free...)
	d.wakeOwners(free, "task "+t.Called()+" is done")
}

// freedAfter returns the tasks that wait for t and, once the events so far have happened and t is
// closed, for nothing more.
func (d *decision) freedAfter(t *Task) (free []string) {
	for _, id := range t.Blocks {
		w := d.task(id)
		if w == nil || w.Status != Pending || w.waits() == 0 || w.ForEach != nil || w.Submission != nil {
			continue
		}
		waits := false
		for _, blocker := range w.BlockedBy {
			b := d.task(blocker)
			waits = waits || b != nil && b != t && !d.closed[b.ID] && w.waitsFor(b)
		}
		if !waits {
			free = append(free, id)
		}
	}
	return free
}

// settle makes the tasks of each list and matrix that waits for nothing more after the events so
// far, and completes each group whose tasks are done. It follows the tasks that the events close
// and create. A command that also returns tasks to the queue, or whose record is large already,
// leaves its groups to [State.Overdue].
func (d *decision) settle() {
	for d.groups.from(0) >= 0 || d.created > 0 {
		due := d.closing()
		if d.reopened || len(due) == 0 {
			return
		}
		for _, t := range due {
			if d.madeBytes > maxMade {
				return
			}
			d.advance(t)
		}
	}
}

// advance completes a group whose tasks are done, or makes the tasks of a list or a matrix.
func (d *decision) advance(t *Task) {
	switch {
	case t.Expanded:
		d.finishGroup(t)
	case t.ForEach.Outside():
		d.awaited++
	default:
		d.expand(t, t.ForEach.items())
	}
}

// closing looks at the events since the last call, and returns the groups that they leave without
// anything to wait for.
func (d *decision) closing() (due []*Task) {
	for ; d.looked < len(d.events); d.looked++ {
		switch e := d.events[d.looked].(type) {
		case *TaskCompleted:
			due = append(due, d.closes(e.Task)...)
		case *TaskDeleted:
			due = append(due, d.closes(e.Task)...)
		case *TaskReleased, *TaskRolledBack, *TaskRevised, *TaskFolded:
			d.reopened = true
		case *TaskCreated:
			if t := &e.Task; t.ForEach != nil && len(d.openOf(t.BlockedBy)) == 0 {
				due = append(due, t)
			}
		}
	}
	var open []*Task
	for _, t := range due {
		if !d.closed[t.ID] {
			open = append(open, t)
		}
	}
	return open
}

// openOf returns which of these tasks are open after the events so far.
func (d *decision) openOf(ids []string) (open []string) {
	for _, id := range ids {
		if b := d.task(id); b != nil && b.Status.open() && !d.closed[id] {
			open = append(open, id)
		}
	}
	return open
}

func (d *decision) close(id string) {
	if d.closed == nil {
		d.closed, d.waiting = map[string]bool{}, map[string]blockage{}
	}
	d.closed[id] = true
}

// closes notes that the task is closed, and returns the groups that wait for nothing more.
func (d *decision) closes(id string) (due []*Task) {
	d.close(id)
	t := d.task(id)
	if t == nil {
		return nil
	}
	for _, id := range t.Blocks {
		w := d.task(id)
		if w == nil || w.ForEach == nil || w.Status != Pending || w.waits() == 0 {
			continue
		}
		after, known := d.waiting[id]
		if !known {
			after = w.blockage
		}
		after.count(t.blockage.counted, -1)
		if d.waiting[id] = after; after.open == 0 && !w.OutOfRetries() {
			due = append(due, w)
		}
	}
	return due
}

// groupEntry is the result of one task of a group.
type groupEntry struct {
	Task         string
	Item, Result json.RawMessage
	Shortened    bool
}

// groupResult returns the results of the tasks of the group, as a JSON list in the order of the
// items. A result that is a JSON object is part of it as such, any other as a text. Where the list
// would be too long, each result gets the same share.
func (d *decision) groupResult(t *Task) string {
	results := map[string]string{} // of the tasks that this command completes
	for _, e := range d.events {
		if done, is := e.(*TaskCompleted); is {
			results[done.Task] = done.Result
		}
	}
	var all []groupEntry
	var texts []string
	for _, made := range d.madeBy(t) {
		result, now := results[made.ID]
		switch {
		case now:
		case made.Status == Completed && !d.deletes(made.ID):
			result = made.Result
		default:
			continue
		}
		all = append(all, groupEntry{Task: made.Called(), Item: made.Item, Result: resultValue(result)})
		texts = append(texts, result)
	}
	whole := encodeEntries(all)
	if len(whole) <= MaxText {
		return whole
	}
	share := (MaxText - 2) / len(all)
	for i := range all {
		all[i].fit(texts[i], share)
	}
	return encodeEntries(all)
}

// deletes reports whether the events so far delete the task.
func (d *decision) deletes(task string) bool {
	for _, e := range d.events {
		if gone, is := e.(*TaskDeleted); is && gone.Task == task {
			return true
		}
	}
	return false
}

func encodeEntries(all []groupEntry) string {
	out := []byte{'['}
	for i := range all {
		if i > 0 {
			out = append(out, ',')
		}
		out = all[i].append(out)
	}
	return string(append(out, ']'))
}

func (e *groupEntry) append(out []byte) []byte {
	out = appendText(append(out, `{"task":`...), e.Task)
	if len(e.Item) > 0 {
		out = append(append(out, `,"item":`...), e.Item...)
	}
	out = append(append(out, `,"result":`...), e.Result...)
	if e.Shortened {
		out = append(out, `,"shortened":true`...)
	}
	return append(out, '}')
}

// fit makes the entry at most that long, with its comma: it leaves out a long item, and shortens
// the result.
func (e *groupEntry) fit(result string, most int) {
	if len(e.append(nil))+1 <= most {
		return
	}
	e.Shortened = true
	if len(e.Item) > most/4 {
		e.Item = nil
	}
	for keep := most; ; keep /= 2 {
		if e.Result = appendText(nil, clipTo(result, keep)); len(e.append(nil))+1 <= most || keep == 0 {
			return
		}
	}
}

// resultValue returns a result as JSON: an object as it is, any other text as a string.
func resultValue(result string) json.RawMessage {
	if object := strings.TrimSpace(result); strings.HasPrefix(object, "{") && json.Valid([]byte(object)) {
		var one bytes.Buffer
		if json.Compact(&one, []byte(object)) == nil {
			return one.Bytes()
		}
	}
	return appendText(nil, result)
}
