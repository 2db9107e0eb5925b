// Package codex is the driver for Codex, by its app-server.
//
// # Authority
//
// The driver speaks the program's protocol, and knows when a prompt is in its context. It decides
// nothing about the team: it passes permission requests, plans and calls of tools to the caller
// that started the session.
//
// # A session
//
// A session is one codex app-server that listens on a unix socket, with one thread. The connection
// is a WebSocket. When it breaks while the program is running, the driver connects again and
// continues the running turn. It reads what happened in between from the thread's history, and
// reports it once. If the program repeats a question, the driver answers it once. A prompt whose
// answer was lost is given again only after the turn that may have taken it has ended without it.
//
//	thread/start or thread/resume ──▶ Started ──turn/start──▶ turn ──turn/completed──▶ waiting ──turn/start──▶ turn …
//	                                                        └─ turn/steer: in the same turn's next call of the model
//
// A prompt's id is also the client's id of its message; the item of that message in the stream is
// the receipt. The team's tools are dynamic tools of the thread, without a process of their own.
// The program's own agents and goals are off: they would act under the member's name.
//
// # Permissions
//
//	mode               asks before            sandbox
//	default            every command and edit workspace-write
//	acceptEdits        every command and edit workspace-write   edits are allowed by the team
//	auto               leaving the sandbox    workspace-write
//	dontAsk            never                  workspace-write
//	bypassPermissions  never                  none
//	before a plan's approval, and where the team forbids commands: asks before every command and edit, and the sandbox is read-only
//
// A turn keeps the policy that it was started with, so another mode applies from the next turn on.
//
// The caller that started the session answers calls that only read without a question. The
// program's own commandActions do not decide that: they are for display, on a best-effort basis.
//
// Source of the protocol: recorded from codex-cli 0.169.0, and the schemas that it prints.
package codex

import (
	"cmp"
	"context"
	"os"

	"cadre/internal/agent"
)

// Agent starts sessions of Codex. The zero Agent is ready for use.
type Agent struct {
	Program string // "" for codex, from PATH
}

func (a Agent) program() string { return cmp.Or(a.Program, "codex") }

// Start starts a session.
func (a Agent) Start(ctx context.Context, spec agent.Spec, _ agent.Team) (agent.Session, error) {
	if spec.Program == "" {
		spec.Program = a.program()
	}
	s := newSession(spec)
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
	return agent.Look(ctx, a.program(), []string{"mail while it works", "permissions", "plans", "resumes", "tokens",
		"survives a broken connection"},
		notThere)
}

func environment(spec agent.Spec) []string { return append(os.Environ(), spec.Env...) }

type object = map[string]any

// input returns a text in the program's format.
func input(text string) []object {
	return []object{{"type": "text", "text": text, "text_elements": []any{}}}
}

// policy returns what a turn may do: when it asks, and what its sandbox allows.
func policy(a agent.Access, gate func(tool, input string) error) (approval string, sandbox object) {
	write := object{"type": "workspaceWrite", "networkAccess": false, "writableRoots": []string{},
		"excludeSlashTmp": false, "excludeTmpdirEnvVar": false}
	forbidden := gate != nil && gate("Bash", "{}") != nil
	switch {
	case !a.Writes, a.Mode == "plan", forbidden:
		return "untrusted", object{"type": "readOnly", "networkAccess": false}
	case a.Mode == "bypassPermissions":
		return "never", object{"type": "dangerFullAccess"}
	case a.Mode == "dontAsk":
		return "never", write
	case a.Mode == "auto":
		return "on-request", write
	}
	return "untrusted", write
}

// sandboxMode returns the sandbox of a thread. Every turn then sets its own.
func sandboxMode(sandbox object) string {
	return map[any]string{"readOnly": "read-only", "dangerFullAccess": "danger-full-access"}[sandbox["type"]]
}
