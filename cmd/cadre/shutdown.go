package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"cadre/internal/engine"
	"cadre/internal/render"
	"cadre/internal/team"
)

func (a *app) shutdownCommand() *cobra.Command {
	var reason string
	var deadline time.Duration
	var graceful, withdraw bool
	c := &cobra.Command{
		Use: "shutdown [TEAM] NAME | shutdown TEAM --graceful", Short: "Shut down a teammate, or let the whole " +
			"team wind down",
		Long: "Ask a teammate to finish and end, and wait until it has ended. A teammate that refuses works until " +
			"the deadline; then its\nsession is ended. Its tasks return to the queue and its unread mail to the " +
			"senders. --withdraw withdraws the request.\n\nWith --graceful the whole team winds down: members finish " +
			"their tasks and start no new ones, and the team waits for cadre\nconsolidate.",
	}
	one := a.onTeam(1, c, func(c *cobra.Command, name string, args []string) error {
		ctx, cancel := context.WithTimeoutCause(c.Context(), deadline+30*time.Second,
			fmt.Errorf("%s has not ended yet", args[0]))
		defer cancel()
		of, err := a.engine().Open(ctx, name)
		if err != nil {
			return err
		}
		defer of.Close()
		if withdraw {
			if _, err := of.Do(ctx, team.Command{Actor: a.actor,
				Body: &team.WithdrawShutdown{Member: args[0]}}); err != nil {
				return err
			}
			return a.print(concerned{args[0]}, said("the request to %s is withdrawn; it continues", args[0]))
		}
		before := of.Seq()
		_, err = of.Do(ctx, team.Command{Actor: a.actor, Body: &team.RequestShutdown{Member: args[0],
			Reason: reason, Deadline: now().Add(deadline)}})
		if err != nil && team.CodeOf(err) != team.Conflict { // it was asked before: wait for that request
			return err
		}
		return a.awaitEnd(ctx, of, args[0], before)
	}).RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if graceful {
			return a.windDown(c, args)
		}
		return one(c, args)
	}
	c.Flags().StringVar(&reason, "reason", "", "why, for the teammate")
	c.Flags().BoolVar(&graceful, "graceful", false, "let the whole team wind down")
	c.Flags().BoolVar(&withdraw, "withdraw", false, "withdraw the request to the teammate")
	c.MarkFlagsMutuallyExclusive("graceful", "withdraw")
	actsAs(c)
	c.Flags().DurationVar(&deadline, "deadline", 30*time.Second, "when it is ended, whatever it answers")
	return c
}

// awaitEnd waits until the member has ended, and prints that. It prints a refusal, which is in the
// history after the given record. For an external member it prints first how to answer.
func (a *app) awaitEnd(ctx context.Context, t *engine.Team, member string, after int64) error {
	var asked team.Member
	t.View(func(s *team.State) { asked, _ = s.Member(member) })
	if asked.Agent == team.External && asked.Status.Running() && asked.Shutdown.Answer == "" &&
		asked.Shutdown.Deadline > now() {
		a.note(remedied(fmt.Sprintf("waiting for %s until %s", member, render.Clock(asked.Shutdown.Deadline)),
			[]remedy{{Purpose: "answer as " + member, Command: render.Typed("leave", t.Team().Name, "--as", member)}}))
	}
	m, err := t.AwaitEnd(ctx, member, after, func(m team.Member, reason string) {
		a.note(fmt.Sprintf("%s refuses to shut down%s; it is ended at the deadline, in %s; to let it work: cadre "+
			"shutdown %s %s --withdraw", m.Name, prefix(": ", reason),
			team.Span(max(0, m.Shutdown.Deadline.Sub(now()))), t.Team().Name, m.Name))
	})
	if errors.Is(err, engine.ErrWithdrawn) {
		return &team.Error{Code: team.NotReady, Text: fmt.Sprintf("%s no longer has to shut down: the request was "+
			"withdrawn", member)}
	}
	if err != nil {
		return err
	}
	return a.print(m, said("%s has %s%s", m.Name, m.Status, prefix(": ", m.Summary)))
}

// windDown marks the team for its consolidation.
func (a *app) windDown(c *cobra.Command, args []string) error {
	name, _, err := a.split(c, args, 0)
	if err != nil {
		return err
	}
	return a.act(c, name, &team.SetStatus{Status: team.TeamConsolidating},
		func(of *engine.Team, _ *team.Record) error {
			return a.print(of.Team(), said("team %s winds down and starts no new work; when all members are done: "+
				"cadre consolidate %s",
				name, name))
		})
}
