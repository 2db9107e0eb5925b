package tui

import (
	tea "charm.land/bubbletea/v2"

	"cadre/internal/team"
	"cadre/internal/ui/presence"
)

// present records what the screen shows after the message, and that the person is there.
func present(v *presence.Viewer, msg tea.Msg, m *Model, now team.Time) {
	switch msg.(type) {
	case tea.FocusMsg:
		v.Focus(now, true)
	case tea.BlurMsg:
		v.Focus(now, false)
	case tea.KeyPressMsg, tea.MouseWheelMsg, tea.MouseClickMsg:
		v.Press(now)
	}
	v.Show(presence.View{Every: m.place == atTeams || m.place == atAttention, Team: m.ref})
}
