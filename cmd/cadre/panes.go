package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"cadre/internal/engine"
	"cadre/internal/render"
	"cadre/internal/sys/filelock"
	"cadre/internal/team"
	"cadre/internal/ui/pane"
)

// paneFlag adds the flag that says where members are shown.
func (a *app) paneFlag(c *cobra.Command) {
	c.Flags().StringVar(&a.panes, "teammate-mode", "", "show each member in a pane: auto, in-process (no "+
		"panes), tmux or iterm2; default: teammateMode in settings.json, or auto")
	var modes []string
	for _, m := range pane.Modes() {
		modes = append(modes, string(m))
	}
	c.RegisterFlagCompletionFunc("teammate-mode", cobra.FixedCompletions(modes, cobra.ShellCompDirectiveNoFileComp))
}

// panesHere reports whether panes may be opened without being asked for: a person looks at this
// terminal.
func (a *app) panesHere() bool {
	return a.out.terminal() && !a.json && scripted() == ""
}

// choosePanes returns where members of a team in the directory are shown. asked says that the
// person asked for panes: those of tmux can be opened then from a process without a terminal, such
// as a command that was typed on the screen.
func (a *app) choosePanes(dir string, asked bool) (pane.Choice, error) {
	terminal := a.panesHere() || asked && os.Getenv("TMUX") != ""
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
}

// showMembers prepares the panes.
func (a *app) showMembers(choice pane.Choice, note func(string)) *shownMembers {
	switch {
	case choice.Note != "":
		note(choice.Note)
	case choice.Mode == pane.InProcess && a.panesHere():
		note("members are shown in this terminal (in-process), not in panes")
	}
	return &shownMembers{app: a, choice: choice, note: note}
}

// saw is called after each record, from one goroutine.
func (s *shownMembers) saw(ctx context.Context, of *engine.Team) {
	if s.choice.Mode != pane.InProcess && s.shown == nil {
		s.shown = pane.Show(ctx, s.app.sharing(), of.Team().ID, s.choice.Mode, []string{self()}, s.note)
	}
}

// paning has the flags of panes.
type paning struct {
	close bool
	keep  bool // this process keeps them
}

func (a *app) panesCommand() *cobra.Command {
	var how paning
	c := a.looking(0, &cobra.Command{
		Use: "panes [TEAM]", Short: "Show each member of a team in a pane",
		Long: "Open a pane of your terminal, tmux or iTerm2, for each member of a team, whatever process runs the " +
			"team. A process in the background opens a pane for each member that joins, until the team ends or you " +
			"have closed all panes. Call it again to open panes that you closed. cadre run and cadre resume do the " +
			"same for the teams that they run.",
		Example: "  cadre panes my-team\n  cadre panes my-team --close",
	}, func(c *cobra.Command, d *engine.Team, _ []string) error {
		of := d.Team()
		choice, err := a.choosePanes(of.Dir, true)
		if err != nil {
			return err
		}
		switch {
		case choice.Mode == pane.InProcess && a.panes == string(pane.InProcess):
			return withWays(usage{errors.New("in-process means no panes")},
				way{"watch a member", render.Typed("attach", d.Name, "NAME")})
		case choice.Mode == pane.InProcess && how.close:
			return withWays(usage{errors.New("this is not the terminal that has the panes. Close them from a window " +
				"of the same tmux")}, way{"find that tmux", "tmux list-panes -a"})
		case choice.Mode == pane.InProcess && !a.out.terminal():
			return withWays(usage{errors.New("cadre opens panes in the terminal that it is called from, and its " +
				"output is not a terminal. Call it in a window of tmux")},
				way{"start tmux", "tmux new-session"}, way{"watch a member", render.Typed("attach", d.Name, "NAME")})
		case choice.Mode == pane.InProcess:
			return withWays(usage{errors.New("this terminal has no panes that cadre can open. Start tmux, then try " +
				"again")}, way{"start tmux", "tmux new-session"},
				way{"watch a member here", render.Typed("attach", d.Name, "NAME")})
		case how.close:
			return a.closePanes(c.Context(), d, choice.Mode)
		case how.keep:
			stays()
			kept, err := a.engine().Open(c.Context(), of.ID)
			if err != nil {
				return err
			}
			defer kept.Close()
			err = pane.KeepOpen(c.Context(), kept, a.home, choice.Mode, []string{self()}, a.note)
			if errors.Is(err, filelock.ErrHeld) { // that process opens them
				return nil
			}
			return err
		}
		at, err := pane.Start(c.Context(), d, a.home, choice.Mode, []string{self()})
		if err != nil {
			return err
		}
		return a.says(at)
	})
	a.paneFlag(c)
	c.Flags().BoolVar(&how.close, "close", false, "close the panes of the team; its members continue")
	c.Flags().BoolVar(&how.keep, "keep", false, "keep the panes in this process")
	c.Flags().MarkHidden("keep")
	return c
}

func (a *app) closePanes(ctx context.Context, of *engine.Team, mode pane.Mode) error {
	if mode == pane.ITerm2 {
		return usage{errors.New("iTerm2 does not tell which panes are a team's. Close them in iTerm2: Cmd-W")}
	}
	n, err := pane.Close(ctx, of, a.home, mode)
	if err != nil {
		return err
	}
	text := team.Count(n, "pane") + " closed"
	if of.Hosted(ctx) {
		text += fmt.Sprintf("; the members of team %s continue", of.Name)
	}
	return a.says(text)
}

// says prints what was done with panes. The command has no JSON: it shows something to a person.
func (a *app) says(text string) error {
	if a.json {
		return nil
	}
	return said("%s", text)(a.out.Writer)
}

// panesBeside opens panes for a team whose sessions another process runs. It says so with a note,
// and also why it cannot.
func (a *app) panesBeside(ctx context.Context, of *engine.Team, choice pane.Choice) {
	if choice.Note != "" {
		a.note(choice.Note)
	}
	if choice.Mode == pane.InProcess || !a.who.IsUser() {
		return
	}
	at, err := pane.Start(ctx, of, a.home, choice.Mode, []string{self()})
	if err != nil {
		at = "members are not shown in panes: " + err.Error()
	}
	a.note(at)
}
