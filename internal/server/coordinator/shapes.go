package coordinator

import (
	"encoding/json"
	"time"

	"cadre/internal/team"
)

// Time is a time in a frame: ISO 8601 in UTC, with milliseconds.
type Time team.Time

const timeForm = "2006-01-02T15:04:05.000Z"

// MarshalText returns the time as it is in a frame.
func (t Time) MarshalText() ([]byte, error) {
	return time.UnixMilli(int64(t)).UTC().AppendFormat(nil, timeForm), nil
}

// UnmarshalText reads a time of a frame.
func (t *Time) UnmarshalText(text []byte) error {
	is, err := time.Parse(timeForm, string(text))
	*t = Time(is.UnixMilli())
	return err
}

// TeamConfig is a team.
type TeamConfig struct {
	// id of the team, which no other team ever has
	ID string `json:"id"`
	// name of the team
	Name string `json:"name"`
	// session that leads, as its creator or its agent calls it
	LeadSessionID string `json:"leadSessionId"`
	// how teammates were asked to run
	TeammateMode string `json:"teammateMode" enum:"in-process tmux auto"`
	// how they run
	ResolvedBackend string `json:"resolvedBackend" enum:"in-process tmux"`
	// teammates that may run at a time
	MaxTeammates int64 `json:"maxTeammates"`
	// the lead may only coordinate
	DelegateMode bool `json:"delegateMode"`
	// when it was created
	CreatedAt Time `json:"createdAt"`
	// what it does
	Status string `json:"status" enum:"creating active shutting-down cleaned-up"`
	// the lead, and then the teammates in the order in which they joined
	Members []TeamMember `json:"members"`
	// what its creator keeps with it
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
}

// TeamMember is the lead or a teammate.
type TeamMember struct {
	// id of the member: its name
	ID string `json:"id"`
	// name of the member
	Name string `json:"name"`
	// id of its session, as its agent calls it; empty without a session
	SessionID string `json:"sessionId"`
	// its role; lead for the lead
	Role string `json:"role"`
	// agent that runs its sessions
	AgentType string `json:"agentType"`
	// what it does
	Status string `json:"status" enum:"spawning active idle shutting-down stopped"`
	// ids of its tasks that are not completed
	AssignedTasks []string `json:"assignedTasks"`
	// what it was told first
	SpawnPrompt string `json:"spawnPrompt,omitempty"`
	// it may not write before a plan of it is approved
	PlanApprovalRequired bool `json:"planApprovalRequired"`
	// model that it uses
	Model string `json:"model,omitempty"`
	// when it joined
	JoinedAt Time `json:"joinedAt"`
}

// SharedTask is a task on the list of a team.
type SharedTask struct {
	// number of the task
	ID string `json:"id"`
	// id of its team
	TeamID string `json:"teamId"`
	// what is to be done, in a few words
	Title string `json:"title"`
	// the rest of it
	Description string `json:"description"`
	// how far it is
	Status string `json:"status" enum:"pending in_progress completed blocked"`
	// how urgent it is
	Priority string `json:"priority" enum:"low medium high critical"`
	// member that has it, or that it is meant for
	AssigneeID string `json:"assigneeId,omitempty"`
	// ids of the tasks that must be completed first
	Dependencies []string `json:"dependencies"`
	// member that added it; @user for the user
	CreatedBy string `json:"createdBy"`
	// when it was added
	CreatedAt Time `json:"createdAt"`
	// when it last changed
	UpdatedAt Time `json:"updatedAt"`
	// when it was completed
	CompletedAt *Time `json:"completedAt,omitempty"`
	// what its creator keeps with it
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
}

// TeamMessage is a message. A message to several members is delivered to each, and read by each, so
// team_message says neither: it comes when the message was sent.
type TeamMessage struct {
	// number of the message
	ID string `json:"id"`
	// id of its team
	TeamID string `json:"teamId"`
	// member that sent it; @user for the user, empty for the team itself
	FromID string `json:"fromId"`
	// member that it is for; null for a broadcast
	ToID *string `json:"toId"`
	// what it is
	Type string `json:"type" enum:"direct broadcast system plan_approval task_update"`
	// its text
	Content string `json:"content"`
	// how urgent it is
	Priority string `json:"priority" enum:"normal urgent"`
	// when it was sent
	SentAt Time `json:"sentAt"`
	// when it was delivered to the member whose messages were asked for; missing for not yet
	DeliveredAt *Time `json:"deliveredAt,omitempty"`
	// when that member read it; missing for not yet
	ReadAt *Time `json:"readAt,omitempty"`
	// what its sender keeps with it
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
}

// Payloads of events, and of the replies that have the same form.
type (
	// TeamPayload has a team.
	TeamPayload struct {
		Team TeamConfig `json:"team"` // the team
	}
	// MemberPayload has a member.
	MemberPayload struct {
		Member TeamMember `json:"member"` // the member
	}
	// MessagePayload has a message.
	MessagePayload struct {
		Message TeamMessage `json:"message"` // the message
	}
	// MessagesPayload has messages to a member.
	MessagesPayload struct {
		MemberID string        `json:"memberId"` // id of the member
		TeamID   string        `json:"teamId"`   // id of its team
		Messages []TeamMessage `json:"messages"` // in the order in which they were sent
	}
	// Delivery says that messages were delivered to a member.
	Delivery struct {
		MemberID    string   `json:"memberId"`    // id of the member
		TeamID      string   `json:"teamId"`      // id of its team
		MessageIDs  []string `json:"messageIds"`  // ids of the messages
		DeliveredAt Time     `json:"deliveredAt"` // when they were delivered
	}
	// Reading says that a member has read its messages.
	Reading struct {
		MemberID string `json:"memberId"` // id of the member
		TeamID   string `json:"teamId"`   // id of its team
		// id of the last one: it has read all up to this one that were delivered to it
		Through string `json:"through"`
		ReadAt  Time   `json:"readAt"` // when it read them
	}
	// TaskPayload has a task.
	TaskPayload struct {
		Task SharedTask `json:"task"` // the task
	}
	// TasksPayload has the tasks of a team.
	TasksPayload struct {
		TeamID string       `json:"teamId"` // id of the team
		Tasks  []SharedTask `json:"tasks"`  // its tasks, in the order of their ids
	}
	// NotePayload has a note.
	NotePayload struct {
		Note TeamNote `json:"note"` // the note
	}
	// NotesPayload has the notes of a team.
	NotesPayload struct {
		TeamID string     `json:"teamId"` // id of the team
		Notes  []TeamNote `json:"notes"`  // its notes, by their keys
	}
	// NoteRef names a note.
	NoteRef struct {
		Key    string `json:"key"`    // name of the note
		TeamID string `json:"teamId"` // id of its team
	}
	// MemberRef names a member.
	MemberRef struct {
		MemberID string `json:"memberId"` // id of the member
		TeamID   string `json:"teamId"`   // id of its team
	}
	// TaskRef names a task.
	TaskRef struct {
		TaskID string `json:"taskId"` // id of the task
		TeamID string `json:"teamId"` // id of its team
	}
	// TeamRef names a team.
	TeamRef struct {
		TeamID string `json:"teamId"` // id of the team
	}
	// Subscribed says where a subscription begins.
	Subscribed struct {
		TeamID string `json:"teamId"` // id of the team
		Seq    int64  `json:"seq"`    // the last record that there was
		After  int64  `json:"after"`  // the events of the records after this one follow
	}
	// Departure says whether a teammate has shut down.
	Departure struct {
		MemberID string `json:"memberId"`         // id of the member
		TeamID   string `json:"teamId"`           // id of its team
		Accepted bool   `json:"accepted"`         // it has ended; otherwise it refused, and continues
		Reason   string `json:"reason,omitempty"` // why it refused
	}
	// Health says that the server answers.
	Health struct {
		Healthy bool `json:"healthy"` // it answers
	}
	// Empty has nothing.
	Empty struct{}
)

// Failure is the payload of an error.
type Failure struct {
	Code    string      `json:"code"`              // what kind of error it is
	Message string      `json:"message"`           // what failed, and why
	Hints   []team.Hint `json:"hints,omitempty"`   // what would help
	Request string      `json:"request,omitempty"` // type of the request that failed
	// for a conflict about a note: the note as it is
	Note *TeamNote `json:"note,omitempty"`
	// for ahead and gone: a record from which a subscription can continue
	Seq int64 `json:"seq,omitempty"`
}

// DaemonStatus is the state of the server.
type DaemonStatus struct {
	// what it does
	Status string `json:"status" enum:"initializing running degraded stopped"`
	// milliseconds since it began
	Uptime int64 `json:"uptime"`
	// teammates that run
	ActiveSessions int64 `json:"activeSessions"`
	// tasks that are not begun
	QueuedTasks int64 `json:"queuedTasks"`
	// teams that have not ended
	ActiveTeams int64 `json:"activeTeams"`
	// totals of all teams
	Metrics Metrics `json:"metrics"`
	// totals about teams
	TeamMetrics TeamMetrics `json:"teamMetrics"`
	// its parts, by their names
	Subsystems map[string]Subsystem `json:"subsystems"`
}

// Metrics are totals of all teams.
type Metrics struct {
	TotalSessionsSpawned   int64   `json:"totalSessionsSpawned"`   // sessions that were started
	TotalTasksProcessed    int64   `json:"totalTasksProcessed"`    // tasks that were completed, or have failed
	TotalTokensUsed        int64   `json:"totalTokensUsed"`        // tokens of all kinds
	AverageSessionDuration float64 `json:"averageSessionDuration"` // milliseconds
	// part of the tasks processed that were completed, from 0 to 1
	SuccessRate float64 `json:"successRate"`
}

// TeamMetrics are totals about teams.
type TeamMetrics struct {
	TotalTeamsCreated       int64 `json:"totalTeamsCreated"`       // teams
	TotalTeammatesSpawned   int64 `json:"totalTeammatesSpawned"`   // teammates
	TotalTeamTasksCompleted int64 `json:"totalTeamTasksCompleted"` // tasks that were completed
	TotalTeamMessages       int64 `json:"totalTeamMessages"`       // messages
}

// Subsystem is a part of the server.
type Subsystem struct {
	Status string `json:"status" enum:"initializing running degraded stopped"` // what it does
	// when it was last checked; null for never
	LastCheck *Time    `json:"lastCheck"`
	Errors    []string `json:"errors,omitempty"` // what is wrong with it
}

// answerFrame is a frame that the server sends.
type answerFrame struct {
	Type    string          `json:"type"`
	ID      json.RawMessage `json:"id,omitempty"`
	TeamID  string          `json:"teamId,omitempty"`
	Seq     int64           `json:"seq,omitempty"`
	Part    int64           `json:"part,omitempty"`
	Payload any             `json:"payload"`
}

// encode returns the frame in JSON. The values in it always marshal.
func (f answerFrame) encode() []byte {
	data, err := json.Marshal(f)
	if err != nil {
		panic(err)
	}
	return data
}
