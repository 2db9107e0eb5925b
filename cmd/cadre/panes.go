package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"cadre/internal/engine"
	"cadre/internal/ui/pane"
	"cadre/internal/ui/presence"
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
	choice, err := pane.Choose(a.panes, a.engine().TeammateMode(dir),
		pane.Place{Terminal: terminal, Getenv: os.Getenv, Find: pane.Find,
			Answers: pane.Answers})
	if err != nil {
		err = usage{fmt.Errorf("--teammate-mode %w", err)}
	}
	return choice, err
}

// shownMembers shows the members of a team in panes from its first record on.
type shownMembers struct {
	app    *app
	choice pane.Choice
	note   func(string)
	shown  *pane.Shown
	looks  *presence.Viewer // nil before the first record
}

// showMembers prepares the panes.
func (a *app) showMembers(choice pane.Choice, note func(string)) *shownMembers {
	if choice.Note != "" {
		note(choice.Note)
	}
	return &shownMembers{app: a, choice: choice, note: note}
}

// saw is called after each record, from one goroutine.
func (s *shownMembers) saw(ctx context.Context, of *engine.Team) {
	if s.looks == nil && s.app.out.terminal() {
		s.looks = presence.Open(s.app.home.Root, os.Getenv)
		s.looks.Show(presence.View{Team: of.Team().ID})
	}
	if s.choice.Mode != pane.InProcess && s.shown == nil {
		s.shown = pane.Show(ctx, s.app.engine(), of.Team().ID, s.choice.Mode, []string{self()}, s.note)
	}
}

// stop ends what saw began.
func (s *shownMembers) stop() {
	s.shown.Stop()
	s.looks.Close()
}
