// Package acp is the driver for agents that speak the Agent Client Protocol: Gemini CLI, opencode,
// and any other agent by its command.
//
// # Authority
//
// The driver speaks the protocol, and knows when a prompt is in the agent's context. The
// peculiarities of each agent are data, in facts.go and gemini.go. The driver decides nothing about
// the team: it passes permission requests and plans to the caller that started the session.
//
//	session.go          the program, from its start to its end
//	lines.go, pen.go    the agent's messages and ours, each in order
//	decode.go           the agent's messages as updates: a pure function of the stream
//	client.go           the agent's requests
//	turn.go             prompts and their answers, between the two
//	queue.go            where each prompt is, and what became of it: a value with rules
//	gemini_hook.go      how a prompt reaches Gemini CLI within a turn
//	gemini_home.go      a home for one session of Gemini CLI
//	opencode_plugin.go  how opencode tells of errors
//	rules.go            whether the user's own settings require a question
//	login.go, relay.go, reader.go, words.go  logins, the team's tools, other processes' output, errors
//
// # A session
//
//	initialize ──▶ session/new or session/load ──▶ Started ──session/prompt──▶ turn ──its answer──▶ waiting …
//
// How a prompt reaches a working agent depends on the agent: as another prompt during the turn,
// through a hook that the agent calls before it asks its model, or after the turn. A turn that
// fails returns the prompts that did not arrive; an interrupted turn passes them on to the next
// turn.
//
// The protocol has no system prompt, so the instructions precede the first prompt of a fresh
// session. It has no receipts either. So a prompt counts as received when the agent answers it, or
// does something that shows the prompt in its history. That depends on the agent. gemini forgets
// the prompt of a turn whose first call of the model fails, and everything of a turn that is
// cancelled while its model answers. opencode keeps every prompt, whatever happens.
//
// The user's own settings stay in force, except while the gate applies: then nothing that they
// allow runs without it. Everything else that an agent has to be told comes through its command
// line, its environment, and files in the session's scratch folder.
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

// Gemini returns the agent Gemini CLI. hook is the command line that runs [Hook], without the
// socket.
func Gemini(hook []string) Agent { return Agent{facts: gemini, hook: hook} }

// OpenCode returns the agent opencode.
func OpenCode() Agent { return Agent{facts: openCode} }

// Command returns an agent by the command that starts it. Words are separated by spaces, and quotes
// keep words together.
func Command(line string) Agent {
	f := anyAgent
	f.command = words(line)
	return Agent{facts: f}
}

// words splits a command line, as a shell does if only quotes are special.
func words(line string) (all []string) {
	var word strings.Builder
	var quote rune
	inWord := false
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, inWord = r, true
		case quote == 0 && (r == ' ' || r == '\t'):
			if inWord {
				all = append(all, word.String())
				word.Reset()
				inWord = false
			}
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if inWord {
		all = append(all, word.String())
	}
	return all
}

// Program returns the agent with its program at that path instead of in PATH.
func (a Agent) Program(path string) Agent {
	a.facts.command = append([]string{path}, a.facts.command[1:]...)
	return a
}

// Start starts a session.
func (a Agent) Start(ctx context.Context, spec agent.Spec, _ agent.Team) (agent.Session, error) {
	if len(a.facts.command) == 0 {
		return nil, &agent.Problem{Kind: agent.ProblemMissing,
			Text: "acp: needs a command, such as acp:'my-agent --acp'"}
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

// environment returns the program's environment. The driver's own variables come last, because they
// include the former values of the same variables.
func environment(spec agent.Spec, more []string) []string {
	return append(append(os.Environ(), spec.Env...), more...)
}

var errEnded = errors.New("the session has ended")
