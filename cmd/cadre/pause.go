package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cadre/internal/render"
	"cadre/internal/server"
	"cadre/internal/team"
)

func (a *app) pauseCommand() *cobra.Command {
	var deadline time.Duration
	c := a.onTeam(0, &cobra.Command{
		Use: "pause [TEAM]", Short: "End the sessions of a team, to resume it later",
		SuggestFor: []string{"stop", "suspend"},
		Long: "End the sessions of a team, as Ctrl-C does in the terminal of cadre run, and wait until they have " +
			"ended. The team may run in a terminal, in the background, or in a program of yours. Each session has " +
			"five seconds to end. Its member is recorded as paused and keeps its task. Continue with cadre " +
			"resume.\n\nMembers that other programs run, with the agent external, are not ended.\n\n" +
			"Exit status 0: no process runs the team any more. 1: not all sessions have ended at the deadline; call " +
			"it again. 2: the team has ended, is nested in another one, or does not " +
			"exist.",
		Example: "  cadre pause demo\n  cadre resume demo",
	}, func(c *cobra.Command, name string, _ []string) error {
		ctx, cancel := context.WithTimeout(c.Context(), deadline)
		defer cancel()
		of, err := a.engine().Open(ctx, name)
		if err != nil {
			return err
		}
		defer of.Close()
		p, err := of.Pause(ctx)
		if err == nil {
			err = server.Rest(ctx, a.home, of.Team().ID)
		}
		switch of := of.Team(); {
		case team.CodeOf(err) == team.Invalid && of.Parent.Team != "":
			return withWays(err, way{"pause them together", render.Typed("pause", of.Outermost())})
		case team.CodeOf(err) == team.NotReady:
			return withWays(err, way{"wait for it again", render.Typed("pause", name)})
		case err != nil:
			return err
		}
		resume := "to resume it: cadre resume " + name
		switch n := len(p.Members); {
		case p.Hosts == 0:
			return a.print(p, said("no process runs team %s; %s", name, resume))
		case n == 0:
			return a.print(p, said("team %s is paused; no session was running; %s", name, resume))
		default:
			return a.print(p, said("team %s is paused: %s ended (%s); %s", name, team.Count(n, "session"),
				strings.Join(p.Members, ", "), resume))
		}
	})
	c.Flags().DurationVar(&deadline, "deadline", 30*time.Second, "how long to wait")
	return c
}
