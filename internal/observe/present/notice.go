package present

import (
	"encoding/json"

	"cadre/internal/team"
)

// Types of [Notice].
const (
	Created           = "team:created"
	Deleted           = "team:deleted"
	MemberJoined      = "team:member:joined"
	MemberIdle        = "team:member:idle"
	MemberShutdown    = "team:member:shutdown"
	MemberFailed      = "team:member:failed"
	TaskCreated       = "team:task:created"
	TaskClaimed       = "team:task:claimed"
	TaskCompleted     = "team:task:completed"
	MessageReceived   = "team:message:received"
	ShutdownRequested = "team:shutdown:requested"
	ShutdownResponse  = "team:shutdown:response"
	PlanRequested     = "team:plan:requested"
	PlanResolved      = "team:plan:resolved"
	Gap               = "team:gap"
)

// Notice is an event for consumers. Only the fields of its type are set.
type Notice struct {
	Type string `json:"type"`
	// SessionID is the id of the observed session: the lead's, if it was seen; "" if no line has
	// named it.
	SessionID string      `json:"sessionId"`
	TeamName  string      `json:"teamName,omitempty"`
	Member    *TeamMember `json:"-"`
	Name      string      `json:"-"` // of the member, for types that have only the name
	Task      *TeamTask   `json:"task,omitempty"`
	From      string      `json:"from,omitempty"`
	To        string      `json:"to,omitempty"` // "" for a broadcast
	Content   *string     `json:"content,omitempty"`
	Summary   string      `json:"summary,omitempty"`
	RequestID string      `json:"-"` // may be "" if the agent gave none
	Plan      *string     `json:"plan,omitempty"`
	Approved  *bool       `json:"approved,omitempty"`
	Reason    string      `json:"reason,omitempty"`
}

// MarshalJSON encodes the whole member or only its name, depending on the type.
func (n Notice) MarshalJSON() ([]byte, error) {
	type plain Notice
	var member any
	var request *string
	switch n.Type {
	case ShutdownRequested, ShutdownResponse, PlanRequested, PlanResolved:
		request = &n.RequestID
	}
	switch {
	case n.Member != nil:
		member = n.Member
	case n.Name != "":
		member = n.Name
	}
	return json.Marshal(struct {
		plain
		Member    any     `json:"member,omitempty"`
		RequestID *string `json:"requestId,omitempty"`
	}{plain(n), member, request})
}

// NoticesOf returns the events for a record. s is the state after the record, and session the
// observed session.
func NoticesOf(s *team.State, r *team.Record, session string) []Notice {
	var all []Notice
	t := s.Team()
	add := func(n Notice) {
		n.SessionID = session
		all = append(all, n)
	}
	member := func(kind, name, reason string) {
		if m, ok := s.Member(name); ok && name != t.Lead {
			shown := memberOf(s, &m)
			add(Notice{Type: kind, Member: &shown, Reason: reason})
		}
	}
	task := func(kind, id string) {
		if found, ok := s.Task(id); ok {
			shown := taskOf(s, &found)
			add(Notice{Type: kind, Task: &shown})
		}
	}
	for _, e := range r.Events {
		switch e := e.(type) {
		case *team.TeamCreated:
			add(Notice{Type: Created, TeamName: t.Name})
		case *team.TeamCleanedUp:
			add(Notice{Type: Deleted, TeamName: t.Name})
		case *team.MemberSpawned:
			member(MemberJoined, e.Member.Name, "")
		case *team.MemberReturned:
			member(MemberJoined, e.Member.Name, "")
		case *team.MemberStatusChanged:
			if e.Status == team.Idle {
				member(MemberIdle, e.Member, "")
			}
		case *team.MemberStopped:
			member(MemberShutdown, e.Member, "")
		case *team.MemberFailed:
			member(MemberFailed, e.Member, e.Reason)
		case *team.TaskCreated:
			task(TaskCreated, e.Task.ID)
		case *team.TaskClaimed:
			task(TaskClaimed, e.Task)
		case *team.TaskCompleted:
			task(TaskCompleted, e.Task)
		case *team.MessageSent:
			n := Notice{Type: MessageReceived, From: e.Message.From, To: e.Message.To, Content: &e.Message.Body,
				Summary: e.Message.Summary}
			if e.Message.Type == team.TypeBroadcast {
				n.To = ""
			}
			add(n)
		case *team.ShutdownRequested:
			add(Notice{Type: ShutdownRequested, Name: e.Member, RequestID: e.Request, Reason: e.Reason})
		case *team.ShutdownAnswered:
			add(Notice{Type: ShutdownResponse, Name: e.Member, RequestID: e.Request, Approved: &e.Approved,
				Reason: e.Reason})
		case *team.PlanSubmitted:
			add(Notice{Type: PlanRequested, From: e.Member, RequestID: e.Request, Plan: &e.Plan})
		case *team.PlanAnswered:
			add(Notice{Type: PlanResolved, From: e.Member, RequestID: e.Request, Approved: &e.Approved,
				Reason: e.Feedback})
		case *team.GapNoticed:
			add(Notice{Type: Gap, From: e.Source, Reason: e.Reason})
		}
	}
	return all
}
