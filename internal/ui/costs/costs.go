// Package costs shows what the members of a team have used over time: tokens and dollars, in
// columns.
//
// It has no authority: agents report what they use, and the records have it. It knows no terminal
// and no clock. A front end adds each record once, in order. Its columns are those of a timeline,
// or any other times.
//
// # Guarantees
//
//   - Adding a record costs the same at any length of the history.
//   - Rows cost O(columns × members), and memory is O(members), at any length of the history.
//   - The last column of cumulative rows has the sums that the state of the team has.
//   - Each other value is off by at most what a member reports in 1/256 of its reports.
package costs

import (
	"strings"

	"cadre/internal/team"
)

// Amount is what was used.
type Amount struct {
	Tokens       int64 // of all kinds
	CostMicroUSD int64 // millionths of a US dollar; 0 if no agent reports its cost
}

// less returns a minus b.
func (a Amount) less(b Amount) Amount {
	return Amount{a.Tokens - b.Tokens, a.CostMicroUSD - b.CostMicroUSD}
}

// Costs holds what the members of a team used. The zero value is an empty history. One goroutine
// owns it.
type Costs struct {
	members []*series
	named   map[string]*series
	all     series
	through int64
	last    team.Time
	stops   []stop // see [Costs.Until]
}

// mostPoints bounds the sums that are kept for one member. A bar has 8 levels, so that fewer would
// do for a screen of any width.
const mostPoints = 512

// series holds the sums of one member after its reports. It keeps every report at first. In a long
// history it keeps every second report, then every fourth, and so on.
type series struct {
	member string
	usage  team.Usage
	points []point
	every  int // reports for each point but the last; 0 means 1
	newest int // reports in the last point
}

type point struct {
	at  team.Time
	sum Amount
}

// Add adds the next record. It ignores a record that was added before.
func (c *Costs) Add(r *team.Record) {
	if r.Seq <= c.through {
		return
	}
	c.through = r.Seq
	c.last = max(c.last, r.At)
	for _, e := range r.Events {
		switch e := e.(type) {
		case *team.TeamRestored:
			c.restore(e.Team.Usage, e.Members)
		case *team.UsageReported:
			c.all.add(e.Usage, c.last)
			if e.Member != "" {
				c.of(e.Member).add(e.Usage, c.last)
			}
		}
	}
	if n := len(c.stops); n == 0 || c.through-c.stops[n-1].seq >= stopEvery {
		c.stop()
	}
}

// Restore sets the sums to those of a state whose earlier records are lost.
func (c *Costs) Restore(s *team.State) {
	if s.Seq() <= c.through {
		return
	}
	c.through = s.Seq()
	of := s.Team()
	c.last = max(c.last, of.UpdatedAt)
	c.restore(of.Usage, s.Members())
	c.stop()
}

func (c *Costs) restore(all team.Usage, members []team.Member) {
	c.all.set(all, c.last)
	for _, m := range members {
		if m.Usage != (team.Usage{}) {
			c.of(m.Name).set(m.Usage, c.last)
		}
	}
}

// Through returns the seq of the last record that was added.
func (c *Costs) Through() int64 { return c.through }

func (c *Costs) of(member string) *series {
	s := c.named[member]
	if s == nil {
		if c.named == nil {
			c.named = map[string]*series{}
		}
		s = &series{member: member}
		c.named[member] = s
		c.members = append(c.members, s)
	}
	return s
}

func (s *series) add(u team.Usage, at team.Time) {
	sum := s.usage
	sum.InputTokens += u.InputTokens
	sum.OutputTokens += u.OutputTokens
	sum.CacheReadTokens += u.CacheReadTokens
	sum.CacheWriteTokens += u.CacheWriteTokens
	sum.CostMicroUSD += u.CostMicroUSD
	s.set(sum, at)
}

func (s *series) set(sum team.Usage, at team.Time) {
	s.usage = sum
	p := point{at, s.sum()}
	n := len(s.points)
	if n > 0 && s.points[n-1].at == at {
		s.points[n-1] = p
		return
	}
	if n > 0 && s.newest < s.every {
		s.points[n-1] = p
		s.newest++
		return
	}
	if n == mostPoints {
		s.thin()
	}
	s.points, s.newest = append(s.points, p), 1
}

// thin joins every two points into one.
func (s *series) thin() {
	kept := s.points[:0]
	for i := 1; i < len(s.points); i += 2 {
		kept = append(kept, s.points[i])
	}
	s.points, s.every = kept, 2*max(1, s.every)
}

// before returns the sum of what was used before at, and the index of the first point at or after
// at. That index is at least from, and near guess where reports are spread evenly.
func (s *series) before(at team.Time, from, guess int) (Amount, int) {
	i := min(max(from, guess), len(s.points))
	for i < len(s.points) && s.points[i].at < at {
		i++
	}
	for i > from && s.points[i-1].at >= at {
		i--
	}
	if i == 0 {
		return Amount{}, 0
	}
	return s.points[i-1].sum, i
}

// Unit is what bars show.
type Unit int

// The units.
const (
	Tokens Unit = iota
	Dollars
)

func (u Unit) of(a Amount) int64 {
	if u == Dollars {
		return a.CostMicroUSD
	}
	return a.Tokens
}

// View configures the columns.
type View struct {
	// Edges are the times between the columns, one more than there are columns. Usage at the last
	// edge counts too.
	Edges []team.Time
	Unit  Unit
	// Rate shows what was used within each column, instead of the total up to its end.
	Rate bool
}

// Row is the use of one member, or of all members.
type Row struct {
	Member string // "" for all members
	Sum    Amount // up to the last column
	Cells  []int64
	Most   int64 // Most is the value of a full bar. All members share one, so that their bars can be compared.
}

// Rows returns the row of all members, and one row for each member that used something. Members
// stand in the order of their first use.
func (c *Costs) Rows(v View) []Row {
	rows := []Row{c.all.row(v)}
	most := int64(0)
	for _, s := range c.members {
		row := s.row(v)
		most = max(most, row.Most)
		rows = append(rows, row)
	}
	for i := range rows[1:] {
		rows[1+i].Most = most
	}
	return rows
}

func (s *series) row(v View) Row {
	row := Row{Member: s.member}
	if len(v.Edges) < 2 {
		return row
	}
	row.Cells = make([]int64, len(v.Edges)-1)
	begun, next := s.before(v.Edges[0], 0, 0)
	ahead := 0 // points in the last column
	for i := range row.Cells {
		end := v.Edges[i+1]
		if i == len(row.Cells)-1 {
			end++
		}
		var sum Amount
		before := next
		sum, next = s.before(end, next, next+ahead)
		ahead = next - before
		row.Sum = sum
		if v.Rate {
			row.Cells[i] = v.Unit.of(sum.less(begun))
		} else {
			row.Cells[i] = v.Unit.of(sum)
		}
		begun = sum
		row.Most = max(row.Most, row.Cells[i])
	}
	return row
}

// Dollars reports whether any agent reported its cost.
func (c *Costs) Dollars() bool { return c.all.usage.CostMicroUSD > 0 }

// Any reports whether anything was used.
func (c *Costs) Any() bool { return c.all.usage != team.Usage{} }

// Sums returns what was used until now: by all members, and then by each member that used
// something, in the order of their first use.
func (c *Costs) Sums() []Row {
	rows := []Row{{Sum: c.all.sum()}}
	for _, s := range c.members {
		rows = append(rows, Row{Member: s.member, Sum: s.sum()})
	}
	return rows
}

func (s *series) sum() Amount { return Amount{s.usage.Tokens(), s.usage.CostMicroUSD} }

// Edges divides a time into columns of the same length.
func Edges(from, to team.Time, columns int) []team.Time {
	columns = max(1, columns)
	edges := make([]team.Time, columns+1)
	length := max(1, to-from)
	for i := range edges {
		edges[i] = from + length*team.Time(i)/team.Time(columns)
	}
	return edges
}

// levels are the characters of bars, from empty to full.
var levels = [...]rune{' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'}

// plainLevels are those of ASCII.
var plainLevels = [len(levels)]rune{' ', '.', ':', '-', '=', '+', '*', '%', '#'}

// Bars returns the row with one character per column. plain uses ASCII only. Each value above zero
// has a visible mark.
func (r Row) Bars(plain bool) string {
	var b strings.Builder
	chars := &levels
	if plain {
		chars = &plainLevels
	}
	top := len(chars) - 1
	for _, value := range r.Cells {
		level := 0
		if value > 0 && r.Most > 0 {
			level = max(1, min(top, int(float64(value)/float64(r.Most)*float64(top)+0.5)))
		}
		b.WriteRune(chars[level])
	}
	return b.String()
}
