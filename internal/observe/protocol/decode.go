package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"time"

	"cadre/internal/team"
)

// Line is a decoded line. The same struct is used for stream-json (snake case), transcripts (camel
// case) and the Agent SDK's objects.
type Line struct {
	Type, Subtype string
	UUID          string
	Session       string
	Dir           string
	At            team.Time // 0 if the line has no time
	Sub           bool      // from a plain subagent, which is not a team member
	Side          bool      // from a transcript beside the session's own: a subagent's or an in-process teammate's
	Agent         string    // id of the agent that writes a side transcript
	Parent        string    // uuid of the previous line, in transcripts
	Team, Member  string    // in transcripts of teammates with a process of their own
	ModelMessage  string    // id of the model's message that contains the line
	Uses          []Use
	Results       []Result
	Text          string // text of a user line
	Totals        *team.Usage
	Task          struct{ Use, Status, Summary string } // of a task_notification
	Agents        []string                              // listed in an init
}

// Use is one tool_use block.
type Use struct {
	ID, Name string
	Input    json.RawMessage
}

// Result is one tool_result block, with the structured result of its line.
type Result struct {
	ID      string          `json:"id"`
	IsError bool            `json:"isError,omitempty"`
	S       json.RawMessage `json:"s,omitempty"` // tool_use_result, or nil
	R       string          `json:"r,omitempty"` // the text for the model
}

// wire is the JSON structure of a line.
type wire struct {
	Type            string          `json:"type"`
	Subtype         string          `json:"subtype"`
	UUID            string          `json:"uuid"`
	SessionID       string          `json:"session_id"`
	SessionId       string          `json:"sessionId"`
	Timestamp       string          `json:"timestamp"`
	Cwd             string          `json:"cwd"`
	ParentToolUseID string          `json:"parent_tool_use_id"`
	IsSidechain     bool            `json:"isSidechain"`
	AgentId         string          `json:"agentId"`
	ParentUuid      string          `json:"parentUuid"`
	TeamName        string          `json:"teamName"`
	AgentName       string          `json:"agentName"`
	Message         wireMessage     `json:"message"`
	ToolUseResult   json.RawMessage `json:"tool_use_result"`
	ToolUseResult2  json.RawMessage `json:"toolUseResult"`
	TotalCostUSD    *float64        `json:"total_cost_usd"`
	TotalCostUSD2   *float64        `json:"totalCostUSD"`
	ModelUsage      map[string]struct {
		InputTokens              int64   `json:"inputTokens"`
		OutputTokens             int64   `json:"outputTokens"`
		CacheReadInputTokens     int64   `json:"cacheReadInputTokens"`
		CacheCreationInputTokens int64   `json:"cacheCreationInputTokens"`
		CostUSD                  float64 `json:"costUSD"`
	} `json:"modelUsage"`
	ToolUseID string `json:"tool_use_id"`
	Status    string `json:"status"`
	Summary   string `json:"summary"`
	Agents    []any  `json:"agents"`
}

type wireMessage struct {
	ID      string  `json:"id"`
	Content content `json:"content"`
}

// content is a list of blocks, or a single text.
type content []block

type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   content         `json:"content"`
	IsError   bool            `json:"is_error"`
}

func (c *content) UnmarshalJSON(data []byte) error {
	if data = bytes.TrimSpace(data); len(data) > 0 && data[0] == '"' {
		var text string
		err := json.Unmarshal(data, &text)
		*c = content{{Type: "text", Text: text}}
		return err
	}
	return ReadJSON(data, (*[]block)(c))
}

func (c content) text() string {
	var parts []string
	for _, b := range c {
		if b.Type == "text" {
			parts = append(parts, b.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// ReadJSON decodes JSON. It ignores fields of an unexpected type, and decodes the rest.
func ReadJSON(data []byte, into any) error {
	err := json.Unmarshal(data, into)
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return nil
	}
	return err
}

// Decode decodes a line.
func Decode(line []byte) (*Line, error) {
	var w wire
	if err := ReadJSON(line, &w); err != nil {
		return nil, err
	}
	m := &Line{Type: w.Type, Subtype: w.Subtype, UUID: w.UUID, Session: w.SessionID, Dir: w.Cwd, Side: w.IsSidechain,
		Agent: w.AgentId, Parent: w.ParentUuid,
		Team: w.TeamName, Member: w.AgentName, ModelMessage: w.Message.ID, Sub: w.ParentToolUseID != "",
		At: ParseTime(w.Timestamp)}
	if m.Session == "" {
		m.Session = w.SessionId
	}
	if m.Type == "cost-state" || m.Type == "result" {
		m.Totals = w.totals()
	}
	switch m.Type {
	case "assistant":
		for _, b := range w.Message.Content {
			if b.Type == "tool_use" && b.ID != "" {
				m.Uses = append(m.Uses, Use{b.ID, b.Name, b.Input})
			}
		}
	case "user":
		m.Text = w.Message.Content.text()
		s := w.ToolUseResult
		if s == nil {
			s = w.ToolUseResult2
		}
		for _, b := range w.Message.Content {
			if b.Type == "tool_result" && b.ToolUseID != "" {
				m.Results = append(m.Results, Result{ID: b.ToolUseID, IsError: b.IsError, R: b.Content.text()})
			}
		}
		if len(m.Results) == 1 { // with several results, its owner is unknown
			m.Results[0].S = s
		}
	case "system":
		m.Task.Use, m.Task.Status, m.Task.Summary = w.ToolUseID, w.Status, w.Summary
		for _, a := range w.Agents {
			switch a := a.(type) {
			case string:
				m.Agents = append(m.Agents, a)
			case map[string]any:
				if name, ok := a["name"].(string); ok {
					m.Agents = append(m.Agents, name)
				}
			}
		}
	}
	return m, nil
}

// totals returns what the session has used since it began, by its own figures.
func (w *wire) totals() *team.Usage {
	cost := w.TotalCostUSD
	if cost == nil {
		cost = w.TotalCostUSD2
	}
	if cost == nil && w.ModelUsage == nil {
		return nil
	}
	var u team.Usage
	for _, m := range w.ModelUsage {
		u.InputTokens += m.InputTokens
		u.OutputTokens += m.OutputTokens
		u.CacheReadTokens += m.CacheReadInputTokens
		u.CacheWriteTokens += m.CacheCreationInputTokens
	}
	if cost != nil && *cost > 0 && *cost < 1e9 {
		u.CostMicroUSD = int64(math.Round(*cost * 1e6))
	}
	return &u
}

// TimeOf returns the time of a line without decoding it, or 0.
func TimeOf(line []byte) team.Time {
	depth := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			end := i + 1 + quoted(line[i+1:])
			if depth == 1 && string(line[i+1:min(end, len(line))]) == "timestamp" {
				if value, _ := text(line[min(end+1, len(line)):], nil); len(value) > 0 {
					return ParseTime(string(value))
				}
			}
			i = end
		}
	}
	return 0
}

// quoted returns the length of the rest of a JSON string.
func quoted(in []byte) int {
	for n := 0; ; {
		end := bytes.IndexByte(in[n:], '"')
		if end < 0 {
			return len(in)
		}
		n += end
		before := n
		for before > 0 && in[before-1] == '\\' {
			before--
		}
		if (n-before)%2 == 0 {
			return n
		}
		n++
	}
}

// ParseTime parses a time in RFC 3339 format. It returns 0 for any other text.
func ParseTime(s string) team.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return 0
	}
	return team.Time(t.UnixMilli())
}
