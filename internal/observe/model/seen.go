package model

// seen is a set of hashes of things that were counted already. When it is full, it forgets the
// oldest. It consists of a ring and a table of indexes into it. It contains only numbers, so the
// garbage collector need not scan it.
type seen struct {
	ring  []uint64
	next  int
	table []uint32 // indexes + 1 by hash, 0 if free; rebuilt when the ring has grown or wrapped around
}

// maxSeen is the number of remembered tool uses and messages. Replaying any of them changes
// nothing.
const maxSeen = 1 << 18

func (s *seen) has(h uint64) bool {
	if len(s.table) == 0 {
		return false
	}
	mask := len(s.table) - 1
	for at := int(h) & mask; s.table[at] != 0; at = (at + 1) & mask {
		if s.ring[s.table[at]-1] == h {
			return true
		}
	}
	return false
}

// once adds the hash and reports whether it was new.
func (s *seen) once(h uint64) bool {
	if s.has(h) {
		return false
	}
	s.add(h)
	return true
}

func (s *seen) add(h uint64) {
	if s.has(h) {
		return
	}
	at := len(s.ring)
	if at < maxSeen {
		s.ring = append(s.ring, h)
	} else {
		at = s.next
		s.ring[at] = h
		s.next = (s.next + 1) % maxSeen
	}
	// Table entries whose index was reused are skipped. They accumulate until the ring has wrapped
	// around once.
	if 2*len(s.ring) > len(s.table) || s.next == 0 && at == maxSeen-1 {
		size := max(64, len(s.table))
		for size < 4*len(s.ring) {
			size *= 2
		}
		s.table = make([]uint32, size)
		for i := range s.ring {
			s.enter(i)
		}
		return
	}
	s.enter(at)
}

func (s *seen) enter(place int) {
	mask := len(s.table) - 1
	at := int(s.ring[place]) & mask
	for s.table[at] != 0 {
		at = (at + 1) & mask
	}
	s.table[at] = uint32(place + 1)
}

// inOrder returns the hashes, the oldest first.
func (s *seen) inOrder() []uint64 {
	return append(append(make([]uint64, 0, len(s.ring)), s.ring[s.next:]...), s.ring[:s.next]...)
}
