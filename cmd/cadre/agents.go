package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"cadre/internal/agent"
	"cadre/internal/agent/acp"
	"cadre/internal/agent/claude"
	"cadre/internal/agent/codex"
	"cadre/internal/agent/shell"
	"cadre/internal/agentdef"
	"cadre/internal/team"
)

// models are the agents with a model behind them that have a name of their own, in the order in which one is chosen.
var models = []string{team.Claude, team.Codex, team.Gemini, team.OpenCode}

// agentOf is the agent of that name; nil for one that this program does not know.
func agentOf(name string) agent.Agent {
	switch name {
	case team.Shell:
		return shell.Agent{}
	case team.Claude:
		return claude.Agent{}
	case team.Codex:
		return codex.Agent{}
	case team.Gemini:
		return acp.Gemini(hookCommand())
	case team.OpenCode:
		return acp.OpenCode()
	}
	if line, ok := strings.CutPrefix(name, team.ACP); ok && strings.TrimSpace(line) != "" {
		return acp.Command(strings.TrimSpace(line))
	}
	return nil
}

// relayCommand is the command line that gives an agent its team tools: it connects its standard input and output with the socket that is its last argument.
func relayCommand() []string { return []string{self(), "mcp", "--socket"} }

// hookCommand is the command line that an agent runs before it asks its model.
func hookCommand() []string { return []string{self(), "gemini-hook"} }

func self() string {
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}

func knownAgent(name string) error {
	if name == team.External || agentOf(name) != nil {
		return nil
	}
	return usage{fmt.Errorf("no agent named %q; there are: %s", name, strings.Join(agentWords(), ", "))}
}

func agentWords() []string {
	return append(slices.Clone(models), team.ACP+"COMMAND", team.Shell, team.External)
}

// offers are the agents that a lead may spawn: those that are installed, as far as a look into PATH tells, and its own.
func offers(own string) []string {
	var found []string
	for _, name := range models {
		if _, err := exec.LookPath(name); err == nil {
			found = append(found, name)
		}
	}
	if own != "" && own != team.External && !slices.Contains(found, own) {
		found = append([]string{own}, found...)
	}
	return found
}

// probeTime bounds the question to an agent for its version.
const probeTime = 20 * time.Second

// probe looks whether the agent is installed.
func probe(ctx context.Context, name string) agent.Probe {
	p, ok := agentOf(name).(agent.Prober)
	if !ok {
		return agent.Probe{Missing: "cadre cannot tell"}
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	return p.Probe(ctx)
}

// firstInstalled is the first agent that can lead.
func firstInstalled(ctx context.Context) (string, error) {
	for _, name := range models {
		if p := probe(ctx, name); p.Program != "" && p.Missing == "" {
			return name, nil
		}
	}
	return "", usage{fmt.Errorf("no coding agent is installed that could lead: install Claude Code (claude), Codex (codex), Gemini CLI (gemini) or opencode, and see cadre doctor; " +
		"a team that needs none: cadre run examples/hello.yaml")}
}

// role finds what a role means in a directory.
func (a *app) role(dir, role string) (agentdef.Definition, bool, error) {
	return agentdef.Find(a.home.Claude, dir, role)
}
