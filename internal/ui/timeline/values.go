package timeline

import "cadre/internal/team"

// Lane is the lane of one member as values. A program that has them makes frames by itself, as the
// page of an exported team does.
type Lane struct {
	Member string
	Joined int64 // the record with which the member joined
	Starts []Start
	Marks  []Mark // in the order of their records
}

// Start is the beginning of a span, which lasts until the next one.
type Start struct {
	At   team.Time
	Seq  int64 // the last record that was added by then
	Kind Kind
}

// Lanes returns all lanes, in the order of [Timeline.Members].
func (t *Timeline) Lanes() []Lane {
	all := make([]Lane, len(t.lanes))
	for i, l := range t.lanes {
		one := Lane{Member: l.name, Joined: l.joined, Marks: t.Marks(l.name, t.began, t.last+1)}
		for _, s := range l.spans {
			one.Starts = append(one.Starts, Start{s.at, s.seq, s.kind})
		}
		all[i] = one
	}
	return all
}

// Quiet returns the times of at least [Long] in which no member worked, as far as they have ended,
// and since when no member works; -1 if one works.
func (t *Timeline) Quiet() (ended [][2]team.Time, since team.Time) {
	for _, q := range t.quiet {
		ended = append(ended, [2]team.Time{q.from, q.to})
	}
	if t.working > 0 {
		return ended, -1
	}
	return ended, t.quietSince
}
