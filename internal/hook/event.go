package hook

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"cadre/internal/team"
)

// Event describes what happened, as the commands see it. Fields that do not belong to the event are
// zero.
type Event struct {
	Name string // TeammateIdle, TaskCreated or TaskCompleted

	TeamID   string
	TeamName string
	MemberID string // the teammate that goes idle, creates the task or completes it
	Member   string // its name
	Role     string // what it does in the team; "" for a teammate without a role

	SessionID      string // of the teammate's agent, where known
	TranscriptPath string

	TaskID          string // TaskCreated, TaskCompleted
	TaskName        string // "" for one that goes by its id
	TaskSubject     string
	TaskDescription string
	DependentTasks  []string      // ids of the tasks that depend on it
	Duration        time.Duration // TaskCompleted: from claim to now
	Result          string        // TaskCompleted: what the member says came of the task

	CompletedTasks []string  // TeammateIdle: ids of the tasks that the teammate completed
	RemainingTasks int       // TeammateIdle: tasks of the team that are not completed
	IdleSince      time.Time // TeammateIdle
}

func (e *Event) aboutTask() bool { return e.Name == TaskCreated || e.Name == TaskCompleted }

// payload is the event in Claude Code's field names, followed by cadre's own. The pointers are for
// fields that one event has, even if they are empty, and another does not.
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

	TeamID         string         `json:"team_id,omitempty"`
	MemberID       string         `json:"member_id,omitempty"`
	DependentTasks *[]string      `json:"dependent_task_ids,omitempty"`
	Duration       *team.Duration `json:"duration_ms,omitempty"`
	Result         *string        `json:"result,omitempty"`
	CompletedTasks *[]string      `json:"completed_task_ids,omitempty"`
	RemainingTasks *int           `json:"remaining_tasks,omitempty"`
	IdleSince      *time.Time     `json:"idle_since,omitempty"`
}

// input returns the JSON object that a command reads, on one line.
func (e *Event) input(dir string) ([]byte, error) {
	p := payload{
		SessionID: e.SessionID, TranscriptPath: e.TranscriptPath, Dir: dir, Name: e.Name,
		Member: e.Member, TeamName: e.TeamName, TeamID: e.TeamID, MemberID: e.MemberID,
	}
	if e.aboutTask() {
		p.TaskID, p.TaskSubject, p.TaskDescription = &e.TaskID, &e.TaskSubject, &e.TaskDescription
		p.DependentTasks = list(e.DependentTasks)
		if e.Name == TaskCompleted {
			p.Duration, p.Result = (*team.Duration)(&e.Duration), &e.Result
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

// list returns a pointer to ids; an empty list is [] in JSON, not null.
func list(ids []string) *[]string {
	if ids == nil {
		ids = []string{}
	}
	return &ids
}

// environment returns the host's environment with the event added. CLAUDE_PROJECT_DIR is set
// because scripts written for Claude Code use it to find their project. CADRE_MEMBER_NAME,
// CADRE_TEAM_NAME and CADRE_TASK_TITLE are old names of CADRE_EVENT_MEMBER, CADRE_TEAM and
// CADRE_TASK_SUBJECT; the next version removes them.
func (e *Event) environment(dir string) []string {
	env := os.Environ()
	set := func(name, value string) { env = append(env, name+"="+fit(value)) }
	set("CLAUDE_PROJECT_DIR", dir)
	set("CADRE_PROJECT_DIR", dir)
	set("CADRE_HOOK_EVENT", e.Name)
	set("CADRE_TEAM_ID", e.TeamID)
	set("CADRE_TEAM", e.TeamName)
	set("CADRE_TEAM_NAME", e.TeamName)
	set("CADRE_TEAM_ROLE", e.Role)
	set("CADRE_MEMBER_ID", e.MemberID)
	set("CADRE_EVENT_MEMBER", e.Member)
	set("CADRE_MEMBER_NAME", e.Member)
	if !e.aboutTask() {
		set("CADRE_COMPLETED_TASKS", strings.Join(e.CompletedTasks, ","))
		set("CADRE_REMAINING_TASKS", strconv.Itoa(e.RemainingTasks))
		return env
	}
	set("CADRE_TASK_ID", e.TaskID)
	set("CADRE_TASK_NAME", e.TaskName)
	set("CADRE_TASK_SUBJECT", e.TaskSubject)
	set("CADRE_TASK_TITLE", e.TaskSubject)
	set("CADRE_DEPENDENT_TASKS", strings.Join(e.DependentTasks, ","))
	if e.Name == TaskCompleted {
		set("CADRE_COMPLETED_BY", e.Member)
		set("CADRE_TASK_DURATION", strconv.FormatInt(e.Duration.Milliseconds(), 10))
	}
	return env
}

// maxVariable bounds the length of a variable. The kernel refuses to start a command with a longer
// environment (128 KiB a variable on Linux, 1 MiB for all on macOS). The JSON on standard input is
// complete.
const maxVariable = 64 << 10

// fit shortens and cleans a value so that every environment accepts it.
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
