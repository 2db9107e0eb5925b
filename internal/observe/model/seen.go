package model

// seen is a set of hashes that forgets the oldest when it is full: what was counted already. It is
// a ring and a table of places in it, of numbers alone, so that it costs the garbage collector
// nothing.
type seen struct {
	ring  []uint64
	next  int
	table []uint32 // places + 1 by hash, 0 for free; made anew when the ring has grown or gone round
}

// maxSeen is how many tool uses and letters are remembered: the replay of anything among them
// changes nothing.
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

// once reports whether the hash is new, and remembers it.
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
	// An entry of the table whose place was given to another since is passed over; they gather
	// until the ring has gone round once.
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
