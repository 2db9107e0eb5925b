package team

import "encoding/json"

// Event is one fact about a team. An event kind is one struct with its name, its fields and what it
// changes (apply.go and its neighbours); once recorded its name and the meaning of its fields stay
// for ever.
type Event interface {
	fielder
	// Kind is the event's name in the journal.
	Kind() string
	// apply changes the state. It takes anything: what it names may be unknown, and then it does
	// nothing.
	apply(s *State, r *Record)
}

// kinds makes an empty event of each kind that was ever recorded.
var kinds = map[string]func() Event{}

func kind[E any, P interface {
	*E
	Event
}]() struct{} {
	kinds[P(new(E)).Kind()] = func() Event { return P(new(E)) }
	return struct{}{}
}

var _ = []struct{}{
	kind[TeamCreated](), kind[TeamRestored](), kind[TeamStatusChanged](), kind[TeamCleanedUp](),
	kind[DelegateChanged](), kind[BudgetChanged](), kind[BudgetExhausted](),
	kind[MemberSpawned](), kind[MemberAttached](), kind[MemberStarted](), kind[MemberStatusChanged](),
	kind[MemberDetached](), kind[MemberStopped](), kind[MemberFailed](),
	kind[MemberReturned](), kind[MemberDescribed](), kind[TasksSkipped](), kind[GapNoticed](), kind[MemberTroubled](),
	kind[HandoverRequested](), kind[ReportAsked](), kind[ReportGiven](),
	kind[ModeChanged](), kind[ShutdownRequested](), kind[ShutdownAnswered](), kind[ShutdownWithdrawn](),
	kind[PlanSubmitted](), kind[PlanAnswered](),
	kind[PermissionRequested](), kind[PermissionAnswered](), kind[UsageReported](), kind[HookRejected](),
	kind[TaskCreated](), kind[TaskUpdated](), kind[TaskClaimed](), kind[TaskReleased](), kind[TaskFailed](),
	kind[TaskCompleted](), kind[TaskDeleted](),
	kind[LeadAttached](), kind[LeadLost](), kind[FactsRecorded](), kind[TeamMoved](), kind[WorkSaved](),
	kind[WorkRecorded](), kind[TaskRolledBack](), kind[MessagesLate](), kind[MessagesResent](), kind[MemberOffline](),
	kind[MemberOnline](), kind[BranchLeft](), kind[TeamReleased](), kind[TeamTakenBack](), kind[WorkFound](),
	kind[ConsolidationBegan](), kind[WorktreesMerged](), kind[WorkStaged](), kind[CheckPassed](), kind[CheckFailed](),
	kind[CommitMade](), kind[TeamConsolidated](), kind[ConsolidationAbandoned](),
	kind[MessageSent](), kind[MessagesDelivered](), kind[MessagesRead](), kind[MessagesReturned](),
}

// The events of the team.
type (
	// TeamCreated is the first event of a team. The lead joins with it.
	TeamCreated struct {
		Team Team
		Lead Member
	}
	// TeamRestored is the first event of a journal that goes on where a checkpoint of a lost one
	// ends: the team as it was then.
	TeamRestored struct {
		Team                   Team
		Members                []Member
		Messages               []Message
		MessageSeq, RequestSeq int64
		Permissions            []Permission
		Strikes                []Strike
		Tasks                  []Task
	}
	// TeamStatusChanged moves the team in its life.
	TeamStatusChanged struct {
		Status TeamStatus
		Reason string
		Report string
	}
	// TeamCleanedUp is the last event of a team: what it has outside the journal is being removed.
	TeamCleanedUp struct{ Forced bool }
	// DelegateChanged switches delegate mode.
	DelegateChanged struct{ On bool }
	// BudgetChanged sets a new budget; the team is not exhausted any more.
	BudgetChanged struct{ Budget Budget }
	// BudgetExhausted says that the budget is spent: tokens, cost or time.
	BudgetExhausted struct{ What string }
	// ReportAsked asks the lead for its last words: all work is done.
	ReportAsked struct{}
	// ReportGiven is what it answered.
	ReportGiven struct{ Text string }
	// LeadAttached says which session leads from now on: a new one, or the one that was lost.
	// TakenOver is the one whose lead was taken away.
	LeadAttached struct {
		Session, TakenOver, Machine string
		Agent                       bool // it is an agent's own session
	}
	// LeadLost says that nobody has heard of the session that leads since Seen.
	LeadLost struct {
		Session string
		Seen    Time
	}
	// GapNoticed says that something of what Source said about the team did not get here. What is
	// known stays as it was.
	GapNoticed struct{ Source, Reason string }
	// FactsRecorded takes note anew of the files that everybody relies on.
	FactsRecorded struct{ Facts []Fact }
)

// The events of members.
type (
	// MemberSpawned adds a teammate; its first session is yet to be started.
	MemberSpawned struct{ Member Member }
	// MemberAttached gives the lease of the member to a host.
	MemberAttached struct {
		Member string
		Host   string
		Lease  int64
	}
	// MemberStarted says that the member's session runs. Session is the agent's own id of it, for
	// resuming.
	MemberStarted struct{ Member, Session string }
	// MemberStatusChanged is active, idle or blocked.
	MemberStatusChanged struct {
		Member  string
		Status  MemberStatus
		Summary string
		Trouble string // why its agent tries again by itself, as in MemberTroubled; "" where it has no trouble
	}
	// MemberDetached says that the session is gone with its host, and that the member is to be
	// started again: its incarnation ends, its tasks are back on the list, and its mail waits. A
	// Fresh session does not resume the one that is gone; Note is what the new one is told.
	MemberDetached struct {
		Member, Reason string
		Fresh          bool
		Note           string
	}
	// MemberTroubled says what kept the member from going on, and when it is tried again. With
	// Setbacks 0 it is forgotten.
	MemberTroubled struct {
		Member, Trouble, Text string // Trouble is login, limit, model, context, missing, crash or ""
		Setbacks              int64
		RetryAt               Time
	}
	// HandoverRequested asks for a fresh session that goes on for the present one.
	HandoverRequested struct{ Member, Reason string }
	// MemberStopped ends the member as it was asked to.
	MemberStopped struct{ Member, Reason string }
	// MemberFailed ends the member: its session ended by itself.
	MemberFailed struct{ Member, Reason string }
	// MemberReturned says that a member that had ended is there again, as its Member says it is:
	// somebody else started it anew. No command of ours does it.
	MemberReturned struct{ Member Member }
	// MemberDescribed says more of a member than was known when it joined. What is "" stays as it
	// was. Team is the name by which an observed team goes among its agents, where nobody had said
	// it yet.
	MemberDescribed struct{ Member, Model, Role, Prompt, Color, Session, Team string }
	// ModeChanged sets the member's permission mode.
	ModeChanged struct{ Member, Mode string }
	// ShutdownRequested asks this incarnation of the member to end.
	ShutdownRequested struct {
		Member      string
		Request     string
		Incarnation int64
		Reason      string
		Deadline    Time
	}
	// ShutdownAnswered is the member's answer. It ends at the deadline also when it rejected.
	ShutdownAnswered struct {
		Member, Request string
		Approved        bool
		Reason          string
	}
	// ShutdownWithdrawn takes the request back.
	ShutdownWithdrawn struct{ Member, Request string }
	// PlanSubmitted lays a plan before the lead; at the deadline, if there is one, it is rejected.
	PlanSubmitted struct {
		Member, Request, Plan string
		Deadline              Time
	}
	// PlanAnswered approves the plan, or rejects it with feedback.
	PlanAnswered struct {
		Member, Request string
		Approved        bool
		Feedback        string
		By              string // "" where nobody answered in time
	}
	// PermissionRequested waits for an answer until its deadline.
	PermissionRequested struct{ Permission Permission }
	// PermissionAnswered ends the request. Outcome is allowed, denied or timed_out.
	PermissionAnswered struct{ Request, Member, Outcome, By, Reason string }
	// UsageReported adds to what the member and the task used.
	UsageReported struct {
		Member, Task string
		Usage        Usage
		Context      int64 // percent of the session's context that is full; 0 where it does not say
	}
	// HookRejected says that a hook rejected something, Count times in a row now.
	HookRejected struct {
		Hook, Member, Task, Feedback string
		Key                          string
		Count                        int64
	}
)

// The events of tasks.
type (
	// TaskCreated adds a task.
	TaskCreated struct{ Task Task }
	// TasksSkipped says that ids up to Through are taken by tasks that nobody here has seen. One of
	// them may be created later.
	TasksSkipped struct{ Through int64 }
	// TaskUpdated changes what is not nil. An owner "" takes the owner away; a metadata value null
	// deletes its key.
	TaskUpdated struct {
		Task                                                   string
		Subject, Description, ActiveForm, Owner, Priority, Run *string
		Metadata                                               map[string]json.RawMessage
		AddBlockedBy, RemoveBlockedBy, AddBlocks, RemoveBlocks []string
	}
	// TaskClaimed gives the task to the member until it completes, fails or releases it under this
	// fence, or loses it.
	TaskClaimed struct {
		Task, Member string
		Fence        int64
	}
	// TaskReleased puts the task back on the list. Owner is who it is meant for from now on.
	TaskReleased struct{ Task, Owner, Reason string }
	// TaskFailed ends an attempt; the task is back on the list, or given up after its retries.
	TaskFailed struct{ Task, By, Reason, Result string }
	// TaskCompleted ends the task. Unblocked lists the tasks that wait for nothing now.
	TaskCompleted struct {
		Task, By, Result string
		Unblocked        []string
	}
	// WorkSaved keeps with the task what its owner had done of it when it could not continue.
	WorkSaved struct {
		Task  string
		Saved Saved
	}
	// TaskDeleted takes the task off the list; its id is not used again.
	TaskDeleted struct {
		Task      string
		Unblocked []string
	}
)

// The events of the mailbox.
type (
	// MessageSent puts one message into the inbox of each recipient.
	MessageSent struct{ Message Message }
	// MessagesDelivered says that the member was given these messages.
	MessagesDelivered struct {
		Member string
		Seqs   []int64
	}
	// MessagesRead says that the member has read everything up to the message Through.
	MessagesRead struct {
		Member  string
		Through int64
	}
	// MessagesLate says that the member was not given these messages for long, and that the lead
	// was told.
	MessagesLate struct {
		Member string
		Seqs   []int64
	}
	// MessagesResent sends late messages again. They stay the same messages.
	MessagesResent struct {
		Member string
		Seqs   []int64
	}
	// MessagesReturned takes messages out of the inbox of a member that will never get them; they
	// went back to their senders.
	MessagesReturned struct {
		Member string
		Seqs   []int64
	}
)

func (*TeamCreated) Kind() string         { return "team_created" }
func (*TeamRestored) Kind() string        { return "team_restored" }
func (*TeamStatusChanged) Kind() string   { return "team_status_changed" }
func (*TeamCleanedUp) Kind() string       { return "team_cleaned_up" }
func (*DelegateChanged) Kind() string     { return "delegate_changed" }
func (*BudgetChanged) Kind() string       { return "budget_changed" }
func (*BudgetExhausted) Kind() string     { return "budget_exhausted" }
func (*MemberSpawned) Kind() string       { return "member_spawned" }
func (*MemberAttached) Kind() string      { return "member_attached" }
func (*MemberStarted) Kind() string       { return "member_started" }
func (*MemberStatusChanged) Kind() string { return "member_status_changed" }
func (*MemberDetached) Kind() string      { return "member_detached" }
func (*MemberTroubled) Kind() string      { return "member_troubled" }
func (*HandoverRequested) Kind() string   { return "handover_requested" }
func (*ReportAsked) Kind() string         { return "report_asked" }
func (*ReportGiven) Kind() string         { return "report_given" }
func (*MemberStopped) Kind() string       { return "member_stopped" }
func (*MemberFailed) Kind() string        { return "member_failed" }
func (*ModeChanged) Kind() string         { return "mode_changed" }
func (*ShutdownRequested) Kind() string   { return "shutdown_requested" }
func (*ShutdownAnswered) Kind() string    { return "shutdown_answered" }
func (*ShutdownWithdrawn) Kind() string   { return "shutdown_withdrawn" }
func (*PlanSubmitted) Kind() string       { return "plan_submitted" }
func (*PlanAnswered) Kind() string        { return "plan_answered" }
func (*PermissionRequested) Kind() string { return "permission_requested" }
func (*PermissionAnswered) Kind() string  { return "permission_answered" }
func (*UsageReported) Kind() string       { return "usage_reported" }
func (*HookRejected) Kind() string        { return "hook_rejected" }
func (*TaskCreated) Kind() string         { return "task_created" }
func (*TaskUpdated) Kind() string         { return "task_updated" }
func (*TaskClaimed) Kind() string         { return "task_claimed" }
func (*TaskReleased) Kind() string        { return "task_released" }
func (*TaskFailed) Kind() string          { return "task_failed" }
func (*TaskCompleted) Kind() string       { return "task_completed" }
func (*TaskDeleted) Kind() string         { return "task_deleted" }
func (*MessageSent) Kind() string         { return "message_sent" }
func (*MessagesDelivered) Kind() string   { return "messages_delivered" }
func (*MessagesRead) Kind() string        { return "messages_read" }
func (*MessagesReturned) Kind() string    { return "messages_returned" }

func (*MemberReturned) Kind() string  { return "member_returned" }
func (*MemberDescribed) Kind() string { return "member_described" }
func (*TasksSkipped) Kind() string    { return "tasks_skipped" }
func (*GapNoticed) Kind() string      { return "gap_noticed" }
func (*LeadAttached) Kind() string    { return "lead_attached" }
func (*LeadLost) Kind() string        { return "lead_lost" }
func (*FactsRecorded) Kind() string   { return "facts_recorded" }
func (*WorkSaved) Kind() string       { return "work_saved" }
func (*WorkRecorded) Kind() string    { return "work_recorded" }
func (*TaskRolledBack) Kind() string  { return "task_rolled_back" }
func (*MessagesLate) Kind() string    { return "messages_late" }
func (*MessagesResent) Kind() string  { return "messages_resent" }
func (*MemberOffline) Kind() string   { return "member_offline" }
func (*MemberOnline) Kind() string    { return "member_online" }

func (*ConsolidationBegan) Kind() string     { return "consolidation_began" }
func (*WorktreesMerged) Kind() string        { return "worktrees_merged" }
func (*WorkStaged) Kind() string             { return "work_staged" }
func (*CheckPassed) Kind() string            { return "check_passed" }
func (*CheckFailed) Kind() string            { return "check_failed" }
func (*CommitMade) Kind() string             { return "commit_made" }
func (*TeamConsolidated) Kind() string       { return "team_consolidated" }
func (*ConsolidationAbandoned) Kind() string { return "consolidation_abandoned" }

func (e *FactsRecorded) fields(c *coder) { objects(c, "facts", &e.Facts) }

func (e *WorkSaved) fields(c *coder) {
	c.str("task", &e.Task)
	c.sub("saved", false, &e.Saved)
}

func (e *MessagesLate) fields(c *coder) {
	c.str("member", &e.Member)
	c.ints("seqs", &e.Seqs)
}

func (e *MessagesResent) fields(c *coder) {
	c.str("member", &e.Member)
	c.ints("seqs", &e.Seqs)
}

func (e *TeamCreated) fields(c *coder) {
	c.sub("team", false, &e.Team)
	c.sub("lead", false, &e.Lead)
}

func (e *TeamRestored) fields(c *coder) {
	c.sub("team", false, &e.Team)
	objects(c, "members", &e.Members)
	objects(c, "messages", &e.Messages)
	c.int("messageSeq", &e.MessageSeq)
	c.int("requestSeq", &e.RequestSeq)
	objects(c, "permissions", &e.Permissions)
	objects(c, "strikes", &e.Strikes)
	objects(c, "tasks", &e.Tasks)
}

func (e *TeamStatusChanged) fields(c *coder) {
	c.str("status", (*string)(&e.Status))
	c.str("reason", &e.Reason)
	c.str("report", &e.Report)
}

func (e *TeamCleanedUp) fields(c *coder)   { c.bool("forced", &e.Forced) }
func (e *DelegateChanged) fields(c *coder) { c.bool("on", &e.On) }
func (e *BudgetChanged) fields(c *coder)   { c.sub("budget", false, &e.Budget) }
func (e *BudgetExhausted) fields(c *coder) { c.str("what", &e.What) }
func (e *MemberSpawned) fields(c *coder)   { c.sub("member", false, &e.Member) }

func (e *MemberAttached) fields(c *coder) {
	c.str("member", &e.Member)
	c.str("host", &e.Host)
	c.int("lease", &e.Lease)
}

func (e *MemberStarted) fields(c *coder) {
	c.str("member", &e.Member)
	c.str("session", &e.Session)
}

func (e *MemberStatusChanged) fields(c *coder) {
	c.str("member", &e.Member)
	c.str("status", (*string)(&e.Status))
	c.str("summary", &e.Summary)
	c.str("trouble", &e.Trouble)
}

func (e *MemberDetached) fields(c *coder) {
	c.str("member", &e.Member)
	c.str("reason", &e.Reason)
	c.bool("fresh", &e.Fresh)
	c.str("note", &e.Note)
}

func (e *MemberStopped) fields(c *coder) {
	c.str("member", &e.Member)
	c.str("reason", &e.Reason)
}

func (e *MemberFailed) fields(c *coder) {
	c.str("member", &e.Member)
	c.str("reason", &e.Reason)
}

func (e *ModeChanged) fields(c *coder) {
	c.str("member", &e.Member)
	c.str("mode", &e.Mode)
}

func (e *ShutdownRequested) fields(c *coder) {
	c.str("member", &e.Member)
	c.str("request", &e.Request)
	c.int("incarnation", &e.Incarnation)
	c.str("reason", &e.Reason)
	c.int("deadline", (*int64)(&e.Deadline))
}

func (e *ShutdownAnswered) fields(c *coder) {
	c.str("member", &e.Member)
	c.str("request", &e.Request)
	c.bool("approved", &e.Approved)
	c.str("reason", &e.Reason)
}

func (e *ShutdownWithdrawn) fields(c *coder) {
	c.str("member", &e.Member)
	c.str("request", &e.Request)
}

func (e *PlanSubmitted) fields(c *coder) {
	c.str("member", &e.Member)
	c.str("request", &e.Request)
	c.str("plan", &e.Plan)
	c.int("deadline", (*int64)(&e.Deadline))
}

func (e *PlanAnswered) fields(c *coder) {
	c.str("member", &e.Member)
	c.str("request", &e.Request)
	c.bool("approved", &e.Approved)
	c.str("feedback", &e.Feedback)
	c.str("by", &e.By)
}

func (e *PermissionRequested) fields(c *coder) { e.Permission.fields(c) }

func (e *PermissionAnswered) fields(c *coder) {
	c.str("request", &e.Request)
	c.str("member", &e.Member)
	c.str("outcome", &e.Outcome)
	c.str("by", &e.By)
	c.str("reason", &e.Reason)
}

func (e *UsageReported) fields(c *coder) {
	c.str("member", &e.Member)
	c.str("task", &e.Task)
	c.sub("usage", false, &e.Usage)
	c.int("context", &e.Context)
}

func (e *MemberTroubled) fields(c *coder) {
	c.str("member", &e.Member)
	c.str("trouble", &e.Trouble)
	c.str("text", &e.Text)
	c.int("setbacks", &e.Setbacks)
	c.int("retryAt", (*int64)(&e.RetryAt))
}

func (e *HandoverRequested) fields(c *coder) {
	c.str("member", &e.Member)
	c.str("reason", &e.Reason)
}

func (*ReportAsked) fields(*coder) {}

func (e *ReportGiven) fields(c *coder) { c.str("text", &e.Text) }

func (e *HookRejected) fields(c *coder) {
	c.str("hook", &e.Hook)
	c.str("member", &e.Member)
	c.str("task", &e.Task)
	c.str("feedback", &e.Feedback)
	c.str("key", &e.Key)
	c.int("count", &e.Count)
}

func (e *TaskCreated) fields(c *coder) { c.sub("task", false, &e.Task) }

func (e *TaskUpdated) fields(c *coder) {
	c.str("task", &e.Task)
	opt(c, "subject", &e.Subject, c.str)
	opt(c, "description", &e.Description, c.str)
	opt(c, "activeForm", &e.ActiveForm, c.str)
	opt(c, "owner", &e.Owner, c.str)
	opt(c, "priority", &e.Priority, c.str)
	opt(c, "run", &e.Run, c.str)
	c.raws("metadata", &e.Metadata)
	c.strs("addBlockedBy", &e.AddBlockedBy)
	c.strs("removeBlockedBy", &e.RemoveBlockedBy)
	c.strs("addBlocks", &e.AddBlocks)
	c.strs("removeBlocks", &e.RemoveBlocks)
}

func (e *TaskClaimed) fields(c *coder) {
	c.str("task", &e.Task)
	c.str("member", &e.Member)
	c.int("fence", &e.Fence)
}

func (e *TaskReleased) fields(c *coder) {
	c.str("task", &e.Task)
	c.str("owner", &e.Owner)
	c.str("reason", &e.Reason)
}

func (e *TaskFailed) fields(c *coder) {
	c.str("task", &e.Task)
	c.str("by", &e.By)
	c.str("reason", &e.Reason)
	c.str("result", &e.Result)
}

func (e *TaskCompleted) fields(c *coder) {
	c.str("task", &e.Task)
	c.str("by", &e.By)
	c.str("result", &e.Result)
	c.strs("unblocked", &e.Unblocked)
}

func (e *TaskDeleted) fields(c *coder) {
	c.str("task", &e.Task)
	c.strs("unblocked", &e.Unblocked)
}

func (e *MessageSent) fields(c *coder) { e.Message.fields(c) }

func (e *MessagesDelivered) fields(c *coder) {
	c.str("member", &e.Member)
	c.ints("seqs", &e.Seqs)
}

func (e *MessagesRead) fields(c *coder) {
	c.str("member", &e.Member)
	c.int("through", &e.Through)
}

func (e *MessagesReturned) fields(c *coder) {
	c.str("member", &e.Member)
	c.ints("seqs", &e.Seqs)
}
