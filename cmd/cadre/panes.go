package main

import (
	"context"
	"os"
	"sync"

	"github.com/spf13/cobra"

	"cadre/internal/engine"
	"cadre/internal/team"
	"cadre/internal/ui/pane"
)

// paneFlag adds the flag that says where members are shown.
func (a *app) paneFlag(c *cobra.Command) {
	c.Flags().StringVar(&a.panes, "teammate-mode", "", "show each member in a pane: auto (the default: where the "+
		"terminal has panes), in-process (no panes), tmux or iterm2; teammateMode in settings.json is used without it")
	var modes []string
	for _, m := range pane.Modes() {
		modes = append(modes, string(m))
	}
	c.RegisterFlagCompletionFunc("teammate-mode", cobra.FixedCompletions(modes, cobra.ShellCompDirectiveNoFileComp))
}

// choosePanes returns where members of a team in the directory are shown.
func (a *app) choosePanes(dir string) (pane.Choice, error) {
	terminal := a.out.terminal() && !a.json && os.Getenv("CI") == "" && os.Getenv("TERM") != "dumb"
	choice, err := pane.Choose(a.panes, a.engine().TeammateMode(dir), pane.Place{Terminal: terminal, Getenv: os.Getenv,
		Find: pane.Find})
	if err != nil {
		err = usage{err}
	}
	return choice, err
}

// shownMembers shows the members of a team in panes while it runs.
type shownMembers struct {
	app    *app
	choice pane.Choice
	note   func(string)
	ctx    context.Context

	once   sync.Once
	end    context.CancelFunc
	ended  chan struct{}
	change chan struct{} // has room for one
}

// showMembers prepares the panes. They are opened with the first record that saw gets.
func (a *app) showMembers(ctx context.Context, choice pane.Choice, note func(string)) *shownMembers {
	s := &shownMembers{app: a, choice: choice, note: note, ended: make(chan struct{}), change: make(chan struct{}, 1)}
	s.ctx, s.end = context.WithCancel(context.WithoutCancel(ctx))
	if choice.Note != "" {
		note(choice.Note)
	}
	return s
}

// saw is called after each record.
func (s *shownMembers) saw(of *engine.Team) {
	if s.choice.Mode == pane.InProcess {
		return
	}
	s.once.Do(func() { go s.keep(of) })
	select {
	case s.change <- struct{}{}:
	default: // the keeper looks at the latest state
	}
}

// stop ends the keeping. The panes close with what they show.
func (s *shownMembers) stop() {
	s.end()
	s.once.Do(func() { close(s.ended) })
	<-s.ended
}

func (s *shownMembers) keep(of *engine.Team) {
	defer close(s.ended)
	t := of.Team()
	env := []string{"CADRE_HOME=" + s.app.home.Root, "CLAUDE_CONFIG_DIR=" + s.app.home.Claude}
	var backend pane.Backend
	where := ""
	switch s.choice.Mode {
	case pane.Tmux:
		backend, where = pane.NewTmux(os.Getenv, t.ID, t.Name, env), "in windows of tmux that are called cadre "+t.Name
	case pane.ITerm2:
		backend, where = pane.NewITerm2(os.Getenv, env), "in panes of iTerm2"
	}
	s.note("members are shown " + where)
	record := func(panes map[string]string) {
		if err := of.RecordPanes(s.ctx, string(s.choice.Mode), panes); err != nil {
			s.note(err.Error())
		}
	}
	err := pane.Keep(s.ctx, pane.Options{Backend: backend, Changed: record,
		Members: func() (members []pane.Member) {
			of.View(func(state *team.State) {
				for i, m := range state.Members() {
					if m.Agent == team.External || !m.Status.Running() {
						continue
					}
					color := ""
					if i > 0 {
						color = engine.Color(i)
					}
					members = append(members, pane.Member{Name: m.Name, State: string(state.Phase(m.Name)), Color: color})
				}
			})
			return members
		},
		Wait: func(ctx context.Context) error {
			select {
			case <-s.change:
			case <-ctx.Done():
			}
			return ctx.Err()
		},
		Command: func(member string) []string { return []string{self(), "attach", t.ID, member} }})
	if err != nil {
		record(nil)
		s.note(err.Error() + "; the members continue, and cadre attach shows each")
	}
}
