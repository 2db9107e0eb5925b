package timeline

import (
	"cmp"
	"slices"
	"time"

	"cadre/internal/team"
)

// lane is one member: its current state, and its spans so far.
type lane struct {
	name     string
	joined   int64 // the record with which it joined
	role     string
	external bool
	shell    bool
	status   team.MemberStatus // "" before it joined
	busy     bool              // it reported that it works
	limited  bool
	plan     bool
	requests int // open permission requests

	interrupted bool // and it has got no message since
	questions   int  // that it asked the lead, and the lead has not read

	session int // counts its sessions
	held    int // tasks in progress
	tools   int
	own     load // tasks that only it may take

	uses []use // of tools, from session logs; the last one may not have ended
	used int   // tools that run in the last use

	spans []start
	sums  []totals // sums[i] is the time of each kind before spans[i*stride]
	marks [markKinds][]Mark
}

// start is the beginning of a span, which lasts until the next one.
type start struct {
	at   team.Time
	seq  int64 // the last record that was added by then
	kind Kind
}

// totals holds the time of each kind.
type totals [kinds]time.Duration

// stride is how many spans share a sum. It trades memory for a few additions a column.
const stride = 8

// join adds the lane of the member, if it has none.
func (t *Timeline) join(m team.Member) {
	if t.named[m.Name] != nil {
		return
	}
	l := &lane{name: m.Name, joined: t.through, role: m.Role, status: m.Status, plan: m.Plan.State == "submitted",
		interrupted: m.Interrupt != 0}
	l.runs(m.Agent)
	l.limited = limited(m)
	if t.named == nil {
		t.named = map[string]*lane{}
	}
	t.named[m.Name] = l
	t.lanes = append(t.lanes, l)
	t.touch(l)
}

// limited reports whether the member waits before it is tried again.
func limited(m team.Member) bool { return (m.Setbacks > 0 || m.Limited != 0) && m.Status.Running() }

// runs sets the agent of the member.
func (l *lane) runs(agent string) { l.external, l.shell = agent == team.External, agent == team.Shell }

// kind returns the kind of the last span.
func (l *lane) kind() Kind {
	if len(l.spans) == 0 {
		return Absent
	}
	return l.spans[len(l.spans)-1].kind
}

// become starts a span of the kind, unless the last span has that kind. It replaces a span of no
// length.
func (l *lane) become(kind Kind, at team.Time, seq int64) {
	n := len(l.spans)
	if n > 0 && l.spans[n-1].at >= at {
		l.spans = l.spans[:n-1]
		if (n-1)%stride == 0 {
			l.sums = l.sums[:len(l.sums)-1]
		}
	}
	if l.kind() == kind {
		return
	}
	if len(l.spans)%stride == 0 {
		l.sums = append(l.sums, l.before(at))
	}
	l.spans = append(l.spans, start{at, seq, kind})
}

// before returns the time of each kind before that time.
func (l *lane) before(at team.Time) totals { return l.sum(at, l.index(at)) }

// sum returns the time of each kind before that time, which is in the span i.
func (l *lane) sum(at team.Time, i int) (sum totals) {
	if i < 0 {
		return sum
	}
	block := min(i/stride, len(l.sums)-1)
	sum = l.sums[block]
	spans := l.spans[block*stride : i+1]
	last := len(spans) - 1
	for k := range last {
		sum[spans[k].kind] += spans[k+1].at.Sub(spans[k].at)
	}
	sum[spans[last].kind] += at.Sub(spans[last].at)
	return sum
}

// index returns the index of the span at that time; -1 for none.
func (l *lane) index(at team.Time) int { return indexAt(l.spans, at, begins) }

func begins(s *start) team.Time { return s.at }

// use is a time in which the member ran a tool. to is 0 while the tool runs.
type use struct{ from, to team.Time }

// mostUses bounds the uses of a lane. A log keeps no more either.
const mostUses = 10_000

// note records that a tool started or ended at that time.
func (l *lane) note(at team.Time, runs bool) {
	n := len(l.uses)
	switch {
	case runs && l.used == 0:
		if l.uses = append(l.uses, use{from: at}); n > mostUses {
			l.uses = slices.Clone(l.uses[n/2:])
		}
		l.used = 1
	case runs:
		l.used++
	case l.used > 0:
		if l.used--; l.used == 0 {
			l.uses[n-1].to = max(at, l.uses[n-1].from)
		}
	}
}

// toolTime returns for how many milliseconds a tool ran.
func (l *lane) toolTime(from, to team.Time) (sum int64) {
	i, _ := slices.BinarySearchFunc(l.uses, from, func(u use, at team.Time) int {
		if u.to == 0 {
			return 1
		}
		return cmp.Compare(u.to, at)
	})
	for ; i < len(l.uses) && l.uses[i].from < to; i++ {
		end := to
		if l.uses[i].to != 0 {
			end = min(to, l.uses[i].to)
		}
		sum += max(0, int64(end-max(from, l.uses[i].from)))
	}
	return sum
}

// at returns the kind at that time.
func (l *lane) at(at team.Time) Kind {
	if i := l.index(at); i >= 0 {
		return l.spans[i].kind
	}
	return Absent
}

// between returns the time of each kind from one time to the other. The time before the first span
// is Absent.
func (l *lane) between(from, to team.Time) totals {
	earlier, sum := l.before(from), l.before(to)
	return sum.less(&earlier, to.Sub(from))
}

// less returns the sums without earlier ones. It adds the part of length that is in none of
// them as Absent.
func (d totals) less(earlier *totals, length time.Duration) totals {
	for k := range d {
		d[k] -= earlier[k]
		length -= d[k]
	}
	d[Absent] += length
	return d
}

func (l *lane) mark(kind MarkKind, at team.Time, seq int64) {
	l.marks[kind] = append(l.marks[kind], Mark{at, seq, kind})
}

// marked returns the most important kind of mark in [from, to).
func (l *lane) marked(from, to team.Time) MarkKind {
	for kind := markKinds - 1; kind > NoMark; kind-- {
		marks := l.marks[kind]
		i, _ := slices.BinarySearchFunc(marks, from, func(m Mark, at team.Time) int { return cmp.Compare(m.At, at) })
		if i < len(marks) && marks[i].At < to {
			return kind
		}
	}
	return NoMark
}

// Spans returns the member's spans that overlap the time, cut to it.
func (t *Timeline) Spans(member string, from, to team.Time) (all []Span) {
	l := t.named[member]
	if l == nil || to <= from {
		return nil
	}
	for i := max(0, l.index(from)); i < len(l.spans) && l.spans[i].at < to; i++ {
		end := to
		if i+1 < len(l.spans) {
			end = min(to, l.spans[i+1].at)
		}
		if begin := max(from, l.spans[i].at); end > begin {
			all = append(all, Span{begin, end, l.spans[i].kind})
		}
	}
	return all
}

// Marks returns the member's marks in [from, to), in order.
func (t *Timeline) Marks(member string, from, to team.Time) (all []Mark) {
	l := t.named[member]
	if l == nil {
		return nil
	}
	for _, marks := range l.marks {
		i, _ := slices.BinarySearchFunc(marks, from, func(m Mark, at team.Time) int { return cmp.Compare(m.At, at) })
		for ; i < len(marks) && marks[i].At < to; i++ {
			all = append(all, marks[i])
		}
	}
	slices.SortStableFunc(all, func(a, b Mark) int { return cmp.Compare(a.Seq, b.Seq) })
	return all
}
