package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"cadre/internal/access"
	"cadre/internal/agent"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// onTeam makes the command one that is about a team. It needs so many arguments, and TEAM before
// them, which may be left out; run has the team that is meant, and the arguments.
func (a *app) onTeam(needed int, c *cobra.Command,
	run func(c *cobra.Command, name string, args []string) error) *cobra.Command {
	c.RunE = func(c *cobra.Command, args []string) error {
		name, args, err := a.split(c, args, needed)
		if err != nil {
			return err
		}
		return run(c, name, args)
	}
	return c
}

// opened is a team that a command looks at.
type opened struct {
	*replica.Replica
	name string // as it was called: the id of one that was put away
	dir  string // its folder
}

// looking is onTeam for a command that looks at the team and changes nothing.
func (a *app) looking(needed int, c *cobra.Command,
	run func(c *cobra.Command, d opened, args []string) error) *cobra.Command {
	return a.onTeam(needed, c, func(c *cobra.Command, name string, args []string) error {
		rep, dir, err := a.open(c.Context(), name, false)
		if err != nil {
			return err
		}
		defer rep.Close()
		return run(c, opened{rep, name, dir}, args)
	})
}

// act sends the command to the team as whoever calls; see is called with what became of it.
func (a *app) act(c *cobra.Command, name string, body team.Body,
	see func(rep *replica.Replica, r *team.Record) error) error {
	ctx, cancel := context.WithTimeoutCause(c.Context(), lockWait, fmt.Errorf("team %s was busy for %s",
		name, lockWait))
	defer cancel()
	rep, _, err := a.open(ctx, name, true)
	if err != nil {
		return err
	}
	defer rep.Close()
	receipt, err := rep.Do(ctx, team.Command{Actor: a.actor, Body: body})
	if err != nil {
		return err
	}
	return see(rep, receipt.Record)
}

// split separates TEAM, which may be left out, from the arguments of a command that needs that
// many.
func (a *app) split(c *cobra.Command, args []string, needed int) (name string, rest []string, err error) {
	switch len(args) {
	case needed:
		name, err = a.theTeam(c.Context())
		return name, args, err
	case needed + 1:
		return args[0], args[1:], nil
	}
	return "", nil, usage{fmt.Errorf("%d arguments where %q needs %d or %d; see: %s --help", len(args), c.Use, needed,
		needed+1, c.CommandPath())}
}

// theTeam is the team that is meant when none is named.
func (a *app) theTeam(ctx context.Context) (string, error) {
	if name := os.Getenv(agent.TeamVariable); name != "" {
		return name, nil
	}
	if name := a.who.Team(); name != "" {
		return name, nil
	}
	names, err := a.home.Names()
	if err != nil {
		return "", err
	}
	switch len(names) {
	case 0:
		return "", &team.Error{Code: team.NotFound, Text: "there is no team yet; create one: cadre create NAME"}
	case 1:
		return names[0], nil
	}
	var unfinished []string
	for _, name := range names {
		t, err := a.glance(ctx, name)
		if err != nil || t.Status != team.TeamComplete && t.Status != team.TeamAborted {
			unfinished = append(unfinished, name)
		}
	}
	if len(unfinished) == 1 {
		return unfinished[0], nil
	}
	return "", usage{fmt.Errorf("say which team: %s", strings.Join(names, ", "))}
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
