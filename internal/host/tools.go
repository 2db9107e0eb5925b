package host

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"syscall"

	"cadre/internal/agent"
	"cadre/internal/agent/envelope"
	"cadre/internal/agent/mcpserver"
	"cadre/internal/agent/tools"
)

// served serves the team's tools to a session of ours. Mail that comes with their results is not
// given in a prompt again. They are also served on a unix socket for agents that want a program as
// their MCP server: cadre mcp connects the two.
type served struct {
	*tools.Set
	gate     func(tool, input string) error
	called   func()              // after each call
	listener *mcpserver.Listener // nil if the agent needs no such program
	relay    []string
}

func (s *slot) serveTools(gate func(tool, input string) error) (*served, error) {
	t := &served{gate: gate, called: func() { s.works() }}
	t.Set = tools.New(tools.Options{Team: memberTeam{s}, Member: s.member, Now: s.host.Replica.Now,
		Refresh: s.host.Replica.Refresh, Mail: s.mailForTool, Agents: s.host.offers, Records: s.host.Replica.History,
		Spawned:  func(context.Context, string) error { return nil }, // this host finds it by itself
		Isolates: s.host.isolates, Room: s.host.Room,
	})
	if len(s.host.Relay) == 0 {
		return t, nil
	}
	socket, err := s.host.Procs.Socket()
	if err != nil {
		return nil, err
	}
	t.listener, err = mcpserver.Listen(socket, t, mcpserver.Options{Name: agent.ToolServerName}, s.admits,
		func(words string) {
			s.host.Log("the team's tools for " + s.member + ": " + words)
		})
	if err != nil {
		return nil, err
	}
	t.relay = append(slices.Clone(s.host.Relay), socket)
	return t, nil
}

// admits refuses the member's tools to the processes of other sessions.
func (s *slot) admits(c syscall.Conn) error { return s.host.Procs.Admits(c, s.member) }

// offers returns the agents that a lead may spawn.
func (h *Host) offers() []string { return h.Offers }

func (t *served) command() []string { return t.relay }

func (t *served) close() {
	if t.listener != nil {
		t.listener.Close()
	}
}

// Call calls a tool, unless the rules of the team or the role forbid it.
func (t *served) Call(ctx context.Context, name string, input json.RawMessage) (string, bool) {
	if err := t.gate(name, string(input)); err != nil {
		return err.Error(), true
	}
	defer t.called()
	return t.Set.Call(ctx, name, input)
}

// mailForTool returns the mail to append to a tool's result.
func (s *slot) mailForTool(ctx context.Context) (string, error) {
	mail, err := s.take(ctx, byTool)
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(mail, asksReport) {
		s.asked()
	}
	return strings.TrimSpace(envelope.Batch(s.teamID, s.member, mail)), nil
}
