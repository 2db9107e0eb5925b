package checkpoint

import (
	"context"
	"fmt"
	"strings"

	"cadre/internal/team"
)

// format is the version of the checkpoints that are written. Checkpoints of version 1.0, which
// carry no work, can always be read.
const format = "2.0"

// version is the version in state.json. A cadre that reads only 1.0 shows it in its refusal, so it
// names the cadre to install.
const version = format + " (install cadre 2.0 or later)"

// readable reports whether this cadre reads checkpoints of that version. Another minor version only
// adds fields.
func readable(version string) bool {
	number, _, _ := strings.Cut(version, " ")
	major, minor, ok := strings.Cut(number, ".")
	return ok && minor != "" && (number == "1.0" || major == "2")
}

// Beside is what a checkpoint holds besides the team's state.
type Beside struct {
	Heartbeats map[string]team.Time // last heartbeat of each member
	Except     []string             // folders for data of cadre and Claude Code; links are followed
	// paths from the top of the work tree that are included from now on, whatever they contain
	Include   []string
	Completed []byte // the record of a team that was consolidated; nil for none
	// Nested makes checkpoints of the teams in the team, and returns those that exist, each with
	// its id, its name, and why it has no new one. Then the source has all that happened before. It
	// is nil if nothing is carried of them.
	Nested func(ctx context.Context, of team.Team) ([]Nested, error)
}

// document is state.json: the team at a glance. Its size depends on the team and its open work, not
// on finished work or long texts. The logs, and the sheets that it names, have what a team is
// restored from.
type document struct {
	Version       string            `json:"version"`
	TeamID        string            `json:"team_id"`
	TeamName      string            `json:"team_name"`
	Parent        string            `json:"parent_team_id,omitempty"` // of a nested team
	Sequence      int64             `json:"checkpoint_sequence"`      // number of the team's records that it covers
	History       string            `json:"history,omitempty"`        // which history, for a restored team
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
	Nested        []Nested          `json:"child_teams,omitempty"`
	Before        []Ended           `json:"histories_before,omitempty"` // histories that it continues, oldest first
	Released      bool              `json:"released,omitempty"`         // the machine released it
	Logs          [2]logEnd         `json:"logs"`
	Sheets        []sheet           `json:"restore_from"`
}

// Ended is a history of the team that another one continued from a checkpoint.
type Ended struct {
	History string `json:"history"` // "" for the team's first
	Seq     int64  `json:"checkpoint_sequence"`
}

type teammate struct {
	ID             string            `json:"id"`
	Index          int               `json:"index"`
	Agent          string            `json:"agent"`
	Role           string            `json:"role"`
	Quantum        string            `json:"quantum"` // which tasks it takes, also by its role
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
	Completed  []string `json:"completed"` // the last ones
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

// logEnd is the part of a log that belongs to a checkpoint.
type logEnd struct {
	Name  string `json:"name"`
	Parts int    `json:"parts"` // number of older parts
	Bytes int    `json:"bytes"` // of the newest part
	CRC   uint32 `json:"crc"`   // Castagnoli CRC of these bytes
}

// The logs, in their order in a document.
const (
	mailbox = iota
	tasks
)

var logs = [2]struct{ file, stem, ending string }{{"mailbox.log", "mailbox", ".log"},
	{"tasks.jsonl", "tasks", ".jsonl"}}

// Names of other files.
const (
	stateFile     = "state.json"
	readmeFile    = "README.md" // on a branch it is at the top of the tree
	completedFile = "COMPLETED"
)

// partFile returns the name of the older part n, from 1, of a log.
func partFile(log, n int) string {
	return fmt.Sprintf("%s/%04d/%04d%s", logs[log].stem, (n-1)/partsPerFolder, n, logs[log].ending)
}
