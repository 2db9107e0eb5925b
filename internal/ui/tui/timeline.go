package tui

import (
	"slices"
	"strings"
	"time"

	"cadre/internal/render"
	"cadre/internal/team"
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
