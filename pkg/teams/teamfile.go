package teams

import (
	"path/filepath"
	"time"

	"cadre/internal/layout"
	"cadre/internal/run"
	"cadre/internal/run/teamfile"
	"cadre/internal/run/templates"
	"cadre/internal/team"
)

// TeamFile is a parsed team file, as cadre run FILE uses it.
type TeamFile struct {
	Config TeamConfig // for [Manager.CreateTeam]
	Run    RunOptions // for [Team.Run]
	// Consolidate says that a successful run should be followed by a consolidation: set
	// RunOptions.Consolidate, or call [Team.Consolidate].
	Consolidate bool
}

// Setting is a value for a parameter of a team file. A list takes one entry, or a JSON list, in
// each setting.
type Setting struct{ Name, Text string }

func settingsOf(set []Setting) (all []teamfile.Setting) {
	for _, s := range set {
		all = append(all, teamfile.Setting(s))
	}
	return all
}

// LoadTeamFile reads a team file, with values for its parameters. If the file or a value has
// mistakes, LoadTeamFile returns ErrInvalid and lists all of them, with line and column where they
// are in the file. cadre run can continue a team that was created from Config, and the other way
// round. If the file or a value changed since then, [RunOptions.Changed] decides.
func LoadTeamFile(path string, set ...Setting) (*TeamFile, error) {
	var l run.Loader
	if home, err := layout.Find(); err == nil {
		if dir, err := filepath.Abs("."); err == nil {
			l = templates.Places{Home: home, Dir: dir}.Loader()
		}
	}
	f, origin, err := l.File(path, settingsOf(set)...)
	if err != nil {
		return nil, &Error{Code: ErrInvalid, Text: err.Error(), cause: err}
	}
	return teamFileOf(f, origin), nil
}

func teamFileOf(f *teamfile.File, origin string) *TeamFile {
	t := &TeamFile{Consolidate: f.Consolidate, Run: RunOptions{ReportFile: f.Report.File, ReportTitle: f.Report.Title,
		sections: f.Report.Sections, leftOut: f.LeftOut(), file: f, origin: origin}}
	if t.Run.ReportFile == "" {
		t.Run.ReportFile = f.Name + "-report.md"
	}
	t.Config = TeamConfig{Name: f.Name, Goal: f.Goal, Lead: memberConfigOf(f.Leader), Delegate: f.Delegate,
		HandoverAt: f.Handover, MaxTeammates: f.MaxTeammates, MaxParallel: f.MaxParallel, MaxDepth: f.MaxDepth, Remote: f.Remote,
		CleanCheckout:    f.Clean,
		WithCheckChanges: f.CheckChanges,
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
	for _, c := range f.Commands {
		if t.Config.Commands == nil {
			t.Config.Commands = map[string]string{}
		}
		t.Config.Commands[c.Name] = c.Run
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
	return t
}

func memberConfigOf(m teamfile.Member) MemberConfig {
	return MemberConfig{Name: m.Name, Agent: m.Agent, Role: m.Role, Prompt: m.Prompt, Model: m.Model,
		Program: m.Command, Args: m.Args, Env: m.Env, PermissionMode: PermissionMode(m.Mode),
		PlanApproval: m.PlanApproval, Isolation: Isolation(m.Isolation),
		RunsOn: m.RunsOn, Budget: Budget(m.Budget), fileDigests: run.MemberDigests(m), nested: run.NestedOf(m)}
}

func taskConfigOf(c *team.CreateTask) TaskConfig {
	var check team.TaskCheck
	if c.Check != nil {
		check = *c.Check
	}
	return TaskConfig{Schema: c.Schema, Check: check.Run, Rounds: int(check.Rounds), checkName: check.Name,
		Name: c.Name, Subject: c.Subject, Description: c.Description, Owner: c.Owner, Role: c.Role,
		BlockedBy: c.BlockedBy, Priority: Priority(c.Priority), Run: c.Run, RunIn: RunIn(c.In),
		RunDir: c.Dir, RunEnv: c.Env, When: When(c.When), Timeout: c.Timeout, Retries: int(c.Retries),
		Paths: c.Paths, ForEach: forEachOf(c.ForEach), Verify: verifyOf(c.Verify), Metadata: c.Metadata,
		fileDigests: c.FileDigests}
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
	// when nothing more can happen to the tasks that it depends on, and one of them cannot be
	// completed any more; it is skipped once all of them are completed
	WhenFailed When = team.OnFailure
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
