package acp

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cadre/internal/agent"
)

// midTurn is how a prompt gets to an agent that works.
type midTurn int

const (
	atTheEnd midTurn = iota // when its turn has ended, all that waits together
	overlap                 // as one more prompt, which the agent takes into the turn that runs
	byHook                  // by a command that the agent runs before every call of its model
)

// unapproved stands for the mode of a session whose plan is not approved: it may change nothing.
const unapproved = "unapproved"

// facts are what is particular to an agent.
type facts struct {
	command []string
	can     []string // for doctor
	missing string

	midTurn midTurn
	modes   map[string]string // the agent's name for a permission mode of the team, and for unapproved
	model   func(model string) []string
	// prepare gives the agent what it has to be told besides, in files below dir: more arguments and variables.
	prepare func(dir string, hook []string) (args, env []string, err error)
	// load is the id for the protocol, and how long to wait before it may be loaded.
	load func(session string) (id string, wait time.Duration)
	// name is what the team knows the session by, for load.
	name func(id string) string
	// noise is the beginning of texts that the agent says about itself, and not as the model.
	noise string
	// teamTool is the name of one of the team's tools in a title of the agent's; "" for what is none.
	teamTool func(title string) string
}

// anyAgent is what holds for an agent that nothing more is known of.
var anyAgent = facts{
	can:     []string{"mail at the end of a turn", "permissions"},
	missing: "not installed",
	modes:   map[string]string{},
	load:    func(session string) (string, time.Duration) { return session, 0 },
	name:    func(id string) string { return id },
	teamTool: func(title string) string {
		if _, rest, ok := strings.Cut(title, agent.ToolServerName+"_"); ok {
			return strings.Trim(rest, "_ ")
		}
		return ""
	},
}

var gemini = facts{
	command: []string{"gemini", "--acp"},
	can:     []string{"mail while it works", "permissions", "plan mode", "resumes with care", "tokens"},
	missing: "not installed; install Gemini CLI, and log in once by starting gemini",
	midTurn: byHook,
	modes: map[string]string{"default": "default", "dontAsk": "default", "acceptEdits": "autoEdit", "auto": "autoEdit", "bypassPermissions": "yolo", "plan": "plan",
		unapproved: "default"}, // its plan mode lets no MCP server be used; in this one it asks before everything, and is refused
	model:   func(model string) []string { return []string{"-m", model} },
	prepare: prepareGemini,
	load: func(session string) (string, time.Duration) {
		// A chat is in a file that is named by the minute; one that is loaded in the minute of its making is overwritten by its empty self.
		id, stamp, ok := strings.Cut(session, "#")
		var minute int64
		if _, err := fmt.Sscan(stamp, &minute); !ok || err != nil {
			return session, 0
		}
		return id, max(0, time.Until(time.Unix((minute+1)*60, 0))+200*time.Millisecond)
	},
	name:  func(id string) string { return fmt.Sprintf("%s#%d", id, time.Now().Unix()/60) },
	noise: "[MODE_UPDATE]",
	teamTool: func(title string) string {
		// "TaskList (cadre MCP Server)", and in its results mcp_cadre_TaskList
		if rest, ok := strings.CutPrefix(title, "mcp_"+agent.ToolServerName+"_"); ok {
			return rest
		}
		if name, server, ok := strings.Cut(title, " ("); ok && strings.HasPrefix(server, agent.ToolServerName+" MCP Server)") {
			return name
		}
		return ""
	},
}

// prepareGemini has the hook, and what keeps a chat so that it can be resumed. It says
// nothing while it tries again after an error, so it does not try: the team does, and its lead knows. All that comes as the defaults of the system, which the
// user's own settings stand above. The program passes over such a file in a folder that others may write to.
func prepareGemini(dir string, hook []string) (args, env []string, err error) {
	command := make([]string, len(hook))
	for i, word := range hook {
		command[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	settings := map[string]any{
		"general":     map[string]any{"sessionRetention": map[string]any{"enabled": false}, "maxAttempts": 1},
		"hooksConfig": map[string]any{"enabled": true},
		"hooks": map[string]any{"BeforeModel": []any{map[string]any{"hooks": []any{
			map[string]any{"type": "command", "name": "cadre", "command": strings.Join(command, " ")}}}}},
	}
	text, err := json.Marshal(settings)
	if err != nil {
		return nil, nil, err
	}
	defaults := filepath.Join(dir, "defaults.json")
	if err := os.WriteFile(defaults, text, 0o600); err != nil {
		return nil, nil, err
	}
	return nil, []string{"GEMINI_CLI_SYSTEM_DEFAULTS_PATH=" + defaults, "GEMINI_CLI_NO_RELAUNCH=true"}, nil
}

var openCode = facts{
	command: []string{"opencode", "acp"},
	can:     []string{"mail while it works", "permissions", "resumes", "tokens"},
	missing: "not installed; install opencode, and log in once with opencode auth login",
	midTurn: overlap,
	modes:   map[string]string{"plan": "plan", unapproved: "plan", "default": "build", "acceptEdits": "build", "auto": "build", "dontAsk": "build", "bypassPermissions": "build"},
	prepare: func(string, []string) ([]string, []string, error) {
		// It asks before everything that changes something; what the team's rules settle, the driver is told at once.
		return nil, []string{`OPENCODE_PERMISSION={"edit":"ask","bash":"ask","webfetch":"ask","` + agent.ToolServerName + `_*":"allow"}`}, nil
	},
	load: anyAgent.load,
	name: anyAgent.name,
	teamTool: func(title string) string {
		if rest, ok := strings.CutPrefix(title, agent.ToolServerName+"_"); ok {
			return rest
		}
		return ""
	},
}
