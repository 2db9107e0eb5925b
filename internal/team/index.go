package team

import (
	"iter"
	"math/bits"
	"strconv"
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

// reindex brings what is derived from the task at i up to date: the counts, its open blockers and whether it is ready.
func (s *State) reindex(i int, before TaskStatus) {
	t := &s.tasks[i]
	if before != t.Status {
		if before != "" {
			s.counts[statusIndex(before)]--
		}
		s.counts[statusIndex(t.Status)]++
	}
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

// closed tells the tasks that t blocked that it does not any more.
func (s *State) closed(t *Task) {
	for _, id := range t.Blocks {
		if b := s.task(id); b != nil {
			b.blockers--
			s.reready(taskIndex(b.ID))
		}
	}
}

// taskIndex is for the ids that the state itself holds.
func taskIndex(id string) int {
	n, _ := strconv.Atoi(id)
	return n - 1
}

// Remembered is the number of accepted commands whose ids a team remembers, the newest ones.
const Remembered = 4096

// recent remembers which record the newest commands became.
type recent struct {
	ids  []string // a ring
	seqs []int64
	next int
	at   map[string]int64 // made when it is first asked
}

func (r *recent) add(id string, seq int64) {
	if len(r.ids) < Remembered {
		r.ids, r.seqs = append(r.ids, id), append(r.seqs, seq)
	} else {
		if r.at != nil {
			delete(r.at, r.ids[r.next])
		}
		r.ids[r.next], r.seqs[r.next] = id, seq
		r.next = (r.next + 1) % Remembered
	}
	if r.at != nil {
		r.at[id] = seq
	}
}

func (r *recent) seq(id string) int64 {
	if r.at == nil {
		r.at = make(map[string]int64, len(r.ids))
		for i, id := range r.ids {
			r.at[id] = r.seqs[i]
		}
	}
	return r.at[id]
}

// inOrder returns the ids and seqs, the oldest first.
func (r *recent) inOrder() ([]string, []int64) {
	ids := append(append([]string{}, r.ids[r.next:]...), r.ids[:r.next]...)
	seqs := append(append([]int64{}, r.seqs[r.next:]...), r.seqs[:r.next]...)
	return ids, seqs
}
