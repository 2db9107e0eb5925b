package teams_test

import (
	"strings"
	"testing"

	"cadre/pkg/teams"
)

// TestDisplayMode checks that a mode that cannot be had is an error which says why.
func TestDisplayMode(t *testing.T) {
	for _, name := range []string{"TMUX", "TERM_PROGRAM", "WT_SESSION", "ITERM_SESSION_ID"} {
		t.Setenv(name, "")
	}
	for mode, want := range map[teams.DisplayMode]string{
		"":                     "",
		teams.DisplayInProcess: "",
		teams.DisplayAuto:      "", // there are no panes here
		teams.DisplayTmux:      "DisplayMode tmux: this is not a window of tmux",
		teams.DisplayITerm2:    "DisplayMode iterm2: this is not a window of iTerm2",
		"window":               `DisplayMode is "window"; use auto`,
	} {
		m, err := teams.New(teams.Options{Home: t.TempDir(), ClaudeHome: t.TempDir(), Dir: t.TempDir(),
			DisplayMode: mode})
		if err == nil {
			_, err = m.CreateTeam(t.Context(), teams.TeamConfig{Name: "shown"})
			defer m.Close()
		}
		switch {
		case want == "" && err != nil:
			t.Errorf("%q: %v", mode, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v, want %s", mode, err, want)
		}
	}
	m := manage(t, teams.Options{Home: t.TempDir(), ClaudeHome: t.TempDir(), Dir: t.TempDir()})
	_, err := m.CreateTeam(limited(t), teams.TeamConfig{Name: "shown"})
	ok(t, err)
	for mode, want := range map[teams.DisplayMode]string{
		teams.DisplayAuto:      "this terminal has no panes that cadre can open",
		teams.DisplayInProcess: "this terminal has no panes that cadre can open",
		teams.DisplayTmux:      "DisplayMode tmux: this is not a window of tmux",
		"window":               `DisplayMode is "window"; use auto`,
	} {
		if _, err := m.ShowPanes(limited(t), "shown", mode); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ShowPanes %q: %v, want %s", mode, err, want)
		}
	}
	if _, err := teams.New(teams.Options{Memory: new(teams.Memory), DisplayMode: teams.DisplayTmux}); err == nil ||
		!strings.Contains(err.Error(), "in memory") {
		t.Errorf("in memory: %v", err)
	}
}
