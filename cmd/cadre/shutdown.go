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
		Use: "shutdown [TEAM] NAME | shutdown TEAM --graceful", Short: "Shut a teammate down, or bring the whole " +
			"team to its end",
		Long: "Ask a teammate to finish and end, and wait until it has. At the deadline its session is ended " +
			"whatever it answered. Its\ntasks go back on the list and its unread mail back to the senders. A " +
			"teammate that refuses works until then; --withdraw takes the\nrequest back, so that it need not " +
			"end.\n\nWith --graceful the whole team is brought to its end: everybody ends what they are at, nothing " +
			"new is begun, and the team waits\nfor its consolidation (cadre consolidate).",
		RunE: func(c *cobra.Command, args []string) error {
			if graceful {
				return a.windDown(c, args)
			}
			name, args, err := a.split(c, args, 1)
			if err != nil {
				return err
			}
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
				return a.print(map[string]any{"member": args[0]}, said("%s need not shut down", args[0]))
			}
			before := of.Seq()
			_, err = of.Do(ctx, team.Command{Actor: a.actor, Body: &team.RequestShutdown{Member: args[0],
				Reason: reason, Deadline: now().Add(deadline)}})
			if err != nil && team.CodeOf(err) != team.Conflict { // asked before: wait with the one who asked
				return err
			}
			return a.awaitEnd(ctx, of, args[0], before)
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why, for the teammate")
	c.Flags().BoolVar(&graceful, "graceful", false, "bring the whole team to its end")
	c.Flags().BoolVar(&withdraw, "withdraw", false, "take the request back that the teammate was sent")
	c.MarkFlagsMutuallyExclusive("graceful", "withdraw")
	actsAs(c)
	c.Flags().DurationVar(&deadline, "deadline", 30*time.Second, "when it is ended whatever it answered")
	return c
}

// awaitEnd waits until the member has ended, and prints that. A refusal is told; what it says is in
// the history after the given record.
func (a *app) awaitEnd(ctx context.Context, t *engine.Team, member string, after int64) error {
	m, err := t.AwaitEnd(ctx, member, after, func(m team.Member, reason string) {
		a.note(fmt.Sprintf("%s refuses to shut down%s; it is ended at the deadline, in %s; to let it work: cadre "+
			"shutdown %s %s --withdraw", m.Name, prefix(": ", reason),
			render.Span(max(0, m.Shutdown.Deadline.Sub(now()))), t.Team().Name, m.Name))
	})
	if errors.Is(err, engine.ErrWithdrawn) {
		return &team.Error{Code: team.NotReady, Text: fmt.Sprintf("%s need not shut down any more: the request was "+
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
			return a.print(of.Team(), said("team %s starts no new work; when everybody is done: cadre consolidate %s",
				name, name))
		})
}
