// Package claude is the driver for Claude Code. It uses the program's stream of JSON lines and its
// control protocol.
//
// # Authority
//
// The driver speaks the program's protocol, and knows when a prompt is in its context. It decides
// nothing about the team: it passes permission requests, plans and calls of tools to the caller
// that started the session.
//
// # A session
//
//	claude -p --input-format stream-json --output-format stream-json … ──initialize──▶ answered ──▶ Started
//	user line ──▶ turn ──result──▶ waiting ──user line──▶ turn …
//	           └─ user line, priority next: in the same turn's next call of the model; now: ends the turn, and is the next one
//
// The program echoes each user line once it has been sent to the model: that is the receipt. The
// team's tools are served through the control protocol, without a process of their own.
//
// # Start of the program
//
// The program loads the settings, CLAUDE.md, MCP servers, hooks and skills of the project and of
// the user as always. Its own tools for messages between agents and for task lists are off. The
// team's tools have the same names, and a message sent with the wrong one would reach no member.
//
// Source of the protocol: recorded from Claude Code 2.1.197 and 2.1.329.
package claude

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"cadre/internal/agent"
)

// Agent starts sessions of Claude Code. The zero Agent is ready for use.
type Agent struct {
	Program string // "" for claude, from PATH
}

// startTimeout bounds the wait for the answer to initialize.
const startTimeout = time.Minute

// replaced are tools of the program for which the team has its own.
var replaced = []string{"SendMessage", "ListAgents", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet",
	"TeamCreate", "TeamDelete"}

// Start starts a session. If the program does not find the history of the session to resume, Start
// starts a new one. Before 2.1.329 the program searched only the directory of the session's start,
// which may have moved.
func (a Agent) Start(ctx context.Context, spec agent.Spec, _ agent.Team) (agent.Session, error) {
	if spec.Program == "" {
		spec.Program = a.program()
	}
	if history := transcript(spec); spec.Resume != "" && history != "" {
		s, err := start(ctx, spec, agent.Started{Session: spec.Resume, Resumed: true,
			Seen: seen(history, spec.Carries)})
		if err == nil || !strings.Contains(err.Error(), "No conversation found") {
			return s, err
		}
	}
	return start(ctx, spec, agent.Started{Session: newUUID()})
}

// start starts the program for a session.
func start(ctx context.Context, spec agent.Spec, started agent.Started) (agent.Session, error) {
	s := newSession(spec, started.Session)
	if err := s.launch(commandLine(spec, started.Session, started.Resumed)); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := s.begin(ctx, started); err != nil {
		return nil, err
	}
	return s, nil
}

func (a Agent) program() string { return cmp.Or(a.Program, "claude") }

// commandLine returns the program and its arguments.
func commandLine(spec agent.Spec, id string, resumed bool) []string {
	args := []string{spec.Program, "-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose",
		"--replay-user-messages", "--include-partial-messages",
		"--permission-prompt-tool", "stdio", "--permission-mode", mode(spec.Access),
		"--mcp-config", `{"mcpServers":{"` + agent.ToolServerName + `":{"type":"sdk","name":"` +
			agent.ToolServerName + `"}}}`}
	if spec.Access.Mode == bypass {
		args = append(args, "--allow-dangerously-skip-permissions")
	}
	if resumed {
		args = append(args, "--resume", id)
	} else {
		args = append(args, "--session-id", id)
	}
	if spec.Model != "" {
		args = append(args, "--model", spec.Model)
	}
	args = append(args, "--disallowedTools", strings.Join(replaced, ","))
	args = append(args, "--allowedTools", strings.Join(append([]string{"mcp__" + agent.ToolServerName},
		spec.Access.Allow...), ","))
	return append(args, spec.Args...)
}

const (
	bypass   = "bypassPermissions"
	planning = "plan"
)

// mode returns the program's permission mode for an access.
func mode(a agent.Access) string {
	switch {
	case !a.Writes:
		return planning
	case a.Mode == "":
		return "default"
	}
	return a.Mode
}

// Probe looks for the program.
func (a Agent) Probe(ctx context.Context) agent.Probe {
	return agent.Look(ctx, a.program(), []string{"mail while it works", "permissions", "plans", "resumes",
		"tokens and cost"},
		notThere)
}

// newUUID returns a random UUID, version 4.
func newUUID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// environment returns the program's environment.
func environment(spec agent.Spec) []string {
	return append(os.Environ(), spec.Env...)
}

// Folder returns the folder in which the program keeps its transcripts and teams, in an
// environment.
func Folder(env []string) string {
	dir, home := "", ""
	for _, v := range env {
		if value, ok := strings.CutPrefix(v, "CLAUDE_CONFIG_DIR="); ok {
			dir = value
		} else if value, ok := strings.CutPrefix(v, "HOME="); ok {
			home = value
		}
	}
	if dir != "" {
		return dir
	}
	if home == "" {
		if u, err := user.Current(); err == nil {
			home = u.HomeDir
		}
	}
	return filepath.Join(home, ".claude")
}

var errEnded = errors.New("the session has ended")
