package timeline

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"cadre/internal/team"
)

// View selects a part of a timeline, and its width.
type View struct {
	Columns int       // at least 1
	From    team.Time // 0 for the first record
	// To is the end of the last column: the present for a running team. 0 means the last record.
	To      team.Time
	Members []string // the lanes to show, in this order; nil for all
	// Whole shows idle times in full length. Otherwise an idle time longer than [Long], in which no
	// member works, takes one column, or less if there are many.
	Whole bool
}

// Frame is a timeline in columns.
type Frame struct {
	Rows  []Row
	Edges []team.Time // Edges[i] is the beginning of column i; one more than columns
	Quiet []bool      // the columns that show a compressed time
}

// Row is the lane of one member.
type Row struct {
	Member string
	Cells  []Cell
}

// Cell is one column of a lane.
type Cell struct {
	Kind Kind
	Mark MarkKind
	// Quiet marks a column that shows a compressed time.
	Quiet bool
}

// Frame returns the lanes in columns.
func (t *Timeline) Frame(v View) Frame {
	columns := max(1, v.Columns)
	from, to := v.From, v.To
	if from == 0 {
		from = t.began
	}
	if to == 0 {
		to = t.last
	}
	scale := t.scale(from, max(to, from+1), columns, v.Whole)
	f := Frame{Edges: make([]team.Time, columns+1), Quiet: make([]bool, columns)}
	for i := range f.Edges {
		f.Edges[i] = scale.time(i, 0)
		if i < columns {
			_, f.Quiet[i] = scale.at(i, 1)
		}
	}
	lanes := t.lanes
	if v.Members != nil {
		lanes = nil
		for _, name := range v.Members {
			if l := t.named[name]; l != nil {
				lanes = append(lanes, l)
			}
		}
	}
	for _, l := range lanes {
		f.Rows = append(f.Rows, Row{l.name, t.cells(l, &f, scale)})
	}
	return f
}

// cells returns the columns of a lane.
func (t *Timeline) cells(l *lane, f *Frame, s scale) []Cell {
	cells := make([]Cell, len(f.Quiet))
	spans := newSweep(l.spans, begins, f.Edges[0])
	earlier := l.sum(f.Edges[0], spans.index)
	for i := range cells {
		begin, end := f.Edges[i], f.Edges[i+1]
		c := &cells[i]
		c.Mark = l.marked(begin, end) // a column of no length has none: the next one has the same time
		switch {
		case f.Quiet[i]:
			middle, _ := s.at(i, 1)
			c.Kind, c.Quiet = l.at(middle), true
			earlier = l.sum(end, spans.to(end))
		case end <= begin:
			c.Kind = l.at(begin)
		default:
			sum := l.sum(end, spans.to(end))
			in := sum.less(&earlier, end.Sub(begin))
			c.Kind, earlier = in.main(), sum
		}
		if c.Kind == Working && !c.Quiet && 4*l.toolTime(begin, max(end, begin+1)) >= int64(max(end, begin+1)-begin) {
			c.Kind = Tool // a log can be ahead of the records that were read
		}
	}
	n := len(cells) - 1
	cells[n].Mark = l.marked(f.Edges[n], f.Edges[n+1]+1) // the last record is at its end
	return cells
}

// main returns the kind that stands for the time: the longest, but what is worth a look where it
// takes a quarter.
func (d *totals) main() Kind {
	var most, best, sum time.Duration
	for _, took := range d[:Working] {
		most, sum = max(most, took), sum+took
	}
	for _, took := range d[Working : Dependency+1] {
		best, sum = max(best, took), sum+took
	}
	for _, took := range d[Dependency+1:] {
		most, sum = max(most, took), sum+took
	}
	if best > 0 && (best > most || 4*best >= sum) {
		return Working + first(d[Working:], best)
	}
	return first(d[:], most)
}

// first returns the first kind that took that long.
func first(d []time.Duration, took time.Duration) Kind {
	for k := range d {
		if d[k] == took {
			return Kind(k)
		}
	}
	return Absent
}

// scale maps columns to times. All compressed times have the same width.
type scale struct {
	from, to team.Time
	quiet    []stretch // the compressed times, cut to the shown time
	room     int64     // width of each of them, in milliseconds of other times
	columns  int64
	length   int64 // of all columns, in the same unit
}

// scale returns the scale for a time. It searches the compressed times in it, and copies none.
func (t *Timeline) scale(from, to team.Time, columns int, whole bool) scale {
	s := scale{from: from, to: to, columns: int64(columns), length: int64(to - from)}
	if whole {
		return s
	}
	all := t.quiet
	if t.working == 0 && to-max(t.quietSince, from) >= Long && t.quietSince >= 0 && len(t.lanes) > 0 {
		t.quiet = slices.Grow(t.quiet, 1) // so that appending the one that has not ended copies nothing
		all = append(t.quiet, stretch{t.quietSince, to, t.quietBefore()})
	}
	first, _ := slices.BinarySearchFunc(all, from+1, func(q stretch, at team.Time) int { return cmp.Compare(q.to, at) })
	end, _ := slices.BinarySearchFunc(all, to, func(q stretch, at team.Time) int { return cmp.Compare(q.from, at) })
	if first >= end {
		return s
	}
	s.quiet = all[first:end]
	active := s.length - s.hidden(to)
	if active < s.columns { // no member worked, for example because all are external
		s.quiet = nil
		return s
	}
	if n := int64(len(s.quiet)); 4*n <= s.columns {
		s.room = max(1, active/(s.columns-n))
	} else {
		s.room = max(1, active/3/n)
	}
	s.length = active + s.room*int64(len(s.quiet))
	return s
}

// hidden returns how much compressed time is before at.
func (s *scale) hidden(at team.Time) int64 {
	i, _ := slices.BinarySearchFunc(s.quiet, at, func(q stretch, at team.Time) int { return cmp.Compare(q.from, at) })
	if i == 0 {
		return 0
	}
	last := s.quiet[i-1]
	cut := max(0, int64(s.from-s.quiet[0].from)) // the first one may begin before the shown time
	return last.before + int64(min(at, last.to)-last.from) - s.quiet[0].before - cut
}

// position returns where compressed time i begins, in the unit of length.
func (s *scale) position(i int) int64 {
	at := max(s.from, s.quiet[i].from)
	return int64(at-s.from) - s.hidden(at) + s.room*int64(i)
}

// time returns the time at a column; half adds half a column.
func (s *scale) time(column, half int) team.Time {
	at, _ := s.at(column, half)
	return at
}

// at returns the time at a column, and whether it is compressed; half adds half a column.
func (s *scale) at(column, half int) (at team.Time, quiet bool) {
	p := s.length * int64(2*column+half) / (2 * s.columns)
	if column == int(s.columns) {
		return s.to, false
	}
	// Find the last stretch that begins at or before the position.
	lo, hi := 0, len(s.quiet)
	for lo < hi {
		if middle := (lo + hi) / 2; s.position(middle) <= p {
			lo = middle + 1
		} else {
			hi = middle
		}
	}
	if lo == 0 {
		return s.from + team.Time(p), false
	}
	q := s.quiet[lo-1]
	begin, end := max(s.from, q.from), min(s.to, q.to)
	past := p - s.position(lo-1)
	if past < s.room {
		return begin + team.Time(float64(end-begin)*float64(past)/float64(s.room)), true
	}
	return end + team.Time(past-s.room), false
}

// Column returns the column of the frame at that time.
func (f *Frame) Column(at team.Time) int {
	i, exact := slices.BinarySearch(f.Edges, at)
	if !exact {
		i--
	}
	return max(0, min(i, len(f.Quiet)-1))
}

// signs are the characters of the kinds and marks, each one column wide.
type signs struct {
	kinds [kinds]rune
	marks [markKinds]rune
	quiet rune
}

var (
	drawn = signs{[kinds]rune{' ', '‥', '█', '▓', '?', '~', '░', '·', ' '},
		[markKinds]rune{' ', '↺', '◆', '✗'}, '⋯'}
	ascii = signs{[kinds]rune{' ', ',', '#', '=', '?', '~', ':', '.', ' '}, [markKinds]rune{' ', 'r', 'p', 'x'}, '-'}
)

func chars(plain bool) *signs {
	if plain {
		return &ascii
	}
	return &drawn
}

// Rune returns the character of the cell, one column wide. plain uses ASCII only.
func (c Cell) Rune(plain bool) rune {
	s := chars(plain)
	switch {
	case c.Mark != NoMark:
		return s.marks[c.Mark]
	case c.Quiet && c.Kind != Absent && c.Kind != Ended:
		return s.quiet
	}
	return s.kinds[c.Kind]
}

// Text returns the lane with one character per column.
func (r Row) Text(plain bool) string {
	var b strings.Builder
	for _, c := range r.Cells {
		b.WriteRune(c.Rune(plain))
	}
	return b.String()
}

// Axis returns a line with the times of the columns, in the format of label, with space between
// them. It leaves out a label that is the one before it. A label must have one column per byte.
func (f *Frame) Axis(label func(team.Time) string) string {
	line := []byte(strings.Repeat(" ", len(f.Quiet)))
	last := ""
	for i := 0; i < len(line); {
		text := label(f.Edges[i])
		switch {
		case text == "" || i+len(text) > len(line):
			return strings.TrimRight(string(line), " ")
		case text == last: // columns of a minute, or of a compressed time
			i++
		default:
			i += copy(line[i:], text) + 3
			last = text
		}
	}
	return strings.TrimRight(string(line), " ")
}

// Legend explains the characters that the frame uses.
func (f *Frame) Legend(plain bool) string {
	s := chars(plain)
	shown := map[rune]bool{}
	for _, row := range f.Rows {
		for _, c := range row.Cells {
			shown[c.Rune(plain)] = true
		}
	}
	var parts []string
	for _, one := range []struct {
		sign rune
		text string
	}{{s.kinds[Working], "works"}, {s.kinds[Tool], "runs a tool"}, {s.kinds[Person], "waits for a person"},
		{s.kinds[Limit], "tries again later"}, {s.kinds[Dependency], "idle, tasks blocked"}, {s.kinds[Idle], "idle"},
		{s.kinds[Starting], "has no session"}, {s.quiet, "no member works for long"}, {s.marks[Failure], "failed"},
		{s.marks[Plan], "plan"}, {s.marks[Retry], "retry"}} {
		if shown[one.sign] {
			parts = append(parts, string(one.sign)+" "+one.text)
		}
	}
	return strings.Join(parts, "  ")
}
