package costs

import (
	"cmp"
	"slices"

	"cadre/internal/team"
)

// stopEvery is after how many records the sums are kept, at most.
const stopEvery = 512

// stop has the exact sums after a record, because the points of a long history do not have them.
type stop struct {
	seq     int64
	at      team.Time
	all     team.Usage
	members []team.Usage // of the first members
}

func (c *Costs) stop() {
	is := stop{seq: c.through, at: c.last, all: c.all.usage}
	for _, s := range c.members {
		is.members = append(is.members, s.usage)
	}
	c.stops = append(c.stops, is)
}

// Known returns the last record up to seq whose sums are kept; 0 for none.
func (c *Costs) Known(seq int64) int64 {
	if i := c.known(seq); i >= 0 {
		return c.stops[i].seq
	}
	return 0
}

func (c *Costs) known(seq int64) int {
	i, _ := slices.BinarySearchFunc(c.stops, seq+1, func(s stop, seq int64) int { return cmp.Compare(s.seq, seq) })
	return i - 1
}

// Until returns the costs as they were after the record seq, and its time. The caller gives the
// records after [Costs.Known] up to it, which are at most a few hundred.
func (c *Costs) Until(seq int64, records []*team.Record) (was *Costs, at team.Time) {
	was = &Costs{}
	if i := c.known(seq); i >= 0 {
		from := c.stops[i]
		was.through, was.last, was.all.usage = from.seq, from.at, from.all
		for m, sum := range from.members {
			was.of(c.members[m].member).usage = sum
		}
	}
	for _, r := range records {
		was.Add(r)
	}
	was.all.continues(&c.all, was.last)
	for _, s := range was.members {
		s.continues(c.named[s.member], was.last)
	}
	return was, was.last
}

// continues takes over the points of the longer series that are before that time. The last point is
// the sum at that time.
func (s *series) continues(long *series, at team.Time) {
	n, _ := slices.BinarySearchFunc(long.points, at, func(p point, at team.Time) int { return cmp.Compare(p.at, at) })
	s.points, s.every, s.newest = slices.Clone(long.points[:n]), 0, 0
	s.set(s.usage, at)
}
