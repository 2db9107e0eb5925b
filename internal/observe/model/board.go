package model

import (
	"encoding/json"
	"strings"

	"cadre/internal/observe/protocol"
	"cadre/internal/team"
)

// stamp is when something was true: at a time, and within the same millisecond in the order of
// arrival.
type stamp struct {
	At  team.Time `json:"t,omitempty"`
	Seq int64     `json:"n,omitempty"`
}

func (s stamp) before(o stamp) bool { return s.At < o.At || s.At == o.At && s.Seq < o.Seq }

// known is one thing that is known, and since when. The newest counts, in whatever order things are
// learnt.
type known[T comparable] struct {
	V    T     `json:"v"`
	When stamp `json:"s"`
	Some bool  `json:"k,omitempty"`
}

// learn reports whether that is the newest.
func (k *known[T]) learn(v T, when stamp) bool {
	if k.Some && when.before(k.When) {
		return false
	}
	*k = known[T]{v, when, true}
	return true
}

// assume is what holds as long as nobody says otherwise.
func (k *known[T]) assume(v T) {
	if !k.Some {
		*k = known[T]{V: v, Some: true}
	}
}

// entry is what is known of one task. It may be there before the task is: what a teammate did with
// a task may be read before the task's creation is.
type entry struct {
	There known[bool] `json:"there"`
	// the agent's own bookkeeping, which it shows to nobody
	Hidden      bool                     `json:"hidden,omitempty"`
	Subject     known[string]            `json:"subject"`
	Description known[string]            `json:"description"`
	ActiveForm  known[string]            `json:"activeForm"`
	Status      known[string]            `json:"status"`
	Owner       known[string]            `json:"owner"`
	Metadata    map[string]known[string] `json:"metadata,omitempty"` // values as JSON; null for a key that was deleted
	BlockedBy   map[string]known[bool]   `json:"blockedBy,omitempty"`
	Waiters     []string                 `json:"waiters,omitempty"` // tasks whose BlockedBy has this one, now or once
	CreatedBy   string                   `json:"createdBy,omitempty"`
}

func (e *entry) visible() bool { return e != nil && e.There.V && !e.Hidden }

// board is what is known of a list of tasks.
type board struct {
	Tasks map[string]*entry `json:"tasks"`

	unseen int             // entries of tasks that are not there
	dirty  map[string]bool // what was touched since the last settling
}

func newBoard() *board { return &board{Tasks: map[string]*entry{}, dirty: map[string]bool{}} }

// maxUnseen bounds what is kept of tasks that nobody said are there.
const maxUnseen = 4096

// at returns the entry of the task to write to, and nil for what is no id of a task.
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

// exists says whether the task is there.
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

// blocks says whether waiter waits for blocker.
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

// blockedBy are the tasks that the task waits for, as far as they are there, in the order of their
// numbers.
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
