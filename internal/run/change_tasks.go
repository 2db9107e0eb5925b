package run

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"cadre/internal/run/teamfile"
	"cadre/internal/team"
)

var taskFields = map[string]string{"subject": "subject", "description": "description", "run": "run", "in": "in",
	"dir": "dir", "env": "env", "when": "when", "result": "schema", "check": "check", "until.run": "check",
	"until.rounds": "check",
	"owner":        "owner", "role": "role", "priority": "priority", "paths": "paths", "forEach": "forEach",
	"matrix": "forEach",
	"verify": "verify", "timeout": "timeoutMs", "retries": "retries", "metadata": "metadata"}

func (c *comparison) ofTasks() {
	inFile := map[string]bool{}
	for _, t := range c.file.Tasks {
		inFile[t.ID] = true
	}
	for t := range c.state.Tasks() { // first: later steps ask what is removed
		if name := fileID(t); name != "" && !inFile[name] && c.tasks[name].ID == t.ID && c.taskOfFile(t) {
			c.remove(name, t)
		}
	}
	for _, f := range c.file.Order() {
		t, there := c.tasks[f.ID]
		switch {
		case !there:
			c.found(Change{What: "task", Name: f.ID, Does: ChangeAdd})
			add := create(f, c.refs(f.BlockedBy))
			add.FileDigests = saidOfTask(f).digests()
			c.additions = append(c.additions, add)
		case !c.taskOfFile(t):
			c.refuse("task", f.ID, "task "+f.ID+" was added to team "+c.team.Name+" without the file; give the one in "+
				"the file another id", t.Hint(&c.team, team.ActShowTask))
		default:
			c.reviseTask(f, t)
		}
	}
	for t := range c.state.Tasks() { // done again although the file no longer has it, or never had it
		if c.redo[t.ID] && !(inFile[fileID(t)] && c.taskOfFile(t)) {
			c.again(t, nil)
		}
	}
	for t := range c.state.Tasks() {
		if _, gone := c.removed[t.ID]; gone {
			c.orphans(t)
		}
	}
}

// taskOfFile reports whether the task comes from the team file.
func (c *comparison) taskOfFile(t team.Task) bool {
	if c.team.FileDigests == nil { // made before digests were recorded
		return t.CreatedAt == c.team.CreatedAt && t.CreatedBy == team.User
	}
	return t.FileDigests != nil
}

// refs returns names of tasks in the file as commands need them.
func (c *comparison) refs(names []string) (refs []string) {
	for _, name := range names {
		ref := team.ByName(name)
		if t, there := c.tasks[name]; there {
			ref = t.ID
		}
		refs = append(refs, ref)
	}
	return refs
}

// busy refuses a change of a task that a member works on.
func (c *comparison) busy(t team.Task, how string) {
	c.refuse("task", t.Called(), fmt.Sprintf("task %s %s, and is in progress by %s; %s", t.Called(), how, t.Owner,
		c.ending(t, "let it end")), t.Hint(&c.team, team.ActRetryTask))
}

// ending says what has to happen before the task in progress can change: wait says how to wait for
// its end. Nothing ends it where no process runs its owner, for example after a kill.
func (c *comparison) ending(t team.Task, wait string) string {
	owner, _ := c.state.Member(t.Owner)
	if c.hosted || t.Submission != nil || owner.Agent == team.External {
		return wait + ", or release it first"
	}
	return "no process runs " + t.Owner + " now, so release it first"
}

// verified refuses a change of a task that others verify.
func (c *comparison) verified(t team.Task, how string) {
	c.refuse("task", t.Called(), fmt.Sprintf("task %s %s, and others verify what %s did; wait for their verdict, or "+
		"release it first", t.Called(), how, t.Submission.Author()), t.Hint(&c.team, team.ActRetryTask))
}

func (c *comparison) remove(name string, t team.Task) {
	if made := c.inHand(t); made != nil {
		c.busy(*made, "is made by task "+name+", which is no longer in the file")
		return
	}
	switch {
	case t.Submission != nil:
		c.verified(t, "is no longer in the file")
		return
	case t.Verifies != "":
		return
	}
	switch t.Status {
	case team.InProgress:
		c.busy(t, "is no longer in the file")
	case team.Completed:
		if !c.redo[t.ID] {
			c.found(Change{What: "task", Name: name, Does: ChangeKeep,
				Why: "it stays completed, although the file no longer has it"})
		}
	default:
		c.found(Change{What: "task", Name: name, Does: ChangeRemove})
		c.removed[t.ID] = t
		c.deletions = append(c.deletions, &team.ReviseTask{Task: t.ID, Delete: true})
	}
}

// inHand returns a task in progress that the group made; nil for none.
func (c *comparison) inHand(group team.Task) *team.Task {
	if !group.Expanded || group.Status == team.Completed {
		return nil
	}
	for _, t := range c.state.Made(group.ID) {
		if t.Status == team.InProgress || t.Submission != nil {
			return &t
		}
	}
	return nil
}

// orphans refuses the removal of a task that others, which the file does not change, wait for.
func (c *comparison) orphans(gone team.Task) {
	id := gone.ID
	for t := range c.state.Tasks() {
		if t.Status != team.Pending || !slices.Contains(t.BlockedBy, id) || c.removed[t.ID].ID != "" {
			continue
		}
		if slices.ContainsFunc(c.unlinks, func(b team.Body) bool { // by the file it no longer waits
			u := b.(*team.UpdateTask)
			return u.Task == t.ID && slices.Contains(u.RemoveBlockedBy, id)
		}) {
			continue
		}
		c.refuse("task", gone.Called(), fmt.Sprintf("task %s is no longer in the file, and task %s, which was added "+
			"or changed by hand, waits for it; remove that dependency first", gone.Called(), t.Called()),
			t.Hint(&c.team, team.ActShowTask))
	}
}

// builds says which completed tasks build on the task and keep their results; "" for none.
func (c *comparison) builds(t team.Task) string {
	var kept []string
	for _, id := range t.Blocks {
		if w, ok := c.state.Task(id); ok && w.Status == team.Completed && w.Skipped == "" && !c.redo[id] {
			kept = append(kept, w.Called())
		}
	}
	switch len(kept) {
	case 0:
		return ""
	case 1:
		return kept[0] + ", which builds on it, stays completed"
	}
	return strings.Join(kept, ", ") + ", which build on it, stay completed"
}

// again returns a completed task to the queue.
func (c *comparison) again(t team.Task, keys []KeyChange) {
	for _, id := range t.Blocks {
		if w, ok := c.state.Task(id); ok && (w.Status == team.InProgress || w.Submission != nil) {
			c.refuse("task", t.Called(), fmt.Sprintf("task %s cannot be done again while %s works on task %s, which "+
				"builds on it; %s", t.Called(), w.Owner, w.Called(), c.ending(w, "wait for its end")),
				w.Hint(&c.team, team.ActRetryTask))
			return
		}
	}
	if made := c.inHand(t); made != nil {
		c.refuse("task", t.Called(), fmt.Sprintf("task %s cannot be done again while %s works on its task %s; %s",
			t.Called(), made.Owner, made.Called(), c.ending(*made, "wait for its end")), made.Hint(&c.team, team.ActRetryTask))
		return
	}
	c.found(Change{What: "task", Name: t.Called(), Does: ChangeRedo, Keys: keys, Why: c.builds(t)})
	c.redone = append(c.redone, &team.RedoTask{Task: t.ID, Reason: "the user asked for it again"})
}

// What is said of a changed task that is not pending for the first time.
const (
	failedBefore = "it failed before, and will be tried again"
	wasSkipped   = "it was skipped, and runs if it still can"
)

func (c *comparison) reviseTask(f teamfile.Task, t team.Task) {
	now, state := saidOfTask(f), saidOfTask(taskOfState(c.state, t))
	keys := changed(recorded(t.FileDigests, state), now)
	differ := differences(keys, state, now)
	switch {
	case len(keys) == 0 && !c.redo[t.ID]:
		return
	case t.Status == team.InProgress:
		c.busy(t, "changed in the file ("+strings.Join(keys, ", ")+")")
		return
	case t.Submission != nil:
		c.verified(t, "changed in the file ("+strings.Join(keys, ", ")+")")
		return
	case t.Skipped != "" && !slices.Contains(keys, "blockedBy"): // it never ran
		does := ChangeUpdate
		if len(keys) == 0 {
			does = ChangeRedo
		}
		c.found(Change{What: "task", Name: f.ID, Does: does, Keys: differ, Why: wasSkipped})
	case t.Status == team.Completed && !c.redo[t.ID]:
		c.found(Change{What: "task", Name: f.ID, Does: ChangeKeep, Keys: differ, Why: "it is completed"})
		return
	case t.Expanded && !c.redo[t.ID]:
		c.found(Change{What: "task", Name: f.ID, Does: ChangeKeep, Keys: differ, Why: "it has made its tasks"})
		return
	case t.Status == team.Completed || t.Expanded:
		if c.again(t, differ); len(keys) == 0 {
			return
		}
	default:
		why := ""
		if t.OutOfRetries() {
			why = failedBefore
		}
		c.found(Change{What: "task", Name: f.ID, Does: ChangeUpdate, Keys: differ, Why: why})
	}
	if slices.Contains(keys, "blockedBy") {
		c.relink(f, t)
	}
	to := create(f, nil)
	to.Metadata = map[string]json.RawMessage{}
	for _, key := range keys { // only what changed; null removes a key
		if name, is := strings.CutPrefix(key, "metadata."); is {
			to.Metadata[name] = json.RawMessage(cmp.Or(string(f.Metadata[name]), "null"))
		}
	}
	c.revisions = append(c.revisions, &team.ReviseTask{Task: t.ID, To: *to, Fields: fields(keys, taskFields),
		FileDigests: now.digests()})
}

// relink makes the task wait for what the file says. Dependencies on tasks that the file never had,
// such as merges, stay.
func (c *comparison) relink(f teamfile.Task, t team.Task) {
	want := c.refs(f.BlockedBy)
	var gone, come []string
	for _, id := range t.BlockedBy {
		if b, ok := c.state.Task(id); ok && c.taskOfFile(b) && !slices.Contains(want, id) {
			gone = append(gone, id)
		}
	}
	for _, ref := range want {
		if !slices.Contains(t.BlockedBy, ref) {
			come = append(come, ref)
		}
	}
	if len(gone) > 0 {
		c.unlinks = append(c.unlinks, &team.UpdateTask{Task: t.ID, RemoveBlockedBy: gone})
	}
	if len(come) > 0 {
		c.links = append(c.links, &team.UpdateTask{Task: t.ID, AddBlockedBy: come})
	}
}
