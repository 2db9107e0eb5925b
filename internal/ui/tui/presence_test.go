package tui

import (
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"cadre/internal/team"
	"cadre/internal/ui/presence"
)

// TestPresence checks at which teams the person looks.
func TestPresence(t *testing.T) {
	var p Presence
	now := team.Time(1e12)
	m := &Model{place: atTeam, ref: "demo"}
	sees := func(what string, demo, other bool) {
		t.Helper()
		if p.Sees(now, "demo", "1") != demo || p.Sees(now, "x", "2") != other {
			t.Errorf("%s: demo %v, another team %v", what, p.Sees(now, "demo", "1"), p.Sees(now, "x", "2"))
		}
	}
	sees("before anything is shown", false, false)
	p.note(tea.KeyPressMsg{}, m, now)
	sees("after a key", true, false)
	now += team.Time((presence.Briefly + time.Second).Milliseconds())
	sees("a minute after it", false, false)
	p.note(tea.FocusMsg{}, m, now)
	now += team.Time(time.Hour.Milliseconds())
	sees("with the focus", true, false)
	p.note(nil, &Model{place: atTeams}, now)
	sees("in the list of teams", true, true)
	p.note(nil, &Model{place: atMember, ref: "2"}, now)
	sees("at a member of a team that is called by its id", false, true)
	p.note(tea.BlurMsg{}, m, now)
	p.note(tea.KeyPressMsg{}, m, now)
	sees("without the focus", false, false)
}
