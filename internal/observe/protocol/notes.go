package protocol

import (
	"encoding/json"

	"cadre/internal/team"
)

// FileNote is one observation about the files of a Claude Code team. A follower of the files sends
// notes, as JSON, among the lines. So they are combined with the output of the agents, replayed and
// kept like any line.
//
// A note has one of Config, Gone, Task, Removed, Entry and Whole.
type FileNote struct {
	Type string    `json:"type"` // [FileNoteType]; the first field, which distinguishes notes from other lines
	Team string    `json:"team"`
	At   team.Time `json:"at"` // when the files were in this state
	// N counts the notes of one follower, so that no two are equal, and repeated ones are
	// recognised. It is 0 for a note that the team does not exist.
	N int64 `json:"n"`

	Config  json.RawMessage `json:"config,omitempty"`  // content of config.json
	Gone    bool            `json:"gone,omitempty"`    // config.json was removed
	Task    json.RawMessage `json:"task,omitempty"`    // content of a task's file
	Removed string          `json:"removed,omitempty"` // id of a task whose file was removed
	To      string          `json:"to,omitempty"`      // owner of the inbox that Entry is or was in
	Entry   json.RawMessage `json:"entry,omitempty"`
	Key     string          `json:"key,omitempty"`   // identifies the entry
	Taken   bool            `json:"taken,omitempty"` // the entry was delivered
	Whole   *Whole          `json:"whole,omitempty"`
}

// FileNoteType is the type of a [FileNote].
const FileNoteType = "claude-team-files"

// Whole says that everything in the files has been reported at least once. Anything known about the
// team that is not listed here was removed in the meantime.
type Whole struct {
	// Tasks are ids, or nil if there is no folder of tasks because Claude Code removed it.
	Tasks   []string            `json:"tasks"`
	Waiting map[string][]uint64 `json:"waiting"` // the [Mark] of each waiting entry, by readable inbox
}

// ConfigFile has the relevant fields of config.json.
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

// TaskFile is a task's file. For a dependency, the file of the waiting task is authoritative.
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

// Mark returns a hash that is equal for messages with equal sender, recipient and text.
func Mark(from, to, body string) uint64 { return Hash(from + "\x00" + to + "\x00" + body) }
