package tui

import (
	tea "charm.land/bubbletea/v2"

	"cadre/internal/team"
)

// escape handles Escape. In a line with text it leaves the line. With an empty line it asks whether
// to interrupt the member's turn, whether the person is in the line or not. Otherwise it goes back.
func (m *Model) escape() tea.Cmd {
	empty := m.draft().empty()
	switch {
	case m.typing && !empty:
		m.typing = false
		m.notice = notice{"Your text is kept. Tab goes back to it.", faint}
		return nil
	case empty && noInterrupt(m) == "" && m.session.trouble == "":
		m.interrupt()
		m.ask.options = append(m.ask.options, option{[]string{"left", "h"}, "back", (*Model).leave})
		return nil
	}
	return m.backOut()
}

// interrupt asks whether to interrupt the turn of the open member.
func (m *Model) interrupt() tea.Cmd { return m.asksInterrupt(m.ref, m.opened()) }

// asksInterrupt asks whether to interrupt the turn of a member. Escape agrees too, unless that ends
// a command: nobody shall lose that with the key that elsewhere cancels.
func (m *Model) asksInterrupt(ref string, one memberRow) tea.Cmd {
	do := func(m *Model) tea.Cmd {
		return m.act(ref, &team.Interrupt{Member: one.name}, one.name+" is interrupted, and "+one.after+".")
	}
	if one.ending != "" {
		m.ask = yesOrNo(one.ending+" [y/N]", do)
		return nil
	}
	m.ask = &question{text: "Interrupt the turn of " + one.name + "? Esc again or y interrupts it.",
		options: []option{{[]string{"esc", "y", "Y"}, "yes", do}}}
	return nil
}

func noInterrupt(m *Model) string {
	if m.away() {
		return inPast
	}
	return firstOf(notOurs(m), cannotInterrupt(m.opened()))
}

// cannotInterrupt returns why the member's turn cannot be interrupted; "" if it can.
func cannotInterrupt(one memberRow) string {
	switch {
	case one.you:
		return "You lead this team: " + one.name + " has no session and no turns."
	case one.agent == team.External:
		return one.name + " runs its own session: its turns cannot be interrupted from here."
	case one.unhosted:
		return "No process runs the session of " + one.name + ": there is no turn to interrupt."
	case !one.turn:
		return one.name + " is not in a turn."
	}
	return ""
}
