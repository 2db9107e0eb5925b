package teams

import (
	"context"

	"cadre/internal/engine"
	"cadre/internal/ui/pane"
)

// Paused is how a team was paused.
type Paused struct {
	Members []string // members whose sessions were ended
	Hosts   int      // number of processes that ran sessions; 0 if none did
}

// PauseTeam ends the sessions of a team wherever they run, in this program or in another process,
// as cadre pause does, and waits until they have ended. The members keep their tasks, and
// [Manager.ResumeTeam] continues the team. A manager that has the team must be closed first to
// resume it. PauseTeam returns ErrNotFound if the team does not exist, and ErrFinished if it has
// ended. It returns ErrNotReady if ctx ends first; the sessions still end.
func (m *Manager) PauseTeam(ctx context.Context, name string) (Paused, error) {
	if err := m.pass("Manager.PauseTeam"); err != nil {
		return Paused{}, err
	}
	if err := m.onDisk("is run by this program alone; call Manager.Close"); err != nil {
		return Paused{}, err
	}
	var p engine.Paused
	err := m.see(ctx, name, func(of *engine.Team) (err error) {
		p, err = of.Pause(ctx)
		return err
	})
	return pausedOf(p), public(err)
}

func pausedOf(p engine.Paused) Paused { return Paused{Members: p.Members, Hosts: p.Hosts} }

// ShowPanes opens a pane of this program's terminal for each member of a team, whatever process
// runs the team, as cadre panes does. A process in the background opens a pane for each member that
// joins, until the team ends or the person has closed all panes. ShowPanes returns where the
// members are shown, as a sentence for the person. It returns ErrInvalid if the terminal has no
// such panes or the program cadre is not in PATH, and ErrFinished if the team has ended.
func (m *Manager) ShowPanes(ctx context.Context, name string, mode DisplayMode) (where string, err error) {
	if err := m.pass("Manager.ShowPanes"); err != nil {
		return "", err
	}
	chosen, viewer, err := m.panes(mode)
	if err != nil {
		return "", err
	}
	err = m.see(ctx, name, func(of *engine.Team) (err error) {
		where, err = pane.Start(ctx, of, m.engine.Home, chosen, viewer)
		return err
	})
	return where, public(err)
}

// ClosePanes closes the panes of a team in this program's tmux, and returns how many there were.
// Its members continue. Panes of iTerm2 are known only to the process that opened them.
func (m *Manager) ClosePanes(ctx context.Context, name string) (n int, err error) {
	if err := m.pass("Manager.ClosePanes"); err != nil {
		return 0, err
	}
	err = m.see(ctx, name, func(of *engine.Team) (err error) {
		n, err = pane.Close(ctx, of, m.engine.Home, pane.Tmux)
		return err
	})
	return n, public(err)
}

// panes returns the panes of the mode, and the command line of cadre, which runs in them.
func (m *Manager) panes(mode DisplayMode) (pane.Mode, []string, error) {
	if err := mode.validate(m.opts.Memory != nil); err != nil {
		return "", nil, refuse(ErrInvalid, err.Error())
	}
	chosen, viewer, err := m.choosePanes(mode)
	if err == nil && chosen == pane.InProcess {
		err = refuse(ErrInvalid, "this terminal has no panes that cadre can open")
	}
	return chosen, viewer, err
}
