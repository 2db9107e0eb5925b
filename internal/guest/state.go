package guest

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"cadre/internal/claude/projection"
	"cadre/internal/claude/teamfiles"
	"cadre/internal/team"
)

// These are the keys of our fields of a task in the metadata of Claude Code's task files.
const (
	keyResult   = "result"
	keyFailure  = "failure"
	keyRun      = "run" // command for a shell member
	keyRole     = "role"
	keyPriority = "priority"
)

// maxTasks bounds the ids that are accepted as ids of tasks.
const maxTasks = 100_000

// self is what a member knows about itself that the files do not record.
type self struct {
	name, agent string
	dir         string
	mode        string
	plan        team.Plan
	shutdown    team.Shutdown
	worker      bool // it runs only tasks with a command
}

// stateOf returns the team as its files describe it.
func stateOf(c projection.Config, tasks []teamfiles.Task, me self) *team.State {
	lead, _, _ := strings.Cut(c.LeadAgentID, "@")
	if !team.ValidName(lead) {
		lead = teamfiles.Lead
	}
	e := &team.TeamRestored{Team: team.Team{ID: teamID(c), Name: c.Name, Status: team.TeamActive, Dir: me.dir,
		Lead: lead, CreatedAt: team.Time(c.CreatedAt)}}
	for _, m := range c.Members {
		if !team.ValidName(m.Name) || slices.ContainsFunc(e.Members,
			func(o team.Member) bool { return o.Name == m.Name }) {
			continue
		}
		e.Members = append(e.Members, memberOf(m, me))
	}
	at := slices.IndexFunc(e.Members, func(m team.Member) bool { return m.Name == lead })
	first := team.Member{Name: lead, Agent: team.External, Status: team.Active, Incarnation: 1}
	if at >= 0 {
		first = e.Members[at]
		e.Members = slices.Delete(e.Members, at, at+1)
	}
	first.Role = ""
	e.Members = slices.Insert(e.Members, 0, first)
	e.Tasks = tasksOf(tasks, me.worker)
	s := &team.State{}
	s.Apply(&team.Record{Seq: 1, ID: "files", Events: []team.Event{e}})
	return s
}

func teamID(c projection.Config) string { return c.Name + "/" + c.LeadSessionID }

func memberOf(m teamfiles.Member, me self) team.Member {
	o := team.Member{Name: m.Name, Agent: team.External, Status: team.Active, Role: m.AgentType, Incarnation: 1,
		PermissionMode: m.Mode, JoinedAt: team.Time(m.JoinedAt)}
	if m.IsActive != nil && !*m.IsActive {
		o.Status = team.Idle
	}
	if m.Name == me.name {
		o.Agent, o.Status, o.PermissionMode, o.Plan, o.Shutdown = me.agent, team.Active, me.mode, me.plan, me.shutdown
	}
	return o
}

// tasksOf returns one entry for every id. An id without a file is a deleted task, and Claude Code's
// own notes are hidden from members.
func tasksOf(tasks []teamfiles.Task, worker bool) []team.Task {
	var all []team.Task
	there := map[string]bool{}
	for _, t := range tasks {
		n, err := strconv.Atoi(t.ID)
		if err != nil || n <= len(all) || n > maxTasks {
			continue
		}
		for len(all) < n-1 {
			all = append(all, team.Task{ID: strconv.Itoa(len(all) + 1), Status: team.Deleted,
				Priority: team.DefaultPriority})
		}
		all = append(all, taskOf(t, worker))
		there[t.ID] = all[n-1].Status != team.Deleted
	}
	gone := func(id string) bool { return !there[id] }
	for i := range all {
		all[i].BlockedBy, all[i].Blocks = slices.DeleteFunc(all[i].BlockedBy, gone),
			slices.DeleteFunc(all[i].Blocks, gone)
	}
	return all
}

func taskOf(t teamfiles.Task, worker bool) team.Task {
	word := func(key string) (s string) {
		json.Unmarshal(t.Metadata[key], &s)
		return s
	}
	o := team.Task{ID: t.ID, Subject: t.Subject, Description: t.Description, ActiveForm: t.ActiveForm,
		Status: team.TaskStatus(t.Status), Owner: t.Owner, Assigned: t.Owner != "",
		BlockedBy: slices.Clone(t.BlockedBy), Blocks: slices.Clone(t.Blocks), Run: word(keyRun),
		Result: word(keyResult), Failure: word(keyFailure), Role: word(keyRole),
		Priority: word(keyPriority), Metadata: t.Metadata}
	if !slices.Contains(team.Priorities, o.Priority) {
		o.Priority = team.DefaultPriority
	}
	var internal bool
	switch json.Unmarshal(t.Metadata["_internal"], &internal); {
	case internal:
		o.Status = team.Deleted
	case o.Status == team.Completed:
		o.CompletedBy = t.Owner
	case o.Status == team.InProgress:
		o.Fence = 1 // files do not count claims: a claim holds as long as its owner is named
	default:
		o.Status = team.Pending
	}
	if o.Failure != "" && o.Status == team.Pending {
		o.Failures = 1 // failed, until a member claims it by its id
	}
	if worker && o.Run == "" && o.Owner == "" {
		o.Role = "a member with a model" // a task without a command is not for a worker
	}
	return o
}
