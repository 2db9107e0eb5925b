package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"cadre/internal/engine"
	"cadre/internal/team"
)

// concerned names the member that a command was about.
type concerned struct {
	Member string `json:"member"` // name of the member
}

// moded is the permission mode that a member got.
type moded struct {
	Member string `json:"member"` // name of the member
	Mode   string `json:"mode"`   // its permission mode, as Claude Code names it
}

// delegated says whether the lead may only coordinate.
type delegated struct {
	Delegate bool `json:"delegate"` // the lead may only coordinate
}

func (a *app) modeCommand() *cobra.Command {
	c := a.onTeam(2, &cobra.Command{
		Use: "mode [TEAM] NAME MODE", Short: "Change a member's permission mode",
		Long: "Change what a member may do without asking, from its next tool on: default, acceptEdits, auto, " +
			"bypassPermissions, dontAsk or plan,\nas Claude Code calls them. A teammate skips permissions only where " +
			"the lead was started so.",
	}, func(c *cobra.Command, name string, args []string) error {
		return a.act(c, name, &team.SetMode{Member: args[0], Mode: args[1]},
			func(*engine.Team, *team.Record) error {
				return a.print(moded{args[0], args[1]}, said("%s is in permission mode %s",
					args[0], args[1]))
			})
	})
	actsAs(c)
	return c
}

func (a *app) delegateCommand() *cobra.Command {
	return a.onTeam(1, &cobra.Command{
		Use: "delegate [TEAM] on|off", Short: "Switch delegate mode",
		Long: "In delegate mode the lead may only coordinate: spawn, message, plan and assign. Its other tools are " +
			"denied; teammates are\nunaffected. It can be switched while the team works.",
	}, func(c *cobra.Command, name string, args []string) error {
		if args[0] != "on" && args[0] != "off" {
			return usage{fmt.Errorf("delegate mode is on or off, not %q", args[0])}
		}
		return a.act(c, name, &team.SetDelegate{On: args[0] == "on"}, func(*engine.Team, *team.Record) error {
			return a.print(delegated{args[0] == "on"}, said("delegate mode is %s", args[0]))
		})
	})
}

func (a *app) interruptCommand() *cobra.Command {
	var yes bool
	c := a.onTeam(1, &cobra.Command{
		Use: "interrupt [TEAM] NAME", Short: "End a member's turn",
		Long: "End the turn of a member, even in the middle of a tool. The member keeps its tasks, and waits for a " +
			"message: cadre send. The wait also ends with its session, for example when the team is paused and " +
			"resumed. The command of a shell member ends, which counts as a failed attempt. If its task is out of " +
			"retries, cadre task release does it again; the member then continues.\n\nOn a terminal you are asked " +
			"before the command of a shell member ends; --yes skips the question.",
	}, func(c *cobra.Command, name string, args []string) error {
		if !yes {
			if err := a.confirmEnd(c.Context(), name, args[0]); err != nil {
				return err
			}
		}
		return a.act(c, name, &team.Interrupt{Member: args[0]},
			func(of *engine.Team, _ *team.Record) error {
				var m team.Member
				of.View(func(s *team.State) { m, _ = s.Member(args[0]) })
				return a.print(concerned{args[0]}, said("%s is interrupted, and %s", args[0], m.AfterInterrupt()))
			})
	})
	endFlag(c, &yes)
	actsAs(c)
	return c
}

func (a *app) handoverCommand() *cobra.Command {
	var reason string
	c := a.onTeam(1, &cobra.Command{
		Use: "handover [TEAM] NAME", Short: "Replace a member's session by a fresh one",
		Long: "End a member's session and start a fresh one that continues its task and its mail, with a note of " +
			"what the one before did.\nThis happens by itself when a context is nearly full.",
	}, func(c *cobra.Command, name string, args []string) error {
		return a.act(c, name, &team.HandOver{Member: args[0], Reason: reason},
			func(*engine.Team, *team.Record) error {
				return a.print(concerned{args[0]}, said("a fresh session continues for %s", args[0]))
			})
	})
	c.Flags().StringVar(&reason, "reason", "", "why, for the fresh session")
	actsAs(c)
	return c
}
