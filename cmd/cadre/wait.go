package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"cadre/internal/team"
)

// waitFlags are the flags --wait and --timeout of a command.
type waitFlags struct {
	on      bool
	timeout time.Duration
}

func (w *waitFlags) flags(c *cobra.Command, does string) {
	c.Flags().BoolVar(&w.on, "wait", false, does)
	c.Flags().DurationVar(&w.timeout, "timeout", 0,
		"how long --wait waits, such as 5m, before it ends with status 1; 0 "+
			"for ever")
}

// begin limits ctx to the given time. failure describes what did not happen in that time.
func (w *waitFlags) begin(ctx context.Context, failure string) (context.Context, context.CancelFunc, error) {
	switch {
	case w.timeout < 0:
		return nil, nil, usage{fmt.Errorf("--timeout %s is negative", w.timeout)}
	case w.timeout > 0 && !w.on:
		return nil, nil, usage{fmt.Errorf("--timeout goes with --wait")}
	case w.on:
		stays()
	}
	if w.timeout == 0 {
		return ctx, func() {}, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, w.timeout,
		team.Refuse(team.Nothing, "%s in %s", failure, team.Span(w.timeout)))
	return ctx, cancel, nil
}

// end returns why the wait ended, if ctx ended it.
func (w *waitFlags) end(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
