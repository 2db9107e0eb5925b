package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cadre/internal/host"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

func (a *app) attachCommand() *cobra.Command {
	return a.looking(1, &cobra.Command{
		Use: "attach [TEAM] NAME", Short: "Go to the terminal of a claude-tmux member",
		Long: `Go to the terminal of a member whose agent is claude-tmux: to look on, to type to it, or to answer what it asks when it starts.

  cadre attach port bob

Leave it with Ctrl-b d; the member continues. Within a tmux of your own, the terminal opens in the pane where you are. Your tmux takes the first Ctrl-b there: leave it
with Ctrl-b Ctrl-b d.`,
	}, func(_ *cobra.Command, d opened, args []string) error {
		var m team.Member
		var err error
		d.View(func(s *team.State) { m, err = memberNamed(s, args[0]) })
		if err != nil {
			return err
		}
		socket, err := a.terminalOf(d, m)
		if err != nil {
			return err
		}
		leave := "Ctrl-b d"
		if os.Getenv("TMUX") != "" {
			leave = "Ctrl-b Ctrl-b d"
		}
		a.note(fmt.Sprintf("this is the terminal of %s; leave it with %s", m.Name, leave))
		return proc.Become([]string{"tmux", "-S", socket, "attach-session"}, outsideTmux(os.Environ()))
	})
}

// terminalOf is the socket of the tmux server in which the member sits.
func (a *app) terminalOf(d opened, m team.Member) (string, error) {
	if m.Agent != team.ClaudeTmux {
		return "", &team.Error{Code: team.Invalid, Text: fmt.Sprintf("%s is a member with the agent %s, which has no "+
			"terminal; only claude-tmux has one. To see what %s does: cadre log %s --follow",
			m.Name, m.Agent, m.Name, d.name)}
	}
	socket := host.Terminal(filepath.Join(d.dir, "hosts"), m.Name)
	if socket == "" {
		return "", &team.Error{Code: team.NotReady, Text: fmt.Sprintf("the terminal of %s is not there, because its "+
			"session does not run; see: cadre status %s", m.Name, d.name)}
	}
	if !atTerminal() || !a.out.terminal() {
		return "", usage{fmt.Errorf("attach needs a terminal, and standard input or output is none; at one, type: "+
			"cadre attach %s %s", d.name, m.Name)}
	}
	return socket, nil
}

// memberNamed is the member of that name.
func memberNamed(s *team.State, name string) (team.Member, error) {
	m, known := s.Member(name)
	if !known {
		return m, &team.Error{Code: team.NotFound, Text: fmt.Sprintf("no member named %q in team %s; valid names: %s",
			name, s.Team().Name, strings.Join(s.Recipients(), ", "))}
	}
	return m, nil
}

// outsideTmux is an environment in which tmux does not refuse to attach because it is within
// another one, whose sessions are not this one's.
func outsideTmux(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		return strings.HasPrefix(v, "TMUX=") ||
			strings.HasPrefix(v, "TMUX_PANE=")
	})
}
