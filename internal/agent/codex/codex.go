// Package codex is the driver for Codex, by its app-server.
//
// # Authority
//
// The driver speaks the protocol of the program, and knows when a prompt is in its context. It
// decides nothing about the team: permissions, plans and tools are asked of whoever started the
// session.
//
// # A session
//
// is one codex app-server that listens on a unix socket, with one thread. The connection is a
// WebSocket; when it breaks while the program lives, the driver connects again and goes on with the
// turn that runs. What happened meanwhile it reads in the thread's history, and says it once; what
// the program asked, and asks again, is answered once; a prompt whose answer was lost is given
// again only when the turn that may have taken it has ended without it.
//
//	thread/start or thread/resume ──▶ Started ──turn/start──▶ turn ──turn/completed──▶ waiting ──turn/start──▶ turn …
//	                                                        └─ turn/steer: in the same turn's next call of the model
//
// A prompt carries its id as the client's id of a message; the item of that message in the stream
// is the receipt. The team's tools are dynamic tools of the thread, without a process of their own.
// The program's own agents and goals are switched off: they would act under the member's name.
//
// # What it may do
//
//	mode               asks before            sandbox
//	default            every command and edit workspace-write
//	acceptEdits        every command and edit workspace-write   edits are allowed by the team
//	auto               leaving the sandbox    workspace-write
//	dontAsk            never                  workspace-write
//	bypassPermissions  never                  none
//	before a plan's approval, and where the team forbids commands: asks before every command and edit, and the sandbox is read-only
//
// A turn keeps the policy that it was started with, so another mode holds from the next turn on.
//
// What only reads is answered without asking anybody, by whoever started the session. The program's
// own commandActions do not decide that: it makes them for display, as well as it can.
//
// Source of the protocol: recorded from codex-cli 0.169.0, and the schemas that it prints.
package codex

import (
	"context"
	"os"

	"cadre/internal/agent"
)

// Agent starts sessions of Codex. The zero Agent is ready for use.
type Agent struct {
	Program string // "" for codex, from PATH
}

func (a Agent) program() string {
	if a.Program != "" {
		return a.Program
	}
	return "codex"
}

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

// input is a text as the program takes it.
func input(text string) []object {
	return []object{{"type": "text", "text": text, "text_elements": []any{}}}
}

// policy is what a turn may do: when it asks, and what its sandbox lets it do.
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

// sandboxMode is the sandbox of a thread, which every turn then sets anew.
func sandboxMode(sandbox object) string {
	return map[any]string{"readOnly": "read-only", "dangerFullAccess": "danger-full-access"}[sandbox["type"]]
}
