package pane

import (
	"context"
	"os"

	"cadre/internal/engine"
	"cadre/internal/layout"
	"cadre/internal/team"
)

// Shown shows the members of a team in panes, until it is stopped.
type Shown struct {
	end   context.CancelFunc
	ended chan struct{}
}

// Show shows the members of the team in panes of the mode, which is not [InProcess]. viewer is the
// command line of cadre. It says with note where the members are, and when the terminal program has
// ended. The caller must stop it.
func Show(ctx context.Context, e *engine.Engine, id string, mode Mode, viewer []string, note func(string)) *Shown {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &Shown{end: cancel, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		of, err := e.Open(ctx, id)
		if err != nil {
			note("members are not shown in panes: " + err.Error())
			return
		}
		defer of.Close()
		show(ctx, of, e.Home, mode, viewer, note)
	}()
	return s
}

// Stop ends it. Panes stay for as long as the viewers in them do. It may be called on nil.
func (s *Shown) Stop() {
	if s == nil {
		return
	}
	s.end()
	<-s.ended
}

func show(ctx context.Context, of *engine.Team, home layout.Home, mode Mode, viewer []string, note func(string)) {
	t := of.Team()
	env := []string{"CADRE_HOME=" + home.Root, "CLAUDE_CONFIG_DIR=" + home.Claude}
	var backend Backend
	if mode == ITerm2 {
		backend = NewITerm2(os.Getenv, env)
	} else {
		backend = NewTmux(os.Getenv, t.ID, t.Name, env)
	}
	said := false
	record := func(panes map[string]string) {
		if len(panes) > 0 && !said {
			said = true
			note(where(mode, t.Name))
		}
		if err := of.RecordPanes(ctx, string(mode), panes); err != nil {
			note(err.Error())
		}
	}
	seq := int64(0)
	err := Keep(ctx, Options{Backend: backend, Changed: record,
		Members: func() (members []Member) {
			of.View(func(s *team.State) { seq, members = s.Seq(), withSessions(s) })
			return members
		},
		Wait: func(ctx context.Context) error { return of.Wait(ctx, seq) },
		Command: func(member string) []string {
			return append(viewer[:len(viewer):len(viewer)], "attach", t.ID, member, "--pane")
		}})
	if err != nil {
		record(nil)
		note(err.Error() + "; the members continue, and cadre attach shows each")
	}
}

// where says where the members of the team are shown.
func where(mode Mode, name string) string {
	if mode == ITerm2 {
		return "members are shown in panes of iTerm2"
	}
	return "members are shown in windows of tmux that are called cadre " + name
}

// withSessions returns the members that have a session of ours.
func withSessions(s *team.State) (members []Member) {
	for _, m := range s.Members() {
		if m.Agent != team.External && m.Status.Running() {
			members = append(members, Of(s, m.Name))
		}
	}
	return members
}

// Of returns the member as its pane shows it.
func Of(s *team.State, name string) Member {
	one := Member{Name: name, State: string(s.Phase(name))}
	for i, m := range s.Members() {
		if m.Name != name {
			continue
		}
		one.Own = m.Agent == team.ClaudeTmux
		if one.Color = m.Color; one.Color == "" && i > 0 {
			one.Color = engine.Color(i)
		}
	}
	return one
}
