package team

import (
	"iter"
	"math/bits"
	"slices"
)

// bitset is an ordered set of small numbers.
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

func (b bitset) has(i int) bool { return i/64 < len(b) && b[i/64]&(1<<(i%64)) != 0 }

// from returns the first number of the set that is at least i; -1 for none.
func (b bitset) from(i int) int {
	for w := i / 64; w < len(b); w++ {
		word := b[w]
		if w == i/64 {
			word &= ^uint64(0) << (i % 64)
		}
		if word != 0 {
			return w*64 + bits.TrailingZeros64(word)
		}
	}
	return -1
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

// Underway yields the tasks in progress, in the order of their ids. Unlike [State.Tasks] it does
// not visit the other tasks.
func (s *State) Underway() iter.Seq[Task] { return s.these(s.under) }

// OutOfRetries yields the tasks that have failed after their last retry, in the order of their ids.
func (s *State) OutOfRetries() iter.Seq[Task] { return s.these(s.failed) }

// Used yields the tasks that have spent anything, in the order of their ids.
func (s *State) Used() iter.Seq[Task] {
	return func(yield func(Task) bool) {
		for i := range s.tasks {
			if t := &s.tasks[i]; t.Usage != (Usage{}) && t.Status != Deleted && !yield(s.show(t)) {
				return
			}
		}
	}
}

// Ready returns how many tasks could be claimed, and the first of them in the order in which they
// would be claimed.
func (s *State) Ready(most int) (n int, first []Task) {
	l := s.line()
	for p := len(s.ready) - 1; p >= 0; p-- {
		n += s.ready[p].count()
		for i := range s.ready[p].all() {
			if len(first) == most {
				break
			}
			if s.claimable(l, i, nil, true) {
				first = append(first, s.shown(&s.tasks[i], l))
			}
		}
	}
	return n - l.count(), first
}

// Blocked returns how many tasks wait for other tasks, or for paths that those have.
func (s *State) Blocked() int {
	ready, _ := s.Ready(0)
	return s.Count(Pending) - ready - s.failed.count()
}

func (s *State) these(tasks bitset) iter.Seq[Task] {
	return func(yield func(Task) bool) {
		l := s.line()
		for i := range tasks.all() {
			if !yield(s.shown(&s.tasks[i], l)) {
				return
			}
		}
	}
}

// taskIndex returns the place of the task in the list, -1 for an invalid id.
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

// Remembered is how many accepted commands, the newest ones, a team remembers by their ids.
const Remembered = 4096

// recent remembers which record each of the newest commands became. Every process that follows a
// team adds every record, so adding must be cheap. It writes to a ring and to a table of places in
// the ring. A table entry is stale once its place was given to another id, and stale entries are
// skipped. The table is rebuilt each time the ring has come round.
type recent struct {
	ids   []string // a ring
	tails []uint64 // of the ids
	seqs  []int64
	next  int

	// table finds ids quickly. Building it pays only in a process that stays, so it is built after
	// some records. Only add builds it: a lookup changes nothing.
	table []uint16 // places + 1, at the slot of their id or behind it; 0 for a free slot
	added int
}

const (
	indexAfter = 256
	slots      = 4 * Remembered // at most half of them are in use
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

// tail returns the last bytes of the id as a number: ids that are made by counting differ there.
func tail(id string) (n uint64) {
	for i := max(0, len(id)-8); i < len(id); i++ {
		n = n<<8 | uint64(id[i])
	}
	return n
}

// slot spreads tails over the table. The factor is 2^64 divided by the golden ratio.
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

// restored rebuilds the memory from the lists of inOrder, as far as both have entries.
func restored(ids []string, seqs []int64) recent {
	n := min(len(ids), len(seqs))
	from := max(0, n-Remembered)
	r := recent{ids: ids[from:n:n], seqs: seqs[from:n:n], tails: make([]uint64, n-from)}
	for i, id := range r.ids {
		r.tails[i] = tail(id)
	}
	return r
}
