// Package drivers knows which agents there are, by the names that members have for them.
//
// # Authority
//
// The package is the one place where a name becomes a driver, for the command line and for programs
// that embed teams alike. What a driver does is its own affair, and which agents a team may have is
// its caller's.
//
//	claude, codex, gemini, opencode   a program with a model behind it
//	claude-tmux                       Claude Code at a terminal of its own, to which a person can go
//	acp:COMMAND                       any program that speaks the Agent Client Protocol, by the command that starts it
//	shell                             runs the commands of tasks
//	external                          no session: nobody here drives it
//
// # The helper
//
// Some agents take the team's tools from a program that they start, and gemini asks one for its
// mail. That program is the [Set]'s helper: it is started with the words of [Relay] or [Hook] and a
// socket behind its own, and answers with [Serve]. The program cadre is one.
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

// Models are the agents with a model behind them that have a name of their own, in the order in
// which one is chosen.
var Models = []string{team.Claude, team.Codex, team.Gemini, team.OpenCode}

// What a helper is asked to do, before the path of a socket.
var (
	relayWords = []string{"mcp", "--socket"}
	hookWords  = []string{"gemini-hook"}
)

// Set is the agents that one program has. It may be used from any goroutine.
type Set struct {
	// Helper is the command line of the helper; nil where there is none, and then agents that need
	// one say so when they are started.
	Helper []string
}

// Relay is the command line that serves a session's tools as MCP, without the socket; nil without a
// helper.
func (s Set) Relay() []string { return s.help(relayWords) }

func (s Set) help(words []string) []string {
	if len(s.Helper) == 0 {
		return nil
	}
	return slices.Concat(s.Helper, words)
}

// Agent is the agent of that name; nil for external, and for one that there is not.
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
		return s.helped(name, acp.Gemini(s.help(hookWords)))
	case team.OpenCode:
		return s.helped(name, acp.OpenCode())
	}
	if line, ok := strings.CutPrefix(name, team.ACP); ok && strings.TrimSpace(line) != "" {
		return s.helped(name, acp.Command(strings.TrimSpace(line)))
	}
	return nil
}

// helped is an agent that cannot work without a helper: it would be in the team and could do
// nothing in it.
func (s Set) helped(name string, a acp.Agent) agent.Agent {
	if len(s.Helper) == 0 {
		return helpless{a, name}
	}
	return a
}

type helpless struct {
	acp.Agent
	name string
}

func (h helpless) Start(context.Context, agent.Spec, agent.Team) (agent.Session, error) {
	return nil, &agent.Problem{Kind: agent.ProblemMissing, Text: h.name + " reaches its team through the program " +
		"cadre, which is not installed here"}
}

// Reader reads along what the agent of that name says to whoever drives it, or prints where nobody
// does; nil where nobody here can.
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
func Known(name string) bool { return name == team.External || Set{}.Agent(name) != nil }

// Words are the names of agents, for help and errors.
func Words() []string { return append(Running(), team.External) }

// Running are those of whom cadre runs sessions, and Leading those of them that can lead.
func Running() []string { return append(Leading(), team.ClaudeTmux, team.Shell) }
func Leading() []string { return append(slices.Clone(Models), team.ACP+"COMMAND") }

// Offers are the agents that a lead may spawn: its own, and those that are installed, as far as a
// look into PATH tells. own may be "".
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

// probeTime bounds the question to an agent for its version.
const probeTime = 20 * time.Second

// Probe looks whether the agent is installed.
func Probe(ctx context.Context, name string) agent.Probe {
	p, ok := Set{}.Agent(name).(agent.Prober)
	if !ok {
		return agent.Probe{Missing: "cadre cannot tell"}
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	return p.Probe(ctx)
}

// Login asks whether somebody is logged in to the agent, by its own cheap means. dir is where it
// would work, and program its executable, or "".
func Login(ctx context.Context, name, program, dir string, env []string) agent.Login {
	a, ok := Set{}.Agent(name).(agent.LoginChecker)
	if !ok {
		return agent.Login{State: agent.LoginUnknown}
	}
	return a.CheckLogin(ctx, program, dir, env)
}

// Missing says why the agent's program cannot be used here: it is not there, or does not tell its
// version. Any other program than those of [Models] is not asked, because nobody knows what it does
// with the question. nil where nothing speaks against it.
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

// Serve is what a helper does: args are the words that it was started with, behind its own.
func Serve(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	if n := len(args) - 1; n >= 0 {
		switch socket := args[n]; {
		case slices.Equal(args[:n], relayWords):
			return acp.Relay(ctx, socket, in, out)
		case slices.Equal(args[:n], hookWords):
			return acp.Hook(ctx, socket, in, out)
		}
	}
	return fmt.Errorf("a helper is not started with %q", args)
}
