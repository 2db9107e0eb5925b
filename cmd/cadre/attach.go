package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cadre/internal/engine"
	"cadre/internal/render"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
	"cadre/internal/ui/sessionview"
)

// attaching has the flags of attach.
type attaching struct {
	kept bool // --no-follow
	pane bool // it runs in a pane of its own
	left bool // the terminal of the member was shown, and was left
}

func (a *app) attachCommand() *cobra.Command {
	var how attaching
	c := a.looking(1, &cobra.Command{
		Use: "attach [TEAM] NAME", Short: "Watch the session of a member, and write to it",
		Long: "Show the output of a member's session: what it was given, its texts, the tools that it uses, and its " +
			"questions. The last 1 MiB is kept. In a terminal, the last line names the member. What you type there " +
			"is sent to the member as a message with Enter, and as an urgent one, which interrupts its turn, if it " +
			"begins with !. If that would end the command of a shell member, attach asks first. A paste of several " +
			"lines is one message. If no process runs the session any more, attach says so, and continues when one " +
			"does. It ends with the member, or with Ctrl-C; the member continues.\n\n" +
			"A claude-tmux member has a terminal of its own, which opens instead. Leave that with Ctrl-b d, or with " +
			"Ctrl-b Ctrl-b d within a tmux of your own.",
		Example: "  cadre attach port bob\n  cadre attach port bob --no-follow --json",
	}, func(c *cobra.Command, d *engine.Team, args []string) error { return a.attach(c, d, args[0], how) })
	c.Flags().BoolVar(&how.kept, "no-follow", false, "show what is kept, and end")
	c.Flags().BoolVar(&how.pane, "pane", false, "the terminal is a pane that cadre opened for the member")
	c.Flags().BoolVar(&how.left, "left", false, "the terminal of the member was shown in this pane until now")
	c.Flags().MarkHidden("pane")
	c.Flags().MarkHidden("left")
	return c
}

func (a *app) attach(c *cobra.Command, d *engine.Team, member string, how attaching) error {
	person := atTerminal() && a.out.terminal()
	socket, err := d.Terminal(member)
	switch {
	case how.kept || a.json || team.CodeOf(err) == team.Invalid: // or it has no terminal of its own
	case how.pane && person: // the terminal may come later
		return a.keepTerminal(c.Context(), d, member, how.left)
	case err != nil:
		return err
	case !person:
		return withWays(usage{errors.New("attach needs a terminal, and standard input or output is not one")},
			way{"attach in a terminal", render.Typed("attach", d.Name, member)},
			way{"read what it showed", render.Typed("attach", d.Name, member, "--no-follow")})
	default:
		return a.openTerminal(socket, member)
	}
	until := engine.Follow
	if how.kept {
		until = engine.SoFar
	}
	entries, err := d.Session(c.Context(), member, until)
	if err != nil {
		return err
	}
	stays()
	if a.json {
		for e, err := range entries {
			if err == nil {
				err = a.out.Value(e)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	lines := sessionview.All(entries)
	if !how.kept && person {
		v := &viewer{app: a, of: d, member: member, pane: how.pane}
		return v.show(c, lines)
	}
	for some, err := range lines {
		if err == nil {
			err = a.printSession(some)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// openTerminal replaces this process by a tmux that shows the terminal of the member.
func (a *app) openTerminal(socket, member string) error {
	leave := "Ctrl-b d"
	if os.Getenv("TMUX") != "" {
		leave = "Ctrl-b Ctrl-b d"
	}
	a.note(fmt.Sprintf("this is the terminal of %s; leave it with %s", member, leave))
	return proc.Become([]string{"tmux", "-S", socket, "attach-session"}, outsideTmux(os.Environ()))
}

// outsideTmux returns an environment without the variables of another tmux: inside one, tmux
// refuses to attach.
func outsideTmux(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		return strings.HasPrefix(v, "TMUX=") ||
			strings.HasPrefix(v, "TMUX_PANE=")
	})
}
