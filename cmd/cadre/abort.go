package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cadre/internal/engine/upkeep"
	"cadre/internal/render"
	"cadre/internal/team"
)

// confirmAbort asks whether the team is ended, unless it has ended already and nothing of it runs.
func (a *app) confirmAbort(ctx context.Context, name string) error {
	e := a.measure(ctx, name)
	if e.ended {
		return nil
	}
	return a.confirm(ctx, "End "+e.what+" now?", way{"end " + e.what, render.Typed("abort", name, "--reason", "WHY")})
}

func (a *app) abortCommand() *cobra.Command {
	var reason string
	var yes bool
	c := a.onTeam(0, &cobra.Command{
		Use: "abort [TEAM]", SuggestFor: []string{"kill"}, Short: "End a team at once, and keep its history",
		Long: "End a team and all of its sessions at once. Its history is kept: cadre review shows " +
			"it. It may be called again\nwhile something is still there.\n\nOn a terminal you are asked before; " +
			"--yes skips the question. A script says --reason or --yes. The team of another project is ended by its " +
			"id,\nunless you are asked.",
		Example: "  cadre abort demo --reason 'the goal changed'",
	}, func(c *cobra.Command, name string, _ []string) error {
		name, err := a.sure(name, yes)
		if err != nil {
			return withWays(err, byID(c, err, "end")...)
		}
		if !yes && (a.asks() || reason == "") {
			if err := a.confirmAbort(c.Context(), name); err != nil {
				return err
			}
		}
		ctx, cancel := context.WithTimeoutCause(c.Context(), time.Minute,
			fmt.Errorf("not all members have ended within a minute"))
		defer cancel()
		of, err := a.engine().Open(ctx, name)
		if err != nil {
			return err
		}
		defer of.Close()
		err = of.Abort(ctx, a.actor, reason)
		if lingers, ok := errors.AsType[*upkeep.LingeringError](err); ok {
			err := team.Refuse(team.NotReady, "%s", lingers).With(team.HintsOf(lingers.Err)...)
			if strings.Contains(lingers.What, "consolidation") {
				return err
			}
			return withWays(err, way{"end the rest", render.Typed("abort", name, "--yes")})
		}
		if err != nil {
			return err
		}
		return a.print(of.Team(), said("team %s is aborted; to read its record: cadre review %s", name, name))
	})
	c.Flags().StringVar(&reason, "reason", "", "why, for the record")
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return c
}
