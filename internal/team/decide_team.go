package team

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// CreateTeam creates a team. Its actor is the user or the future lead.
type CreateTeam struct {
	TeamID         string // globally unique
	Name           string
	Goal           string
	Dir            string // absolute
	Lead           string // name of the lead; "" for lead
	LeadAgent      string // "" for external
	LeadModel      string
	LeadProgram    string
	LeadArgs       []string
	LeadEnv        []string
	LeadPrompt     string
	LeadRole       string // "" for lead
	PermissionMode string // of the lead, and so of the members that it spawns; "" for default
	Delegate       bool
	Budget         Budget
	Hooks          []Hook
	Permissions    Permissions
	HandoverAt     int64  // percent; 0 for the default
	MaxTeammates   int64  // that run at a time; 0 for the default
	MaxParallel    int64  // teammates that have a turn at a time; 0 for no limit
	MaxDepth       int64  // how deep teams may be nested in it; 0 for none
	Parent         Parent // the member that it is for; zero for a team that is not nested
	Depth          int64  // how deep it is nested; 0 for a team that is not
	Timing         Timing
	Facts          []Fact
	Checks         []Check
	Commands       []NamedCommand // that tasks can name as their check
	Clean          bool           // see [Team]
	Changes        bool
	Remote         string // see [Team]
	Base           Base
	Origin         string
	OriginDigest   string
	FileDigests    []string // see [Team]
	LeadDigests    []string // FileDigests of the lead
	Metadata       map[string]json.RawMessage
	// TeammateOf is the team that the creator is a teammate of, according to its environment; ""
	// for none. A teammate cannot create a team.
	TeammateOf string
}

// DefaultLead is the name of a lead that was given none.
const DefaultLead = "lead"

func (b *CreateTeam) decide(d *decision) error {
	lead, mode, agent := cmp.Or(b.Lead, DefaultLead), cmp.Or(b.PermissionMode, "default"), cmp.Or(b.LeadAgent, External)
	if err := b.allowed(d, lead); err != nil {
		return err
	}
	if err := b.check(lead, mode); err != nil {
		return err
	}
	meta, err := metadata(nil, b.Metadata)
	if err != nil {
		return err
	}
	status := Active
	if agent != External {
		status = Spawning
	}
	d.emit(&TeamCreated{
		Team: Team{ID: b.TeamID, Name: b.Name, Status: TeamPending, Goal: b.Goal, Dir: b.Dir, Lead: lead,
			Delegate: b.Delegate,
			Budget:   b.Budget, Hooks: b.Hooks, Permissions: b.Permissions, HandoverAt: b.HandoverAt,
			MaxTeammates: b.MaxTeammates, MaxParallel: b.MaxParallel, Depth: b.Depth, MaxDepth: b.MaxDepth,
			Parent: b.Parent, Timing: b.Timing, Facts: b.Facts, Checks: b.Checks, Commands: b.Commands, Clean: b.Clean,
			Changes: b.Changes, Remote: b.Remote, Base: b.Base, Origin: b.Origin, OriginDigest: b.OriginDigest,
			FileDigests: b.FileDigests, Metadata: merged(nil, meta)},
		Lead: Member{Name: lead, Agent: agent, Model: b.LeadModel, Program: b.LeadProgram, Args: b.LeadArgs,
			Env: b.LeadEnv, Role: cmp.Or(b.LeadRole, "lead"), Prompt: b.LeadPrompt,
			Status: status, Incarnation: 1, PermissionMode: mode, FileDigests: b.LeadDigests},
	})
	return nil
}

// allowed refuses a team that this actor may not create, or not by this name.
func (b *CreateTeam) allowed(d *decision, lead string) error {
	switch {
	case b.TeammateOf != "" || d.Actor != User && d.Actor != lead || d.member(d.Actor) != nil && d.Actor != d.team.Lead:
		return refuse(Denied, "%s is a teammate, and a teammate cannot create a team; ask the lead with a message",
			brief(d.Actor))
	case d.team.CleanedUp:
		return refuse(Finished, "team %s was cleaned up; a new team of that name needs an id and a journal of its own",
			d.team.Name)
	case d.team.ID != "":
		return Refuse(Taken, "a team named %s exists already; choose another name, such as %s", d.team.Name,
			Numbered(d.team.Name, 2)).With(d.team.Onward())
	}
	return nil
}

// check refuses an invalid team or a text that is too long.
func (b *CreateTeam) check(lead, mode string) error {
	switch {
	case b.TeamID == "":
		return refuse(Invalid, "the team has no id")
	case !absolute(b.Dir):
		return refuse(Invalid, "the team's directory %q is not an absolute path", brief(b.Dir))
	case b.Budget.check() != nil:
		return b.Budget.check()
	case checkLimits(b.HandoverAt, b.MaxTeammates, b.MaxParallel) != nil:
		return checkLimits(b.HandoverAt, b.MaxTeammates, b.MaxParallel)
	case b.Delegate && Boundless(b.LeadAgent):
		return undelegated(b.LeadAgent)
	}
	return cmp.Or(b.checkDepth(), b.Permissions.check(), b.Timing.check(), checkFacts(b.Facts), checkChecks(b.Checks),
		checkCommands(b.Commands), b.Base.check(),
		checkProgram(b.LeadProgram, b.LeadArgs, b.LeadEnv), CheckName("team", b.Name), checkNewLead(lead),
		oneOf("permission mode", mode, PermissionModes),
		limit(text{"goal", b.Goal, MaxText}, text{"directory", b.Dir, MaxSubject}, text{"id", b.TeamID, MaxID},
			text{"agent", b.LeadAgent, MaxSubject}, text{"remote", b.Remote, MaxSubject},
			text{"model", b.LeadModel, MaxSubject}, text{"prompt of the lead", b.LeadPrompt, MaxText},
			text{"role of the lead", b.LeadRole, MaxSubject}, text{"path of the team file", b.Origin, MaxSubject},
			text{"digest", b.OriginDigest, MaxSubject}),
		checkHooks(b.Hooks), checkDigests(b.FileDigests), checkDigests(b.LeadDigests))
}

// checkLimits refuses an invalid limit of contexts, teammates or turns.
func checkLimits(handoverAt, maxTeammates, maxParallel int64) error {
	switch {
	case maxParallel < 0:
		return refuse(Invalid, "%d teammates cannot have a turn at a time; 0 is for no limit", maxParallel)
	case maxTeammates < 0:
		return refuse(Invalid, "a team cannot have %d teammates at most; 0 is for %d that its lead spawns, and any "+
			"number that the user does", maxTeammates, DefaultMaxTeammates)
	case handoverAt < 0 || handoverAt > 100:
		return refuse(Invalid, "a session is handed over at a percentage of its context, from 1 to 100; 0 is for %d",
			DefaultHandoverAt)
	}
	return nil
}

func checkHooks(hooks []Hook) error {
	for _, h := range hooks {
		if err := oneOf("hook", h.Event, hookEvents); err != nil {
			return err
		}
		if strings.TrimSpace(h.Command) == "" || h.Timeout < 0 {
			return refuse(Invalid, "the hook %s needs a command, and a timeout that is not negative", h.Event)
		}
		if err := limit(text{"command of the hook", h.Command, MaxText}); err != nil {
			return err
		}
	}
	return nil
}

// SetStatus changes the team's status: to consolidating, complete or aborted, and from
// consolidating back to active. Sent with the present status, it records where the report is.
type SetStatus struct {
	Status TeamStatus
	Reason string
	Report string // path of the lead's report
}

func (b *SetStatus) decide(d *decision) error {
	if err := d.leads("end the team"); err != nil {
		return err
	}
	if err := limit(text{"reason", b.Reason, MaxText}, text{"path of the report", b.Report, MaxSubject}); err != nil {
		return err
	}
	now, open := d.team.Status, d.team.Consolidation.Open()
	if b.Status == TeamComplete {
		if name, agent := d.anyRunning(); name != "" && agent != External {
			return Refuse(NotReady, "%s still runs", name).
				With(Hint{Action: ActShutDown, Team: d.team.Name, Member: name})
		}
		if err := d.hasWork(nil); err != nil {
			return err
		}
	}
	if now == b.Status && (now == TeamConsolidating || b.Report != "") { // only the report can be new
		if b.Report != "" && b.Report != d.team.Report {
			d.emit(&TeamStatusChanged{Status: now, Reason: b.Reason, Report: b.Report})
		}
		return nil
	}
	switch {
	case !allowed(TeamMoves, now, b.Status):
		return refuse(Invalid, "team %s is %s and cannot become %s", d.team.Name, now, brief(string(b.Status)))
	case open && (b.Status == TeamComplete || d.team.Consolidation.Step == Made && b.Status != TeamAborted):
		return Refuse(NotReady, "the consolidation of team %s is under way", d.team.Name).
			With(d.team.hint(ActFinish))
	case open:
		d.emit(&ConsolidationAbandoned{Attempt: d.team.Consolidation.Attempt,
			Reason: "the team was made " + string(b.Status)})
	}
	d.emit(&TeamStatusChanged{Status: b.Status, Reason: b.Reason, Report: b.Report})
	if b.Status == TeamComplete || b.Status == TeamAborted {
		d.stopMembers("the team is " + string(b.Status))
	}
	return nil
}

// anyRunning returns a teammate that has not ended, preferably one with a session.
func (d *decision) anyRunning() (name, agent string) {
	for i := range d.members[1:] {
		if m := &d.members[i+1]; m.Status.Running() && (name == "" || agent == External) {
			name, agent = m.Name, m.Agent
		}
	}
	return name, agent
}

func (d *decision) stopMembers(reason string) {
	for i := range d.members[1:] {
		d.leaves(&d.members[i+1])
	}
	for i := range d.members[1:] {
		if m := &d.members[i+1]; m.Status.Running() {
			d.end(m, &MemberStopped{Member: m.Name, Reason: reason}, false)
		}
	}
}

// CleanUp removes the team. It is the last event, after which the team's folders are deleted. It is
// refused while a teammate runs, unless it is forced.
type CleanUp struct{ Force bool }

func (b *CleanUp) decide(d *decision) error {
	if err := d.leads("clean up the team"); err != nil {
		return err
	}
	if d.team.CleanedUp {
		return nil
	}
	if name, _ := d.anyRunning(); name != "" && !b.Force {
		return Refuse(NotReady, "%s still runs", name).With(
			Hint{Action: ActShutDown, Team: d.team.Name, Member: name}, d.team.hint(ActForceCleanUp))
	}
	d.stopMembers("the team is cleaned up")
	d.emit(&TeamCleanedUp{Forced: b.Force})
	return nil
}

// SetDelegate switches delegate mode, in which the lead may only coordinate.
type SetDelegate struct{ On bool }

func (b *SetDelegate) decide(d *decision) error {
	if d.Actor != User {
		return refuse(Denied, "only the user switches delegate mode")
	}
	if agent := d.lead().Agent; b.On && Boundless(agent) {
		return undelegated(agent)
	}
	if b.On != d.team.Delegate {
		d.emit(&DelegateChanged{On: b.On})
		words := "Delegate mode is off: you may use all your tools again."
		if b.On {
			words = "You are in delegate mode now: coordinate, and leave all other work to teammates. Other tools " +
				"are denied."
		}
		d.changed(d.lead(), words)
	}
	return nil
}

func undelegated(agent string) error {
	return refuse(Invalid, "%s may act without asking for permission, so nothing keeps it from doing the work "+
		"itself in delegate mode; let another agent lead, or do without", brief(agent))
}

// DelegateTools are the tools that a lead in delegate mode may use: they coordinate, and do none of
// the work.
var DelegateTools = []string{"SpawnTeammate", "ShutdownTeammate", "SendMessage", "Broadcast", "ReadMessages",
	"TaskCreate", "TaskUpdate", "TaskList", "TaskGet", "NoteWrite", "NoteRead", "NoteList",
	"RespondToPlan", "RespondToPermission", "ResendMessages", "TeamStatus", "CleanupTeam"}

// AllowsTool says whether delegate mode lets the member use the tool. It restricts only the lead.
func (s *State) AllowsTool(member, tool string) error {
	if !s.team.Delegate || member != s.team.Lead {
		return nil
	}
	if slices.Contains(DelegateTools, tool) {
		return nil
	}
	return refuse(Denied, "%s is in delegate mode and may not use %s: give the work to a teammate; it may use: %s",
		member, brief(tool), strings.Join(DelegateTools, ", "))
}

// ReportUsage adds to the usage of the member and of the task that it was for. It comes from the
// member's host: a teammate that reported for itself could spend the budget and so end all work.
// Only an external member reports its own.
type ReportUsage struct {
	Member  string
	Task    string // "" for none
	Usage   Usage
	Context int64 // percent of the session's context that is full; 0 where the agent does not report it
}

func (b *ReportUsage) decide(d *decision) error {
	if err := d.bills(b.Member); err != nil {
		return err
	}
	u := b.Usage
	if min(u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens, u.CostMicroUSD) < 0 {
		return refuse(Invalid, "usage cannot be negative")
	}
	if b.Context < 0 || b.Context > 100 {
		return refuse(Invalid, "a context is full by 0 to 100 percent")
	}
	if u == (Usage{}) && (b.Context == 0 || b.Context == d.member(b.Member).Context) {
		return nil
	}
	if b.Task != "" && d.task(b.Task) == nil {
		return d.noTask(b.Task)
	}
	d.emit(&UsageReported{Member: b.Member, Task: b.Task, Usage: u, Context: b.Context})
	if m := d.member(b.Member); m.Status.Running() {
		own := u
		own.add(m.Charged())
		d.checkMemberBudget(m, own)
	}
	u.add(d.team.Usage)
	d.checkBudget(u)
	return nil
}

func (d *decision) bills(name string) error {
	if m := d.member(name); m != nil && !m.Status.Running() && d.isHost() && m.Lease != 0 && d.Lease == m.Lease {
		return nil // the usage of a session arrives after its end
	}
	m, err := d.hosted(name)
	if err == nil && d.actor != nil && m.Agent != External {
		return refuse(Denied, "the usage of %s is reported by its host", m.Name)
	}
	return err
}

// RejectByHook records that a hook rejected something about a task or, with Task "", about the
// member itself. The command that the hook was asked about is then not sent. After [MaxStrikes]
// rejections of the same thing in a row the lead is notified.
type RejectByHook struct {
	Hook     string // TeammateIdle, TaskCreated or TaskCompleted
	Member   string
	Task     string // id, or for TaskCreated the subject
	Feedback string
}

var hookEvents = []string{"TeammateIdle", "TaskCreated", "TaskCompleted"}

func (b *RejectByHook) decide(d *decision) error {
	if err := oneOf("hook", b.Hook, hookEvents); err != nil {
		return err
	}
	if b.Member != d.Actor && d.leads("") != nil { // otherwise any member could put words into the team's messages
		if _, err := d.hosted(b.Member); err != nil {
			return err
		}
	}
	if err := limit(text{"task", b.Task, MaxSubject}); err != nil {
		return err
	}
	key := hookKey(b.Hook, b.Member, b.Task)
	n := d.strikes[key] + 1
	d.emit(&HookRejected{Hook: b.Hook, Member: b.Member, Task: b.Task, Feedback: clip(b.Feedback), Key: key, Count: n})
	if n >= MaxStrikes {
		d.tell(d.team.Lead, "", "The hook %s rejected the same thing of %s %d times in a row%s. Last "+
			"feedback:%s", b.Hook, d.named(b.Member), n, d.aboutTask(b.Task), cited(clipTo(b.Feedback, MaxSubject)))
	} else if b.Hook == "TeammateIdle" {
		d.tell(b.Member, "", "The hook %s has you continue:%s", b.Hook, cited(b.Feedback))
	}
	return nil
}

// named quotes the name of a member in a hook's report for a line of ours.
func (d *decision) named(name string) string {
	if d.member(name) == nil && name != User {
		return Quoted(name)
	}
	return name
}

// aboutTask names a task by its id, or by its subject where it has no id yet.
func (d *decision) aboutTask(task string) string {
	switch {
	case task == "":
		return ""
	case strings.Trim(task, "0123456789") == "":
		return " (task " + d.Called(task) + ")"
	}
	return " (task " + Quoted(brief(task)) + ")"
}
