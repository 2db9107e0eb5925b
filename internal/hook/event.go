package hook

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Event is what happened, for the commands to judge. Fields that do not belong to the event are
// left at zero.
type Event struct {
	Name string // TeammateIdle, TaskCreated or TaskCompleted

	TeamID   string
	TeamName string
	MemberID string // of the teammate that goes idle, created the task or completes it
	Member   string // its name

	SessionID      string // of the teammate's agent, where known
	TranscriptPath string

	TaskID          string // TaskCreated, TaskCompleted
	TaskSubject     string
	TaskDescription string
	DependentTasks  []string      // ids of the tasks that wait for it
	Duration        time.Duration // TaskCompleted: from claim to now

	CompletedTasks []string  // TeammateIdle: ids of what the teammate completed
	RemainingTasks int       // TeammateIdle: tasks of the team that are not complete
	IdleSince      time.Time // TeammateIdle
}

func (e *Event) aboutTask() bool { return e.Name == TaskCreated || e.Name == TaskCompleted }

// payload is the event in Claude Code's field names, with our own behind them. A pointer is a field
// that is there, even with nothing in it, for one event and not for another.
type payload struct {
	SessionID      string `json:"session_id,omitempty"`
	TranscriptPath string `json:"transcript_path,omitempty"`
	Dir            string `json:"cwd"`
	Name           string `json:"hook_event_name"`
	Member         string `json:"teammate_name,omitempty"`
	TeamName       string `json:"team_name,omitempty"`

	TaskID          *string `json:"task_id,omitempty"`
	TaskSubject     *string `json:"task_subject,omitempty"`
	TaskDescription *string `json:"task_description,omitempty"`

	TeamID         string     `json:"team_id,omitempty"`
	MemberID       string     `json:"member_id,omitempty"`
	DependentTasks *[]string  `json:"dependent_task_ids,omitempty"`
	DurationMS     *int64     `json:"duration_ms,omitempty"`
	CompletedTasks *[]string  `json:"completed_task_ids,omitempty"`
	RemainingTasks *int       `json:"remaining_tasks,omitempty"`
	IdleSince      *time.Time `json:"idle_since,omitempty"`
}

// input is what a command reads: one JSON object on one line.
func (e *Event) input(dir string) ([]byte, error) {
	p := payload{
		SessionID: e.SessionID, TranscriptPath: e.TranscriptPath, Dir: dir, Name: e.Name,
		Member: e.Member, TeamName: e.TeamName, TeamID: e.TeamID, MemberID: e.MemberID,
	}
	if e.aboutTask() {
		p.TaskID, p.TaskSubject, p.TaskDescription = &e.TaskID, &e.TaskSubject, &e.TaskDescription
		p.DependentTasks = list(e.DependentTasks)
		if e.Name == TaskCompleted {
			ms := e.Duration.Milliseconds()
			p.DurationMS = &ms
		}
	} else {
		p.CompletedTasks, p.RemainingTasks = list(e.CompletedTasks), &e.RemainingTasks
		if !e.IdleSince.IsZero() {
			since := e.IdleSince.UTC().Truncate(time.Millisecond)
			p.IdleSince = &since
		}
	}
	data, err := json.Marshal(p)
	return append(data, '\n'), err
}

// list makes an empty list [] in JSON, not null.
func list(ids []string) *[]string {
	if ids == nil {
		ids = []string{}
	}
	return &ids
}

// environment is the host's, with the event in it. CLAUDE_PROJECT_DIR is there because scripts
// written for Claude Code find themselves by it. CADRE_MEMBER_NAME is the name that
// CADRE_EVENT_MEMBER had before; it goes with the next version.
func (e *Event) environment(dir string) []string {
	env := os.Environ()
	set := func(name, value string) { env = append(env, name+"="+fit(value)) }
	set("CLAUDE_PROJECT_DIR", dir)
	set("CADRE_PROJECT_DIR", dir)
	set("CADRE_HOOK_EVENT", e.Name)
	set("CADRE_TEAM_ID", e.TeamID)
	set("CADRE_TEAM_NAME", e.TeamName)
	set("CADRE_MEMBER_ID", e.MemberID)
	set("CADRE_EVENT_MEMBER", e.Member)
	set("CADRE_MEMBER_NAME", e.Member)
	if !e.aboutTask() {
		set("CADRE_COMPLETED_TASKS", strings.Join(e.CompletedTasks, ","))
		set("CADRE_REMAINING_TASKS", strconv.Itoa(e.RemainingTasks))
		return env
	}
	set("CADRE_TASK_ID", e.TaskID)
	set("CADRE_TASK_TITLE", e.TaskSubject)
	set("CADRE_DEPENDENT_TASKS", strings.Join(e.DependentTasks, ","))
	if e.Name == TaskCompleted {
		set("CADRE_COMPLETED_BY", e.Member)
		set("CADRE_TASK_DURATION", strconv.FormatInt(e.Duration.Milliseconds(), 10))
	}
	return env
}

// maxVariable keeps a long list of ids from making the kernel refuse to start the command (128 KiB
// a variable on Linux, 1 MiB for all on macOS). The JSON on standard input is whole.
const maxVariable = 64 << 10

// fit makes a value that any environment can hold.
func fit(value string) string {
	value = strings.ReplaceAll(value, "\x00", "")
	if len(value) <= maxVariable {
		return value
	}
	cut := maxVariable
	for cut > 0 && !utf8.RuneStart(value[cut]) {
		cut--
	}
	return value[:cut]
}
