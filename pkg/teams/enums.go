package teams

import (
	"cadre/internal/engine"
	"cadre/internal/hook"
	"cadre/internal/team"
)

// TeamStatus is the state of a team.
type TeamStatus string

// The states of a team.
const (
	TeamStatusPending       TeamStatus = "pending" // no teammate yet
	TeamStatusActive        TeamStatus = "active"
	TeamStatusConsolidating TeamStatus = "consolidating" // its work is merged, checked and committed
	TeamStatusComplete      TeamStatus = "complete"
	TeamStatusAborted       TeamStatus = "aborted"
)

// Ended reports whether the state is final. A team that has ended can still be consolidated.
func (s TeamStatus) Ended() bool { return s == TeamStatusComplete || s == TeamStatusAborted }

// MemberStatus is the state of a member's session. Its constants have no prefix, because programs
// use this status most.
type MemberStatus string

// The states of a member.
const (
	StatusSpawning     MemberStatus = "spawning" // its session has not started yet
	StatusActive       MemberStatus = "active"
	StatusIdle         MemberStatus = "idle"
	StatusBlocked      MemberStatus = "blocked"       // waits for an answer
	StatusShuttingDown MemberStatus = "shutting_down" // agreed to stop, its session is ending
	StatusStopped      MemberStatus = "stopped"       // ended on request
	StatusFailed       MemberStatus = "failed"        // ended by itself
)

// Running reports whether a member in this state has a session, or will get one.
func (s MemberStatus) Running() bool { return team.MemberStatus(s).Running() }

// TaskStatus is the state of a task.
type TaskStatus string

// The states of a task.
const (
	TaskStatusPending    TaskStatus = "pending"
	TaskStatusInProgress TaskStatus = "in_progress"
	TaskStatusCompleted  TaskStatus = "completed"
	TaskStatusDeleted    TaskStatus = "deleted"
)

// Priority is the order in which tasks are claimed.
type Priority string

// The priorities of a task. The default is [PriorityMedium].
const (
	PriorityLow      Priority = "low"
	PriorityMedium   Priority = "medium"
	PriorityHigh     Priority = "high"
	PriorityCritical Priority = "critical"
)

// MessageType is the type of a message.
type MessageType string

// The types of messages. [Mailbox.Send] and [Mailbox.Broadcast] send only the first two. The team
// sends the others, or they come with a request.
const (
	MessageDirect    MessageType = team.TypeMessage   // from one member to another
	MessageBroadcast MessageType = team.TypeBroadcast // from one member to all others
	MessageSystem    MessageType = team.TypeSystem    // from the team itself
	MessageIdle      MessageType = team.TypeIdle      // to the lead: a teammate went idle
	// MessageShutdownRequest is answered with [Teammate.ApproveShutdown] or
	// [Teammate.RejectShutdown] and its Ref.
	MessageShutdownRequest  MessageType = team.TypeShutdownRequest
	MessageShutdownResponse MessageType = team.TypeShutdownResponse // to the lead
	// MessagePlanRequest is for the lead, which calls [Team.ApprovePlan] or [Team.RejectPlan] with
	// its Ref.
	MessagePlanRequest  MessageType = team.TypePlanRequest
	MessagePlanResponse MessageType = team.TypePlanResponse // to the teammate
	// MessagePermissionRequest is for the lead, which calls [Team.AllowPermission] or
	// [Team.DenyPermission] with its Ref.
	MessagePermissionRequest  MessageType = team.TypePermissionRequest
	MessagePermissionResponse MessageType = team.TypePermissionResponse // to the teammate
	MessageTaskAssignment     MessageType = team.TypeTaskAssignment     // a task is for the recipient; Ref is its id
)

// Intent is what the sender of a message wants from the recipient.
type Intent string

// The intents. A message may have none.
const (
	IntentInfo       Intent = "info"
	IntentQuestion   Intent = "question"
	IntentChallenge  Intent = "challenge"
	IntentResolution Intent = "resolution"
)

// MessagePriority says whether a message can wait for the end of a turn.
type MessagePriority string

// The priorities of a message. The default is [MessageNormal].
const (
	MessageNormal MessagePriority = "normal"
	MessageUrgent MessagePriority = "urgent"
)

// Isolation is where a member works.
type Isolation string

// The isolations. [IsolationWorktree] is a git worktree with its own branch, cadre/TEAM@NAME. The
// work stays on the branch when the member ends. What is checked out elsewhere changes only with
// [Team.Consolidate], or when you merge the branch. [RunResult] names the branches that are
// not merged.
const (
	IsolationNone     Isolation = "" // in the team's directory
	IsolationWorktree Isolation = team.Worktree
)

// PlanState is the state of the approval of a plan.
type PlanState string

// The states of a plan.
const (
	PlanStateNone      PlanState = "" // no plan yet
	PlanStateSubmitted PlanState = "submitted"
	PlanStateApproved  PlanState = "approved"
	PlanStateRejected  PlanState = "rejected"
)

// Outcome is the outcome of a request for permission.
type Outcome string

// The outcomes of a request for permission.
const (
	OutcomeAllowed  Outcome = "allowed"
	OutcomeDenied   Outcome = "denied"
	OutcomeTimedOut Outcome = "timed_out" // no answer came in time; it counts as denied
)

// Trouble is the reason why a member cannot continue.
type Trouble string

// The troubles.
const (
	TroubleNone    Trouble = ""
	TroubleLogin   Trouble = "login"   // the agent is not logged in
	TroubleLimit   Trouble = "limit"   // a usage limit, which passes
	TroubleModel   Trouble = "model"   // the model or its server failed
	TroubleContext Trouble = "context" // the context is full
	TroubleMissing Trouble = "missing" // the agent's program is missing or too old
	TroubleCrash   Trouble = "crash"   // the session ended by itself
)

// BudgetKind is what a [Budget] limits.
type BudgetKind string

// The kinds of limits.
const (
	BudgetTokens BudgetKind = "tokens"
	BudgetCost   BudgetKind = "cost"
	BudgetTime   BudgetKind = "time"
)

// HookName is the event for which a hook runs.
type HookName string

// The events.
const (
	HookTeammateIdle  HookName = "TeammateIdle"
	HookTaskCreated   HookName = "TaskCreated"
	HookTaskCompleted HookName = "TaskCompleted"
)

// HookSource is where a hook comes from.
type HookSource string

// The sources of hooks, in the order in which the hooks run.
const (
	HookOfUser    = HookSource(hook.User)    // the user's settings.json
	HookOfProject = HookSource(hook.Project) // the project's settings.json
	HookOfLocal   = HookSource(hook.Local)   // the project's settings.local.json
	HookOfTeam    = HookSource(hook.Team)    // the team's own configuration
	HookOfProgram = HookSource(hook.Program) // a function of this program
)

// HookState is whether a hook runs.
type HookState string

// The states of a hook.
const (
	HookOn        = HookState(engine.HookOn)
	HookOff       = HookState(engine.HookOff)       // the user switched it off for the team
	HookUntrusted = HookState(engine.HookUntrusted) // it came with the repository, and its present form is not trusted
)

// AttentionKind is the kind of an [Attention].
type AttentionKind string

// The kinds of [Attention].
const (
	AttentionDamaged     = AttentionKind(team.ItemDamaged)     // the team's files are damaged
	AttentionPermission  = AttentionKind(team.ItemPermission)  // a member asks to use a tool
	AttentionPlan        = AttentionKind(team.ItemPlan)        // a member's plan waits for approval
	AttentionQuestion    = AttentionKind(team.ItemQuestion)    // a member asks the person who leads
	AttentionNested      = AttentionKind(team.ItemNested)      // a team in the team waits for a person
	AttentionDirectory   = AttentionKind(team.ItemDirectory)   // the directory that the team works in is missing
	AttentionElsewhere   = AttentionKind(team.ItemElsewhere)   // the team may be running on another machine
	AttentionInterrupted = AttentionKind(team.ItemInterrupted) // a consolidation was interrupted
	AttentionDormant     = AttentionKind(team.ItemDormant)     // no process of the team is alive
	AttentionUnhosted    = AttentionKind(team.ItemUnhosted)    // no process runs the sessions of its members
	AttentionLeadLost    = AttentionKind(team.ItemLeadLost)    // no session leads
	AttentionLeadFailed  = AttentionKind(team.ItemLeadFailed)  // the lead cannot continue by itself
	AttentionBudget      = AttentionKind(team.ItemBudget)      // the budget is spent
	AttentionFailed      = AttentionKind(team.ItemFailed)      // a member failed, and its work is open
	AttentionOffline     = AttentionKind(team.ItemOffline)     // a member stopped sending heartbeats
	AttentionHeld        = AttentionKind(team.ItemHeld)        // a member was interrupted, and waits for a message
	AttentionCheck       = AttentionKind(team.ItemCheck)       // the last consolidation ended with a failed check
	AttentionConflict    = AttentionKind(team.ItemConflict)    // a branch does not merge, and must be merged by hand
	AttentionTaskFailed  = AttentionKind(team.ItemTaskFailed)  // a task is out of retries
	// a task is for the person who leads, or for an external member of a run
	AttentionTaskYours   = AttentionKind(team.ItemTaskYours)
	AttentionUnassigned  = AttentionKind(team.ItemUnassigned)  // tasks are open that no member takes
	AttentionHook        = AttentionKind(team.ItemHook)        // a hook keeps rejecting the same thing
	AttentionConsolidate = AttentionKind(team.ItemConsolidate) // all work is done, and waits for the consolidation
	AttentionBudgetLow   = AttentionKind(team.ItemBudgetLow)   // half of a budget is spent, or more
	AttentionLate        = AttentionKind(team.ItemLate)        // messages are late
	// hooks of the project do not run, because the user does not trust them
	AttentionUntrusted = AttentionKind(team.ItemUntrusted)
	AttentionFacts     = AttentionKind(team.ItemFacts) // files that all members rely on changed
)

// ObservedStatus is the state of a teammate of an observed team.
type ObservedStatus string

// The states of an observed teammate.
const (
	ObservedActive   ObservedStatus = "active"
	ObservedIdle     ObservedStatus = "idle"
	ObservedShutdown ObservedStatus = "shutdown"
)

// SessionRole is the role of an observed session in its team.
type SessionRole string

// The roles of an observed session.
const (
	SessionLead     SessionRole = "lead"
	SessionTeammate SessionRole = "teammate"
)

// Availability is where the sessions run that a way of observing reaches.
type Availability string

// The availabilities.
const (
	AvailableLocal  Availability = "local"
	AvailableRemote Availability = "remote"
	AvailableBoth   Availability = "both"
)
