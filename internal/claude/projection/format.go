package projection

import (
	"bytes"
	"crypto/sha1"
	"encoding/json"
	"fmt"
	"slices"

	"cadre/internal/team"
)

// Config is teams/<team>/config.json.
type Config struct {
	Cadre         *Owner       `json:"cadre,omitempty"` // first, so that readers find it without reading the rest
	Name          string       `json:"name"`
	Description   string       `json:"description,omitempty"`
	CreatedAt     int64        `json:"createdAt"` // milliseconds since 1970, like all times here
	LeadAgentID   string       `json:"leadAgentId"`
	LeadSessionID string       `json:"leadSessionId"`
	LeadProcess   *LeadProcess `json:"leadProcess,omitempty"` // written by Claude Code, never by cadre
	Members       []Member     `json:"members"`
}

// Member returns a pointer to the roster's entry of that name, or nil. The caller may modify the
// entry.
func (c *Config) Member(name string) *Member {
	if i := slices.IndexFunc(c.Members, func(m Member) bool { return m.Name == name }); i >= 0 {
		return &c.Members[i]
	}
	return nil
}

// Owner identifies the cadre team to which a folder belongs.
type Owner struct {
	TeamID    string `json:"teamId"`
	CreatedAt int64  `json:"createdAt"`
	// Seq is the state's seq when this file was written. The mark may be ahead of it, because the
	// file is not rewritten while its content stays the same.
	Seq int64 `json:"seq"`
}

// LeadProcess is the Claude Code process that leads one of its own teams.
type LeadProcess struct {
	PID       int    `json:"pid"`
	PIDSpace  string `json:"pidSpace"`
	ClaimedAt int64  `json:"claimedAt"`
	ProcStart string `json:"procStart"`
}

// Member is an entry of the roster. Pointer fields are set for teammates only.
type Member struct {
	AgentID          string   `json:"agentId"` // name@team
	Name             string   `json:"name"`
	AgentType        string   `json:"agentType"` // "team-lead" for the lead
	Model            *string  `json:"model,omitempty"`
	Prompt           *string  `json:"prompt,omitempty"`
	Color            string   `json:"color,omitempty"`
	PlanModeRequired *bool    `json:"planModeRequired,omitempty"`
	JoinedAt         int64    `json:"joinedAt"`
	TmuxPaneID       string   `json:"tmuxPaneId"` // "leader", "in-process" or a pane
	Cwd              string   `json:"cwd"`
	Subscriptions    []string `json:"subscriptions"`
	BackendType      string   `json:"backendType,omitempty"`
	IsActive         *bool    `json:"isActive,omitempty"` // false while it is idle
	Mode             string   `json:"mode,omitempty"`     // permission mode
}

// Task is tasks/<team>/<id>.json.
type Task struct {
	ID          string   `json:"id"`
	Subject     string   `json:"subject"`
	Description string   `json:"description"`
	ActiveForm  string   `json:"activeForm,omitempty"`
	Owner       string   `json:"owner,omitempty"`
	Status      string   `json:"status"` // pending, in_progress or completed
	Blocks      []string `json:"blocks"`
	// BlockedBy keeps completed tasks and loses deleted ones.
	BlockedBy []string                   `json:"blockedBy"`
	Metadata  map[string]json.RawMessage `json:"metadata,omitempty"`
}

// colors lists the colors of teammates in the order in which Claude Code assigns them.
var colors = []string{"blue", "green", "yellow", "purple", "orange", "pink", "cyan", "red"}

// Color returns the color of the member that joined as number n after the lead, so that members
// keep their colors when others end.
func Color(n int) string { return colors[(n-1)%len(colors)] }

// configOf returns the roster of the team, under the name of its folders. panes has the members
// that are shown in panes; the others are shown in the process that runs them. Like Claude Code's
// roster, it does not include members that have ended.
func configOf(s *team.State, name string, panes map[string]Pane) *Config {
	t := s.Team()
	t.Name = name
	c := &Config{
		Cadre:         &Owner{TeamID: t.ID, CreatedAt: int64(t.CreatedAt), Seq: s.Seq()},
		Name:          t.Name,
		Description:   t.Goal,
		CreatedAt:     int64(t.CreatedAt),
		LeadAgentID:   t.Lead + "@" + t.Name,
		LeadSessionID: sessionID(t.ID),
		Members:       []Member{},
	}
	for i, m := range s.Members() {
		lead := m.Name == t.Lead
		if !lead && !m.Status.Running() {
			continue
		}
		entry := Member{AgentID: m.Name + "@" + t.Name, Name: m.Name, JoinedAt: int64(m.JoinedAt), Cwd: t.Dir,
			Subscriptions: []string{}, BackendType: "in-process"}
		if lead {
			entry.AgentType, entry.TmuxPaneID = "team-lead", "leader"
		} else {
			entry.AgentType, entry.TmuxPaneID = m.Role, "in-process"
			if m.Role == "" {
				entry.AgentType = m.Agent
			}
			entry.Model, entry.Prompt, entry.Mode = &m.Model, &m.Prompt, m.PermissionMode
			entry.Color = Color(i)
			if p, shown := panes[m.Name]; shown {
				entry.BackendType, entry.TmuxPaneID = p.Backend, p.ID
			}
			entry.PlanModeRequired = new(m.Plan.Required)
			entry.IsActive = new(m.Status == team.Spawning || m.Status == team.Active)
		}
		c.Members = append(c.Members, entry)
	}
	return c
}

// taskOf returns the file content of a task that was not deleted.
func taskOf(s *team.State, t *team.Task) *Task {
	return &Task{ID: t.ID, Subject: t.Subject, Description: t.Description, ActiveForm: t.ActiveForm, Owner: t.Owner,
		Status: string(t.Status), Blocks: undeleted(s, t.Blocks), BlockedBy: undeleted(s, t.BlockedBy),
		Metadata: t.Metadata}
}

func undeleted(s *team.State, ids []string) []string {
	if s.Count(team.Deleted) == 0 {
		return append([]string{}, ids...)
	}
	kept := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !s.Listed(id) })
	return append([]string{}, kept...) // never null
}

// highestID returns the number of tasks that the team has ever had. Ids count from 1 without a gap.
func highestID(s *team.State) int {
	return s.Count(team.Pending) + s.Count(team.InProgress) + s.Count(team.Completed) + s.Count(team.Deleted)
}

// namespace of the session ids: an arbitrary UUID that no other program uses.
var namespace = [16]byte{0x6d, 0x1f, 0x0c, 0x52, 0x3b, 0x8e, 0x4a, 0x97, 0x9c, 0x44, 0xe1, 0x70, 0x25, 0xb6, 0xd8, 0x03}

// sessionID returns the UUID (version 5) that stands for the lead's session. It never changes for a
// team.
func sessionID(teamID string) string {
	sum := sha1.Sum(append(namespace[:], teamID...))
	id := sum[:16]
	id[6] = id[6]&0x0f | 0x50
	id[8] = id[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// Encode encodes v as Claude Code does: indented by two spaces, with <, > and & unescaped, and
// without a newline at the end.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
