package headless

import (
	"encoding/json"
	"strings"

	"cadre/internal/agent"
	"cadre/internal/team"
)

// Gemini reads gemini --output-format stream-json. The zero Gemini is ready for use.
type Gemini struct{ persistent[geminiState] }

// geminiState is the saved state of the session.
type geminiState struct {
	Session string `json:"session,omitempty"`
	Turn    turn   `json:"turn"`
	Text    string `json:"text,omitempty"` // the text in progress
}

// Line implements [agent.Reader].
func (g *Gemini) Line(line []byte) []agent.Update {
	var m struct {
		Type    string         `json:"type"`
		Session string         `json:"session_id"`
		Role    string         `json:"role"`
		Content string         `json:"content"`
		Tool    string         `json:"tool_name"`
		ID      string         `json:"tool_id"`
		Input   map[string]any `json:"parameters"`
		Output  string         `json:"output"`
		Status  string         `json:"status"`
		Error   struct {
			Message string `json:"message"`
		} `json:"error"`
		Stats struct {
			Input  int64 `json:"input_tokens"` // including tokens from the cache
			Cached int64 `json:"cached"`
			Output int64 `json:"output_tokens"`
		} `json:"stats"`
	}
	if agent.Parse(line, &m) != nil {
		return nil
	}
	t := &g.state.Turn
	switch m.Type {
	case "init":
		if m.Session == "" {
			return nil
		}
		same := m.Session == g.state.Session
		g.state = geminiState{Session: m.Session}
		return []agent.Update{agent.Started{Session: m.Session, Resumed: same}}
	case "message":
		if m.Role == "assistant" {
			g.state.Text += m.Content
		}
		return t.begin()
	case "tool_use":
		name, input := claudeTool(m.Tool, m.Input, geminiTools)
		return append(g.flush(), t.tool(m.ID, name, input)...)
	case "tool_result":
		return append(g.flush(), t.done(m.ID, m.Status == "error", m.Output)...)
	case "result":
		said := append(g.flush(), used(team.Usage{InputTokens: max(0, m.Stats.Input-m.Stats.Cached),
			CacheReadTokens: max(0, m.Stats.Cached), OutputTokens: max(0, m.Stats.Output)})...)
		if m.Status == "error" {
			return append(said, t.end(problem(parseError(m.Error.Message)))...)
		}
		return append(said, t.end(nil)...)
	}
	return nil
}

// flush ends the text in progress.
func (g *Gemini) flush() []agent.Update {
	text := g.state.Text
	g.state.Text = ""
	return g.state.Turn.text(text)
}

// parseError returns the status and the text of the JSON that gemini puts into error messages.
func parseError(words string) (status int, text string) {
	var said struct {
		Error struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	inner := strings.TrimSuffix(strings.TrimPrefix(words, "[API Error: "), "]")
	if json.Unmarshal([]byte(inner), &said) != nil || said.Error.Message == "" {
		return 0, inner
	}
	return said.Error.Code, said.Error.Message
}

// geminiTools maps gemini's tools to Claude Code's names for their kinds.
var geminiTools = map[string]string{
	"run_shell_command": "Bash", "write_file": "Write", "replace": "Edit", "read_file": "Read",
	"read_many_files": "Read", "list_directory": "LS", "glob": "Glob", "grep_search": "Grep",
	"search_file_content": "Grep", "web_fetch": "WebFetch", "google_web_search": "WebSearch",
	"write_todos": "TodoWrite",
}
