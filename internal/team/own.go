package team

import (
	"encoding/json"
	"strings"
)

// own copies texts of a record that the state keeps for long. They are parts of the record's line,
// which is longer, and which they would keep in memory. The copies share one allocation.
func own(texts ...*string) {
	size := 0
	for _, t := range texts {
		size += len(*t)
	}
	if size == 0 {
		return
	}
	var all strings.Builder
	all.Grow(size)
	for _, t := range texts {
		all.WriteString(*t)
	}
	rest := all.String()
	for _, t := range texts {
		*t, rest = rest[:len(*t)], rest[len(*t):]
	}
}

// owned returns a copy of a list of texts; see [own].
func owned(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	kept := make([]string, len(list))
	texts := make([]*string, len(list))
	for i := range kept {
		kept[i], texts[i] = list[i], &kept[i]
	}
	own(texts...)
	return kept
}

// own copies the texts of a new task. Names of members are those that the state has.
func (t *Task) own(s *State) {
	t.Status, t.Priority = constant(t.Status, Pending, InProgress, Completed, Deleted),
		constant(t.Priority, Priorities...)
	t.Owner, t.CreatedBy, t.CompletedBy = s.known(t.Owner), s.known(t.CreatedBy), s.known(t.CompletedBy)
	t.FailedBy = s.known(t.FailedBy)
	own(&t.ID, &t.Name, &t.Subject, &t.Description, &t.ActiveForm, &t.Role, &t.Run, &t.In, &t.Dir, &t.When, &t.Failure,
		&t.Result, &t.Of)
	t.ownDemands()
	t.ownVerification(s)
	t.Env, t.Paths, t.FileDigests = owned(t.Env), owned(t.Paths), owned(t.FileDigests)
	if len(t.Metadata) > 0 {
		kept := make(map[string]json.RawMessage, len(t.Metadata))
		for key, value := range t.Metadata {
			kept[strings.Clone(key)] = value // a value is a copy already
		}
		t.Metadata = kept
	}
}

// own copies the texts of what a task did.
func (w *Work) own(s *State) {
	w.Member = s.known(w.Member)
	own(&w.Branch, &w.Machine, &w.Base, &w.Commit)
	w.Files, w.Left, w.Others = owned(w.Files), owned(w.Left), owned(w.Others)
}

// constant returns the constant that equals the text, or the text.
func constant[T ~string](text T, constants ...T) T {
	for _, one := range constants {
		if text == one {
			return one
		}
	}
	return text
}

// roomy returns the tasks with room for one more. They are large and there are many, so the room
// grows by an eighth at a time, and not by a quarter or a half as append would have it.
func roomy(tasks []Task) []Task {
	n := len(tasks)
	if n < cap(tasks) {
		return tasks
	}
	roomy := make([]Task, n, n+max(8, n/8))
	copy(roomy, tasks)
	return roomy
}
