package team

import (
	"cmp"
	"fmt"
	"strings"
)

// byName is the prefix of a reference to a task by its name, whatever the name. Names contain no
// colon.
const byName = "name:"

// ByName returns a reference to the task of that name, even if the name is a number.
func ByName(name string) string { return byName + name }

// ValidTaskName reports whether a task may have this name: a letter or digit, then up to 63
// letters, digits, _, - or dots.
func ValidTaskName(name string) bool {
	return len(name) > 0 && name[0] != '.' && ValidName(strings.ReplaceAll(name, ".", "_"))
}

// Called returns what people and agents call the task: its name, or its number where it has none.
// The number has a mark (#3) where another task has, or had, that number as its name. A task in an
// event has no such mark: there, [State.Called] knows.
func (t Task) Called() string {
	if t.marked {
		return t.Ref()
	}
	return cmp.Or(t.Name, t.ID)
}

// WaitsFor returns what the task's open blockers are called. The mark stands before the number of a
// task without a name. Of a group that has made its tasks it says only how many of them are open.
func (t Task) WaitsFor(mark string) (all []string) {
	if n := len(t.open); n > 0 && t.Expanded {
		return []string{fmt.Sprintf("%d of its %d tasks", n, len(t.BlockedBy))}
	}
	for i, id := range t.open {
		all = append(all, cmp.Or(t.names[i], mark+id))
	}
	return all
}

// TaskStates are the values of [Task.State] for a task that was not deleted.
var TaskStates = []string{"pending", "blocked", "in_progress", "verifying", "failed", "skipped", "completed"}

// State returns the task's status as people see it. A task that waits for another one is blocked,
// one whose result others verify is verifying, and one that is out of retries has failed; all of
// these have the status pending. One that will never run is skipped, and has the status completed.
func (t Task) State() string {
	switch {
	case t.OutOfRetries():
		return "failed"
	case t.Skipped != "":
		return "skipped"
	case t.Submission != nil:
		return "verifying"
	case t.Status == Pending && len(t.open) > 0:
		return "blocked"
	}
	return string(t.Status)
}

// Ref returns the task's name, or its number with a mark that tells it from a name: lint, or #3.
func (t Task) Ref() string { return cmp.Or(t.Name, "#"+t.ID) }

// Refs returns the [Task.Ref] of each of these tasks.
func (s *State) Refs(ids []string) []string {
	var all []string
	for _, id := range ids {
		t := s.task(id)
		if t == nil {
			t = &Task{ID: id}
		}
		all = append(all, t.Ref())
	}
	return all
}

// Called returns what the task with that id is called. An unknown id stays as it is.
func (s *State) Called(id string) string {
	if t := s.task(id); t != nil {
		return t.Called()
	}
	return id
}

// CalledAll returns what the tasks with those ids are called.
func (s *State) CalledAll(ids []string) []string {
	var all []string
	for _, id := range ids {
		all = append(all, s.Called(id))
	}
	return all
}

// Find returns the task that a person or an agent means. #3 is the task with that number. Anything
// else is a name, or the number of a task. A number that is also the name of another task is
// refused, and so is a reference that matches nothing. A deleted task is found where no other task
// has its name.
func (s *State) Find(ref string) (Task, error) {
	t, err := s.find(ref)
	if err != nil {
		return Task{}, err
	}
	return s.show(t), nil
}

// TaskID returns the id of the task that [State.Find] finds.
func (s *State) TaskID(ref string) (string, error) {
	t, err := s.find(ref)
	if err != nil {
		return "", err
	}
	return t.ID, nil
}

// TaskIDs returns the ids of the tasks that [State.Find] finds.
func (s *State) TaskIDs(refs []string) (ids []string, err error) {
	for _, ref := range refs {
		id, err := s.TaskID(ref)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// Resolve returns the command with each task that a person wrote replaced by its id, as
// [State.Find] finds it.
func (s *State) Resolve(body Body) (Body, error) {
	var err error
	id := func(ref string) string {
		if err != nil || ref == "" {
			return ref
		}
		var found string
		found, err = s.TaskID(ref)
		return found
	}
	ids := func(refs []string) (found []string) {
		for _, ref := range refs {
			found = append(found, id(ref))
		}
		return found
	}
	switch b := body.(type) {
	case *CreateTask:
		c := *b
		c.BlockedBy = ids(b.BlockedBy)
		body = &c
	case *UpdateTask:
		c := *b
		c.Task, c.AddBlockedBy, c.RemoveBlockedBy = id(b.Task), ids(b.AddBlockedBy), ids(b.RemoveBlockedBy)
		c.AddBlocks, c.RemoveBlocks = ids(b.AddBlocks), ids(b.RemoveBlocks)
		body = &c
	case *ClaimTask:
		c := *b
		c.Task = id(b.Task)
		body = &c
	case *CompleteTask:
		c := *b
		c.Task = id(b.Task)
		body = &c
	case *FailTask:
		c := *b
		c.Task = id(b.Task)
		body = &c
	case *ReleaseTask:
		c := *b
		c.Task = id(b.Task)
		body = &c
	case *DeleteTask:
		c := *b
		c.Task = id(b.Task)
		body = &c
	}
	return body, err
}

func (s *State) find(ref string) (*Task, error) {
	numbered, named := s.task(ref), s.byName(ref)
	if numbered != nil && numbered.Status == Deleted && named != nil {
		numbered = nil
	}
	if numbered != nil && named != nil && named.Status == Deleted {
		named = nil
	}
	switch {
	case numbered != nil && named != nil && numbered != named:
		return nil, Refuse(Invalid, "%s is the name of the task #%s (%s), and the number of another one (%s): write "+
			"'#%s' or '#%s'", ref, named.ID, Inline(brief(named.Subject)), numbered.about(), named.ID, numbered.ID).
			With(named.Hint(&s.team, ActShowTask), numbered.Hint(&s.team, ActShowTask))
	case named != nil:
		return named, nil
	}
	if t := s.referred(ref); t != nil {
		return t, nil
	}
	return nil, s.noTask(ref)
}

// titled names the task in the team's messages, with its subject.
func (t *Task) titled() string { return t.with(t.Subject) }

// briefly is titled with a shortened subject.
func (t *Task) briefly() string { return t.with(brief(t.Subject)) }

func (t *Task) with(subject string) string {
	if t.Subject == t.Name { // it was given no subject of its own
		return t.Name
	}
	return t.Called() + " (" + Inline(subject) + ")"
}

// label names the task in an error.
func (t *Task) label() string { return "task " + t.briefly() }

// about distinguishes the task from one whose name is its number.
func (t *Task) about() string {
	if t.Name != "" {
		return t.Name
	}
	return Inline(brief(t.Subject))
}

// Lookup returns the task that a program means. A number is always an id, as in commands of the
// core. Anything else is a name, or a reference made by [ByName]. A deleted task is returned too.
func (s *State) Lookup(ref string) (Task, bool) {
	if t := s.referred(ref); t != nil {
		return s.show(t), true
	}
	return Task{}, false
}

// referred returns the task that a command names: by its id, as #id, by a name that is not a
// number, or by [ByName]; nil for none. A bare number is always an id here: hosts use ids, and do
// not know the names.
func (s *State) referred(ref string) *Task {
	if t := s.task(ref); t != nil {
		return t
	}
	if id, is := strings.CutPrefix(ref, "#"); is {
		return s.task(id)
	}
	if name, is := strings.CutPrefix(ref, byName); is {
		return s.byName(name)
	}
	return s.byName(ref)
}

// byName returns the task that has this name, or had it last; nil for none.
func (s *State) byName(name string) *Task {
	if i, ok := s.tasksNamed[name]; ok {
		return &s.tasks[i]
	}
	return nil
}

// name records the name of the task at i, and which task has a number that is a name. The name of a
// deleted task may be used again.
func (s *State) name(i int) {
	t := &s.tasks[i]
	if t.Name == "" {
		t.marked = s.byName(t.ID) != nil
		return
	}
	if before := s.byName(t.Name); before != nil && before.Status != Deleted && t.Status == Deleted {
		return
	}
	if s.tasksNamed == nil {
		s.tasksNamed = map[string]int{}
	}
	s.tasksNamed[t.Name] = i
	if other := s.task(t.Name); other != nil && other.Name == "" {
		other.marked = true
	}
}

// checkTaskName refuses an invalid name for a new task.
func (d *decision) checkTaskName(name string) error {
	if name == "" {
		return nil
	}
	if !ValidTaskName(name) {
		return refuse(Invalid,
			"%q cannot be the name of a task: a name is one of a-z, A-Z and 0-9, and then up to 63 of "+
				"these, dots, _ or -", brief(name))
	}
	if t := d.byName(name); t != nil && t.Status != Deleted {
		return Refuse(Taken, "a task named %s exists already (#%s)", name, t.ID).With(t.Hint(&d.team, ActShowTask))
	}
	return nil
}

// Hint returns a hint about the task.
func (t Task) Hint(of *Team, a Action) Hint {
	h := Hint{Action: a, Team: of.Name, Task: t.ID, TaskName: t.Name}
	if t.marked {
		h.TaskRef = t.Ref()
	}
	return h
}
