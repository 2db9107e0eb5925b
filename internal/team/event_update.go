package team

import (
	"encoding/json"
	"slices"
)

// TaskWas has the values that an update of a task replaced. A description is shortened, and null
// stands for metadata that the task did not have.
type TaskWas struct {
	Subject, Description, ActiveForm, Owner, Priority, Run *string
	Metadata                                               map[string]json.RawMessage
}

func (w *TaskWas) fields(c *coder) {
	opt(c, "subject", &w.Subject, c.str)
	opt(c, "description", &w.Description, c.str)
	opt(c, "activeForm", &w.ActiveForm, c.str)
	opt(c, "owner", &w.Owner, c.str)
	opt(c, "priority", &w.Priority, c.str)
	opt(c, "run", &w.Run, c.str)
	c.raws("metadata", &w.Metadata)
}

// Change is what an update changed of a task.
type Change struct {
	Field string // as in the JSON of a task; metadata.KEY for a key of its metadata
	// the value before, and the value now. Was is empty too where the record is from before records
	// had it. For blockedBy, blocks and paths, Added and Removed have ids or patterns instead.
	Was, Is        string
	Added, Removed []string
}

// Changes returns what the update changed, in the order of the fields of the event.
func (e *TaskUpdated) Changes() (all []Change) {
	was := e.Was
	if was == nil {
		was = &TaskWas{}
	}
	value := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	for _, f := range []struct {
		name    string
		was, is *string
	}{
		{"subject", was.Subject, e.Subject}, {"description", was.Description, e.Description},
		{"activeForm", was.ActiveForm, e.ActiveForm}, {"owner", was.Owner, e.Owner},
		{"priority", was.Priority, e.Priority}, {"run", was.Run, e.Run},
	} {
		if f.is != nil {
			all = append(all, Change{Field: f.name, Was: value(f.was), Is: *f.is})
		}
	}
	for _, key := range sorted(e.Metadata) {
		all = append(all, Change{Field: "metadata." + key, Was: present(was.Metadata[key]),
			Is: present(e.Metadata[key])})
	}
	for _, f := range []struct {
		name        string
		add, remove []string
	}{{"blockedBy", e.AddBlockedBy, e.RemoveBlockedBy}, {"blocks", e.AddBlocks, e.RemoveBlocks},
		{"paths", e.AddPaths, e.RemovePaths}} {
		if len(f.add)+len(f.remove) > 0 {
			all = append(all, Change{Field: f.name, Added: f.add, Removed: f.remove})
		}
	}
	return all
}

// present returns a value of metadata as JSON, "" for null and for none.
func present(v json.RawMessage) string {
	if string(v) == "null" {
		return ""
	}
	return string(v)
}

// updated records an update of the task, with the values that it replaces. It leaves out what the
// task has already, and reports whether anything is left to record.
func (d *decision) updated(t *Task, e *TaskUpdated) bool {
	was := &TaskWas{}
	changed := false
	change := func(is, was **string, have string) {
		if *is == nil {
			return
		}
		if **is == have {
			*is = nil
			return
		}
		have = clipTo(have, MaxSubject)
		*was, changed = &have, true
	}
	change(&e.Subject, &was.Subject, t.Subject)
	change(&e.Description, &was.Description, t.Description)
	change(&e.ActiveForm, &was.ActiveForm, t.ActiveForm)
	change(&e.Priority, &was.Priority, t.Priority)
	if e.Owner != nil && *e.Owner != t.Owner {
		owner := t.Owner
		was.Owner, changed = &owner, true
	} else {
		e.Owner = nil
	}
	if e.Run != nil && (*e.Run != t.Run || t.Failures > 0) { // the same command resets the failures, too
		run := clipTo(t.Run, MaxSubject)
		was.Run, changed = &run, true
	} else {
		e.Run = nil
	}
	e.Metadata, was.Metadata = changedMetadata(t.Metadata, e.Metadata)
	only := func(ids, have []string, there bool) (kept []string) {
		for _, id := range ids {
			if slices.Contains(have, id) == there {
				kept = append(kept, id)
			}
		}
		return kept
	}
	e.AddBlockedBy, e.RemoveBlockedBy = only(e.AddBlockedBy, t.BlockedBy, false),
		only(e.RemoveBlockedBy, t.BlockedBy, true)
	e.AddBlocks, e.RemoveBlocks = only(e.AddBlocks, t.Blocks, false), only(e.RemoveBlocks, t.Blocks, true)
	if changed || len(e.Metadata) > 0 {
		e.Was = was
	} else if len(e.AddBlockedBy)+len(e.RemoveBlockedBy)+len(e.AddBlocks)+len(e.RemoveBlocks)+
		len(e.AddPaths)+len(e.RemovePaths) == 0 {
		return false
	}
	d.emit(e)
	return true
}

// changedMetadata returns the values that differ from those that a task has, and those that they
// replace: null for one that is new. Both are nil if no value differs.
func changedMetadata(have, values map[string]json.RawMessage) (set, was map[string]json.RawMessage) {
	for key, value := range values {
		if present(value) == present(have[key]) {
			continue
		}
		if set == nil {
			set, was = map[string]json.RawMessage{}, map[string]json.RawMessage{}
		}
		set[key] = value
		if was[key] = have[key]; was[key] == nil {
			was[key] = json.RawMessage("null")
		}
	}
	return set, was
}
