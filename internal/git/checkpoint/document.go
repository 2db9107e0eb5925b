package checkpoint

import (
	"fmt"
	"strings"

	"cadre/internal/team"
)

// format is the version that checkpoints are written in. Those of 1.0, which carry no work, are
// read for ever.
const format = "2.0"

// version is what state.json says. A cadre that reads 1.0 alone shows it in its refusal, so it
// names what to install.
const version = format + " (install cadre 2.0 or later)"

// readable reports whether this cadre reads checkpoints of that version. Those of another minor
// version have more in them, and nothing else.
func readable(version string) bool {
	number, _, _ := strings.Cut(version, " ")
	major, minor, ok := strings.Cut(number, ".")
	return ok && minor != "" && (number == "1.0" || major == "2")
}

// Beside is what a checkpoint tells of a team that is not in its state.
type Beside struct {
	Heartbeats map[string]team.Time // when each member was last heard of
	Except     []string             // folders in which cadre and Claude Code keep their own things; links are followed
	// paths from the top of the work tree that are carried from now on, whatever is in them
	Include   []string
	Completed []byte // the record of a team that was consolidated; nil for none
}

// document is state.json: the team at a glance. It is as large as the team and what it has in hand,
// whatever it has done and however long its texts are; what a team is restored from is in the logs
// and in the sheets that it names.
type document struct {
	Version       string            `json:"version"`
	TeamID        string            `json:"team_id"`
	TeamName      string            `json:"team_name"`
	Sequence      int64             `json:"checkpoint_sequence"` // records of the team that it covers
	History       string            `json:"history,omitempty"`   // of a team that was restored: which of its histories
	Created       team.Time         `json:"created_utc_ms"`
	Updated       team.Time         `json:"updated_utc_ms"`
	LeadSession   string            `json:"lead_session_id"`
	Status        team.TeamStatus   `json:"status"`
	TeammateCount int               `json:"teammate_count"`
	Teammates     []teammate        `json:"teammates"`
	Queue         queue             `json:"task_queue"`
	MailboxSeq    int64             `json:"mailbox_seq"`
	Facts         map[string]string `json:"facts_checksums"`
	Commit        string            `json:"git_commit_sha,omitempty"`
	Completed     string            `json:"completed_sha256,omitempty"` // of the file COMPLETED
	Work          Work              `json:"work"`
	Before        []Ended           `json:"histories_before,omitempty"` // of a team that was restored, the oldest first
	Released      bool              `json:"released,omitempty"`         // the machine has let go of it
	Logs          [2]logEnd         `json:"logs"`
	Sheets        []sheet           `json:"restore_from"`
}

// Ended is a history of the team that another one went on from, at a checkpoint.
type Ended struct {
	History string `json:"history"` // "" for the team's first
	Seq     int64  `json:"checkpoint_sequence"`
}

type teammate struct {
	ID             string            `json:"id"`
	Index          int               `json:"index"`
	Agent          string            `json:"agent"`
	Role           string            `json:"role"`
	Quantum        string            `json:"quantum"` // which tasks it takes: its role, too
	Status         team.MemberStatus `json:"status"`
	Task           string            `json:"task_claimed"`
	Context        int64             `json:"context_usage_percent"`
	Heartbeat      team.Time         `json:"heartbeat_utc_ms"`
	LastMessage    int64             `json:"last_message_seq"`
	LastCheckpoint int64             `json:"last_checkpoint_seq"`
}

type queue struct {
	Pending    []string `json:"pending"`
	InProgress []claim  `json:"in_progress"`
	Completed  []string `json:"completed"` // the last of them
	Count      int      `json:"completed_count"`
}

type claim struct {
	ID           string          `json:"id"`
	Quantum      string          `json:"quantum"`
	Subject      string          `json:"subject"`
	Assignee     string          `json:"assigned_to"`
	Dependencies []string        `json:"dependencies"`
	Status       team.TaskStatus `json:"status"`
	Created      team.Time       `json:"created_utc_ms"`
	Description  string          `json:"description"`
}

// logEnd is how far a log belongs to a checkpoint.
type logEnd struct {
	Name  string `json:"name"`
	Parts int    `json:"parts"` // older ones
	Bytes int    `json:"bytes"` // of the newest
	CRC   uint32 `json:"crc"`   // Castagnoli's, of these
}

// The logs, in the order in which a document has them.
const (
	mailbox = iota
	tasks
)

var logs = [2]struct{ file, stem, ending string }{{"mailbox.log", "mailbox", ".log"},
	{"tasks.jsonl", "tasks", ".jsonl"}}

// The names of other files.
const (
	stateFile     = "state.json"
	readmeFile    = "README.md" // of a branch it is at the top of the tree
	completedFile = "COMPLETED"
)

// partFile is the name of the older part n, from 1, of a log.
func partFile(log, n int) string {
	return fmt.Sprintf("%s/%04d/%04d%s", logs[log].stem, (n-1)/partsPerFolder, n, logs[log].ending)
}
