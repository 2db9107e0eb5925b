package tui

import (
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"cadre/internal/team"
	"cadre/internal/ui/presence"
)

// TestPresence checks which teams the person is recorded to look at.
func TestPresence(t *testing.T) {
	home, now := t.TempDir(), team.Time(1e12)
	v := presence.Open(home, func(string) string { return "" })
	defer v.Close()
	m := &Model{place: atTeam, ref: "demo"}
	sees := func(what string, demo, other bool) {
		t.Helper()
		var a, b bool
		for range 500 { // the record is written in the background
			shown := presence.Read(t.Context(), home, now)
			a, b = shown.Seen("demo", "1", ""), shown.Seen("x", "2", "")
			if a == demo && b == other {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Errorf("%s: demo %v, another team %v", what, a, b)
	}
	present(v, nil, m, now)
	sees("before a key", false, false)
	present(v, tea.KeyPressMsg{}, m, now)
	sees("after a key", true, false)
	now += team.Time((presence.Briefly + time.Second).Milliseconds())
	sees("a minute after it", false, false)
	present(v, tea.FocusMsg{}, m, now)
	now += team.Time((presence.Attentive - time.Second).Milliseconds())
	sees("with the focus", true, false)
	present(v, nil, &Model{place: atTeams}, now)
	sees("in the list of teams", true, true)
	present(v, nil, &Model{place: atMember, ref: "2"}, now)
	sees("at a member of a team that is called by its id", false, true)
	present(v, tea.BlurMsg{}, m, now)
	present(v, tea.KeyPressMsg{}, m, now)
	sees("without the focus", false, false)
}
