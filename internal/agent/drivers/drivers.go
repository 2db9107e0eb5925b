// Package drivers maps the names of agents to their drivers.
//
// # Authority
//
// The package is the one place where a name becomes a driver, for the command line and for programs
// that embed teams. Each driver decides what it does, and the caller decides which agents a team
// may have.
//
//	claude, codex, gemini, opencode   a program with a model behind it
//	claude-tmux                       Claude Code in a terminal of its own, which a person can use
//	acp:COMMAND                       any program that speaks the Agent Client Protocol, by the command that starts it
//	shell                             runs the commands of tasks
//	external                          no session: cadre does not run this member
//
// # The helper
//
// Some agents start a program to get the team's tools, and gemini starts one as a hook to get its
// mail. That program is the [Set]'s helper. It is called with [Set.Helper], then the words that
// select its task, then the path of a socket. It passes what follows its own words to [Serve]. The
// program cadre is such a helper.
package drivers

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"cadre/internal/agent"
	"cadre/internal/agent/acp"
	"cadre/internal/agent/claude"
	"cadre/internal/agent/claudetmux"
	"cadre/internal/agent/codex"
	"cadre/internal/agent/headless"
	"cadre/internal/agent/shell"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Models are the agents with a model and a name of their own, in the order of preference.
var Models = []string{team.Claude, team.Codex, team.Gemini, team.OpenCode}

// These words select the task of a helper. The path of a socket follows them.
var (
	relayWords = []string{"mcp", "--socket"}
	hookWords  = []string{"gemini-hook"}
)

// Set is the set of agents that one program has. It may be used from any goroutine.
type Set struct {
	// Helper is the command line of the helper. If it is nil, agents that need one return an error
	// when they are started.
	Helper []string
}

// Relay returns the command line that serves a session's tools as MCP, without the socket; nil
// without a helper.
func (s Set) Relay() []string { return s.helperCommand(relayWords) }

func (s Set) helperCommand(words []string) []string {
	if len(s.Helper) == 0 {
		return nil
	}
	return slices.Concat(s.Helper, words)
}

// Agent returns the agent of that name; nil for external, and for an unknown name.
func (s Set) Agent(name string) agent.Agent {
	switch name {
	case team.Shell:
		return shell.Agent{}
	case team.Claude:
		return claude.Agent{}
	case team.ClaudeTmux:
		return claudetmux.Agent{}
	case team.Codex:
		return codex.Agent{}
	case team.Gemini:
		return s.withHelper(name, acp.Gemini(s.helperCommand(hookWords)))
	case team.OpenCode:
		return s.withHelper(name, acp.OpenCode())
	}
	if line, ok := strings.CutPrefix(name, team.ACP); ok && strings.TrimSpace(line) != "" {
		return s.withHelper(name, acp.Command(strings.TrimSpace(line)))
	}
	return nil
}

// withHelper returns the agent if there is a helper. Otherwise it returns one that cannot be
// started, because the agent would be in the team without any of its tools.
func (s Set) withHelper(name string, a acp.Agent) agent.Agent {
	if len(s.Helper) == 0 {
		return noHelper{a, name}
	}
	return a
}

type noHelper struct {
	acp.Agent
	name string
}

func (h noHelper) Start(context.Context, agent.Spec, agent.Team) (agent.Session, error) {
	return nil, &agent.Problem{Kind: agent.ProblemMissing, Text: h.name + " needs the program " +
		"cadre to reach its team, and cadre is not installed here"}
}

// Reader returns a reader for the messages of that agent to its driver, or for its output without
// one; nil if cadre has no reader for it.
func Reader(name string) agent.Reader {
	switch name {
	case team.Codex:
		return headless.Or(new(codex.Reader), new(headless.Codex))
	case team.Gemini:
		return headless.Or(acp.Gemini(nil).Reader(), new(headless.Gemini))
	case team.OpenCode:
		return headless.Or(acp.OpenCode().Reader(), new(headless.OpenCode))
	}
	if strings.HasPrefix(name, team.ACP) {
		return acp.Command("").Reader()
	}
	return nil
}

// Known reports whether there is an agent of that name.
func Known(name string) bool {
	return name == team.External || name == team.NestedTeam || Set{}.Agent(name) != nil
}

// Words returns the names of agents, for help and errors.
func Words() []string { return append(Running(), team.NestedTeam, team.External) }

// Running returns the agents that cadre can run.
func Running() []string { return append(Leading(), team.ClaudeTmux, team.Shell) }

// Leading returns the agents that cadre can run and that can lead a team.
func Leading() []string { return append(slices.Clone(Models), team.ACP+"COMMAND") }

// Offers returns the agents that a lead may spawn: its own, and those that are found in PATH. own
// may be "".
func Offers(own string) []string {
	var found []string
	for _, name := range Models {
		if _, err := proc.Find(name); err == nil {
			found = append(found, name)
		}
	}
	if own != "" && own != team.External && !slices.Contains(found, own) {
		found = append([]string{own}, found...)
	}
	return found
}

// probeTime bounds how long an agent may take to print its version.
const probeTime = 20 * time.Second

// Probe reports whether the agent is installed.
func Probe(ctx context.Context, name string) agent.Probe {
	p, ok := Set{}.Agent(name).(agent.Prober)
	if !ok {
		return agent.Probe{Missing: "unknown: cadre cannot check this agent"}
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	return p.Probe(ctx)
}

// Login checks cheaply whether the agent is logged in. dir is where it would work, and program its
// executable, or "".
func Login(ctx context.Context, name, program, dir string, env []string) agent.Login {
	a, ok := Set{}.Agent(name).(agent.LoginChecker)
	if !ok {
		return agent.Login{State: agent.LoginUnknown}
	}
	return a.CheckLogin(ctx, program, dir, env)
}

// Missing returns the reason why the agent's program cannot be used here: it does not exist, or
// does not report its version. It returns nil if no reason is known. Only the programs of [Models]
// are asked for a version, because the argument may mean anything to other programs.
func Missing(ctx context.Context, name, program string) error {
	a := Set{}.Agent(name)
	if err := agent.Missing(a, program); err != nil {
		return err
	}
	var p agent.Probe
	switch {
	case !slices.Contains(append(slices.Clone(Models), team.ClaudeTmux), name):
		return nil
	case program != "":
		ctx, cancel := context.WithTimeout(ctx, probeTime)
		defer cancel()
		p = agent.Look(ctx, program, nil, "")
	default:
		p = Probe(ctx, name)
	}
	if p.Missing != "" {
		return fmt.Errorf("%s does not run: %s", p.Program, p.Missing)
	}
	return nil
}

// Serve runs a helper. args are the arguments after the helper's own.
func Serve(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	if n := len(args) - 1; n >= 0 {
		switch socket := args[n]; {
		case slices.Equal(args[:n], relayWords):
			return acp.Relay(ctx, socket, in, out)
		case slices.Equal(args[:n], hookWords):
			return acp.Hook(ctx, socket, in, out)
		}
	}
	return fmt.Errorf("unknown arguments for a helper: %q", args)
}
