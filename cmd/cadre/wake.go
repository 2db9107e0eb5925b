package main

import (
	"context"

	"github.com/spf13/cobra"

	"cadre/internal/agent/prompts"
	"cadre/internal/agent/wake"
)

// wakeName is the name of a command whose exit status matters to Claude Code: 2 wakes its session.
const wakeName = "wake"

func (a *app) wakeCommand() *cobra.Command {
	var name, as string
	c := &cobra.Command{
		Use: wakeName, Short: "Wake an idle Claude Code session when there is news (for its Stop hook)",
		Args: exactly(0),
		Long: `Wait until there is news for the Claude Code session that runs this command, and wake it, once for each
message. Claude Code runs the command by a Stop hook when a turn ends. The command finds the team and the member by
the session's own cadre mcp; in a session without one it ends at once, also in a session that was started inside
another one. Put this into the settings.json of Claude Code:

  ` + wake.Hook + `

Exit status: 2 there is news, which wakes the session; 0 there is nothing to wait for: the session has ended, has no
cadre mcp, or another cadre wake waits for it already; 1 it failed.`,
		RunE: func(c *cobra.Command, _ []string) error {
			stays()
			return a.wakeSession(c.Context(), name, as)
		},
	}
	c.Flags().StringVar(&name, "team", "", "only when the session is in this team")
	c.Flags().StringVar(&as, "as", "", "only when the session is this member")
	return c
}

// wakeSession returns the exit status 2 when there is news for the session that runs this process.
func (a *app) wakeSession(ctx context.Context, name, as string) error {
	if !a.who.IsUser() { // its host wakes it
		return nil
	}
	woken, err := a.engine().AwaitNews(ctx, name, as)
	if woken {
		a.note(prompts.News)
		return exit(hopeless)
	}
	return err
}
