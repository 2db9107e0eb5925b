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

func (b bitset) count() (n int) {
	for _, word := range b {
		n += bits.OnesCount64(word)
	}
	return n
}

// reindex brings what is derived from the task at i up to date: its open blockers and whether it is
// ready.
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
	ready := t.Status == Pending && t.blockers == 0 && !t.GivenUp()
	s.traced.set(i, t.Status == InProgress || t.Status == Completed && t.Work.Open())
	at := priorityIndex(t.Priority)
	for p := range s.ready {
		s.ready[p].set(i, ready && p == at)
	}
	s.under.set(i, t.Status == InProgress)
	s.failed.set(i, t.GivenUp())
}

// Underway yields the tasks in progress, in the order of their ids. Unlike [State.Tasks] it costs
// nothing for the others.
func (s *State) Underway() iter.Seq[Task] { return s.these(s.under) }

// OutOfRetries yields the tasks that failed as often as they were to be tried, in the order of
// their ids.
func (s *State) OutOfRetries() iter.Seq[Task] { return s.these(s.failed) }

// Used yields the tasks for which anything was spent, in the order of their ids.
func (s *State) Used() iter.Seq[Task] {
	return func(yield func(Task) bool) {
		for i := range s.tasks {
			if t := &s.tasks[i]; t.Usage != (Usage{}) && t.Status != Deleted && !yield(s.show(t)) {
				return
			}
		}
	}
}

// Ready returns how many tasks could be claimed by somebody, and the first of them in the order in
// which they would be given out.
func (s *State) Ready(most int) (n int, first []Task) {
	for p := len(s.ready) - 1; p >= 0; p-- {
		n += s.ready[p].count()
		for i := range s.ready[p].all() {
			if len(first) == most {
				break
			}
			first = append(first, s.show(&s.tasks[i]))
		}
	}
	return n, first
}

// Blocked returns how many tasks wait for other tasks.
func (s *State) Blocked() int {
	ready, _ := s.Ready(0)
	return s.Count(Pending) - ready - s.failed.count()
}

func (s *State) these(tasks bitset) iter.Seq[Task] {
	return func(yield func(Task) bool) {
		for i := range tasks.all() {
			if !yield(s.show(&s.tasks[i])) {
				return
			}
		}
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

// recent remembers which record the newest commands became. Every process that follows a team adds
// every record to it, so adding is a few stores: a ring, and a table of places in the ring. An
// entry of the table whose place was given to another id since is passed over, and the table is
// made anew each time the ring has gone round.
type recent struct {
	ids   []string // a ring
	tails []uint64 // of the ids
	seqs  []int64
	next  int

	// table finds ids quickly. Making it pays only for a process that stays, so it is made after
	// some records, and only by add: looking something up changes nothing.
	table []uint16 // places + 1, at the slot of their id or behind it; 0 for a free slot
	added int
}

const (
	indexAfter = 64
	slots      = 4 * Remembered // at most half of them are taken
)

func (r *recent) add(id string, seq int64) {
	at := len(r.ids)
	if at < Remembered {
		r.ids, r.tails, r.seqs = append(r.ids, id), append(r.tails, tail(id)), append(r.seqs, seq)
	} else {
		at = r.next
		r.ids[at], r.tails[at], r.seqs[at] = id, tail(id), seq
		r.next = (r.next + 1) % Remembered
	}
	switch r.added++; {
	case r.added == indexAfter || r.table != nil && r.added%Remembered == 0:
		r.table = make([]uint16, slots)
		for i := range r.ids {
			r.enter(i)
		}
	case r.table != nil:
		r.enter(at)
	}
}

func (r *recent) enter(place int) {
	s := slot(r.tails[place])
	for r.table[s] != 0 {
		s = (s + 1) % slots
	}
	r.table[s] = uint16(place + 1)
}

// tail is the end of the id, where ids that are made by counting differ, as one number.
func tail(id string) (n uint64) {
	for i := max(0, len(id)-8); i < len(id); i++ {
		n = n<<8 | uint64(id[i])
	}
	return n
}

// slot spreads tails over the table; the factor is 2^64 divided by the golden ratio.
func slot(tail uint64) int { return int(tail * 0x9e3779b97f4a7c15 >> 32 % slots) }

func (r *recent) seq(id string) int64 {
	var newest int64
	wanted := tail(id)
	see := func(i int) {
		if r.tails[i] == wanted && r.ids[i] == id {
			newest = max(newest, r.seqs[i])
		}
	}
	if r.table == nil {
		for i := range r.ids {
			see(i)
		}
		return newest
	}
	for s := slot(wanted); r.table[s] != 0; s = (s + 1) % slots {
		see(int(r.table[s]) - 1)
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
	r := recent{ids: ids[from:n:n], seqs: seqs[from:n:n], tails: make([]uint64, n-from)}
	for i, id := range r.ids {
		r.tails[i] = tail(id)
	}
	return r
}
