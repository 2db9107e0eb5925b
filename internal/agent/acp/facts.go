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

// midTurn says how a prompt reaches a working agent.
type midTurn int

const (
	atTheEnd midTurn = iota // all together, when the turn has ended
	overlap                 // as another prompt, which the agent takes into the turn in progress
	byHook                  // through a command that the agent runs before every call of its model
)

// facts are the peculiarities of an agent.
type facts struct {
	command []string
	can     []string // for doctor
	missing string
	// install and howToLog say what to do if the program is not installed, or not logged in.
	install, howToLog string
	login             func(env []string, dir string) (agent.LoginState, string) // nil if unknown

	midTurn midTurn
	memory  memory
	// modeless says that the agent has no modes: what it does without asking cannot be changed.
	modeless bool
	// mode returns the agent's name for the mode in which it does by itself exactly what it may; ""
	// for its initial mode. While the gate applies, this has to be a mode in which nothing that the
	// user's own settings allow runs without the gate.
	mode func(a agent.Access, leads bool) string
	// ungated says why the gate cannot be applied here; "" if it can.
	ungated func() string
	model   func(model string) []string
	// ruled reports whether the user's own settings deny something or require a question, for an
	// agent that does not say which setting made it ask; nil for never.
	ruled func(env []string, dir string) bool
	// prepare passes the agent's other settings through files below dir, arguments and variables.
	// env is the agent's environment.
	prepare func(dir string, hook, env []string) (args, more []string, err error)
	// load prepares a session for loading. It returns the session's id in the protocol, and how
	// long to wait before. env is the agent's environment.
	load func(session string, env []string) (id string, wait time.Duration)
	// name returns the team's name for the session, for load.
	name func(id string) string
	// aside says that it reports errors on standard error, by means of prepare.
	aside bool
	// noise is the beginning of texts in which the agent speaks about itself rather than for the
	// model.
	noise string
	// names maps the agent's own tools to Claude Code's names, if their kind does not identify
	// them.
	names map[string]string
	// mcp returns the server and the tool that a title stands for, for a tool whose kind says
	// nothing; "" if it is not an MCP tool.
	mcp func(title string) (server, tool string)
}

// anyAgent describes an unknown agent.
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
			!leads: // the gate may apply to a lead in the middle of a turn, and a mode applies from the next prompt on
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

// These are the modes that cadre adds to opencode. The user's own modes stay unchanged, and are
// used if no question is needed.
const (
	openCodeAsks  = "cadre-asks"  // before changes, and before the tools of MCP servers
	openCodeGated = "cadre-gated" // before everything, whatever the user's settings allow
)

// prepareOpenCode extends the configuration in the environment: with the modes, with the setting
// that a turn continues after a denial, and with the plugin that reports errors. In a mode, the
// last matching rule applies, and these rules come after the user's.
func prepareOpenCode(dir string, _, env []string) (args, more []string, err error) {
	const variable = "OPENCODE_CONFIG_CONTENT"
	config := map[string]any{}
	for _, v := range env {
		if text, ok := strings.CutPrefix(v, variable+"="); ok && strings.TrimSpace(text) != "" {
			if err := json.Unmarshal([]byte(text), &config); err != nil {
				return nil, nil, fmt.Errorf("the value of %s cannot be read, so the modes of cadre cannot be added "+
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
	// Otherwise a denial ends the turn, and its model never learns why.
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

// openCodeNever are the rules in both modes for tools without a question: the team's tools are
// allowed, and tools that ask a person at a terminal are denied.
const openCodeNever = `"question":"deny","plan_enter":"deny","plan_exit":"deny","` +
	agent.ToolServerName + `_*":"allow"`
