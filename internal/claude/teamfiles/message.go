package teamfiles

import (
	"encoding/json"
	"strings"
)

// Structured is a message for the program and not for its model: JSON in the text of an entry, with
// a type.
type Structured interface{ kind() string }

// The structured messages. Times have the format of [Stamp].
type (
	// Idle says that a member's turn has ended.
	Idle struct {
		From          string `json:"from"`
		Timestamp     string `json:"timestamp"`
		Reason        string `json:"idleReason,omitempty"` // available, interrupted or failed
		Summary       string `json:"summary,omitempty"`    // of its last message to a colleague: [to bob] words
		CompletedTask string `json:"completedTaskId,omitempty"`
		Completed     string `json:"completedStatus,omitempty"` // resolved, blocked or failed
		Failure       string `json:"failureReason,omitempty"`
		Result        string `json:"result,omitempty"` // the last text of the turn, since 2.1.329
	}
	// Assignment says that a task was assigned to the recipient.
	Assignment struct {
		TaskID      string `json:"taskId"`
		Subject     string `json:"subject"`
		Description string `json:"description"`
		AssignedBy  string `json:"assignedBy"`
		Timestamp   string `json:"timestamp"`
	}
	// ShutdownRequest asks a teammate to end.
	ShutdownRequest struct {
		RequestID string `json:"requestId"`
		From      string `json:"from"`
		Reason    string `json:"reason,omitempty"`
		Timestamp string `json:"timestamp"`
	}
	// ShutdownApproved says that the teammate ends; the lead then closes its pane.
	ShutdownApproved struct {
		RequestID string `json:"requestId"`
		From      string `json:"from"`
		Timestamp string `json:"timestamp"`
		PaneID    string `json:"paneId,omitempty"`
		Backend   string `json:"backendType,omitempty"`
	}
	// ShutdownRejected says that the teammate continues.
	ShutdownRejected struct {
		RequestID string `json:"requestId"`
		From      string `json:"from"`
		Reason    string `json:"reason"`
		Timestamp string `json:"timestamp"`
	}
	// PlanRequest submits a plan to the lead.
	PlanRequest struct {
		From      string `json:"from"`
		Timestamp string `json:"timestamp"`
		Path      string `json:"planFilePath"`
		Plan      string `json:"planContent"`
		RequestID string `json:"requestId"`
	}
	// PlanResponse answers a PlanRequest.
	PlanResponse struct {
		RequestID string `json:"requestId"`
		Approved  bool   `json:"approved"`
		Feedback  string `json:"feedback,omitempty"`
		Timestamp string `json:"timestamp"`
		Mode      string `json:"permissionMode,omitempty"`
	}
	// PermissionRequest asks the person at the lead for permission to use a tool.
	PermissionRequest struct {
		RequestID   string          `json:"request_id"`
		Agent       string          `json:"agent_id"`
		Tool        string          `json:"tool_name"`
		ToolUseID   string          `json:"tool_use_id"`
		Description string          `json:"description"`
		Input       json.RawMessage `json:"input"`
		Suggestions json.RawMessage `json:"permission_suggestions"`
	}
	// PermissionResponse answers a PermissionRequest. Subtype is success, or error with the reason.
	PermissionResponse struct {
		RequestID string            `json:"request_id"`
		Subtype   string            `json:"subtype"`
		Error     string            `json:"error,omitempty"`
		Response  *PermissionAnswer `json:"response,omitempty"`
	}
	// PermissionAnswer accompanies a granted permission.
	PermissionAnswer struct {
		UpdatedInput json.RawMessage `json:"updated_input,omitempty"`
	}
	// ModeRequest sets the permission mode of a teammate.
	ModeRequest struct {
		Mode string `json:"mode"`
		From string `json:"from"`
	}
	// Unknown is a message of an unknown type.
	Unknown struct{ Type string }
)

func (*Idle) kind() string               { return "idle_notification" }
func (*Assignment) kind() string         { return "task_assignment" }
func (*ShutdownRequest) kind() string    { return "shutdown_request" }
func (*ShutdownApproved) kind() string   { return "shutdown_approved" }
func (*ShutdownRejected) kind() string   { return "shutdown_rejected" }
func (*PlanRequest) kind() string        { return "plan_approval_request" }
func (*PlanResponse) kind() string       { return "plan_approval_response" }
func (*PermissionRequest) kind() string  { return "permission_request" }
func (*PermissionResponse) kind() string { return "permission_response" }
func (*ModeRequest) kind() string        { return "mode_set_request" }
func (u *Unknown) kind() string          { return u.Type }

var structured = map[string]func() Structured{
	"idle_notification": func() Structured { return &Idle{} }, "task_assignment": func() Structured {
		return &Assignment{}
	},
	"shutdown_request": func() Structured { return &ShutdownRequest{} }, "shutdown_approved": func() Structured {
		return &ShutdownApproved{}
	},
	"shutdown_rejected": func() Structured { return &ShutdownRejected{} }, "plan_approval_request": func() Structured {
		return &PlanRequest{}
	},
	"plan_approval_response": func() Structured { return &PlanResponse{} }, "permission_request": func() Structured {
		return &PermissionRequest{}
	},
	"permission_response": func() Structured { return &PermissionResponse{} }, "mode_set_request": func() Structured {
		return &ModeRequest{}
	},
}

// Parse parses a structured message in the text of an entry. It returns nil for a text meant for a
// model. That includes JSON that a member wrote to a colleague. JSON with an unknown type counts as
// structured only if it is a single line, because that is how the program writes its own.
func Parse(text string) Structured {
	if !strings.HasPrefix(text, "{") {
		return nil
	}
	var head struct{ Type string }
	if json.Unmarshal([]byte(text), &head) != nil || head.Type == "" {
		return nil
	}
	make, known := structured[head.Type]
	if !known {
		if strings.Contains(text, "\n") {
			return nil
		}
		return &Unknown{head.Type}
	}
	m := make()
	if json.Unmarshal([]byte(text), m) != nil {
		return nil
	}
	return m
}

// Text encodes a structured message, with its type first.
func Text(m Structured) string {
	fields, err := objectOf(m)
	if err != nil {
		panic(err) // our own types always marshal: strings, and JSON that was parsed
	}
	o := &object{values: map[string]json.RawMessage{}}
	o.set("type", m.kind())
	for _, key := range fields.keys {
		o.put(key, fields.values[key])
	}
	data, _ := o.MarshalJSON()
	return string(data)
}
