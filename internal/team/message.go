package team

import "encoding/json"

// Message is one entry of the mailbox.
type Message struct {
	Seq         int64                      // number of the message
	From        string                     // name of the sender; "" for a message of the team itself
	To          string                     // name of the recipient, or "*" for a broadcast
	Recipients  []string                   // names of the recipients of a broadcast
	Type        string                     // one of the types above
	Intent      string                     // info, question, challenge, resolution, or ""
	Priority    string                     // normal or urgent
	Body        string                     // text of the message
	Summary     string                     // short version by its sender; "" for none
	Ref         string                     // id of the request or task that it belongs to
	Incarnation int64                      // session of the recipient that it is for; 0 for any
	Quiet       bool                       // it starts no turn: it comes with the next message that does
	SentAt      Time                       // when it was sent
	ResentAt    Time                       // when it was last sent again
	Metadata    map[string]json.RawMessage // what its sender keeps with it
	News        []News                     // what recipients were not told yet of tasks and members

	waiting int // recipients that it was not delivered to yet
}

// Asks reports whether a member asks a question in the message.
func (m *Message) Asks() bool { return m.Intent == "question" && m.From != User }

// Types of messages.
const (
	TypeMessage            = "message"                // from one member to another
	TypeBroadcast          = "broadcast"              // from one member to all others
	TypeSystem             = "system"                 // from the team itself
	TypeIdle               = "idle"                   // a teammate ended its turn, with its report
	TypeShutdownRequest    = "shutdown_request"       // the lead asks a teammate to end
	TypeShutdownResponse   = "shutdown_response"      // the teammate's answer
	TypePlanRequest        = "plan_approval_request"  // a teammate's plan
	TypePlanResponse       = "plan_approval_response" // the answer to the plan
	TypePermissionRequest  = "permission_request"     // a teammate asks the lead to allow a tool
	TypePermissionResponse = "permission_response"    // the answer to that request
	TypeTaskAssignment     = "task_assignment"        // a task was assigned to the recipient
)

// MessageTypes are the types of messages.
var MessageTypes = []string{TypeMessage, TypeBroadcast, TypeSystem, TypeIdle, TypeShutdownRequest, TypeShutdownResponse,
	TypePlanRequest, TypePlanResponse, TypePermissionRequest, TypePermissionResponse, TypeTaskAssignment}
