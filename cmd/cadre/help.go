package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"cadre/internal/render"
	"cadre/internal/render/sanitize"
)

// dailyGroup is a group of daily commands with a title.
type dailyGroup struct {
	title string
	names []string
}

// dailyCommands are those that cadre shows when it is called alone. They fit a terminal of 80
// columns and 24 lines, with the prompts before and after them.
var dailyCommands = []dailyGroup{
	{"Start a team", []string{"doctor", "init", "run", "resume"}},
	{"See what it does, and steer it", []string{"watch", "attention", "ls", "status", "log", "send", "task"}},
	{"Bring it to its end", []string{"consolidate", "cleanup"}},
}

// daily writes the help that fits one screen. next is its line about what to try, or "" for a first
// run.
func (a *app) daily(next string) error {
	w := a.out.Writer
	w.Printf("Teams of coding agents that survive crashes and restarts.\n\nUsage: cadre COMMAND\n")
	for _, group := range dailyCommands {
		w.Printf("%s\n", render.Strong.On(group.title+":"))
		for _, name := range group.names {
			i := slices.IndexFunc(commands, func(e entry) bool { return e.name == name })
			w.Printf("  %-12s %s\n", name, sanitize.Hanging{Text: commands[i].build(a).Short, At: 15, Indent: 15})
		}
	}
	return w.Printf("\n%s\nOne command: cadre COMMAND --help. All: cadre help --all\n",
		cmp.Or(next, "Try it, without a model: cadre run --template hello"))
}

// here returns a line about the unfinished teams of the directory, with the command that shows
// them. It returns "" if no team works there, or if the teams cannot be read: the help is shown
// without it.
func (a *app) here(ctx context.Context) string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	teams, err := a.engine().Here(ctx, dir)
	switch {
	case err != nil || len(teams) == 0:
		return ""
	case len(teams) > 1:
		return fmt.Sprintf("%d unfinished teams work here: cadre ls", len(teams))
	}
	of, err := a.engine().Look(ctx, teams[0].Name)
	if err != nil {
		return ""
	}
	defer of.Close()
	if of.Hosted(ctx) {
		return fmt.Sprintf("Team %s is running: cadre watch", teams[0].Name)
	}
	return fmt.Sprintf("Team %s is unfinished: cadre status", teams[0].Name)
}

// fitted makes help print the text of whole in the terminal's width.
func (a *app) fitted(whole func(*cobra.Command, []string)) func(*cobra.Command, []string) {
	return func(c *cobra.Command, args []string) {
		if a.out.Width() == 0 {
			whole(c, args)
			return
		}
		var text bytes.Buffer
		to := c.OutOrStdout()
		c.SetOut(&text)
		whole(c, args)
		c.SetOut(to)
		for _, line := range render.Reflow(text.String(), min(a.out.Width(), widestHelp)) {
			style := sanitize.Normal
			if line.Heading {
				style = sanitize.Bold
			}
			a.out.Print(style, line.Text, sanitize.Normal, "\n")
		}
	}
}

// widestHelp is how wide a help text is on a wide terminal: longer lines are hard to read.
const widestHelp = 100

// helpCommand is cobra's, with --all; whole writes the help of a command.
func helpCommand(whole func(*cobra.Command, []string)) *cobra.Command {
	all := false
	c := &cobra.Command{
		Use: "help [COMMAND]", Short: "Help about a command, or with --all about all of them",
		RunE: func(c *cobra.Command, args []string) error {
			root := c.Root()
			found, rest, err := root.Find(args)
			if err != nil {
				return subcommand(root, args)
			}
			if len(rest) > 0 {
				return subcommand(found, rest)
			}
			if found == root && all {
				whole(root, args)
				return nil
			}
			return found.Help()
		},
		ValidArgsFunction: func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			var names []string
			if above, _, err := c.Root().Find(args); err == nil {
				for _, below := range above.Commands() {
					if below.IsAvailableCommand() {
						names = append(names, below.Name()+"\t"+below.Short)
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
	c.Flags().BoolVar(&all, "all", false, "show all commands")
	return c
}
