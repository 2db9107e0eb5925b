package model

import (
	"encoding/json"
	"strings"

	"cadre/internal/observe/protocol"
	"cadre/internal/team"
)

// stamp is the time at which something was true. Within the same millisecond, the order of arrival
// decides.
type stamp struct {
	At  team.Time `json:"t,omitempty"`
	Seq int64     `json:"n,omitempty"`
}

func (s stamp) before(o stamp) bool { return s.At < o.At || s.At == o.At && s.Seq < o.Seq }

// known is a value with the time since which it is known. The newest value wins, in whatever order
// values are learnt.
type known[T comparable] struct {
	V    T     `json:"v"`
	When stamp `json:"s"`
	Some bool  `json:"k,omitempty"`
}

// learn sets the value unless a newer one is known, and reports whether it did.
func (k *known[T]) learn(v T, when stamp) bool {
	if k.Some && when.before(k.When) {
		return false
	}
	*k = known[T]{v, when, true}
	return true
}

// assume sets a value that holds until any other is learnt.
func (k *known[T]) assume(v T) {
	if !k.Some {
		*k = known[T]{V: v, Some: true}
	}
}

// entry is the knowledge about one task. It may exist before the task does: a teammate's work on a
// task may be read before the task's creation.
type entry struct {
	There known[bool] `json:"there"`
	// Hidden marks the agent's own bookkeeping, which it does not show.
	Hidden      bool                     `json:"hidden,omitempty"`
	Subject     known[string]            `json:"subject"`
	Description known[string]            `json:"description"`
	ActiveForm  known[string]            `json:"activeForm"`
	Status      known[string]            `json:"status"`
	Owner       known[string]            `json:"owner"`
	Metadata    map[string]known[string] `json:"metadata,omitempty"` // values as JSON; null for a deleted key
	BlockedBy   map[string]known[bool]   `json:"blockedBy,omitempty"`
	Waiters     []string                 `json:"waiters,omitempty"` // tasks whose BlockedBy has or had this one
	CreatedBy   string                   `json:"createdBy,omitempty"`
}

func (e *entry) visible() bool { return e != nil && e.There.V && !e.Hidden }

// board is the knowledge about a list of tasks.
type board struct {
	Tasks map[string]*entry `json:"tasks"`

	unseen int             // number of entries for tasks that do not exist
	dirty  map[string]bool // entries changed since the last call of recordChanges
}

func newBoard() *board { return &board{Tasks: map[string]*entry{}, dirty: map[string]bool{}} }

// maxUnseen limits the number of entries for tasks that are not known to exist.
const maxUnseen = 4096

// at returns the entry of a task for writing, or nil if the id is invalid or there are too many
// entries.
func (b *board) at(id string) *entry {
	e := b.Tasks[id]
	if e == nil {
		if protocol.TaskNumber(id) == 0 || b.unseen >= maxUnseen {
			return nil
		}
		e = &entry{}
		b.Tasks[id] = e
		b.unseen++
	}
	b.dirty[id] = true
	return e
}

// exists records whether a task exists.
func (b *board) exists(id string, there bool, when stamp) *entry {
	e := b.at(id)
	if e == nil {
		return nil
	}
	was := e.There.V
	e.There.learn(there, when)
	switch {
	case e.There.V && !was:
		b.unseen--
	case !e.There.V && was:
		b.unseen++
	}
	if e.There.V != was {
		for _, id := range e.Waiters {
			b.dirty[id] = true
		}
	}
	return e
}

// blocks records whether waiter depends on blocker.
func (b *board) blocks(blocker, waiter string, so bool, when stamp) {
	first, w := b.at(blocker), b.at(waiter)
	if first == nil || w == nil || blocker == waiter {
		return
	}
	edge, was := w.BlockedBy[blocker]
	edge.learn(so, when)
	if w.BlockedBy == nil {
		w.BlockedBy = map[string]known[bool]{}
	}
	w.BlockedBy[blocker] = edge
	if !was {
		first.Waiters = append(first.Waiters, waiter)
	}
}

func (e *entry) meta(values map[string]json.RawMessage, when stamp) {
	for key, v := range values {
		if e.Metadata == nil {
			e.Metadata = map[string]known[string]{}
		}
		k := e.Metadata[key]
		k.learn(strings.ToValidUTF8(string(v), "\uFFFD"), when)
		e.Metadata[key] = k
		if key == "_internal" && string(v) == "true" {
			e.Hidden = true
		}
	}
}

// blockedBy returns the existing tasks that a task depends on, ordered by number.
func (b *board) blockedBy(e *entry) []string {
	var ids []string
	for id, edge := range e.BlockedBy {
		if edge.V && b.Tasks[id].visible() {
			ids = append(ids, id)
		}
	}
	protocol.SortTasks(ids)
	return ids
}
