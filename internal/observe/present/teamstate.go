package present

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"cadre/internal/observe/protocol"
	"cadre/internal/team"
)

// TeamState is a team as consumers see it: one JSON object. Members are the teammates, without the
// lead.
type TeamState struct {
	Name    string       `json:"name"`
	Role    string       `json:"role"` // role of the observed session: lead or teammate
	Members []TeamMember `json:"members"`
	Tasks   []TeamTask   `json:"tasks"`
}

// TeamMember is a teammate. A teammate that has shut down stays in the list.
type TeamMember struct {
	Name string `json:"name"`
	// AgentID is the spawn's, or otherwise made from the names of member and team as Claude Code
	// does.
	AgentID   string `json:"agentId"`
	AgentType string `json:"agentType"` // "unknown" if the spawn was not seen
	Status    string `json:"status"`    // statusActive, statusIdle or statusShutdown
	Model     string `json:"model,omitempty"`
	Color     string `json:"color,omitempty"`
}

// TeamTask is a task that was not deleted.
type TeamTask struct {
	ID          string   `json:"id"`
	Subject     string   `json:"subject"`
	Description string   `json:"description,omitempty"`
	Status      string   `json:"status"` // pending, in_progress, completed
	Owner       string   `json:"owner,omitempty"`
	ActiveForm  string   `json:"activeForm,omitempty"`
	BlockedBy   []string `json:"blockedBy"`
	Blocks      []string `json:"blocks"`
}

// Roles of an observed session.
const (
	RoleLead     = "lead"
	RoleTeammate = "teammate"
)

// StateOf returns the consumers' view of a state, or nil if there is no team or it was removed. The
// state may come from a journal; no observer is needed.
func StateOf(s *team.State) *TeamState {
	if s == nil || !s.Exists() {
		return nil
	}
	t := s.Team()
	out := &TeamState{Name: t.Name, Role: roleOf(s), Members: []TeamMember{}, Tasks: []TeamTask{}}
	for _, m := range s.Members() {
		if m.Name != t.Lead {
			out.Members = append(out.Members, memberOf(s, &m))
		}
	}
	for task := range s.Tasks() {
		out.Tasks = append(out.Tasks, taskOf(s, &task))
	}
	return out
}

// roleOf returns the role of the observed session. It is the lead's if the lead's session was seen.
func roleOf(s *team.State) string {
	if lead, ok := s.Member(s.Team().Lead); ok && lead.Session != "" {
		return RoleLead
	}
	return RoleTeammate
}

// Statuses of a member.
const (
	statusActive   = "active"
	statusIdle     = "idle"
	statusShutdown = "shutdown"
)

// unknownType is the agentType of a teammate whose spawn was not seen.
const unknownType = "unknown"

func memberOf(s *team.State, m *team.Member) TeamMember {
	status := statusActive
	switch {
	case m.Status == team.Idle:
		status = statusIdle
	case m.Status == team.ShuttingDown || !m.Status.Running():
		status = statusShutdown
	}
	t := s.Team()
	return TeamMember{Name: m.Name, AgentID: cmp.Or(m.Session, m.Name+"@"+cmp.Or(t.Observed, t.Name)),
		AgentType: cmp.Or(m.Role, unknownType), Status: status,
		Model: m.Model, Color: m.Color}
}

func taskOf(s *team.State, t *team.Task) TeamTask {
	there := func(ids []string) []string { // Claude Code drops dependencies on deleted tasks
		kept := []string{}
		for _, id := range ids {
			if other, ok := s.Task(id); ok && other.Status != team.Deleted {
				kept = append(kept, id)
			}
		}
		protocol.SortTasks(kept)
		return kept
	}
	return TeamTask{ID: t.ID, Subject: t.Subject, Description: t.Description, Status: string(t.Status), Owner: t.Owner,
		ActiveForm: t.ActiveForm,
		BlockedBy:  there(t.BlockedBy), Blocks: there(t.Blocks)}
}

// ReadTeamState decodes a TeamState that was persisted, also by an older version with fewer fields.
func ReadTeamState(data []byte) (*TeamState, error) {
	var t TeamState
	if err := json.Unmarshal(data, &t); err != nil {
		return nil, fmt.Errorf("not a team's state: %w", err)
	}
	if t.Name == "" || t.Role != RoleLead && t.Role != RoleTeammate || t.Members == nil || t.Tasks == nil {
		return nil, fmt.Errorf("not a team's state: it lacks a name, a role, members or tasks")
	}
	for _, m := range t.Members {
		if err := m.valid(); err != nil {
			return nil, err
		}
	}
	for _, task := range t.Tasks {
		if err := task.valid(); err != nil {
			return nil, err
		}
	}
	return &t, nil
}

// Known returns the members and the tasks, as far as consumers see them.
func (t *TeamState) Known() (members []team.Member, tasks []team.Task) {
	for _, m := range t.Members {
		status := map[string]team.MemberStatus{statusIdle: team.Idle, statusShutdown: team.Stopped}[m.Status]
		members = append(members, team.Member{Name: m.Name, Session: m.AgentID, Role: m.AgentType, Model: m.Model,
			Color: m.Color, Status: cmp.Or(status, team.Active)})
	}
	for _, k := range t.Tasks {
		tasks = append(tasks, team.Task{ID: k.ID, Subject: k.Subject, Description: k.Description,
			ActiveForm: k.ActiveForm, Owner: k.Owner, Status: team.TaskStatus(k.Status), BlockedBy: k.BlockedBy,
			Blocks: k.Blocks})
	}
	return members, tasks
}

func (m *TeamMember) valid() error {
	if m.Name == "" || !slices.Contains([]string{statusActive, statusIdle, statusShutdown}, m.Status) {
		return fmt.Errorf("not a member: name %.40q, status %.40q", m.Name, m.Status)
	}
	return nil
}

func (t *TeamTask) valid() error {
	if protocol.TaskNumber(t.ID) == 0 || !slices.Contains([]string{"pending", "in_progress", "completed", "deleted"},
		t.Status) || t.BlockedBy == nil || t.Blocks == nil {
		return fmt.Errorf("not a task: id %.40q, status %.40q", t.ID, t.Status)
	}
	return nil
}
