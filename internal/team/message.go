package team

import "encoding/json"

// Message is one entry of the mailbox.
type Message struct {
	Seq         int64
	From        string // "" for a message of the team itself
	To          string // "*" for a broadcast
	Recipients  []string
	Type        string
	Intent      string // info, question, challenge, resolution, or ""
	Priority    string // normal or urgent
	Body        string
	Summary     string // its sender's short version; "" where its agent asks for none
	Ref         string // id of the request that it belongs to
	Incarnation int64  // incarnation of the recipient that it is for; 0 for any
	Quiet       bool   // it starts no turn: it comes with the next message that does
	SentAt      Time
	ResentAt    Time                       // when it was last sent again
	Metadata    map[string]json.RawMessage // what its sender keeps with it
	News        []News                     // what recipients were not told yet of tasks and members

	waiting int // recipients that it was not delivered to yet
}

// Types of messages.
const (
	TypeMessage            = "message"
	TypeBroadcast          = "broadcast"
	TypeSystem             = "system"
	TypeIdle               = "idle"
	TypeShutdownRequest    = "shutdown_request"
	TypeShutdownResponse   = "shutdown_response"
	TypePlanRequest        = "plan_approval_request"
	TypePlanResponse       = "plan_approval_response"
	TypePermissionRequest  = "permission_request"
	TypePermissionResponse = "permission_response"
	TypeTaskAssignment     = "task_assignment"
)

// MessageTypes are the types of messages.
var MessageTypes = []string{TypeMessage, TypeBroadcast, TypeSystem, TypeIdle, TypeShutdownRequest, TypeShutdownResponse,
	TypePlanRequest, TypePlanResponse, TypePermissionRequest, TypePermissionResponse, TypeTaskAssignment}
