package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cadre/internal/engine"
	"cadre/internal/sys/proc"
)

func (a *app) attachCommand() *cobra.Command {
	return a.looking(1, &cobra.Command{
		Use: "attach [TEAM] NAME", Short: "Go to the terminal of a claude-tmux member",
		Long: `Go to the terminal of a member whose agent is claude-tmux: to look on, to type to it, or to answer what it asks when it starts.

  cadre attach port bob

Leave it with Ctrl-b d; the member continues. Within a tmux of your own, the terminal opens in the pane where you are. Your tmux takes the first Ctrl-b there: leave it
with Ctrl-b Ctrl-b d.`,
	}, func(_ *cobra.Command, d *engine.Team, args []string) error {
		socket, err := d.Terminal(args[0])
		if err != nil {
			return err
		}
		if !atTerminal() || !a.out.terminal() {
			return usage{fmt.Errorf("attach needs a terminal, and standard input or output is not one; in a "+
				"terminal, type: "+
				"cadre attach %s %s", d.Name, args[0])}
		}
		leave := "Ctrl-b d"
		if os.Getenv("TMUX") != "" {
			leave = "Ctrl-b Ctrl-b d"
		}
		a.note(fmt.Sprintf("this is the terminal of %s; leave it with %s", args[0], leave))
		return proc.Become([]string{"tmux", "-S", socket, "attach-session"}, outsideTmux(os.Environ()))
	})
}

// outsideTmux is an environment in which tmux does not refuse to attach because it is within
// another one, whose sessions are not this one's.
func outsideTmux(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		return strings.HasPrefix(v, "TMUX=") ||
			strings.HasPrefix(v, "TMUX_PANE=")
	})
}
