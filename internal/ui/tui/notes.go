package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// mostOfANote bounds how many characters of a note the list shows.
const mostOfANote = 160

func noteKeys() []key {
	return []key{{[]string{"N"}, inTeam | inTask, "", "read the notes that the team shares", noNotes,
		(*Model).listNotes}}
}

func noNotes(m *Model) string {
	switch v := m.presentView(); {
	case v == nil:
		return "The team is not read yet."
	case len(m.team.notes) == 0:
		return "The team has no notes. To set one: cadre note set " + m.team.name + " KEY TEXT"
	}
	return ""
}

// listNotes lists the notes of the open team, as they are in the moment that is shown.
func (m *Model) listNotes() tea.Cmd {
	var choices []choice
	for _, n := range m.team.notes {
		choices = append(choices, choice{name: oneLine(n.Key),
			about: fmt.Sprintf("%s, %s: %s", noteAuthor(n), render.Ago(m.shownTime(), n.UpdatedAt),
				render.Cut(render.Clean(n.Text), mostOfANote)),
			do: func(m *Model) tea.Cmd {
				again := *m.menu // the list stays below the note
				m.menu = &again
				return m.showNote(n)
			}})
	}
	m.opens(fmt.Sprintf("Notes of %s", m.team.name), nil, choices)
	return nil
}

// showNote shows a note, and who wrote it and when.
func (m *Model) showNote(n team.Note) tea.Cmd {
	about := fmt.Sprintf("changed by %s, %s", noteAuthor(n), render.When(m.now, n.UpdatedAt))
	if n.SetBy != n.UpdatedBy || n.SetAt != n.UpdatedAt {
		set := n
		set.UpdatedBy = n.SetBy
		about += fmt.Sprintf("; set first by %s, %s", noteAuthor(set), render.When(m.now, n.SetAt))
	}
	lay := func(width int) []string {
		text := append(wrapAll(about, width, faint), "")
		for _, l := range markdown(strings.TrimSpace(sanitize.Lines(n.Text)), width-4) {
			text = append(text, "  "+l)
		}
		return text
	}
	m.overlay = &pager{title: fmt.Sprintf("Note %s, change %d", oneLine(n.Key), n.Seq), text: lay(m.width), lay: lay}
	return nil
}

func noteAuthor(n team.Note) string { return oneLine(strings.TrimPrefix(n.UpdatedBy, "@")) }

// shownTime returns the moment that is shown.
func (m *Model) shownTime() team.Time {
	if m.away() {
		return m.team.at
	}
	return m.now
}
