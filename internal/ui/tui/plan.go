package tui

import (
	tea "charm.land/bubbletea/v2"

	"cadre/internal/inspect/history"
)

// planOf returns the last plan of the open member.
func (m *Model) planOf() (history.Plan, bool) {
	if m.past == nil {
		return history.Plan{}, false
	}
	return m.past.tasks.Plan(m.member, m.travel.seq)
}

func noPlan(m *Model) string {
	if _, is := m.planOf(); !is {
		return m.member + " has submitted no plan."
	}
	return ""
}

// showPlan shows the plan of the open member, with the answer to it.
func (m *Model) showPlan() tea.Cmd {
	p, _ := m.planOf()
	lay := func(width int) (text []string) {
		if p.Feedback != "" {
			text = append(wrapAll("Feedback: "+longText(p.Feedback), width, waits), "")
		}
		for _, l := range markdown(longText(p.Plan), width-4) {
			text = append(text, "  "+l)
		}
		return text
	}
	m.overlay = &pager{title: "Plan of " + oneLine(p.Member) + ": " + p.State, text: lay(m.width), lay: lay}
	return nil
}
