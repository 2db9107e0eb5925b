package coordinator

import (
	"cmp"
	"encoding/json"
	"maps"

	"cadre/internal/inspect/history"
	"cadre/internal/team"
)

// metadataKey is the key of the metadata of teams and messages with what the protocol has and cadre
// has not. Clients do not see it.
const metadataKey = "websocket"

// teamExtra is what the metadata of a team has below [metadataKey].
type teamExtra struct {
	LeadSessionID string `json:"leadSessionId"`
	TeammateMode  string `json:"teammateMode"`
}

// messageExtra is what the metadata of a message has below [metadataKey].
type messageExtra struct {
	Type string `json:"type"`
}

// The modes in which teammates run.
const (
	modeInProcess = "in-process" // in a process of their host
	modeTmux      = "tmux"       // in a terminal that a person can open, where the agent has one
	modeAuto      = "auto"
)

// extraOf reads what the metadata has below [metadataKey]. What cannot be read is as if missing:
// other programs may write metadata, too.
func extraOf[E any](metadata map[string]json.RawMessage) (extra E) {
	var read E
	if raw, there := metadata[metadataKey]; there && json.Unmarshal(raw, &read) == nil {
		extra = read
	}
	return extra
}

// ownOf returns the metadata without what is below [metadataKey].
func ownOf(metadata map[string]json.RawMessage) map[string]json.RawMessage {
	if _, there := metadata[metadataKey]; !there {
		return metadata
	}
	own := maps.Clone(metadata)
	delete(own, metadataKey)
	return own
}

// with returns the client's metadata with extra below [metadataKey].
func with(metadata map[string]json.RawMessage, extra any) map[string]json.RawMessage {
	all := maps.Clone(metadata)
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	all[metadataKey], _ = json.Marshal(extra) // a struct of texts
	return all
}

// nestedKey is the key of the metadata that says where a nested team is.
const nestedKey = "nested"

// inTree returns the metadata with the place of the nested team, for which the protocol has no
// fields.
func inTree(metadata map[string]json.RawMessage, t *team.Team) map[string]json.RawMessage {
	all := maps.Clone(metadata)
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	all[nestedKey], _ = json.Marshal(struct {
		Parent string `json:"parentTeamId"`
		Member string `json:"parentMemberId"`
		Task   string `json:"parentTaskId"`
		Depth  int64  `json:"depth"`
	}{t.Parent.Team, t.Parent.Member, t.Parent.Task, t.Depth})
	return all
}

// idOf returns what clients name the team by. An observed team is found by its name alone, which is
// unique.
func idOf(t *team.Team) string {
	if t.Observed != "" {
		return t.Name
	}
	return t.ID
}

// leadSession returns the id of the session that leads, as the creator of the team calls it.
func leadSession(t *team.Team) string {
	return cmp.Or(extraOf[teamExtra](t.Metadata).LeadSessionID, t.LeadSession)
}

// teamOf returns a team as clients see it.
func teamOf(s *team.State) TeamConfig {
	t := s.Team()
	extra := extraOf[teamExtra](t.Metadata)
	c := TeamConfig{ID: idOf(&t), Name: t.Name, LeadSessionID: leadSession(&t),
		TeammateMode: cmp.Or(extra.TeammateMode, modeAuto), ResolvedBackend: modeInProcess,
		MaxTeammates: cmp.Or(t.MaxTeammates, team.DefaultMaxTeammates), DelegateMode: t.Delegate,
		CreatedAt: Time(t.CreatedAt), Status: "active", Members: []TeamMember{},
		Metadata: ownOf(t.Metadata)}
	if t.Depth > 0 {
		c.Metadata = inTree(c.Metadata, &t)
	}
	if c.TeammateMode == modeTmux {
		c.ResolvedBackend = modeTmux
	}
	switch {
	case t.CleanedUp:
		c.Status = "cleaned-up"
	case t.Status != team.TeamPending && t.Status != team.TeamActive:
		c.Status = "shutting-down"
	}
	assigned := map[string][]string{}
	for task := range s.Tasks() {
		if task.Owner != "" && task.Status != team.Completed {
			assigned[task.Owner] = append(assigned[task.Owner], task.ID)
		}
	}
	for _, m := range s.Roster() {
		c.Members = append(c.Members, memberOf(&t, &m, assigned[m.Name]))
	}
	return c
}

// memberIn returns the member of that name as clients see it.
func memberIn(s *team.State, name string) TeamMember {
	for _, m := range teamOf(s).Members {
		if m.ID == name {
			return m
		}
	}
	return TeamMember{AssignedTasks: []string{}}
}

func memberOf(t *team.Team, m *team.Member, assigned []string) TeamMember {
	is := TeamMember{ID: m.Name, Name: m.Name, SessionID: m.Session, Role: m.Role, AgentType: m.Agent, Status: "active",
		AssignedTasks: append([]string{}, assigned...), SpawnPrompt: m.Prompt, PlanApprovalRequired: m.Plan.Required,
		Model: m.Model, JoinedAt: Time(m.JoinedAt)}
	if m.Name == t.Lead && is.SessionID == "" {
		is.SessionID = leadSession(t)
	}
	switch {
	case !m.Status.Running():
		is.Status = "stopped"
	case m.Status == team.ShuttingDown || m.Shutdown.Request != "" && m.Shutdown.Answer != "rejected":
		is.Status = "shutting-down"
	case m.Status == team.Spawning || m.Status == team.Idle:
		is.Status = string(m.Status)
	}
	return is
}

// taskOf returns a task as clients see it.
func taskOf(s *team.State, t *team.Task) SharedTask {
	of := s.Team()
	is := SharedTask{ID: t.ID, TeamID: idOf(&of), Title: t.Subject, Description: t.Description,
		Status: string(t.Status), Priority: cmp.Or(t.Priority, team.DefaultPriority), AssigneeID: t.Owner,
		Dependencies: append([]string{}, t.BlockedBy...), CreatedBy: t.CreatedBy, CreatedAt: Time(t.CreatedAt),
		UpdatedAt: Time(t.UpdatedAt), Metadata: t.Metadata}
	if t.Status == team.Pending && len(t.Blocked()) > 0 {
		is.Status = "blocked"
	}
	if t.Status == team.Completed {
		is.CompletedAt = when(t.CompletedAt)
	}
	return is
}

// tasksOf returns the tasks of a team as clients see them.
func tasksOf(s *team.State) TasksPayload {
	of := s.Team()
	all := TasksPayload{TeamID: idOf(&of), Tasks: []SharedTask{}}
	for t := range s.Tasks() {
		all.Tasks = append(all.Tasks, taskOf(s, &t))
	}
	return all
}

// messageTypes are the types of messages as clients see them.
var messageTypes = map[string]string{
	team.TypeMessage: "direct", team.TypeBroadcast: "broadcast", team.TypePlanRequest: "plan_approval",
	team.TypePlanResponse: "plan_approval", team.TypeTaskAssignment: "task_update",
}

// messageOf returns a message as clients see it. at is the time of its record.
func messageOf(t *team.Team, m *team.Message, at team.Time) TeamMessage {
	is := TeamMessage{ID: number(m.Seq), TeamID: idOf(t), FromID: m.From, Type: cmp.Or(messageTypes[m.Type], "system"),
		Content: m.Body, Priority: cmp.Or(m.Priority, "normal"), SentAt: Time(at), Metadata: ownOf(m.Metadata)}
	if m.Type == team.TypeMessage {
		is.Type = cmp.Or(extraOf[messageExtra](m.Metadata).Type, is.Type)
	}
	if m.To != "*" {
		is.ToID = &m.To
	}
	return is
}

// mailOf returns a message in the mail of a member as clients see it.
func mailOf(t *team.Team, l *history.MailboxMessage) TeamMessage {
	is := messageOf(t, &l.Message, l.SentAt)
	is.DeliveredAt, is.ReadAt = when(l.DeliveredAt), when(l.ReadAt)
	return is
}

// when returns a time that may be missing: nil for 0.
func when(at team.Time) *Time {
	if at == 0 {
		return nil
	}
	is := Time(at)
	return &is
}
