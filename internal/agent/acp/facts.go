package acp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"cadre/internal/agent"
	"cadre/internal/team"
)

// midTurn is how a prompt gets to an agent that works.
type midTurn int

const (
	atTheEnd midTurn = iota // when its turn has ended, all that waits together
	overlap                 // as one more prompt, which the agent takes into the turn that runs
	byHook                  // by a command that the agent runs before every call of its model
)

// facts are what is particular to an agent.
type facts struct {
	command []string
	can     []string // for doctor
	missing string
	// install and howToLog are what a person does who has not the program, or is not logged in to
	// it.
	install, howToLog string
	login             func(env []string, dir string) (agent.LoginState, string) // nil where nobody knows

	midTurn midTurn
	memory  memory
	// modeless: what it does without asking cannot be changed.
	modeless bool
	// mode is the agent's name for the mode in which it does by itself what it may, and no more; ""
	// for the one that it begins in. What is gated needs a mode in which nothing that the user's
	// own settings allow is done without the gate.
	mode func(a agent.Access, leads bool) string
	// ungated is why no session can be gated here; "" when one can.
	ungated func() string
	model   func(model string) []string
	// ruled reports whether the user's own settings deny something or want it asked about, where
	// the agent does not say which one made it ask; nil for never.
	ruled func(env []string, dir string) bool
	// prepare gives the agent what it has to be told besides, in files below dir: more arguments
	// and variables. env is what its environment will be.
	prepare func(dir string, hook, env []string) (args, more []string, err error)
	// load makes a session ready to be loaded: its id for the protocol, and how long to wait
	// before. env is the agent's environment.
	load func(session string, env []string) (id string, wait time.Duration)
	// name is what the team knows the session by, for load.
	name func(id string) string
	// aside: it tells of its errors on standard error, by what prepare gave it.
	aside bool
	// noise is the beginning of texts that the agent says about itself, and not as the model.
	noise string
	// names are the names that Claude Code has for tools of the agent's own whose kind does not
	// tell.
	names map[string]string
	// mcp is the server and the tool that a title stands for, of a tool whose kind says nothing; ""
	// for what is none.
	mcp func(title string) (server, tool string)
}

// anyAgent is what holds for an agent that nothing more is known of.
var anyAgent = facts{
	can:      []string{"mail at the end of a turn", "permissions"},
	missing:  "not installed",
	modeless: true,
	mode:     func(agent.Access, bool) string { return "" },
	ungated:  func() string { return "" },
	load:     func(session string, _ []string) (string, time.Duration) { return session, 0 },
	name:     func(id string) string { return id },
	mcp: func(title string) (server, tool string) { // mcp__server__tool, server_tool, …
		rest, ok := strings.CutPrefix(strings.TrimLeft(strings.TrimPrefix(title, "mcp"), "_. "), agent.ToolServerName)
		if tool = strings.TrimLeft(rest, "_./: "); !ok || !slices.Contains(team.TeamTools, tool) {
			return "", ""
		}
		return agent.ToolServerName, tool
	},
}

var openCode = facts{
	command: []string{"opencode", "acp"},
	can:     []string{"mail while it works", "permissions", "resumes", "tokens and cost"},
	missing: "not installed; install opencode, and log in once with opencode auth login",

	install: "install opencode, or name the program with its command", howToLog: "opencode auth login",
	login: openCodeLogin,

	midTurn: overlap,
	memory:  atOnce,
	mode: func(a agent.Access, leads bool) string {
		switch {
		case a.Gated || !a.Writes:
			return openCodeGated
		case a.Mode == "plan":
			return "plan"
		case a.Mode == "bypassPermissions" &&
			!leads: // a lead may be gated in the middle of a turn, and a mode holds from the next prompt on
			return ""
		}
		return openCodeAsks
	},
	ungated: func() string { return "" },
	prepare: prepareOpenCode,
	aside:   true,
	ruled:   openCodeRuled,
	load:    anyAgent.load,
	name:    anyAgent.name,
	names: map[string]string{"todowrite": "TodoWrite", "todoread": "TodoRead", "list": "LS", "skill": "Skill",
		"websearch": "WebSearch", "task": "Task"},
	mcp: func(title string) (server, tool string) {
		server, tool, ok := strings.Cut(title, "_")
		if !ok || strings.ContainsAny(title, " /\\\n") {
			return "", ""
		}
		return server, tool
	},
}

// The modes that opencode gets from us. The user's own stay as they are, and are used where nothing
// has to be asked about.
const (
	openCodeAsks  = "cadre-asks"  // before it changes anything, and before the tools of MCP servers
	openCodeGated = "cadre-gated" // before everything, whatever the user's settings allow
)

// prepareOpenCode adds the modes, that a turn continues after a refusal, and the plugin that tells
// of errors, to what the environment has of the configuration. Of the rules of a mode the last that
// matches counts, and they come after the user's.
func prepareOpenCode(dir string, _, env []string) (args, more []string, err error) {
	const variable = "OPENCODE_CONFIG_CONTENT"
	config := map[string]any{}
	for _, v := range env {
		if text, ok := strings.CutPrefix(v, variable+"="); ok && strings.TrimSpace(text) != "" {
			if err := json.Unmarshal([]byte(text), &config); err != nil {
				return nil, nil, fmt.Errorf("what %s holds cannot be read, and the modes of cadre cannot be added "+
					"to it: %w", variable, err)
			}
		}
	}
	modes, _ := config["agent"].(map[string]any)
	if modes == nil {
		modes = map[string]any{}
	}
	modes[openCodeAsks] = json.RawMessage(
		`{"mode":"primary","description":"asks the team before it changes anything","permission":{"*_*":"ask","edit":"ask","bash":"ask","webfetch":"ask","task":"ask",` + openCodeNever + `}}`)
	modes[openCodeGated] = json.RawMessage(
		`{"mode":"primary","description":"asks the team before everything","permission":{"*":"ask",` +
			openCodeNever + `}}`)
	config["agent"] = modes
	// Else a refusal ends the turn, and its model never hears why.
	experimental, _ := config["experimental"].(map[string]any)
	if experimental == nil {
		experimental = map[string]any{}
	}
	if _, chosen := experimental["continue_loop_on_deny"]; !chosen {
		experimental["continue_loop_on_deny"] = true
	}
	config["experimental"] = experimental
	plugin, err := writeOpenCodePlugin(dir)
	if err != nil {
		return nil, nil, err
	}
	plugins, _ := config["plugin"].([]any)
	config["plugin"] = append(plugins, plugin)
	text, err := json.Marshal(config)
	return nil, []string{variable + "=" + string(text)}, err
}

// openCodeNever is what is asked about in neither mode: the team's tools, and what asks a person at
// a terminal.
const openCodeNever = `"question":"deny","plan_enter":"deny","plan_exit":"deny","` +
	agent.ToolServerName + `_*":"allow"`
