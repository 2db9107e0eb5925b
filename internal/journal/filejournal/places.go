package filejournal

import "slices"

// places remembers where records are, so that a read which continues an earlier one need not
// search. It holds the end positions of the last few walks, for readers that are up to date, and a
// position every 64 KiB of the active segment, for readers that have fallen behind.
type places struct {
	recent [16]cursor
	next   int
	index  []cursor // of one segment, ascending
}

const indexEvery = 64 << 10

func (p *places) add(c cursor) {
	if n := len(p.index); n == 0 || p.index[n-1].first < c.first {
		p.index = append(p.index[:0], c)
	} else if last := p.index[n-1]; last.first == c.first && c.off-last.off >= indexEvery {
		p.index = append(p.index, c)
	}
	for i := range p.recent {
		if p.recent[i].seq == c.seq && p.recent[i].first == c.first {
			return
		}
	}
	p.recent[p.next] = c
	p.next = (p.next + 1) % len(p.recent)
}

// before returns the last known position at or before the record seq, or the zero cursor if there
// is none.
func (p *places) before(seq int64) cursor {
	var best cursor
	better := func(c cursor) {
		if c.first != 0 && c.seq <= seq && (c.seq > best.seq || best.first == 0) {
			best = c
		}
	}
	for _, c := range p.recent {
		better(c)
	}
	if best.seq < seq {
		n, _ := slices.BinarySearchFunc(p.index, seq+1, func(c cursor, s int64) int { return int(c.seq - s) })
		if n > 0 {
			better(p.index[n-1])
		}
	}
	return best
}
