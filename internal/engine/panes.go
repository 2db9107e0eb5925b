package engine

import (
	"context"

	"cadre/internal/claude/projection"
	"cadre/internal/claude/settings"
)

// TeammateMode returns the setting teammateMode of Claude Code for a project; "" if it is not set.
func (e *Engine) TeammateMode(dir string) string {
	return settings.Text("teammateMode", settings.Files(e.Home.Claude, dir)...)
}

// RecordPanes projects in which panes members are shown, by the name of the backend and the ids
// that it has for panes, by member. They are in config.json of Claude Code's folder of the team.
func (t *Team) RecordPanes(ctx context.Context, backend string, panes map[string]string) error {
	shown := make(map[string]projection.Pane, len(panes))
	for member, id := range panes {
		shown[member] = projection.Pane{Backend: backend, ID: id}
	}
	if err := projection.WritePanes(t.Dir, shown); err != nil {
		return err
	}
	// another process may have projected a newer state, without the panes
	if err := t.Refresh(ctx); err != nil {
		return err
	}
	t.Project(ctx)
	return nil
}

// Color returns the color of the member that joined as number n after the lead, by the name that
// Claude Code has for it.
func Color(n int) string { return projection.Color(n) }
