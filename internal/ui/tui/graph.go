package tui

import "cadre/internal/ui/graph"

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
