package present

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"cadre/internal/observe/protocol"
	"cadre/internal/team"
)

// TeamState is a team as consumers see it, in one JSON object. Members are the teammates: the lead
// is not among them.
type TeamState struct {
	Name    string       `json:"name"`
	Role    string       `json:"role"` // of the session that is observed: lead or teammate
	Members []TeamMember `json:"members"`
	Tasks   []TeamTask   `json:"tasks"`
}

// TeamMember is a teammate. Who has shut down stays in the list.
type TeamMember struct {
	Name string `json:"name"`
	// as Claude Code makes it of the names of member and team, where no spawn said it
	AgentID   string `json:"agentId"`
	AgentType string `json:"agentType"` // unknown where no spawn said it
	Status    string `json:"status"`    // statusActive, idle or statusShutdown
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

// The roles of an observed session.
const (
	RoleLead     = "lead"
	RoleTeammate = "teammate"
)

// StateOf shows a state; nil where there is no team, or none any more. It needs no observer: a
// journal's state will do.
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

// roleOf is the role of the session that is observed. It is the lead's where the lead has shown
// itself.
func roleOf(s *team.State) string {
	if lead, ok := s.Member(s.Team().Lead); ok && lead.Session != "" {
		return RoleLead
	}
	return RoleTeammate
}

// The statuses of a member.
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
	there := func(ids []string) []string { // Claude Code forgets a dependency on what was deleted
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

// ReadTeamState reads a TeamState that was persisted, also by a version that knew less of it.
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

// Known are the members and the tasks, as far as consumers see them.
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
