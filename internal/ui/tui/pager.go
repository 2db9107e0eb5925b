package tui

import (
	"slices"
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"cadre/internal/render"
)

// pager shows a long text over the view. The lines are sanitized.
type pager struct {
	title string
	text  []string                 // may be painted; wrapped to the width that the screen had
	lay   func(width int) []string // lays the text out for a width; nil where its owner does that
	top   int                      // the first line that is shown
	diff  *diffing                 // the diff that it shows and reads again; nil for a fixed text
	// confirm does what the text describes; nil for a text without an action.
	confirm func(*Model) tea.Cmd
	why     string   // why confirm does not apply now; "" if it does
	follows string   // the team whose consolidation the text follows; "" for none
	steps   []string // the steps of that consolidation
	stage   *stage   // the paths that can be chosen; nil for other texts
	runs    *running // the command whose output it shows; nil for other texts
	last    int      // the highest value of top, in the last frame
}

// resized lays the text out again.
func (p *pager) resized(width int) {
	if p != nil && p.lay != nil {
		p.text = p.lay(width)
	}
}

// lines returns the visible part of the text.
func (p *pager) lines(width, height int) []string {
	room := max(1, height-2)
	const least = 4 // lines that can spare one to say that more follow
	says := len(p.text) > room && room >= least
	if says {
		room--
	}
	if p.stage != nil { // the selected path stays in view
		p.top = min(max(p.top, p.stage.line-room+1), max(0, p.stage.line-1))
	}
	p.last = max(0, len(p.text)-room)
	p.top = max(0, min(p.top, p.last))
	out := []string{" " + strong.on(render.Cut(p.title, width-2)), ""}
	end := min(len(p.text), p.top+room)
	if out = append(out, p.text[p.top:end]...); says {
		out = append(out, hiddenRows(p.top, len(p.text)-end))
	}
	return out
}

// help lists all keys of the place with what they do, and why some do not apply now.
func (m *Model) help() tea.Cmd {
	if m.overlay != nil {
		m.overlay = nil
		return nil
	}
	t := table{columns: []column{{head: "KEY"}, {head: "OR", spare: 1}, {head: "DOES", flex: true}}, selected: -1}
	for _, k := range keymap() {
		if k.in&m.scope() == 0 {
			continue
		}
		names := slices.Clone(k.names)
		if m.typed() != nil { // letters are text there
			names = slices.DeleteFunc(names, func(name string) bool {
				return utf8.RuneCountInString(name) == 1 || name == "space"
			})
		}
		if len(names) == 0 {
			continue
		}
		var others []string
		for _, name := range names[1:] {
			others = append(others, shown(name))
		}
		does := cell{k.help, plain}
		if k.when != nil {
			if why := k.when(m); why != "" {
				does = cell{k.help + " (not now: " + strings.TrimSuffix(why, ".") + ")", faint}
			}
		}
		t.rows = append(t.rows, []cell{{shown(names[0]), strong}, {strings.Join(others, ", "), faint}, does})
	}
	lay := func(width int) []string {
		widths := t.widths(width - len("  "))
		text := t.lines(width, 2)[:1]
		for _, row := range t.rows {
			does, row := row[2], slices.Clone(row)
			for _, part := range wrap(does.text, widths[2]) {
				row[2] = cell{part, does.look}
				text = append(text, "  "+t.row(row, widths, false))
				row = []cell{{}, {}, {}}
			}
		}
		return text
	}
	m.overlay = &pager{title: "Keys", text: lay(m.width), lay: lay}
	return nil
}
