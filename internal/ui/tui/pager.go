package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"
)

// pager shows a long text over the view. The lines are sanitized.
type pager struct {
	title string
	text  []string // may be painted; wrapped to the width that the screen had
	top   int      // the first line that is shown
	diff  *diffing // the diff that it shows and reads again; nil for a fixed text
	// confirm does what the text describes; nil for a text without an action.
	confirm func(*Model) tea.Cmd
	why     string // why confirm does not apply now; "" if it does
	follows string // the team whose consolidation the text follows; "" for none
	stage   *stage // the paths that can be chosen; nil for other texts
}

// lines returns the visible part of the text.
func (p *pager) lines(width, height int) []string {
	room := max(1, height-2)
	if p.stage != nil { // the selected path stays in view
		p.top = min(max(p.top, p.stage.line-room+1), max(0, p.stage.line-1))
	}
	p.top = max(0, min(p.top, len(p.text)-room))
	out := []string{" " + strong.on(p.title), ""}
	return append(out, p.text[p.top:min(len(p.text), p.top+room)]...)
}

// help lists all keys of the place with what they do, and why some do not apply now.
func (m *Model) help() tea.Cmd {
	if m.overlay != nil {
		m.overlay = nil
		return nil
	}
	var text []string
	t := table{columns: []column{{head: "KEY"}, {head: "OR", spare: 1}, {head: "DOES", flex: true}}, selected: -1}
	for _, k := range keymap() {
		if k.in&m.scope() == 0 {
			continue
		}
		var others []string
		for _, name := range k.names[1:] {
			others = append(others, shown(name))
		}
		does := cell{k.help, plain}
		if k.when != nil {
			if why := k.when(m); why != "" {
				does = cell{k.help + " (not now: " + why + ")", faint}
			}
		}
		t.rows = append(t.rows, []cell{{shown(k.names[0]), strong}, {strings.Join(others, ", "), faint}, does})
	}
	widths := t.widths(m.width - len("  "))
	text = append(text, t.lines(m.width, 2)[0])
	for _, row := range t.rows {
		does := row[2]
		for _, part := range wrap(does.text, widths[2]) {
			row[2] = cell{part, does.look}
			text = append(text, "  "+t.row(row, widths, false))
			row = []cell{{}, {}, {}}
		}
	}
	m.overlay = &pager{title: "Keys", text: text}
	return nil
}
