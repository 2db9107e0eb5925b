package protocol

import (
	"encoding/json"

	"cadre/internal/team"
)

// FileNote is one thing that the files of a team of Claude Code's show. Whoever follows them gives
// the notes, as JSON, among the lines: what the files show of a team is then brought together with
// what its agents say, replayed and kept like any line.
//
// A note has one of Config, Gone, Task, Removed, Entry and Whole.
type FileNote struct {
	Type string    `json:"type"` // [FileNoteType]; the first field, by which it is told from other lines
	Team string    `json:"team"`
	At   team.Time `json:"at"` // when the files were so
	// counts the notes of one follower: no two are alike, and one that comes again is known; 0 for
	// that the team is not there
	N int64 `json:"n"`

	Config  json.RawMessage `json:"config,omitempty"`  // config.json, whole
	Gone    bool            `json:"gone,omitempty"`    // config.json is not there any more
	Task    json.RawMessage `json:"task,omitempty"`    // a task's file, whole
	Removed string          `json:"removed,omitempty"` // the id of a task whose file is not there any more
	To      string          `json:"to,omitempty"`      // in whose inbox Entry is, or was
	Entry   json.RawMessage `json:"entry,omitempty"`
	Key     string          `json:"key,omitempty"`   // of the entry, by which it is known again
	Taken   bool            `json:"taken,omitempty"` // the entry was delivered
	Whole   *Whole          `json:"whole,omitempty"`
}

// FileNoteType is the type of a [FileNote].
const FileNoteType = "claude-team-files"

// Whole says that everything in the files was told at least once: what is known of the team and not
// in here went while nobody looked.
type Whole struct {
	// ids; nil where there is no folder of tasks, because Claude Code swept it away
	Tasks   []string            `json:"tasks"`
	Waiting map[string][]uint64 `json:"waiting"` // the [Mark] of each entry that waits, by inboxes that can be read
}

// ConfigFile is what of config.json is of interest.
type ConfigFile struct {
	CreatedAt   team.Time      `json:"createdAt"`
	Description string         `json:"description"`
	LeadID      string         `json:"leadAgentId"`
	LeadSession string         `json:"leadSessionId"`
	Members     []configMember `json:"members"`
}

type configMember struct {
	AgentID  string    `json:"agentId"`
	Name     string    `json:"name"`
	Type     string    `json:"agentType"`
	Model    string    `json:"model"`
	Prompt   string    `json:"prompt"`
	Color    string    `json:"color"`
	Planned  bool      `json:"planModeRequired"`
	JoinedAt team.Time `json:"joinedAt"`
	Dir      string    `json:"cwd"`
	Active   *bool     `json:"isActive"`
}

// TaskFile is a task's file. Of a dependency the file of the task that waits is right.
type TaskFile struct {
	ID          string                     `json:"id"`
	Subject     string                     `json:"subject"`
	Description string                     `json:"description"`
	ActiveForm  string                     `json:"activeForm"`
	Owner       string                     `json:"owner"`
	Status      string                     `json:"status"`
	BlockedBy   []string                   `json:"blockedBy"`
	Metadata    map[string]json.RawMessage `json:"metadata"`
}

// InboxEntry is an entry of an inbox.
type InboxEntry struct {
	From    string `json:"from"`
	Text    string `json:"text"`
	Summary string `json:"summary"`
}

// Mark is what messages of one kind have in common.
func Mark(from, to, body string) uint64 { return Hash(from + "\x00" + to + "\x00" + body) }
