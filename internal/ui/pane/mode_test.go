package pane

import (
	"errors"
	"strings"
	"testing"
)

// TestChoose checks the mode for each flag, setting and terminal.
func TestChoose(t *testing.T) {
	inTmux := map[string]string{"TMUX": "/tmp/tmux-1000/default,1,0", "TMUX_PANE": "%1"}
	inITerm := map[string]string{"ITERM_SESSION_ID": "w0t0p0:ID"}
	inCode := map[string]string{"TERM_PROGRAM": "vscode"}
	for _, c := range []struct {
		flag, setting string
		env           map[string]string
		programs      string
		off           bool // not a terminal
		mode          Mode
		text          string // of the note or the error
	}{
		{env: inTmux, programs: "tmux", mode: Tmux},
		{env: inTmux, programs: "", mode: InProcess},
		{env: inTmux, programs: "tmux", off: true, mode: InProcess},
		{env: inITerm, programs: "it2", mode: ITerm2},
		{env: inITerm, programs: "tmux", mode: InProcess},
		{mode: InProcess, programs: "tmux it2"},
		{flag: "in-process", setting: "tmux", env: inTmux, programs: "tmux", mode: InProcess},
		{flag: "auto", setting: "in-process", env: inTmux, programs: "tmux", mode: Tmux},
		{flag: "tmux", env: inTmux, programs: "tmux", off: true, mode: Tmux},
		{flag: "tmux", programs: "tmux", text: "start one with: tmux new-session"},
		{flag: "tmux", env: inTmux, text: "tmux is not in PATH"},
		{flag: "tmux", env: inCode, programs: "tmux", text: "The terminal of VS Code has no panes that cadre can open"},
		{flag: "tmux", env: map[string]string{"WT_SESSION": "1"}, text: "Windows Terminal has no panes"},
		{flag: "tmux", env: map[string]string{"TERM_PROGRAM": "ghostty"}, text: "Ghostty has no panes"},
		{flag: "iterm2", programs: "it2", text: "this is not a window of iTerm2"},
		{flag: "iterm2", env: inITerm, text: "it2 is not in PATH"},
		{flag: "split", text: `is "split"; use auto, in-process, tmux, iterm2`},
		{setting: "tmux", env: inTmux, programs: "tmux", mode: Tmux},
		{setting: "auto", env: inTmux, programs: "tmux", mode: Tmux},
		{setting: "tmux", env: inITerm, programs: "it2", mode: ITerm2,
			text: "teammateMode is tmux: this is not a window of tmux; start one with: tmux new-session. Used " +
				"instead: iterm2"},
		{setting: "tmux", off: true, mode: InProcess},
		{setting: "panes", mode: InProcess, text: `teammateMode in settings.json is "panes"; use auto`},
	} {
		got, err := Choose(c.flag, c.setting, Place{Terminal: !c.off,
			Getenv: func(name string) string { return c.env[name] }, Find: func(name string) error {
				if strings.Contains(" "+c.programs+" ", " "+name+" ") {
					return nil
				}
				return errors.New("not found")
			}})
		text := got.Note
		if err != nil {
			text = err.Error()
		}
		if got.Mode != c.mode || (c.mode == "") != (err != nil) || c.text == "" && text != "" ||
			!strings.Contains(text, c.text) {
			t.Errorf("%+v: %s %q", c, got.Mode, text)
		}
	}
}
