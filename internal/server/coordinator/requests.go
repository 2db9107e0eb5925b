package coordinator

import (
	"encoding/json"
	"reflect"
	"sync"

	"cadre/internal/server/auth"
)

// The payloads of requests. A field without omitempty is required. The tag enum has the values that
// a field may have, and default the one that stands for a missing field.
type (
	// CreateTeam creates a team in the server's directory, led by an external session.
	CreateTeam struct {
		// session that leads, as the client calls it
		LeadSessionID string `json:"leadSessionId"`
		// name of the team, unique in the directory
		Name string `json:"name"`
		// tmux gives the agent claude a terminal that a person can open
		TeammateMode string `json:"teammateMode,omitempty" enum:"in-process tmux auto" default:"auto"`
		// teammates that may run at a time
		MaxTeammates *int64 `json:"maxTeammates,omitempty" default:"10"`
		// the lead may only coordinate
		DelegateMode bool `json:"delegateMode,omitempty" default:"false"`
		// what the client keeps with the team
		Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
	}
	// SpawnTeammate adds a teammate.
	SpawnTeammate struct {
		// id or name of the team
		TeamID string `json:"teamId"`
		// name of the teammate, unique in the team
		Name string `json:"name"`
		// its role
		Role string `json:"role"`
		// what it is told first
		Prompt string `json:"prompt"`
		// model that it uses; the agent's own by default
		Model string `json:"model,omitempty"`
		// it may not write before a plan of it is approved
		PlanApprovalRequired bool `json:"planApprovalRequired,omitempty" default:"false"`
		// agent that runs its sessions; the first coding agent that is installed by default,
		// otherwise external
		AgentType string `json:"agentType,omitempty"`
	}
	// TeamSendMessage sends a message to a member.
	TeamSendMessage struct {
		// id or name of the team
		TeamID string `json:"teamId"`
		// member that sends it; @user for the user
		FromID string `json:"fromId"`
		// member that it is for
		ToID string `json:"toId"`
		// its text
		Content string `json:"content"`
		// what it is
		Type string `json:"type,omitempty" enum:"direct plan_approval task_update" default:"direct"`
		// how urgent it is
		Priority string `json:"priority,omitempty" enum:"normal urgent" default:"normal"`
		// what the client keeps with it
		Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
	}
	// TeamBroadcast sends a message to all other members.
	TeamBroadcast struct {
		TeamID string `json:"teamId"` // id or name of the team
		// member that sends it; @user for the user
		FromID   string `json:"fromId"`
		Content  string `json:"content"`                                                  // its text
		Priority string `json:"priority,omitempty" enum:"normal urgent" default:"normal"` // how urgent it is
	}
	// TeamListMessages lists the messages to a member.
	TeamListMessages struct {
		TeamID   string `json:"teamId"`                           // id or name of the team
		MemberID string `json:"memberId"`                         // the member
		Unread   bool   `json:"unread,omitempty" default:"false"` // only messages that it has not read
	}
	// TeamCreateTask adds a task.
	TeamCreateTask struct {
		// id or name of the team
		TeamID string `json:"teamId"`
		// member that adds it; @user for the user
		CreatedBy string `json:"createdBy"`
		// what is to be done, in a few words
		Title string `json:"title"`
		// the rest of it
		Description string `json:"description"`
		// how urgent it is
		Priority string `json:"priority,omitempty" enum:"low medium high critical" default:"medium"`
		// member that it is for
		AssigneeID string `json:"assigneeId,omitempty"`
		// ids of tasks that must be completed first
		Dependencies []string `json:"dependencies,omitempty"`
		// what the client keeps with it
		Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
	}
	// TeamUpdateTask changes a task. What is missing stays.
	TeamUpdateTask struct {
		// id or name of the team
		TeamID string `json:"teamId"`
		// id of the task
		TaskID string `json:"taskId"`
		// what is to be done
		Title *string `json:"title,omitempty"`
		// the rest of it
		Description *string `json:"description,omitempty"`
		// return it to the queue, claim it for its assignee, or complete it
		Status *string `json:"status,omitempty" enum:"pending in_progress completed"`
		// how urgent it is
		Priority *string `json:"priority,omitempty" enum:"low medium high critical"`
		// member that it is for; empty for any
		AssigneeID *string `json:"assigneeId,omitempty"`
		// keys to set; null removes one
		Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
	}
	// TeamTask is a claim or the completion of a task by a teammate.
	TeamTask struct {
		TeamID     string `json:"teamId"`     // id or name of the team
		TaskID     string `json:"taskId"`     // id of the task
		TeammateID string `json:"teammateId"` // member that claims or completes it
	}
	// OneTeam names a team.
	OneTeam struct {
		TeamID string `json:"teamId"` // id or name of the team
	}
	// ShutdownTeammate asks a teammate to end, and waits until it has ended or refused.
	ShutdownTeammate struct {
		TeamID   string `json:"teamId"`   // id or name of the team
		MemberID string `json:"memberId"` // the teammate
	}
	// Subscribe follows a team.
	Subscribe struct {
		TeamID string `json:"teamId"` // id or name of the team
		// seq of the last event that the client has; without it, the team as it is now is sent, and
		// what happens from now on
		After *int64 `json:"after,omitempty"`
		Part  int64  `json:"part,omitempty"` // part of that event, if it had one
	}
	// Nothing is the payload of a request that needs none.
	Nothing struct{}
)

// daemonStatus is the type of the request for the state of the server, and of its answer.
const daemonStatus = "daemon_status"

// request is a row of the table of requests.
type request struct {
	Type    string
	About   string       // what it does, one sentence
	Command string       // command of the command line that does the same: who may call it may send the request
	Role    auth.Role    // what a token must allow
	Payload reflect.Type // of the request
	Reply   reflect.Type // payload of the reply to a request with an id
	Answer  string       // type of the event that answers a request without an id

	handle func(*call) (answer, error)
}

// requests returns the table of requests.
var requests = sync.OnceValue(func() []request {
	return []request{
		{"create_team", "Create a team in the server's directory, and subscribe to it.", "create", auth.Admin,
			reflect.TypeFor[CreateTeam](), reflect.TypeFor[TeamPayload](), teamCreated, (*call).createTeam},
		{"spawn_teammate", "Add a teammate, and start its session.", "spawn", auth.Steer,
			reflect.TypeFor[SpawnTeammate](), reflect.TypeFor[MemberPayload](), teammateSpawned, (*call).spawnTeammate},
		{"team_send_message", "Send a message to a member.", "send", auth.Answer,
			reflect.TypeFor[TeamSendMessage](), reflect.TypeFor[MessagePayload](), teamMessage, (*call).sendMessage},
		{"team_broadcast", "Send a message to all other members.", "broadcast", auth.Answer,
			reflect.TypeFor[TeamBroadcast](), reflect.TypeFor[MessagePayload](), teamMessage, (*call).broadcast},
		{"team_list_messages", "List the last 1000 messages to a member, with when they were delivered and read.",
			"inbox", auth.Observe, reflect.TypeFor[TeamListMessages](), reflect.TypeFor[MessagesPayload](), teamMessage,
			(*call).listMessages},
		{"team_create_task", "Add a task.", "task add", auth.Steer,
			reflect.TypeFor[TeamCreateTask](), reflect.TypeFor[TaskPayload](), teamTaskUpdate, (*call).createTask},
		{"team_update_task", "Change a task.", "task update", auth.Steer,
			reflect.TypeFor[TeamUpdateTask](), reflect.TypeFor[TaskPayload](), teamTaskUpdate, (*call).updateTask},
		{"team_claim_task", "Claim a task as a teammate.", "task claim", auth.Steer,
			reflect.TypeFor[TeamTask](), reflect.TypeFor[TaskPayload](), teamTaskUpdate, (*call).claimTask},
		{"team_complete_task", "Complete a task as a teammate.", "task done", auth.Steer,
			reflect.TypeFor[TeamTask](), reflect.TypeFor[TaskPayload](), teamTaskUpdate, (*call).completeTask},
		{"team_list_tasks", "List the tasks of a team.", "task list", auth.Observe,
			reflect.TypeFor[OneTeam](), reflect.TypeFor[TasksPayload](), teamTaskUpdate, (*call).listTasks},
		{"team_set_note", "Set a note of the team, or replace its text.", "note set", auth.Steer,
			reflect.TypeFor[TeamSetNote](), reflect.TypeFor[NotePayload](), teamNoteUpdate, (*call).setNote},
		{"team_append_note", "Add a text to a note, on a line of its own, or make the note.", "note append", auth.Steer,
			reflect.TypeFor[TeamAppendNote](), reflect.TypeFor[NotePayload](), teamNoteUpdate, (*call).appendNote},
		{"team_delete_note", "Delete a note. Its versions stay in the history.", "note rm", auth.Steer,
			reflect.TypeFor[TeamDeleteNote](), reflect.TypeFor[NoteRef](), teamNoteDeleted, (*call).deleteNote},
		{"team_get_note", "Show a note, or an older version of it.", "note get", auth.Observe,
			reflect.TypeFor[TeamGetNote](), reflect.TypeFor[NotePayload](), teamNoteUpdate, (*call).getNote},
		{"team_list_notes", "List the notes of a team.", "note list", auth.Observe,
			reflect.TypeFor[OneTeam](), reflect.TypeFor[NotesPayload](), teamNoteUpdate, (*call).listNotes},
		{"team_status", "Show a team.", "status", auth.Observe,
			reflect.TypeFor[OneTeam](), reflect.TypeFor[TeamPayload](), teamStatusUpdate, (*call).teamStatus},
		{"shutdown_teammate", "Ask a teammate to end. The answer comes when it has ended, or refused.", "shutdown",
			auth.Steer, reflect.TypeFor[ShutdownTeammate](), reflect.TypeFor[Departure](), teammateShutdown,
			(*call).shutDown},
		{"cleanup_team", "Remove a team and everything that belongs to it.", "cleanup", auth.Admin,
			reflect.TypeFor[OneTeam](), reflect.TypeFor[TeamRef](), teamCleanedUp, (*call).cleanUp},
		{"subscribe", "Follow the events of a team.", "log", auth.Observe,
			reflect.TypeFor[Subscribe](), reflect.TypeFor[Subscribed](), "subscribed", (*call).subscribe},
		{"unsubscribe", "Follow the events of a team no longer.", "log", auth.Observe,
			reflect.TypeFor[OneTeam](), reflect.TypeFor[TeamRef](), "unsubscribed", (*call).unsubscribe},
		{"ping", "Say that the connection is alive.", "version", auth.Observe,
			reflect.TypeFor[Nothing](), reflect.TypeFor[Empty](), "pong", (*call).ping},
		{daemonStatus, "Show the state of the server.", "ls", auth.Observe,
			reflect.TypeFor[Nothing](), reflect.TypeFor[DaemonStatus](), daemonStatus, (*call).daemonStatus},
		{"health_check", "Say that the server answers.", "version", auth.Observe,
			reflect.TypeFor[Nothing](), reflect.TypeFor[Health](), "health_check_response", (*call).health},
	}
})

// requestOf returns the row of the requests of that type, or a row without a type if nothing has
// it.
func requestOf(kind string) request {
	for _, row := range requests() {
		if row.Type == kind {
			return row
		}
	}
	return request{}
}
