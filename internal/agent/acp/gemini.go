package acp

import (
	_ "embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"cadre/internal/agent"
	"cadre/internal/team"
)

var gemini = facts{
	command: []string{"gemini", "--acp"},
	can:     []string{"mail while it works", "permissions", "plan mode", "resumes with care", "tokens"},
	missing: "not installed; install Gemini CLI, and log in once by starting gemini",

	install: "install Gemini CLI, or name the program with its command", howToLog: "start gemini and choose how with " +
		"/auth, or set GEMINI_API_KEY", login: geminiLogin,

	midTurn: byHook,
	memory:  byTool,
	mode: func(a agent.Access, _ bool) string {
		if a.Gated || !a.Writes {
			return "plan"
		}
		return map[string]string{"default": "default", "dontAsk": "default", "acceptEdits": "autoEdit",
			"auto": "autoEdit", "bypassPermissions": "yolo", "plan": "plan"}[a.Mode]
	},
	ungated: func() string {
		if found, _ := filepath.Glob(filepath.Join(geminiPolicies(), "*.toml")); len(found) > 0 {
			return "the policies of this machine in " + geminiPolicies() +
				" keep gemini from taking another policy, and without one cadre can forbid it nothing; " +
				"give the work to another agent"
		}
		return ""
	},
	model:   func(model string) []string { return []string{"-m", model} },
	prepare: prepareGemini,
	ruled:   geminiRuled,
	load:    loadGemini,
	name:    func(id string) string { return fmt.Sprintf("%s#%d", id, time.Now().Unix()/60) },
	noise:   "[MODE_UPDATE]",
	names:   map[string]string{"WriteTodos": "TodoWrite"},
	mcp: func(title string) (server, tool string) {
		if rest, ok := strings.CutPrefix(title, "mcp_"); ok { // in the report of a tool that failed at once
			server, tool, _ = strings.Cut(rest, "_")
			return server, tool
		}
		tool, rest, _ := strings.Cut(title, " (")
		server, ok := strings.CutSuffix(rest, " MCP Server)")
		if !ok || strings.ContainsAny(server+tool, " ()") {
			return "", ""
		}
		return server, tool
	},
}

// geminiRules are the policy of its sessions. In its mode plan only reading is possible, whatever
// the user's settings allow in other modes.
//
//go:embed gemini.toml
var geminiRules string

// geminiPolicies returns where an administrator puts policies. If there are any, the program
// accepts no policy of that rank from its command line.
func geminiPolicies() string {
	if runtime.GOOS == "darwin" {
		return "/Library/Application Support/GeminiCli/policies"
	}
	return "/etc/gemini-cli/policies"
}

// prepareGemini sets up the hook, the policy, and the settings that keep a chat so that it can be
// resumed. The program prints nothing while it tries again after an error, so its retries are off:
// the team tries again, and its lead knows. Everything except the policy is in settings, in a home
// of the session's own.
func prepareGemini(dir string, hook, env []string) (args, more []string, err error) {
	command := make([]string, len(hook))
	for i, word := range hook {
		command[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	home, err := ownGeminiHome(dir, geminiHome(env), map[string]any{
		"general":     map[string]any{"sessionRetention": map[string]any{"enabled": false}, "maxAttempts": 1},
		"hooksConfig": map[string]any{"enabled": true},
		"hooks": map[string]any{"BeforeModel": []any{map[string]any{"hooks": []any{
			map[string]any{"type": "command", "name": "cadre", "command": strings.Join(command, " ")}}}}},
	})
	if err != nil {
		return nil, nil, err
	}
	var tools []string
	for _, name := range team.TeamTools {
		tools = append(tools, `"mcp_`+agent.ToolServerName+`_`+name+`"`)
	}
	rules := filepath.Join(dir, "policy.toml")
	text := strings.Replace(geminiRules, `"mcp_cadre_*"`, strings.Join(tools, ", "), 1)
	if err := os.WriteFile(rules, []byte(text), 0o600); err != nil {
		return nil, nil, err
	}
	return []string{"--admin-policy", rules}, []string{"GEMINI_CLI_HOME=" + home, "GEMINI_CLI_NO_RELAUNCH=true"}, nil
}

// loadGemini prepares a chat for loading. A chat's file is named after the minute of its creation.
// Loading it creates an empty chat, named after the minute of the load. In the same minute, both
// are one file, and the old content is lost. So the chat is renamed to the minute before. If it is
// not found, the minute has to be over first.
func loadGemini(session string, env []string) (id string, wait time.Duration) {
	id, stamp, ok := strings.Cut(session, "#")
	var minute int64
	if _, err := fmt.Sscan(stamp, &minute); !ok || err != nil {
		return session, 0
	}
	made := time.Unix(minute*60, 0).UTC()
	if wait = time.Until(made.Add(time.Minute)) + 200*time.Millisecond; wait < 0 ||
		antedate(geminiHome(env), id, made) {
		return id, 0
	}
	return id, wait
}

// antedate renames the chat, and reports whether it has that name. If a file of that name exists,
// it is the chat itself, renamed by an earlier load.
func antedate(home, id string, made time.Time) bool {
	name := func(at time.Time) string {
		return "session-" + at.Format("2006-01-02T15-04") + "-" + id[:min(8, len(id))] + ".jsonl"
	}
	found, _ := fs.Glob(os.DirFS(home), ".gemini/tmp/*/chats/"+name(made))
	for _, chat := range found {
		chat = filepath.Join(home, chat)
		before := filepath.Join(filepath.Dir(chat), name(made.Add(-time.Minute)))
		if _, err := os.Lstat(before); err == nil {
			continue
		}
		if err := os.Rename(chat, before); err != nil {
			return false
		}
	}
	return len(found) > 0
}

// geminiHome returns the program's folder in that environment.
func geminiHome(env []string) (home string) {
	for _, variable := range []string{"HOME", "GEMINI_CLI_HOME"} {
		for _, v := range env {
			if value, ok := strings.CutPrefix(v, variable+"="); ok && value != "" {
				home = value
			}
		}
	}
	return home
}
