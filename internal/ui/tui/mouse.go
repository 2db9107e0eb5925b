package tui

import (
	tea "charm.land/bubbletea/v2"
)

// target is what a click selects.
type target int

// The targets.
const (
	onTeam target = iota
	onMember
	onTask
	onItem
	onTab
)

// spot is a part of a line of the last frame that a click can hit. Keys can do all that clicks do.
type spot struct {
	y, from, to int // the line, and the columns [from, to)
	on          target
	id          string // of the row, or the name of the tab
}

// frameTop is the number of lines above the body.
const frameTop = 1

// spots records the clickable rows of the table. The table begins at line y of the body, and takes
// the columns [from, to).
func (m *Model) spots(t *table, y, from, to int, on target, id func(row int) string) {
	for row := t.first; row < t.end; row++ {
		if id := id(row); id != "" {
			m.clickable = append(m.clickable, spot{frameTop + y + t.top + row - t.first, from, to, on, id})
		}
	}
}

// spotsOfTab records the clickable rows of the table of members or of tasks.
func (m *Model) spotsOfTab(t *table, of tab, y, from, to int) {
	if of == tabMembers {
		m.spots(t, y, from, to, onMember, func(row int) string { return m.team.members[row].name })
		return
	}
	m.spots(t, y, from, to, onTask, func(row int) string {
		if row < len(m.team.tasks) {
			return m.team.tasks[row].id
		}
		return "" // the line that counts the rows left out
	})
}

// click selects what was clicked. A click on the selected row opens it.
func (m *Model) click(msg tea.MouseClickMsg) tea.Cmd {
	if msg.Button != tea.MouseLeft || m.ask != nil || m.input != nil || m.overlay != nil || m.menu != nil {
		return nil
	}
	for _, s := range m.clickable {
		if s.y == msg.Y && msg.X >= s.from && msg.X < s.to {
			m.notice = notice{}
			return m.clicked(s)
		}
	}
	return nil
}

func (m *Model) clicked(s spot) tea.Cmd {
	switch s.on {
	case onTab:
		for i, name := range tabs {
			if name == s.id {
				m.tab = tab(i)
			}
		}
	case onTeam:
		if again := len(m.teams) > 0 && m.teams[m.teamIndex()].ref == s.id; again {
			if why := m.noTeam(); why != "" {
				m.notice = notice{why, waits}
				return nil
			}
			return m.openSelected()
		}
		m.chosen.team = s.id
	case onMember:
		if m.chosenMember() == s.id && (m.tab == tabMembers || m.tab == tabTimeline) {
			return m.openMember(s.id)
		}
		if m.chosen.member = s.id; m.tab != tabTimeline {
			m.tab = tabMembers
		}
	case onTask:
		if m.selectedTask() == s.id && (m.tab == tabTasks || m.tab == tabGraph) {
			return m.openTask(s.id)
		}
		if m.chosen.task = s.id; m.tab != tabGraph {
			m.tab = tabTasks
		}
	case onItem:
		if m.chosen.item == s.id {
			return m.openItem()
		}
		for i, one := range m.items {
			if one.id() == s.id {
				return m.chooseItem(i)
			}
		}
	}
	return nil
}

// switchMouse leaves the mouse to the terminal, or takes it back.
func (m *Model) switchMouse() tea.Cmd {
	m.mouseOff = !m.mouseOff
	m.notice = notice{"The mouse works on the screen again.", good}
	if m.mouseOff {
		m.notice = notice{"The terminal has the mouse: select text with it. M takes it back.", good}
	}
	return nil
}

// mouseKeys returns the keys that switch the mouse.
func mouseKeys() []key {
	return []key{{[]string{"M"}, everywhere, "", "leave the mouse to the terminal, which selects text with it, or " +
		"take it back; most terminals select with Shift in any case", nil, (*Model).switchMouse}}
}
