// Package acp is the driver for agents that speak the Agent Client Protocol: Gemini CLI, opencode,
// and any other by its command.
//
// # Authority
//
// The driver speaks the protocol, and knows when a prompt is in the agent's context. What is
// particular to one agent is data, in facts.go and gemini.go. It decides nothing about the team:
// permissions and plans are asked of whoever started the session.
//
//	lines.go    what the agent says, in its order: it waits when it says more than is taken
//	decode.go   what that means, as updates: a pure function of the stream
//	queue.go    where each prompt is, and what became of it: a value with rules
//	client.go   what the agent asks
//	turn.go     prompts and their answers, between the two
//	session.go  the program, from its start to its end
//
// # A session
//
//	initialize ──▶ session/new or session/load ──▶ Started ──session/prompt──▶ turn ──its answer──▶ waiting …
//
// How a prompt gets to an agent that works hangs on the agent: by a prompt on top of the one that
// runs, by a hook that the agent calls before it asks its model, or when the turn has ended. A turn
// that fails gives back what did not arrive; one that is interrupted takes it along into the next.
//
// The protocol has no place for what a system prompt holds, so that stands before the first prompt
// of a fresh session; and no receipt: a prompt counts as received when the agent answers it, or
// does something that shows that it is in its history. That hangs on the agent: gemini forgets the
// prompt of a turn whose first call of the model fails, and all of a turn that is cancelled while
// its model answers; opencode keeps every prompt, whatever comes of it.
//
// The user's own settings stay in force, but where the gate holds: then nothing that they allow is
// done without it. What an agent has to be told besides comes by its command line, its environment,
// and files in the session's scratch folder.
//
// Source of the protocol: the schema of ACP version 1, and recordings of gemini 0.61.0 and opencode
// 1.18.33.
package acp

import (
	"context"
	"errors"
	"os"
	"strings"

	"cadre/internal/agent"
)

// Agent starts sessions of one agent.
type Agent struct {
	facts facts
	hook  []string
}

// Gemini is Gemini CLI. hook is the command line that runs [Hook], without the socket.
func Gemini(hook []string) Agent { return Agent{facts: gemini, hook: hook} }

// OpenCode is opencode.
func OpenCode() Agent { return Agent{facts: openCode} }

// Command is any agent, by the command that starts it: words with space between them, of which
// quotes keep some together.
func Command(line string) Agent {
	f := anyAgent
	f.command = words(line)
	return Agent{facts: f}
}

// words splits a command line, as a shell does where nothing but quotes is special.
func words(line string) (all []string) {
	var word strings.Builder
	var quote rune
	begun := false
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, begun = r, true
		case quote == 0 && (r == ' ' || r == '\t'):
			if begun {
				all = append(all, word.String())
				word.Reset()
				begun = false
			}
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if begun {
		all = append(all, word.String())
	}
	return all
}

// Program is the agent at that path instead of in PATH.
func (a Agent) Program(path string) Agent {
	a.facts.command = append([]string{path}, a.facts.command[1:]...)
	return a
}

// Start starts a session.
func (a Agent) Start(ctx context.Context, spec agent.Spec, _ agent.Team) (agent.Session, error) {
	if len(a.facts.command) == 0 {
		return nil, &agent.Problem{Kind: agent.ProblemMissing, Text: "acp: without a command names no agent"}
	}
	s := newSession(a, spec)
	if err := s.launch(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := s.begin(ctx); err != nil {
		return nil, s.fail(err)
	}
	return s, nil
}

// Probe looks for the program.
func (a Agent) Probe(ctx context.Context) agent.Probe {
	if len(a.facts.command) == 0 {
		return agent.Probe{Missing: "no command"}
	}
	return agent.Look(ctx, a.facts.command[0], a.facts.can, a.facts.missing)
}

// environment is what the program is given. What the driver prepared comes last: it has what the others
// had of the same variable.
func environment(spec agent.Spec, more []string) []string {
	return append(append(os.Environ(), spec.Env...), more...)
}

var errEnded = errors.New("the session is over")
