package timeline

import (
	"slices"

	"cadre/internal/team"
)

// Until returns the timeline as it was after the record seq, which has the time at. It reads no
// record again: it shares the lanes of t up to that record. It can be read until t changes, and
// takes no records. Of several spans that a lane began at one time, it knows the last one alone.
func (t *Timeline) Until(seq int64, at team.Time) *Timeline {
	if seq >= t.through {
		return t
	}
	was := &Timeline{named: map[string]*lane{}, lead: t.lead, through: seq, started: t.started,
		began: t.began, last: max(t.began, min(t.last, at)), working: 1, quietSince: -1}
	for _, l := range t.lanes {
		if l.joined > seq {
			continue
		}
		one := l.until(seq)
		was.lanes = append(was.lanes, one)
		was.named[one.name] = one
	}
	ended, _ := slices.BinarySearchFunc(t.quiet, at+1, func(q stretch, at team.Time) int { return int(q.to - at) })
	was.quiet = slices.Clip(t.quiet[:ended])
	since := t.quietSince // of the quiet time in which the record is
	if t.working > 0 {
		since = -1
	}
	if ended < len(t.quiet) {
		since = t.quiet[ended].from
	}
	if since >= 0 && since < at {
		was.working, was.quietSince = 0, since
	}
	return was
}

// until returns the spans and marks of the records up to seq.
func (l *lane) until(seq int64) *lane {
	was := &lane{name: l.name, joined: l.joined, uses: l.uses}
	n, _ := slices.BinarySearchFunc(l.spans, seq+1, func(s start, seq int64) int { return int(s.seq - seq) })
	was.spans, was.sums = l.spans[:n], l.sums[:(n+stride-1)/stride]
	for kind, marks := range l.marks {
		n, _ := slices.BinarySearchFunc(marks, seq+1, func(m Mark, seq int64) int { return int(m.Seq - seq) })
		was.marks[kind] = marks[:n]
	}
	return was
}
