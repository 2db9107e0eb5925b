package main

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cadre/internal/engine"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
	"cadre/internal/ui/sessionview"
)

func (a *app) attachCommand() *cobra.Command {
	var kept bool
	c := a.looking(1, &cobra.Command{
		Use: "attach [TEAM] NAME", Short: "Watch the session of a member, and write to it",
		Long: "Show the output of a member's session: what it was given, its texts, the tools that it uses, and its " +
			"questions. The last 1 MiB is kept. In a terminal, a line that you type is sent to the member as a " +
			"message, and a line that begins with ! as an urgent one, which interrupts its turn. It ends with the " +
			"member, or with Ctrl-C; the member continues.\n\n" +
			"A claude-tmux member has a terminal of its own, which opens instead. Leave that with Ctrl-b d, or with " +
			"Ctrl-b Ctrl-b d within a tmux of your own.",
		Example: "  cadre attach port bob\n  cadre attach port bob --no-follow --json",
	}, func(c *cobra.Command, d *engine.Team, args []string) error {
		person := atTerminal() && a.out.terminal()
		switch socket, err := d.Terminal(args[0]); {
		case kept || a.json || team.CodeOf(err) == team.Invalid: // or it has no terminal of its own
		case err != nil:
			return err
		case !person:
			return usage{fmt.Errorf("attach needs a terminal, and standard input or output is not one; in a terminal, "+
				"type: cadre attach %s %s. To read what it showed: cadre attach %[1]s %[2]s --no-follow", d.Name, args[0])}
		default:
			return a.openTerminal(socket, args[0])
		}
		until := engine.Follow
		if kept {
			until = engine.SoFar
		}
		entries, err := d.Session(c.Context(), args[0], until)
		if err != nil {
			return err
		}
		stays()
		if !kept && !a.json && person {
			a.note(fmt.Sprintf("a line that you type goes to %s; leave with Ctrl-C", args[0]))
			go a.passLines(c, d.Name, args[0])
		}
		var lines sessionview.Lines
		for e, err := range entries {
			if err != nil {
				return err
			}
			if a.json {
				err = a.out.Value(e)
			} else {
				err = a.printSession(lines.Add(e))
			}
			if err != nil {
				return err
			}
		}
		if a.json {
			return nil
		}
		return a.printSession(lines.Rest())
	})
	c.Flags().BoolVar(&kept, "no-follow", false, "show what is kept, and end")
	return c
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

// printSession prints lines of a session, each with the time at which it was shown.
func (a *app) printSession(lines []sessionview.Line) error {
	now := team.Time(time.Now().UnixMilli())
	for _, line := range lines {
		at := strings.Repeat(" ", len("15:04:05"))
		if line.At != 0 {
			at = render.When(now, line.At)
		}
		symbol, text := render.Symbol(line.Text)
		begins := len(at) + 2
		if err := a.out.Printf("%s  %s%s\n", render.Faint.On(at), symbol,
			sanitize.Hanging{Text: text, At: begins, Indent: begins + 2}); err != nil {
			return err
		}
	}
	return nil
}

// passLines sends each line of the terminal to the member, until the terminal has no more.
func (a *app) passLines(c *cobra.Command, name, member string) {
	in := bufio.NewScanner(c.InOrStdin())
	in.Buffer(nil, team.MaxText+1)
	for in.Scan() {
		body := &team.SendMessage{To: member, Body: strings.TrimSpace(in.Text())}
		if urgent, is := strings.CutPrefix(body.Body, "!"); is {
			body.Body, body.Priority = strings.TrimSpace(urgent), "urgent"
		}
		if body.Body == "" {
			continue
		}
		if err := a.act(c, name, body, func(*engine.Team, *team.Record) error { return nil }); err != nil {
			a.note(err.Error())
		}
	}
}

// outsideTmux returns an environment without the variables of another tmux: inside one, tmux
// refuses to attach.
func outsideTmux(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		return strings.HasPrefix(v, "TMUX=") ||
			strings.HasPrefix(v, "TMUX_PANE=")
	})
}
