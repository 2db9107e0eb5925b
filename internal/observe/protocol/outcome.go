package protocol

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"cadre/internal/sys/lazyregexp"
)

// Outcome is the outcome of a call, read from its structured result if there is one, and otherwise
// from is_error and the text. A failure often has no is_error: "Task not found" is a normal answer.
type Outcome struct {
	Success   *bool         `json:"success"`
	Task      *ListedTask   `json:"task"`
	Tasks     []ListedTask  `json:"tasks"`
	TaskID    string        `json:"taskId"`
	Updated   []string      `json:"updatedFields"`
	Change    *statusChange `json:"statusChange"`
	TeamName  string        `json:"team_name"`
	Status    string        `json:"status"`
	Name      string        `json:"name"`
	AgentID   string        `json:"agent_id"`
	AgentType string        `json:"agent_type"`
	Model     string        `json:"model"`
	Color     string        `json:"color"`
	PlanMode  bool          `json:"plan_mode_required"`
	Request   string        `json:"request_id"`
	Target    string        `json:"target"`
	Recipient []string      `json:"recipients"`
	Routing   routing       `json:"routing"`
	Plan      string        `json:"plan"`
	PlanID    string        `json:"requestId"`
	Awaiting  bool          `json:"awaitingLeaderApproval"`

	OK         bool
	Structured bool // it was an object, not a text
	listed     bool // it has a complete list of tasks: tasks not on it do not exist
	Missing    bool // it says that the task does not exist
}

type statusChange struct{ From, To string }

type routing struct{ Sender, Target, Summary, Content string }

// ListedTask is a task in the results of TaskList, TaskGet and TaskCreate.
type ListedTask struct {
	ID          string   `json:"id"`
	Subject     string   `json:"subject"`
	Description string   `json:"description"`
	Status      string   `json:"status"`
	Owner       string   `json:"owner"`
	BlockedBy   []string `json:"blockedBy"`
	Blocks      []string `json:"blocks"`
}

// OutcomeOf reads a result. It calls isMember to recognise member names in an ambiguous text.
func OutcomeOf(tool string, r *Result, isMember func(string) bool) *Outcome {
	o := &Outcome{}
	switch {
	case isObject(r.S):
		o.read(r.S)
	case isObject([]byte(r.R)): // SendMessage and TeamCreate return their structured result also as text
		o.read([]byte(r.R))
	}
	switch {
	case tool == "TaskList" && !o.listed:
		o.Tasks = nil
		o.OK = !r.IsError && !isErrorText(r) && o.fromText(tool, r.R, isMember)
	case o.Success != nil:
		o.OK = *o.Success
	case o.Structured:
		o.OK = !r.IsError && !o.Missing
	default:
		o.OK = !r.IsError && !isErrorText(r) && o.fromText(tool, r.R, isMember)
	}
	return o
}

// Signed returns the teammate that made a call, and its team, as far as the result names them.
func (o *Outcome) Signed(tool string) (member, ofTeam string) {
	switch sender := o.Routing.Sender; {
	case !o.OK:
	case tool == "SendMessage" && sender != "" && sender != LeadName:
		return sender, ""
	case tool == "ExitPlanMode" && o.Awaiting:
		if parts := strings.Split(o.PlanID, "@"); len(parts) == 3 {
			return parts[1], parts[2]
		}
	}
	return "", ""
}

func isObject(data []byte) bool {
	data = bytes.TrimSpace(data)
	return len(data) > 1 && data[0] == '{' && data[len(data)-1] == '}'
}

func (o *Outcome) read(data []byte) {
	var keys map[string]json.RawMessage
	if json.Unmarshal(data, &keys) != nil || ReadJSON(data, o) != nil {
		*o = Outcome{}
		return
	}
	o.Structured = true
	o.Missing = string(keys["task"]) == "null"
	var tasks []json.RawMessage
	o.listed = json.Unmarshal(keys["tasks"], &tasks) == nil && tasks != nil &&
		!slices.ContainsFunc(o.Tasks, func(t ListedTask) bool { return TaskNumber(t.ID) == 0 })
}

// isErrorText reports whether the result of a call is an error message. The structured result of a
// failed call is a text.
func isErrorText(r *Result) bool {
	var s string
	if r.S != nil && json.Unmarshal(r.S, &s) == nil && (strings.HasPrefix(s, "Error:") ||
		strings.HasPrefix(s, "InputValidationError:")) {
		return true
	}
	return strings.HasPrefix(r.R, "<tool_use_error>") || strings.HasPrefix(r.R, "Error:") ||
		strings.HasPrefix(r.R, "InputValidationError:")
}

var (
	createdText  = lazyregexp.New(`^Task #(\d+) created successfully`)
	updatedText  = lazyregexp.New(`^Updated task #(\d+)`)
	listedText   = lazyregexp.New(`^#(\d+) \[(\w+)\] (.*)$`)
	blockedText  = lazyregexp.New(` \[blocked by ((?:#\d+(?:, )?)+)\]$`)
	ownerText    = lazyregexp.New(`^(.*) \(([^()]+)\)$`)
	gotText      = lazyregexp.New(`^Task #(\d+): (.*)\nStatus: (\w+)(?:\n|$)`)
	edgesText    = lazyregexp.New(`\n(Blocked by|Blocks): ((?:#\d+(?:, )?)+)$`)
	spawnedText  = lazyregexp.New(`(?m)^(agent_id|name|team_name): (.+)$`)
	requestText  = lazyregexp.New(`Request ID: ([^\s"]+)`)
	cleanedText  = lazyregexp.New(`^(Cleaned up directories|No team name found)`)
	messagedText = lazyregexp.New(`^(Message (sent|broadcast)|Shutdown |Plan )`)
)

// fromText reads fields that only the text has, and reports whether it says that the call
// succeeded.
func (o *Outcome) fromText(tool, text string, isMember func(string) bool) bool {
	switch tool {
	case "TaskCreate":
		if m := createdText().FindStringSubmatch(text); m != nil {
			o.Task = &ListedTask{ID: m[1]}
		}
		return o.Task != nil
	case "TaskUpdate":
		m := updatedText().FindStringSubmatch(text)
		return m != nil
	case "TaskList":
		if strings.TrimSpace(text) == "No tasks found" {
			return true
		}
		o.Tasks = tasksFromText(text, isMember)
		return len(o.Tasks) > 0
	case "TaskGet":
		o.Task = taskFromText(text)
		return o.Task != nil
	case "Task", "Agent":
		if !strings.HasPrefix(text, "Spawned successfully") {
			return false
		}
		o.Status = Spawned
		for _, m := range spawnedText().FindAllStringSubmatch(text, -1) {
			switch m[1] {
			case "agent_id":
				o.AgentID = m[2]
			case "name":
				o.Name = m[2]
			case "team_name":
				o.TeamName = m[2]
			}
		}
		return true
	case "TeamDelete":
		return cleanedText().MatchString(text)
	case "SendMessage":
		if m := requestText().FindStringSubmatch(text); m != nil {
			o.Request = m[1]
		}
		return messagedText().MatchString(text)
	}
	return false // texts of TeamCreate and ExitPlanMode have no relevant fields
}

func tasksFromText(text string, isMember func(string) bool) []ListedTask {
	var tasks []ListedTask
	for line := range strings.Lines(text) {
		m := listedText().FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil {
			continue
		}
		t := ListedTask{ID: m[1], Status: m[2], Subject: m[3]}
		if b := blockedText().FindStringSubmatch(t.Subject); b != nil {
			t.BlockedBy = numbers(b[1])
			t.Subject = strings.TrimSuffix(t.Subject, b[0])
		}
		// A subject may also end in parentheses.
		if own := ownerText().FindStringSubmatch(t.Subject); own != nil && isMember(own[2]) {
			t.Subject, t.Owner = own[1], own[2]
		}
		tasks = append(tasks, t)
	}
	return tasks
}

func taskFromText(text string) *ListedTask {
	m := gotText().FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	t := &ListedTask{ID: m[1], Subject: m[2], Status: m[3]}
	rest := "\n" + text[len(m[0]):]
	for e := edgesText().FindStringSubmatch(rest); e != nil; e = edgesText().FindStringSubmatch(rest) {
		if e[1] == "Blocks" {
			t.Blocks = numbers(e[2])
		} else {
			t.BlockedBy = numbers(e[2])
		}
		rest = strings.TrimSuffix(rest, e[0])
	}
	t.Description = strings.TrimPrefix(rest, "\nDescription: ")
	return t
}

// numbers parses a list such as "#1, #2".
func numbers(list string) []string {
	ids := strings.Split(strings.ReplaceAll(list, "#", ""), ", ")
	return slices.DeleteFunc(ids, func(id string) bool { return id == "" })
}
