package claude

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"cadre/internal/agent"
)

// These say what to do if Claude Code is not installed, or not logged in.
const (
	notThere  = "not installed; install Claude Code, and log in once: claude auth login"
	install   = "install Claude Code, or name the program with its command"
	howToLog  = "claude auth login, or set ANTHROPIC_API_KEY"
	notStatus = "the output of claude auth status is unknown to cadre"
)

// Locate implements [agent.Locator].
func (a Agent) Locate(program string) error { return agent.Locate(program, a.program(), notThere) }

// Remedy implements [agent.Remedier].
func (Agent) Remedy(kind agent.ProblemKind) string { return agent.Remedy(kind, install, howToLog) }

// CheckLogin asks the program, which reads its own files and variables.
func (a Agent) CheckLogin(ctx context.Context, program, dir string, env []string) agent.Login {
	login := agent.Login{State: agent.LoginUnknown, Detail: notStatus, How: howToLog}
	out, _, ok := agent.Ask(ctx, dir, env, cmp.Or(program, a.program()), "auth", "status")
	if !ok {
		return login
	}
	var said struct {
		LoggedIn *bool  `json:"loggedIn"`
		Method   string `json:"authMethod"`
	}
	if at := strings.Index(out, "{"); at < 0 || json.NewDecoder(strings.NewReader(out[at:])).Decode(&said) != nil ||
		said.LoggedIn == nil {
		return login
	}
	login.State, login.Detail = agent.NotLoggedIn, ""
	if *said.LoggedIn {
		login.State, login.Detail = agent.LoggedIn, strings.ReplaceAll(said.Method, "_", " ")
	}
	return login
}
