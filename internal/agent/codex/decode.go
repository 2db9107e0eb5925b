package codex

import (
	"encoding/json"
	"fmt"
	"strings"

	"cadre/internal/agent"
	"cadre/internal/team"
)

// What a notification says, as far as it is no [agent.Update] by itself.
type (
	turnStarted struct{ id string }
	turnEnded   struct {
		id  string
		end agent.TurnEnded
	}
	// received is the client's id of a message that is in the thread.
	received struct{ client string }
	// planned is a plan that the agent laid out.
	planned struct{ text string }
)

// item is a part of a thread.
type item struct {
	Type     string          `json:"type"`
	ID       string          `json:"id"`
	ClientID string          `json:"clientId"`
	Text     string          `json:"text"`
	Content  []textPart      `json:"content"`
	Command  string          `json:"command"`
	Output   string          `json:"aggregatedOutput"`
	ExitCode *int            `json:"exitCode"`
	Status   string          `json:"status"`
	Changes  json.RawMessage `json:"changes"`
	Server   string          `json:"server"`
	Tool     string          `json:"tool"`
	Args     json.RawMessage `json:"arguments"`
	Result   struct {
		Content []textPart `json:"content"`
	} `json:"result"`
	Error struct {
		Message string `json:"message"`
	} `json:"error"`
	ContentItems []textPart `json:"contentItems"`
	Success      *bool      `json:"success"`
}

type textPart struct {
	Text string `json:"text"`
}

func join(parts []textPart) string {
	var all []string
	for _, p := range parts {
		if p.Text != "" {
			all = append(all, p.Text)
		}
	}
	return strings.Join(all, "\n")
}

type turnError struct {
	Message string          `json:"message"`
	Details string          `json:"additionalDetails"`
	Info    json.RawMessage `json:"codexErrorInfo"`
}

type thread struct {
	ID     string `json:"id"`
	Status struct {
		Type string `json:"type"`
	} `json:"status"`
	Turns []struct {
		ID     string `json:"id"`
		Status string `json:"status"`
		Items  []item `json:"items"`
	} `json:"turns"`
}

// decoder turns the notifications of one thread into what they say.
type decoder struct {
	last string // the last text of the turn
}

func (d *decoder) decode(method string, params json.RawMessage) []any {
	var p struct {
		Turn struct {
			ID     string     `json:"id"`
			Status string     `json:"status"`
			Error  *turnError `json:"error"`
		} `json:"turn"`
		TurnID     string `json:"turnId"`
		Item       item   `json:"item"`
		TokenUsage struct {
			Last   breakdown `json:"last"`
			Window int64     `json:"modelContextWindow"`
		} `json:"tokenUsage"`
		Error     turnError `json:"error"`
		WillRetry bool      `json:"willRetry"`
	}
	if json.Unmarshal(params, &p) != nil {
		return nil
	}
	switch method {
	case "turn/started":
		d.last = ""
		return []any{turnStarted{p.Turn.ID}}
	case "turn/completed":
		end := agent.TurnEnded{Text: d.last, Interrupted: p.Turn.Status == "interrupted"}
		if p.Turn.Status == "failed" {
			e := turnError{Message: "the turn failed"}
			if p.Turn.Error != nil {
				e = *p.Turn.Error
			}
			end.Problem = &agent.Problem{Kind: kindOf(e), Text: wordsOf(e)}
			end.Text = ""
		}
		return []any{turnEnded{p.Turn.ID, end}}
	case "item/started":
		return started(&p.Item)
	case "item/completed":
		return d.completed(&p.Item)
	case "thread/tokenUsage/updated":
		return []any{usage(p.TokenUsage.Last, p.TokenUsage.Window)}
	case "thread/compacted":
		return []any{agent.Compacted{}}
	case "error":
		if p.WillRetry {
			return []any{agent.Retrying{Problem: agent.Problem{Kind: kindOf(p.Error), Text: wordsOf(p.Error)}}}
		}
	}
	return nil
}

type breakdown struct {
	Total      int64 `json:"totalTokens"`
	Input      int64 `json:"inputTokens"`
	Cached     int64 `json:"cachedInputTokens"`
	CacheWrite int64 `json:"cacheWriteInputTokens"`
	Output     int64 `json:"outputTokens"`
}

// usage is that of one call of the model. Its input has what came from the cache in it.
func usage(b breakdown, window int64) agent.Used {
	u := agent.Used{Usage: team.Usage{InputTokens: max(0, b.Input-b.Cached-b.CacheWrite), CacheReadTokens: b.Cached, CacheWriteTokens: b.CacheWrite, OutputTokens: b.Output}}
	if window > 0 {
		u.Context = int(min(100, b.Total*100/window))
	}
	return u
}

// toolOf is the kind of tool that the item is, by Claude Code's name for it, and its input.
func toolOf(i *item) (name, input string) {
	switch i.Type {
	case "commandExecution":
		text, _ := json.Marshal(object{"command": i.Command})
		return "Bash", string(text)
	case "fileChange":
		return "Edit", editOf(i.Changes)
	case "mcpToolCall":
		return "mcp__" + i.Server + "__" + i.Tool, string(i.Args)
	case "dynamicToolCall":
		return i.Tool, string(i.Args)
	}
	return "", ""
}

// editOf names the first file of a change where Claude Code's Edit has its file, and has the rest beside it.
func editOf(changes json.RawMessage) string {
	var list []struct {
		Path string `json:"path"`
	}
	in := object{"changes": changes}
	if json.Unmarshal(changes, &list) == nil && len(list) > 0 {
		in["file_path"] = list[0].Path
	}
	text, err := json.Marshal(in)
	if err != nil {
		return "{}"
	}
	return string(text)
}

func started(i *item) []any {
	if name, input := toolOf(i); name != "" {
		return []any{agent.ToolStarted{ID: i.ID, Tool: name, Input: input}}
	}
	return nil
}

func (d *decoder) completed(i *item) []any {
	switch i.Type {
	case "userMessage":
		return []any{received{i.ClientID}}
	case "agentMessage":
		if strings.TrimSpace(i.Text) == "" {
			return nil
		}
		d.last = i.Text
		return []any{agent.Text{Text: i.Text}}
	case "plan":
		return []any{planned{i.Text}}
	case "contextCompaction":
		return []any{agent.Compacted{}}
	}
	if name, _ := toolOf(i); name == "" {
		return nil
	}
	done := agent.ToolFinished{ID: i.ID, Output: outputOf(i), Failed: i.Status == "failed" || i.Status == "declined" || i.ExitCode != nil && *i.ExitCode != 0 || i.Success != nil && !*i.Success}
	return []any{done}
}

func outputOf(i *item) string {
	for _, text := range []string{i.Output, join(i.Result.Content), join(i.ContentItems), i.Error.Message} {
		if text != "" {
			return text
		}
	}
	return ""
}

func wordsOf(e turnError) string {
	if e.Details != "" && !strings.Contains(e.Message, e.Details) {
		return e.Message + ": " + e.Details
	}
	return e.Message
}

// kindOf tells what helps from the program's word for the error, and the HTTP status where it has one.
func kindOf(e turnError) agent.ProblemKind {
	word, status := "", 0
	if json.Unmarshal(e.Info, &word) != nil {
		var wrapped map[string]struct {
			Status int `json:"httpStatusCode"`
		}
		if json.Unmarshal(e.Info, &wrapped) == nil {
			for w, v := range wrapped {
				word, status = w, v.Status
			}
		}
	}
	text := strings.ToLower(wordsOf(e))
	switch {
	case word == "contextWindowExceeded":
		return agent.ProblemContext
	case word == "unauthorized", status == 401, status == 403, strings.Contains(text, "401"):
		return agent.ProblemLogin
	case word == "usageLimitExceeded", word == "rateLimitExceeded", word == "serverOverloaded", status == 429, status == 503, strings.Contains(text, "429"):
		return agent.ProblemLimit
	}
	return agent.ProblemModel
}

// told is what was said to the agent in the thread, by its user and by its tools.
func (t *thread) told() (texts []string) {
	for _, turn := range t.Turns {
		for i := range turn.Items {
			switch it := &turn.Items[i]; it.Type {
			case "userMessage":
				texts = append(texts, join(it.Content))
			case "dynamicToolCall", "mcpToolCall":
				texts = append(texts, outputOf(it))
			}
		}
	}
	return texts
}

// has reports whether a message with that client's id is in the thread.
func (t *thread) has(client string) bool {
	for _, turn := range t.Turns {
		for _, i := range turn.Items {
			if i.Type == "userMessage" && i.ClientID == client {
				return true
			}
		}
	}
	return false
}

// rpcError is a refusal of the program.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *rpcError) Error() string { return fmt.Sprintf("codex refused: %s", e.Message) }
