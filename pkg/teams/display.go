package teams

import (
	"context"
	"errors"
	"fmt"
	"os"

	"cadre/internal/engine"
	"cadre/internal/ui/pane"
)

// validate returns an error for a mode that does not exist, and for panes of teams in memory.
func (d DisplayMode) validate(memory bool) error {
	switch d {
	case "", DisplayInProcess:
		return nil
	case DisplayAuto, DisplayTmux, DisplayITerm2:
		if memory {
			return errors.New("teams: members of a team in memory cannot be shown in panes: panes are other processes")
		}
		return nil
	}
	return fmt.Errorf("teams: DisplayMode is %q; use auto, in-process, tmux or iterm2", string(d))
}

// display shows the members of the team where the options say. It returns nil if they are not
// shown.
func (m *Manager) display(ctx context.Context, of *engine.Team) (*pane.Shown, error) {
	mode, viewer, err := m.choosePanes(m.opts.DisplayMode)
	if err != nil || mode == pane.InProcess {
		return nil, err
	}
	return pane.Show(ctx, m.engine, of.Team().ID, mode, viewer, m.engine.Note), nil
}

// choosePanes returns where members are shown, and the command line of cadre, which runs in panes.
func (m *Manager) choosePanes(mode DisplayMode) (pane.Mode, []string, error) {
	if mode == "" || mode == DisplayInProcess {
		return pane.InProcess, nil, nil
	}
	choice, err := pane.Choose(string(mode), "", pane.Place{Getenv: os.Getenv, Find: pane.Find,
		Terminal: pane.Attached(), Answers: pane.Answers})
	if err != nil {
		return "", nil, refuse(ErrInvalid, "DisplayMode "+err.Error())
	}
	if choice.Mode == pane.InProcess {
		return pane.InProcess, nil, nil
	}
	viewer := m.opts.Helper
	if len(viewer) != 1 { // Helper is not the cadre program
		viewer = []string{"cadre"}
		if pane.Find("cadre") != nil {
			return "", nil, refuse(ErrInvalid, "panes need the program cadre, and it is not in PATH")
		}
	}
	return choice.Mode, viewer, nil
}
