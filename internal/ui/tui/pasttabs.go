package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"cadre/internal/inspect/history"
	"cadre/internal/render"
	"cadre/internal/team"
	"cadre/internal/ui/costs"
	"cadre/internal/ui/graph"
	"cadre/internal/ui/timeline"
)

// kindStyles are the styles of activities. Their characters differ, too.
var kindStyles = map[timeline.Kind]style{timeline.Working: live, timeline.Tool: good, timeline.Person: waits,
	timeline.Limit: alarm, timeline.Dependency: faint, timeline.Idle: faint, timeline.Starting: faint}

var markStyles = map[timeline.MarkKind]style{timeline.Failure: alarm, timeline.Plan: waits, timeline.Retry: waits}

// reading is shown while the history is read.
func (m *Model) reading() []string { return []string{"  " + faint.on("reading the history …")} }

// timelineLines shows a lane for each member, up to the moment that is shown.
func (m *Model) timelineLines(width, height int) []string {
	if m.past == nil {
		return m.reading()
	}
	names := m.past.lanes.Members()
	label := labelWidth(names, width)
	to := m.now
	if v := m.presentView(); v != nil && (v.state == string(team.TeamComplete) || v.state == string(team.TeamAborted)) {
		to = 0
	}
	if m.away() { // what came later is not known in that moment
		to = m.team.at
		names = slices.DeleteFunc(names, func(name string) bool { return !m.team.has(name) })
		label = labelWidth(names, width)
	}
	selected := m.chosenMember()
	var f timeline.Frame
	var legend []string
	hidden := ""
	for rows := height - 3; ; rows -= len(legend) - 1 { // a tall legend leaves room for fewer members
		if len(names) > rows && rows > 3 { // a row says how many are hidden
			rows--
		}
		from, until := window(len(names), indexOf(names, selected), max(1, rows))
		hidden = hiddenRows(from, len(names)-until)
		f = m.past.lanes.Frame(timeline.View{Columns: max(1, width-label-3), To: to, Members: names[from:until]})
		legend = legendLines(f.Legend(false), width-2)
		if len(f.Rows)+2+len(legend) <= height || rows < height-3 {
			break
		}
	}
	digits := len("15:04:05")
	if f.Edges[len(f.Edges)-1].Sub(f.Edges[0]) > 10*time.Minute {
		digits = len("15:04")
	}
	out := []string{strings.Repeat(" ", label+3) + faint.on(f.Axis(func(at team.Time) string {
		return render.Clock(at)[:digits]
	}))}
	for _, row := range f.Rows {
		m.clickable = append(m.clickable, spot{frameTop + len(out) + 1, 0, width, onMember, row.Member})
		prefix := "  "
		if row.Member == selected {
			prefix = strong.on(mark)
		}
		name := render.Cut(oneLine(row.Member), label)
		out = append(out, prefix+m.memberStyle(row.Member).on(name)+
			strings.Repeat(" ", label-drawn(name)+1)+lane(row))
	}
	out = append(out, hidden) // a blank line if all are shown
	for _, part := range legend {
		out = append(out, "  "+faint.on(strings.TrimLeft(part, " ")))
	}
	if m.past.gaps > 0 {
		out = append(out, "  "+waits.on(render.Cut("Part of the history is lost to damage.", width-2)))
	}
	return out
}

// legendLines breaks a legend between its entries, so that a sign stands before its word.
func legendLines(legend string, width int) (lines []string) {
	for _, entry := range strings.Split(legend, "  ") {
		if n := len(lines); n > 0 && drawn(lines[n-1])+gap+drawn(entry) <= width {
			lines[n-1] += strings.Repeat(" ", gap) + entry
			continue
		}
		lines = append(lines, entry)
	}
	return lines
}

// lane paints a lane, with one sequence per run of a style.
func lane(row timeline.Row) string {
	var b, part strings.Builder
	var look style
	flush := func() {
		b.WriteString(look.on(part.String()))
		part.Reset()
	}
	for _, c := range row.Cells {
		next := kindStyles[c.Kind]
		switch {
		case c.Mark != timeline.NoMark:
			next = markStyles[c.Mark]
		case c.Quiet:
			next = faint
		}
		if next != look {
			flush()
			look = next
		}
		part.WriteRune(c.Rune(false))
	}
	flush()
	return b.String()
}

// labelWidth returns the width of the names at the beginning of lines.
func labelWidth(names []string, width int) (most int) {
	for _, name := range names {
		most = max(most, drawn(oneLine(name)))
	}
	return max(1, min(most, width/4, 20))
}

func indexOf(names []string, name string) int {
	for i, one := range names {
		if one == name {
			return i
		}
	}
	return 0
}

// chosenMember returns the name of the selected member; "" for none.
func (m *Model) chosenMember() string {
	if one, is := m.selectedMember(); is {
		return one.name
	}
	return ""
}

// graphLines shows which tasks block which.
func (m *Model) graphLines(width, height int) []string {
	g := m.team.graph.Draw(graph.Options{Columns: width - 2})
	if len(g.Lines) == 0 {
		return []string{"  " + faint.on("The team has no tasks.")}
	}
	var tail []string
	if g.Omitted != "" {
		tail = append(tail, "")
		for _, part := range wrap(g.Omitted, width-2) {
			tail = append(tail, "  "+faint.on(part))
		}
	}
	selected := 0
	for i, l := range g.Lines {
		if l.Task == m.chosen.task {
			selected = i
		}
	}
	room := max(1, height-len(tail))
	const least = 4 // lines that can spare one to say that more follow
	says := len(g.Lines) > room && room >= least
	if says {
		room--
	}
	from, to := window(len(g.Lines), selected, room)
	if says {
		tail = append([]string{hiddenRows(from, len(g.Lines)-to)}, tail...)
	}
	var out []string
	for i, l := range g.Lines[from:to] {
		m.clickable = append(m.clickable, spot{frameTop + 1 + i, 0, width, onTask, l.Task})
		prefix, look := "  ", stateStyle(l.State)
		if from+i == selected {
			prefix, look.bold, look.faint = strong.on(mark), true, false
		}
		out = append(out, prefix+faint.on(l.Lanes)+look.on(l.Label))
	}
	return append(out, tail...)
}

// moveGraph selects another task of the graph.
func (m *Model) moveGraph(by int) {
	g := m.team.graph.Draw(graph.Options{Columns: m.width - 2})
	at := 0
	for i, l := range g.Lines {
		if l.Task == m.chosen.task {
			at = i
		}
	}
	if n := len(g.Lines); n > 0 {
		m.chosen.task = g.Lines[moved(at, by, n)].Task
	}
}

// costLines shows the use of tokens over time, in total and by member.
func (m *Model) costLines(width, height int) []string {
	if m.past == nil {
		return m.reading()
	}
	unit, what := costs.Tokens, "tokens"
	if m.past.costs.Dollars() {
		unit, what = costs.Dollars, "dollars"
	}
	rows := m.past.costs.Rows(costs.View{})
	if rows[0].Sum == (costs.Amount{}) && !m.past.costs.Any() {
		return []string{"  " + faint.on("No agent has reported what it used.")}
	}
	var names []string
	for _, row := range rows {
		names = append(names, row.Member)
	}
	names[0] = "all"
	label := labelWidth(names, width)
	const numbers = 18 // two columns of figures
	first, last := m.past.lanes.Bounds()
	if m.away() {
		last = m.team.at
	}
	edges := costs.Edges(first, last, max(1, width-label-numbers-4))
	rows = m.past.costs.Rows(costs.View{Edges: edges, Unit: unit})
	if m.away() { // a member that had used nothing by then has no row
		for i := len(rows) - 1; i > 0; i-- {
			if rows[i].Sum == (costs.Amount{}) {
				rows, names = slices.Delete(rows, i, i+1), slices.Delete(names, i, i+1)
			}
		}
	}
	out := []string{"  " + faint.on(render.Cut(fmt.Sprintf("%s up to each moment, %s to %s; members share one scale",
		what, render.Clock(first), render.Clock(last)), width-2))}
	for i, row := range rows {
		if len(out) == height-1 && i < len(rows)-1 {
			out = append(out, "  "+faint.on(fmt.Sprintf("… and %d more members", len(rows)-i)))
			break
		}
		name := render.Cut(oneLine(names[i]), label)
		look := m.memberStyle(row.Member)
		if i == 0 {
			look = strong
		}
		used := team.Usage{InputTokens: row.Sum.Tokens, CostMicroUSD: row.Sum.CostMicroUSD}
		out = append(out, "  "+look.on(name)+strings.Repeat(" ", label-drawn(name))+
			fmt.Sprintf(" %8s %8s ", tokens(used), cost(used))+live.on(row.Bars(false)))
	}
	return out
}

// slider shows which record is shown, and where it is in the history. { and } go to its marks.
func (m *Model) slider() string {
	left := []cell{{" " + render.Clock(m.team.at), style{color: waits.color, bold: true}},
		{fmt.Sprintf(" record %d of %d ", m.travel.seq, m.past.seq), plain}}
	right := []cell{{" 0 now ", faint}}
	room := m.width - widthOf(left) - widthOf(right) - gap
	if room < 10 {
		return line(m.width, left, right)
	}
	at := int((m.travel.seq - 1) * int64(room) / m.past.seq)
	for i := range room {
		begin := 1 + int64(i)*m.past.seq/int64(room)
		one := cell{"─", faint}
		if next, is := m.past.marks.Next(begin - 1); is && next.Seq < 1+int64(i+1)*m.past.seq/int64(room) {
			one = map[history.MarkKind]cell{history.MarkFailure: {"✗", alarm}, history.MarkWait: {"!", waits},
				history.MarkCommit: {"◆", good}}[next.Kind]
		}
		if i == at {
			one = cell{"●", style{color: waits.color, bold: true}}
		}
		left = append(left, one)
	}
	return line(m.width, left, right)
}
