package team

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

func (e *TaskUpdated) apply(s *State, r *Record) {
	s.change(e.Task, r, func(t *Task) {
		set := func(to *string, from *string) {
			if from != nil {
				*to = strings.Clone(*from)
			}
		}
		set(&t.Subject, e.Subject)
		set(&t.Description, e.Description)
		set(&t.ActiveForm, e.ActiveForm)
		set(&t.Priority, e.Priority)
		if e.Run != nil {
			t.Run, t.Failures, t.Failure, t.FailedBy = strings.Clone(*e.Run), 0, "", ""
		}
		if e.Owner != nil {
			if t.Status == InProgress && t.Owner != *e.Owner {
				t.Status, t.StartedAt = Pending, 0
				t.Fence++
			}
			t.Owner, t.Assigned = s.known(*e.Owner), *e.Owner != ""
		}
		t.Metadata = merged(t.Metadata, e.Metadata)
		t.Paths = patched(t.Paths, e.AddPaths, e.RemovePaths)
		for _, id := range e.AddBlockedBy {
			s.link(id, t.ID, true)
		}
		for _, id := range e.RemoveBlockedBy {
			s.link(id, t.ID, false)
		}
		for _, id := range e.AddBlocks {
			s.link(t.ID, id, true)
		}
		for _, id := range e.RemoveBlocks {
			s.link(t.ID, id, false)
		}
	})
	for _, id := range slices.Concat(e.AddBlocks, e.RemoveBlocks) {
		if s.task(id) != nil {
			s.reindex(taskIndex(id))
		}
	}
}

// merged returns a new map of both, because readers may hold the old one. A null value deletes its
// key.
func merged(old, changes map[string]json.RawMessage) map[string]json.RawMessage {
	if len(changes) == 0 {
		return old
	}
	all := maps.Clone(old)
	if all == nil {
		all = make(map[string]json.RawMessage, len(changes))
	}
	for key, value := range changes { // the key is part of the record's line; the value is a copy already
		all[strings.Clone(key)] = value
	}
	maps.DeleteFunc(all, func(_ string, v json.RawMessage) bool { return string(v) == "null" })
	if len(all) == 0 {
		return nil
	}
	return all
}

// link adds or removes the dependency "blocker blocks waiter", on both of its sides.
func (s *State) link(blocker, waiter string, add bool) {
	b, w := s.task(blocker), s.task(waiter)
	if b == nil || w == nil || b == w || slices.Contains(w.BlockedBy, blocker) == add {
		return
	}
	if add { // append at the end: a reader of the old list does not see it
		w.BlockedBy = append(w.BlockedBy, b.ID)
		b.Blocks = append(b.Blocks, w.ID)
		w.blockage.count(b.blockage.counted, +1)
		return
	}
	w.blockage.count(b.blockage.counted, -1)
	w.BlockedBy = without(w.BlockedBy, blocker)
	b.Blocks = without(b.Blocks, waiter)
}

// without returns a new list without that id, because readers may hold the old one.
func without(ids []string, gone string) []string {
	var kept []string
	for _, id := range ids {
		if id != gone {
			kept = append(kept, id)
		}
	}
	return kept
}
