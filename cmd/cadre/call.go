package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cadre/internal/access"
	"cadre/internal/agent"
	"cadre/internal/engine"
	"cadre/internal/team"
)

// onTeam makes the command one that is about a team. It needs so many arguments, and TEAM before
// them, which may be left out; run has the team that is meant, and the arguments.
func (a *app) onTeam(needed int, c *cobra.Command,
	run func(c *cobra.Command, name string, args []string) error) *cobra.Command {
	c.RunE = func(c *cobra.Command, args []string) error {
		name, rest, err := a.split(c, args, needed)
		if err == nil {
			err = engine.InTermsOf(name, run(c, name, rest))
		}
		return a.forgotten(c, args, needed, err)
	}
	return c
}

// forgotten is the error of a command that needs so many arguments beside TEAM. Where the team is all
// that it got, the error says so. A shell takes #2 for a comment, and then the team is all that is left.
func (a *app) forgotten(c *cobra.Command, args []string, needed int, err error) error {
	_, wrong := errors.AsType[usage](err)
	if !wrong && team.CodeOf(err) != team.NotFound || len(args) != 1 || needed == 0 || !a.isTeam(args[0]) {
		return err
	}
	text := fmt.Sprintf("%s is a team, and the rest is missing: %s", args[0], syntax(c, args[0]))
	places, _ := placeholders(c)
	if slices.Contains(places, "ID") || slices.Contains(places, "TASK") {
		text += ". Quote the number of a task: '#2'. A shell takes #2 for a comment"
	}
	return usage{errors.New(text)}
}

// saying is onTeam for a command whose one argument is a text or a name that the person makes up. The
// name of a team alone is refused: the text was forgotten.
func (a *app) saying(c *cobra.Command, run func(c *cobra.Command, name string, text string) error) *cobra.Command {
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 1 {
			if _, err := a.home.Folder(args[0]); err == nil {
				return usage{fmt.Errorf("%s is a team, and the rest is missing: %s. To say just %s: %s", args[0],
					syntax(c, args[0]), args[0], strings.Join(append(called(c), "TEAM", args[0]), " "))}
			}
		}
		name, args, err := a.split(c, args, 1)
		if err != nil {
			return err
		}
		return run(c, name, args[0])
	}
	return c
}

// called is how the command is called, without arguments.
func called(c *cobra.Command) []string { return strings.Fields(c.CommandPath()) }

// syntax is how the command is called on the team.
func syntax(c *cobra.Command, name string) string {
	one, _, _ := strings.Cut(c.Use, " | ")
	_, words, _ := strings.Cut(one, " ")
	return strings.Join(append(called(c), strings.Replace(words, "[TEAM]", name, 1)), " ")
}

// looking is onTeam for a command that looks at the team and changes nothing.
func (a *app) looking(needed int, c *cobra.Command,
	run func(c *cobra.Command, d *engine.Team, args []string) error) *cobra.Command {
	return a.onTeam(needed, c, func(c *cobra.Command, name string, args []string) error {
		of, err := a.engine().Look(c.Context(), name)
		if err != nil {
			return err
		}
		defer of.Close()
		return run(c, of, args)
	})
}

// act sends the command to the team as whoever calls; see is called with what became of it.
func (a *app) act(c *cobra.Command, name string, body team.Body,
	see func(of *engine.Team, r *team.Record) error) error {
	return a.engine().Act(c.Context(), name, a.actor, body, see)
}

// split separates TEAM, which may be left out, from the arguments of a command that needs that
// many.
func (a *app) split(c *cobra.Command, args []string, needed int) (name string, rest []string, err error) {
	switch len(args) {
	case needed:
		name, err = a.theTeam(c)
		return name, args, err
	case needed + 1:
		if !a.reads {
			a.named = args[0]
		}
		return args[0], args[1:], nil
	}
	return "", nil, miscounted(c, args, needed, needed+1)
}

// theTeam is the team that is meant when none is named. A command that changes the team, or ends it,
// takes none that is merely the only one: it would be wrong at the worst moment.
func (a *app) theTeam(c *cobra.Command) (string, error) {
	if name := os.Getenv(agent.TeamVariable); name != "" {
		return name, nil
	}
	if name := a.who.Team(); name != "" {
		return name, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	name, err := a.engine().Meant(c.Context(), dir, a.reads)
	if which, ok := errors.AsType[*engine.WhichError](err); ok {
		return "", usage{fmt.Errorf("say which team: %s; %s", syntax(c, "TEAM"), which)}
	}
	return name, err
}

// actsAs gives the command the flag by which somebody acts as a member.
func actsAs(c *cobra.Command) {
	c.Flags().String("as", "", "act as this member; you by default")
}

// named is whom the flags of the command name to act as, and by which of them; "" where none was
// given.
func named(c *cobra.Command) (flag, member string) {
	for _, name := range []string{"as", "from"} {
		if f := c.Flags().Lookup(name); f != nil && f.Changed {
			return name, f.Value.String()
		}
	}
	return "", ""
}

// admit passes the command through the gate: who calls decides whether the command runs, and which
// teams it reaches.
func (a *app) admit(c *cobra.Command) (err error) {
	path := strings.TrimPrefix(strings.TrimPrefix(c.CommandPath(), c.Root().Name()), " ")
	rule := access.RuleOf(path, c.Flags().Changed)
	a.reads = rule == access.Reads
	if rule == access.Anyone {
		return nil // who calls need not be known
	}
	if a.who, err = access.Who(a.home); err != nil {
		return err
	}
	if err := a.who.Command(path, c.Flags().Changed); err != nil {
		return err
	}
	a.home = a.who.Scoped(a.home)
	if rule != access.Reads {
		flag, member := named(c)
		a.actor, err = a.who.Actor("--"+flag, member)
	}
	return err
}
