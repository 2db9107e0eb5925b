package teams

import (
	"time"

	"cadre/internal/run"
	"cadre/internal/run/teamfile"
	"cadre/internal/team"
)

// TeamFile is a parsed team file, as cadre run FILE uses it.
type TeamFile struct {
	Config TeamConfig // for [Manager.CreateTeam]
	Run    RunOptions // for [Team.Run]
	// Consolidate says that a call of [Team.Consolidate] should follow a successful run.
	Consolidate bool
}

// LoadTeamFile reads a team file. If the file has mistakes, LoadTeamFile returns ErrInvalid and
// lists all of them with line and column. cadre run can continue a team that was created from
// Config, and the other way round. If the file changed since then, [RunOptions.Changed] decides.
func LoadTeamFile(path string) (*TeamFile, error) {
	f, origin, err := run.LoadFile(path)
	if err != nil {
		return nil, &Error{Code: ErrInvalid, Text: err.Error(), cause: err}
	}
	t := &TeamFile{Consolidate: f.Consolidate, Run: RunOptions{ReportFile: f.Report.File, ReportTitle: f.Report.Title,
		sections: f.Report.Sections, leftOut: f.LeftOut(), file: f, origin: origin}}
	if t.Run.ReportFile == "" {
		t.Run.ReportFile = f.Name + "-report.md"
	}
	t.Config = TeamConfig{Name: f.Name, Goal: f.Goal, Lead: memberConfigOf(f.Leader), Delegate: f.Delegate,
		HandoverAt: f.Handover, MaxTeammates: f.MaxTeammates, CleanCheckout: f.Clean, WithCheckChanges: f.CheckChanges,
		Permissions: PermissionRules{Allow: f.Permissions.Allow, Policy: PermissionPolicy(f.Permissions.Policy),
			Timeout: f.Permissions.Timeout},
		Budget:   Budget(f.Budget),
		Liveness: Liveness(f.Liveness), origin: origin, digest: f.Digest(),
		fileDigests: run.TeamDigests(f), Metadata: f.Metadata}
	t.Config.Lead.Name = f.Lead
	for _, h := range run.Hooks(f.Hooks) {
		t.Config.Hooks = append(t.Config.Hooks, HookCommand{Event: HookName(h.Event), Command: h.Command,
			Timeout: h.Timeout})
	}
	if t.Config.Lead.PermissionMode == "" {
		t.Config.Lead.PermissionMode = PermissionMode(f.Permissions.Mode)
	}
	for _, c := range f.Checks {
		t.Config.Checks = append(t.Config.Checks, Check{Name: c.Name, Command: c.Run, Timeout: c.Timeout})
	}
	for _, one := range f.Facts {
		t.Config.Facts = append(t.Config.Facts, SharedFact{Name: one.Name, Path: one.Path})
	}
	for _, m := range f.Members {
		t.Config.Members = append(t.Config.Members, memberConfigOf(m))
	}
	for _, one := range run.Tasks(f) {
		t.Config.Tasks = append(t.Config.Tasks, taskConfigOf(one))
	}
	return t, nil
}

func memberConfigOf(m teamfile.Member) MemberConfig {
	return MemberConfig{Name: m.Name, Agent: m.Agent, Role: m.Role, Prompt: m.Prompt, Model: m.Model,
		Program: m.Command, Args: m.Args, Env: m.Env, PermissionMode: PermissionMode(m.Mode),
		PlanApproval: m.PlanApproval, Isolation: Isolation(m.Isolation),
		Budget: Budget(m.Budget), fileDigests: run.MemberDigests(m)}
}

func taskConfigOf(c *team.CreateTask) TaskConfig {
	return TaskConfig{Name: c.Name, Subject: c.Subject, Description: c.Description, Owner: c.Owner, Role: c.Role,
		BlockedBy: c.BlockedBy, Priority: Priority(c.Priority), Run: c.Run, RunIn: RunIn(c.In),
		RunDir: c.Dir, RunEnv: c.Env, When: When(c.When), Timeout: c.Timeout, Retries: int(c.Retries),
		Metadata: c.Metadata, fileDigests: c.FileDigests}
}

// RunIn is where the command of a task runs.
type RunIn string

// The places.
const (
	RunInPlace  RunIn = ""       // where its member works
	RunInMerged RunIn = "merged" // in a worktree with the merged work of the tasks that it depends on
)

// When is when a task may start.
type When string

// The conditions.
const (
	WhenDone   When = ""          // when every task that it depends on is completed
	WhenAlways When = team.Always // when every task that it depends on is completed or cannot be completed any more
)

// Liveness has the time limits of failure detection and checkpoints. 0 means the default.
type Liveness struct {
	Beat        time.Duration // between two heartbeats of a member; 30 s
	Offline     time.Duration // silence after which a member is offline; 10 minutes
	LeadLost    time.Duration // silence after which the lead is lost; 5 minutes
	Zombie      time.Duration // how long a teammate continues without a lead; 30 minutes
	Blocked     time.Duration // how long a blocked teammate keeps its task without a lead; 10 minutes
	Undelivered time.Duration // how long a message waits before the lead is told of it; 5 minutes
	Stale       time.Duration // silence after which another session may take the lead; 30 minutes
	Checkpoint  time.Duration // between two checkpoints of a team in which something happens; 30 s
}

func (l Liveness) core() team.Timing {
	return team.Timing(l)
}

// livenessOf returns the effective values, with the defaults.
func livenessOf(t team.Timing) Liveness {
	return Liveness(t.OrDefaults())
}
