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
				" keep gemini from taking any other, without which nothing can be forbidden it; give the work to another agent"
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
		if rest, ok := strings.CutPrefix(title, "mcp_"); ok { // in what is told of a tool that failed at once
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

// geminiRules are the policy of its sessions. Its mode plan is the one in which nothing but looking
// is possible, whatever the user's settings allow elsewhere.
//
//go:embed gemini.toml
var geminiRules string

// geminiPolicies is where an administrator puts policies, besides which the program takes none from
// its command line at that rank.
func geminiPolicies() string {
	if runtime.GOOS == "darwin" {
		return "/Library/Application Support/GeminiCli/policies"
	}
	return "/etc/gemini-cli/policies"
}

// prepareGemini has the hook, the policy, and what keeps a chat so that it can be resumed. The
// program says nothing while it tries again after an error, so it does not try: the team does, and
// its lead knows. All that but the policy comes as settings in a home of the session's own.
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

// loadGemini makes a chat ready to be loaded. It is in a file that is named by the minute of its
// making, and what loads it makes an empty one, named by the minute of that. In the same minute
// both are one file, and what it had is gone. So the chat gets the name of the minute before; where
// it is not found the minute has to be over.
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

// antedate gives the chat that name, and reports whether it has it. What stands in the way is the
// chat, which had it already when it was loaded before.
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

// geminiHome is where a program with that environment keeps what it has.
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
