package protocol

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
)

// Category is the part of a team that a tool concerns. It is also the type of the supplementary
// message.
type Category string

// Categories.
const (
	StateChange Category = "team_state_change"
	TaskUpdate  Category = "team_task_update"
	Message     Category = "team_message"
)

// tool describes a team tool and its required input fields.
type tool struct {
	category Category
	needs    []string
}

var tools = map[string]tool{
	"TeamCreate":   {StateChange, []string{"team_name"}},
	"TeamDelete":   {StateChange, nil},
	"Task":         {StateChange, []string{"name"}}, // first generation: a spawn if it has a name, otherwise a subagent
	"Agent":        {StateChange, []string{"name"}}, // its name in later versions
	"TaskCreate":   {TaskUpdate, []string{"subject"}},
	"TaskUpdate":   {TaskUpdate, []string{"taskId"}},
	"TaskList":     {TaskUpdate, nil},
	"TaskGet":      {TaskUpdate, []string{"taskId"}},
	"SendMessage":  {Message, nil}, // its requirements are in SendInput.Kind
	"ExitPlanMode": {"", nil},      // submits a teammate's plan, if its result says so
}

// notTeamTools lists tools that have names like team tools, but are not.
var notTeamTools = map[string]bool{"TaskOutput": true, "TaskStop": true, "TeammateIdle": true}

// Spawned is the status in the structured result of a spawn. Any other status is a subagent's.
const Spawned = "teammate_spawned"

// mayBeTeamTool reports whether a tool of that name may be a team tool.
func mayBeTeamTool(name []byte) bool {
	switch {
	case len(name) < 4:
		return false
	case name[0] == 'T':
		return bytes.HasPrefix(name, []byte("Task")) || bytes.HasPrefix(name, []byte("Team"))
	case name[0] == 'S':
		return string(name) == "SendMessage"
	case name[0] == 'A':
		return string(name) == "Agent"
	}
	return string(name) == "ExitPlanMode"
}

// CategoryOf returns the category of a tool, or "" for a tool that shows nothing about a team.
func CategoryOf(tool string) Category { return tools[tool].category }

// ToolUse is a call of a team tool, or its result.
type ToolUse struct {
	Call   Use
	Result *Result // nil for the call
}

// Recognise reports whether a tool use is a call of a team tool. If it is not but might have been,
// why gives the reason. A call with only a name is a spawn if there is a team. A call with a name
// and a team's name is a spawn if its result says so.
func Recognise(u Use, teamIsThere bool) (is bool, why string) {
	t, ok := tools[u.Name]
	if !ok {
		if mayBeTeamTool([]byte(u.Name)) && !notTeamTools[u.Name] {
			return false, fmt.Sprintf("unknown tool %s: the protocol is newer than this version of cadre", u.Name)
		}
		return false, ""
	}
	var in map[string]json.RawMessage
	if len(u.Input) > 0 && json.Unmarshal(u.Input, &in) != nil {
		return false, u.Name + " has an input that is not an object"
	}
	text := func(key string) string {
		var s string
		if json.Unmarshal(in[key], &s) != nil {
			return ""
		}
		return s
	}
	switch u.Name {
	case "Task":
		return text("name") != "" && (text("team_name") != "" || teamIsThere), ""
	case "Agent":
		return text("name") != "", ""
	case "SendMessage":
		var send SendInput
		if ReadJSON(u.Input, &send) != nil || send.Kind() == "" {
			return false, "SendMessage has neither a type nor a message"
		}
	}
	for _, key := range t.needs {
		if text(key) == "" {
			return false, fmt.Sprintf("%s without %s", u.Name, key)
		}
	}
	return true, ""
}

// SpawnInput is the input of Task and Agent.
type SpawnInput struct {
	Name        string `json:"name"`
	TeamName    string `json:"team_name"`
	Prompt      string `json:"prompt"`
	Description string `json:"description"`
	Type        string `json:"subagent_type"`
	Model       string `json:"model"`
	Mode        string `json:"mode"`
}

// TaskInput is the input of TaskCreate, TaskUpdate and TaskGet.
type TaskInput struct {
	TaskID       string                     `json:"taskId"`
	Subject      *string                    `json:"subject"`
	Description  *string                    `json:"description"`
	ActiveForm   *string                    `json:"activeForm"`
	Status       *string                    `json:"status"`
	Owner        *string                    `json:"owner"`
	AddBlocks    []string                   `json:"addBlocks"`
	AddBlockedBy []string                   `json:"addBlockedBy"`
	Metadata     map[string]json.RawMessage `json:"metadata"`
}

// SendInput is the input of SendMessage in all its forms. In the first generation the type is
// beside the recipient, later it is in the message.
type SendInput struct {
	Type      string      `json:"type"`
	Recipient string      `json:"recipient"`
	To        string      `json:"to"`
	Content   string      `json:"content"`
	Summary   string      `json:"summary"`
	Request   string      `json:"request_id"`
	Approve   *bool       `json:"approve"`
	Message   sendMessage `json:"message"`
}

type sendMessage struct {
	Type     string `json:"type"`
	Reason   string `json:"reason"`
	Request  string `json:"request_id"`
	Approve  *bool  `json:"approve"`
	Feedback string `json:"feedback"`
	text     *string
}

func (m *sendMessage) UnmarshalJSON(data []byte) error {
	if data = bytes.TrimSpace(data); len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, &m.text)
	}
	type plain sendMessage
	return ReadJSON(data, (*plain)(m))
}

// Kind returns the kind of message: message, broadcast, shutdown_request …; "" for an invalid
// input.
func (s *SendInput) Kind() string {
	switch {
	case s.Message.Type != "":
		return s.Message.Type
	case s.Type == "" && s.Message.text != nil && s.Addressee() == "*":
		return "broadcast"
	case s.Type != "":
		return s.Type
	case s.Message.text != nil && s.Addressee() != "":
		return "message"
	}
	return ""
}

// Addressee returns the name of the recipient.
func (s *SendInput) Addressee() string { return strings.TrimPrefix(cmp.Or(s.To, s.Recipient), "@") }

// Body returns the text, or the reason of an answer.
func (s *SendInput) Body() string {
	switch {
	case s.Message.text != nil:
		return *s.Message.text
	}
	return cmp.Or(s.Message.Reason, s.Message.Feedback, s.Content)
}

// RequestID returns the id of the request, for a request or an answer.
func (s *SendInput) RequestID() string { return cmp.Or(s.Message.Request, s.Request) }

// Approved reports whether an answer approves.
func (s *SendInput) Approved() bool {
	if s.Message.Approve != nil {
		return *s.Message.Approve
	}
	return s.Approve != nil && *s.Approve
}
