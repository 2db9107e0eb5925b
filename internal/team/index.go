package team

import (
	"iter"
	"math/bits"
	"slices"
)

// bitset is a set of small numbers, in order.
type bitset []uint64

func (b *bitset) set(i int, on bool) {
	for on && i/64 >= len(*b) {
		*b = append(*b, 0)
	}
	switch {
	case on:
		(*b)[i/64] |= 1 << (i % 64)
	case i/64 < len(*b):
		(*b)[i/64] &^= 1 << (i % 64)
	}
}

func (b bitset) all() iter.Seq[int] {
	return func(yield func(int) bool) {
		for w, word := range b {
			for ; word != 0; word &= word - 1 {
				if !yield(w*64 + bits.TrailingZeros64(word)) {
					return
				}
			}
		}
	}
}

// reindex brings what is derived from the task at i up to date: its open blockers and whether it is ready.
func (s *State) reindex(i int) {
	t := &s.tasks[i]
	t.blockers = 0
	for _, id := range t.BlockedBy {
		if b := s.task(id); b != nil && b.Status.open() {
			t.blockers++
		}
	}
	s.reready(i)
}

func (s *State) reready(i int) {
	t := &s.tasks[i]
	for p := range s.ready {
		s.ready[p].set(i, p == priorityIndex(t.Priority) && t.Status == Pending && t.blockers == 0 && !t.GivenUp())
	}
}

// recount adds to the number of open blockers of the tasks that wait for t.
func (s *State) recount(t *Task, by int) {
	for _, id := range t.Blocks {
		if w := s.task(id); w != nil {
			w.blockers += by
			s.reready(taskIndex(id))
		}
	}
}

// taskIndex is where the task with that id is in the list, -1 for what is no id.
func taskIndex(id string) int {
	if len(id) > 9 || len(id) > 0 && id[0] == '0' {
		return -1
	}
	n := 0
	for i := range len(id) {
		digit := id[i] - '0'
		if digit > 9 {
			return -1
		}
		n = n*10 + int(digit)
	}
	return n - 1
}

// Remembered is the number of accepted commands whose ids a team remembers, the newest ones.
const Remembered = 4096

// recent remembers which record the newest commands became.
type recent struct {
	ids  []string // a ring
	seqs []int64
	next int

	// at finds them quickly. Making it pays only for a process that stays, so it is made after some records, and only by
	// add: looking something up changes nothing.
	at    map[string]int64
	added int
}

const indexAfter = 64

func (r *recent) add(id string, seq int64) {
	if len(r.ids) < Remembered {
		r.ids, r.seqs = append(r.ids, id), append(r.seqs, seq)
	} else {
		if old := r.ids[r.next]; r.at[old] == r.seqs[r.next] {
			delete(r.at, old)
		}
		r.ids[r.next], r.seqs[r.next] = id, seq
		r.next = (r.next + 1) % Remembered
	}
	if r.added++; r.added == indexAfter {
		r.at = make(map[string]int64, Remembered)
		ids, seqs := r.inOrder()
		for i, id := range ids {
			r.at[id] = seqs[i]
		}
	} else if r.at != nil {
		r.at[id] = seq
	}
}

func (r *recent) seq(id string) int64 {
	if r.at != nil {
		return r.at[id]
	}
	var newest int64
	for i := range r.ids {
		if r.ids[i] == id {
			newest = max(newest, r.seqs[i])
		}
	}
	return newest
}

// inOrder returns the ids and seqs, the oldest first.
func (r *recent) inOrder() ([]string, []int64) {
	return slices.Concat(r.ids[r.next:], r.ids[:r.next]), slices.Concat(r.seqs[r.next:], r.seqs[:r.next])
}

// restored is the memory that inOrder gave, as far as the two lists go together.
func restored(ids []string, seqs []int64) recent {
	n := min(len(ids), len(seqs))
	from := max(0, n-Remembered)
	return recent{ids: ids[from:n:n], seqs: seqs[from:n:n]}
}
