package tui

import (
	"sync"

	tea "charm.land/bubbletea/v2"

	"cadre/internal/team"
	"cadre/internal/ui/presence"
)

// Presence says what the person looks at. Any goroutine may ask it. The zero Presence says nothing.
type Presence struct {
	Viewer *presence.Viewer // tells other processes; nil for none

	mu      sync.Mutex
	tells   bool // the terminal says when it has the focus
	focused bool
	pressed team.Time // the last key or turn of the wheel
	every   bool      // the screen shows what waits in all teams
	ref     string    // the open team; "" for none
}

// Sees reports whether the person looks at the team, which has that name in the home, and that id.
func (p *Presence) Sees(now team.Time, name, id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tells && !p.focused || !p.tells && now.Sub(p.pressed) > presence.Briefly {
		return false
	}
	return p.every || p.ref != "" && (p.ref == name || p.ref == id)
}

// note takes what the screen shows after the message.
func (p *Presence) note(msg tea.Msg, m *Model, now team.Time) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch msg.(type) {
	case tea.FocusMsg:
		p.tells, p.focused = true, true
		p.Viewer.Focus(now, true)
	case tea.BlurMsg:
		p.tells, p.focused = true, false
		p.Viewer.Focus(now, false)
	case tea.KeyPressMsg, tea.MouseWheelMsg:
		p.pressed = now
		p.Viewer.Press(now)
	}
	p.every, p.ref = m.place == atTeams || m.place == atAttention, m.ref
	p.Viewer.Show(presence.View{Every: p.every, Team: p.ref})
}
