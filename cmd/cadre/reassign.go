package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"cadre/internal/engine"
	"cadre/internal/engine/upkeep"
	"cadre/internal/inspect"
	"cadre/internal/render"
	"cadre/internal/team"
)

func (a *app) reassignCommand() *cobra.Command {
	var force bool
	c := a.onTeam(2, &cobra.Command{
		Use: "reassign [TEAM] TASK NAME", Short: "Give a task to another member, with the work on it so far",
		Long: "Give a task to another member. What the present owner has changed where it works, and said last, goes " +
			"with it. A task that a\nliving member works on is taken from it only with --force.",
	}, func(c *cobra.Command, name string, args []string) error {
		return a.reassign(c.Context(), name, args[0], args[1], force)
	})
	c.Flags().BoolVar(&force, "force", false, "even if the owner is alive and works on it")
	actsAs(c)
	return c
}

func (a *app) reassign(ctx context.Context, name, task, to string, force bool) error {
	of, err := a.engine().Open(ctx, name)
	if err != nil {
		return err
	}
	defer of.Close()
	t, err := of.Reassign(ctx, a.actor, upkeep.Reassignment{Task: task, To: to, Force: force})
	if busy, ok := errors.AsType[*upkeep.BusyError](err); ok {
		return withWays(team.Refuse(team.NotReady, "%s%s", busy, perhaps(busy.Member)),
			way{"take it from " + busy.Member.Name, render.Typed("reassign", name, task, to, "--force")})
	}
	if err != nil {
		return err
	}
	what := ""
	if t.Saved != nil && t.Saved.Member != to {
		what = ", with what " + t.Saved.Member + " had done of it"
	}
	return a.print(t, said("task %s is %s's now%s", t.Called(), to, what))
}

// perhaps returns why a member that is not known to be offline may still work.
func perhaps(m inspect.Member) string {
	switch m.Life {
	case inspect.Outside:
		return ", and it is not known whether that session is alive"
	case inspect.Unknown:
		return ", and it is not known whether it is alive: " + m.Why
	}
	return fmt.Sprintf(" and is %s", m.Life)
}

// resent lists the messages that were sent to a member again.
type resent struct {
	Member string  `json:"member"` // name of the recipient
	Seqs   []int64 `json:"seqs"`   // numbers of the messages
}

func (a *app) resendCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "resend TEAM NAME [SEQ...]", Short: "Send messages again that were not delivered", Args: atLeast(2),
		Long: "Send messages again that wait for a member: those that are late, or the ones named. They stay the " +
			"same messages: a member that has\none already does not see it twice.",
		RunE: func(c *cobra.Command, args []string) error {
			body := &team.ResendMessages{Member: args[1]}
			for _, arg := range args[2:] {
				seq, err := strconv.ParseInt(strings.TrimPrefix(arg, "#"), 10, 64)
				if err != nil {
					return usage{fmt.Errorf("%q is not the number of a message", arg)}
				}
				body.Seqs = append(body.Seqs, seq)
			}
			return a.act(c, args[0], body, func(_ *engine.Team, r *team.Record) error {
				e, _ := team.EventIn[*team.MessagesResent](r)
				if e == nil {
					e = &team.MessagesResent{Member: args[1]}
				}
				return a.print(resent{e.Member, append([]int64{}, e.Seqs...)},
					said("%s sent to %s again", team.Count(len(e.Seqs), "message"), e.Member))
			})
		},
	}
	actsAs(c)
	return c
}
