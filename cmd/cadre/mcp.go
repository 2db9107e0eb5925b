package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"cadre/internal/agent"
	"cadre/internal/agent/acp"
	"cadre/internal/agent/mcpserver"
	"cadre/internal/agent/wake"
	"cadre/internal/engine"
	"cadre/internal/team"
)

func (a *app) mcpCommand() *cobra.Command {
	var name, as, socket string
	c := &cobra.Command{
		Use: "mcp", Short: "Serve the team's tools to an agent, as MCP on standard input and output", Args: exactly(0),
		Long: `Serve the team's tools to an agent that cadre does not run: add this command as an MCP server to an
interactive Claude Code, Codex or Gemini session, and that session is the lead of the team, or with --as one of its
teammates.

  claude mcp add cadre -- cadre mcp --team NAME
  codex mcp add cadre -- cadre mcp --team NAME
  gemini mcp add cadre cadre mcp --team NAME

If the team does not exist, it is created when the session connects, with this session as its lead, which is briefed.
Every tool result ends with new messages, and with the tasks that teammates completed. TeamStatus with wait_seconds
waits for the next ones.

News wakes a session whose turn has ended. A Codex needs nothing for that while its own server runs; a Claude Code
needs this hook in its settings.json, or .claude/settings.local.json:

  ` + wake.Hook + `

Gemini CLI, opencode, claude -p and codex exec cannot be woken: they are told to wait with TeamStatus.`,
		RunE: func(c *cobra.Command, _ []string) error {
			stays()
			if socket != "" {
				return acp.Relay(c.Context(), socket, os.Stdin, protocol())
			}
			return a.serveTools(c.Context(), name, as)
		},
	}
	c.Flags().StringVar(&name, "team", os.Getenv("CADRE_TEAM"), "the team; by default one named after the directory")
	c.Flags().StringVar(&as, "as", "", "the member that the session is; the lead by default")
	c.Flags().StringVar(&socket, "socket", "", "connect with the socket of a session that cadre runs")
	c.Flags().MarkHidden("socket")
	return c
}

func (a *app) geminiHookCommand() *cobra.Command {
	return &cobra.Command{
		Use: "gemini-hook SOCKET", Hidden: true, Args: exactly(1), Short: "Give a working Gemini CLI its mail before " +
			"it asks its model",
		RunE: func(c *cobra.Command, args []string) error {
			return acp.Hook(c.Context(), args[0], os.Stdin, protocol())
		},
	}
}

// createForClient creates the team that a client is to lead, once the client initializes the
// server. It returns the input of the server.
func (a *app) createForClient(ctx context.Context, name, dir string, in io.ReadCloser) (io.ReadCloser, error) {
	if err := a.who.Create(name); err != nil {
		return nil, err
	}
	in, is, err := mcpserver.Introduced(ctx, in)
	switch {
	case err != nil:
		return nil, fmt.Errorf("team %s does not exist and was not created: %w", name, err)
	case !is:
		return nil, team.Refuse(team.NotReady, "no client has initialized the server, so team %s was not created", name)
	}
	if err := a.engine().CreateLed(ctx, name, dir); err != nil {
		return nil, err
	}
	a.note(fmt.Sprintf("team %s is created in %s; this session leads it", name, dir))
	return in, nil
}

// serveTools serves the tools of a member whose session cadre does not run.
func (a *app) serveTools(ctx context.Context, name, as string) error {
	here, nowhere := workDir(".") // an existing team keeps its directory
	find := a.home.Folder
	if name == "" {
		find = a.home.Own // another project's directory may have the same name
		if nowhere != nil {
			return nowhere
		}
		var ok bool
		if name, ok = engine.NameOf(here); !ok {
			return usage{errors.New("no team can be named after this directory; say which one: --team NAME")}
		}
	}
	folder, err := find(name)
	in := io.ReadCloser(os.Stdin)
	if team.CodeOf(err) == team.NotFound && as == "" {
		if nowhere != nil {
			return nowhere
		}
		if in, err = a.createForClient(ctx, name, here, in); err != nil {
			return err
		}
		folder, err = find(name)
	}
	if err != nil {
		return err
	}
	t, err := a.engine().OpenIn(ctx, name, folder)
	if err != nil {
		return err
	}
	defer t.Close()
	if as == "" && a.actor != team.User {
		as = a.actor
	}
	return t.Attend(ctx, as, here, func(ctx context.Context, o *engine.Outside) error {
		return mcpserver.Stdio(ctx, o.Tools(), in, protocol(), mcpserver.Options{Name: agent.ToolServerName,
			Version: version, Greet: o.Greet, Called: o.Called})
	})
}
