package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"cadre/internal/agent"
	"cadre/internal/engine"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
	"cadre/internal/ui/presence"
	"cadre/internal/ui/settings"
	"cadre/internal/ui/tui"
)

func (a *app) watchCommand() *cobra.Command {
	var linear, noMouse bool
	c := &cobra.Command{
		Use: "watch [TEAM]", Short: "See and steer teams on a screen", Args: atMost(1),
		Long: "Open a screen on which you see all teams, or one: what waits for you, what each member does, the " +
			"tasks, and the messages. View the session of a member, and write to it. Answer requests, plans and " +
			"questions. Run any other command with the key :. The last line shows the keys that apply, and ? shows " +
			"all. When you quit, the teams continue.\n\n" +
			"With --screen-reader it prints lines that follow each other instead: how things stand, then what " +
			"changes, until Ctrl-C or the team's end. What needs you comes with the command that answers it.\n\n" +
			"The screen needs a terminal. Elsewhere, use --screen-reader, cadre log TEAM --follow, or cadre status " +
			"TEAM --watch.",
		Example: "  cadre watch\n  cadre watch my-team",
		RunE: func(c *cobra.Command, args []string) error {
			name := os.Getenv(agent.TeamVariable)
			if len(args) > 0 {
				name = args[0]
			}
			if name != "" {
				if _, err := a.home.Folder(name); err != nil {
					return err
				}
			}
			o := a.screenOptions(name)
			o.NoMouse = o.NoMouse || noMouse
			if linear {
				stays()
				return engine.InTermsOf(name, stopped(c.Context(), tui.Linear(a.whileRead(c.Context()), o,
					func(line string) { a.out.Printf("%s\n", sanitize.Hanging{Text: line, Indent: 4}) })))
			}
			if why := a.undrawable(); why != "" {
				return withWays(usage{fmt.Errorf("the screen cannot be drawn here, because %s", why)},
					way{"follow a team without it", render.Typed("log", orPlaceholder(name), "--follow")})
			}
			defer stayingSmall(c.Context())()
			o.Presence = presence.Open(a.home.Root, os.Getenv)
			defer o.Presence.Close()
			notes := make(chan string, 16)
			o.Notes = notes
			defer a.notifies(c.Context(), func(text string) {
				select {
				case notes <- text:
				default: // the screen shows one note at a time
				}
			})()
			return engine.InTermsOf(name, tui.Run(c.Context(), o))
		},
	}
	c.Flags().BoolVar(&linear, "screen-reader", false, "print lines, and draw no screen")
	c.Flags().BoolVar(&noMouse, "no-mouse", false, "leave the mouse to the terminal, which selects text with it")
	return c
}

// screenOptions returns the options of the screen, with the team open; "" for the list of teams.
func (a *app) screenOptions(name string) tui.Options {
	s, _, err := a.settings() // cadre notify says what is wrong with them
	return tui.Options{Engine: a.quietEngine(), Team: name, NoMouse: err == nil && s.Mouse == settings.OffMouse,
		In:  os.Stdin,
		Out: a.out.file, Env: a.home.ForOurs(os.Environ()), Self: self(), TeamVariable: agent.TeamVariable, Asks: unconfirmed,
		Sync: os.Getenv("CADRE_SYNC_OUTPUT") != "off"}
}

// unconfirmed returns the question of a command that ended because it could not ask for a
// confirmation; "" for any other command.
func unconfirmed(output string, status int) string {
	if !strings.Contains(output, needsConfirmation) || status != hopeless {
		return ""
	}
	return "This needs a confirmation. Do it?"
}

// quietEngine returns an engine that prints no notes beside the screen.
func (a *app) quietEngine() *engine.Engine {
	e := a.sharing()
	e.Log, e.Advise, e.Warn = func(string) {}, func(team.Advice) {}, func(error) {}
	return e
}

func orPlaceholder(name string) string {
	if name == "" {
		return "TEAM"
	}
	return name
}
