package team

import (
	"encoding/json"
	"slices"
)

// Event is one fact about a team. Each kind is a struct with a name, fields and what it changes
// (apply.go and its neighbours). Once recorded, the name and the meaning of the fields never
// change.
type Event interface {
	fielder
	// Kind returns the event's name in the journal.
	Kind() string
	// apply changes the state. It accepts any event: if what it names is unknown, it does nothing.
	apply(s *State, r *Record)
}

// Kinds returns the kinds of all events, sorted.
func Kinds() []string {
	var kinds []string
	for _, e := range everyEvent() {
		kinds = append(kinds, e.Kind())
	}
	slices.Sort(kinds)
	return kinds
}

// The events of the team.
type (
	// TeamCreated is the first event of a team. The lead joins with it.
	TeamCreated struct {
		Team Team
		Lead Member
	}
	// TeamRestored is the first event of a journal that continues the history of a lost one. It
	// holds the team as its last checkpoint had it.
	TeamRestored struct {
		Team                   Team
		Members                []Member
		Messages               []Message
		MessageSeq, RequestSeq int64
		Unsent                 int64 // numbers up to MessageSeq that belong to no message
		Permissions            []Permission
		Strikes                []Strike
		Tasks                  []Task
		Notes                  []Note
		NoteEnds               []NoteEnd // the last notes that were deleted
		NoteSeq                int64     // number of the last change of a note
	}
	// TeamStatusChanged changes the team's status.
	TeamStatusChanged struct {
		Status TeamStatus
		Reason string
		Report string
	}
	// TeamCleanedUp is the last event of a team. Its files outside the journal are removed then.
	TeamCleanedUp struct{ Forced bool }
	// DelegateChanged switches delegate mode.
	DelegateChanged struct{ On bool }
	// ReportAsked asks the lead for its report: all work is done.
	ReportAsked struct{}
	// ReportGiven is the lead's report.
	ReportGiven struct{ Text string }
	// LeadAttached says which session leads from now on: a new one, or the one that was lost.
	// TakenOver is the session that lost the lead to it. From is the session that led until then,
	// if it ended or handed the lead over. From is Session if that session was lost and is back.
	// From is empty if no session led, and in records of older versions.
	LeadAttached struct {
		Session, TakenOver, Machine string
		Agent                       bool // the session belongs to an agent
		From                        string
	}
	// LeadLost says that the session that leads has sent no heartbeat since Seen.
	LeadLost struct {
		Session string
		Seen    Time
	}
	// GapNoticed says that part of the output of Source about the team was lost. The known state
	// does not change.
	GapNoticed struct{ Source, Reason string }
	// FactsRecorded records the files that all members rely on, as they are now.
	FactsRecorded struct{ Facts []Fact }
)

// The events of members.
type (
	// MemberSpawned adds a teammate. Its first session has not started yet.
	MemberSpawned struct{ Member Member }
	// MemberAttached gives the lease of the member to a host. Pool is the pool of its sessions
	// there, whose rate limit they share; "" in records of older versions.
	MemberAttached struct {
		Member string
		Host   string
		Lease  int64
		Pool   string
		// Machine is the machine that the member is on now; "" where the team itself is run. Note
		// is for a session that continues on another machine than the one before it.
		Machine, Note string
	}
	// MemberStarted says that the member's session is running. Session is the agent's own id of the
	// session, for resuming it.
	MemberStarted struct{ Member, Session string }
	// MemberStatusChanged sets the member's status: active, idle or blocked.
	MemberStatusChanged struct {
		Member  string
		Status  MemberStatus
		Summary string
		Trouble string // why its agent tries again by itself, as in MemberTroubled; "" where it has no trouble
	}
	// MemberDetached says that the session ended with its host, and that the member needs another
	// session. Its incarnation ends, its tasks return to the queue, and its mail waits. A Fresh
	// session does not resume the ended one; it is given Note.
	MemberDetached struct {
		Member, Reason string
		Fresh          bool
		Note           string
	}
	// MemberTroubled says why the member could not continue, and when it is tried again. With
	// Setbacks 0 the trouble has passed.
	MemberTroubled struct {
		Member, Trouble, Text string // Trouble is login, limit, model, context, missing, crash or ""
		Setbacks              int64
		RetryAt               Time
	}
	// HandoverRequested asks for a fresh session in place of the present one.
	HandoverRequested struct{ Member, Reason string }
	// InterruptRequested asks the session of the member to end its turn.
	InterruptRequested struct{ Member, By string }
	// MemberStopped ends the member, on request.
	MemberStopped struct{ Member, Reason string }
	// MemberFailed ends the member: its session ended by itself.
	MemberFailed struct{ Member, Reason string }
	// MemberReturned says that another program started a member again that had ended. No command of
	// cadre does that.
	MemberReturned struct{ Member Member }
	// MemberDescribed adds facts about a member that were unknown when it joined. Fields that are
	// "" do not change. Team is the name of an observed team, if that was unknown.
	MemberDescribed struct{ Member, Model, Role, Prompt, Color, Session, Team string }
	// ModeChanged sets the member's permission mode. Own is the one that it would have without the
	// limit of its parent team; "" for the same.
	ModeChanged struct{ Member, Mode, Own string }
	// ShutdownRequested asks this incarnation of the member to end.
	ShutdownRequested struct {
		Member      string
		Request     string
		Incarnation int64
		Reason      string
		Deadline    Time
	}
	// ShutdownAnswered is the member's answer. The member ends at the deadline even if it refused.
	ShutdownAnswered struct {
		Member, Request string
		Approved        bool
		Reason          string
	}
	// ShutdownWithdrawn withdraws the request.
	ShutdownWithdrawn struct{ Member, Request string }
	// PlanSubmitted submits a plan to the lead. If it has a deadline, it is rejected then.
	PlanSubmitted struct {
		Member, Request, Plan string
		Deadline              Time
	}
	// PlanAnswered approves the plan, or rejects it with feedback.
	PlanAnswered struct {
		Member, Request string
		Approved        bool
		Feedback        string
		By              string // "" where it got no answer in time
	}
	// PermissionRequested asks for a permission. The request waits for an answer until its
	// deadline.
	PermissionRequested struct{ Permission Permission }
	// PermissionAnswered ends the request. Outcome is allowed, denied or timed_out.
	PermissionAnswered struct{ Request, Member, Outcome, By, Reason string }
	// UsageReported adds to the usage of the member and of the task.
	UsageReported struct {
		Member, Task string
		Usage        Usage
		Context      int64 // percent of the session's context that is full; 0 where it is unknown
	}
	// HookRejected says that a hook rejected the same thing again, Count times in a row now.
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
	// TasksSkipped says that this journal lacks the tasks with ids up to Through. Such a task may
	// be created later.
	TasksSkipped struct{ Through int64 }
	// TaskUpdated changes the fields that are not nil. An owner "" removes the owner; a null in the
	// metadata deletes its key.
	TaskUpdated struct {
		Task                                                   string
		Subject, Description, ActiveForm, Owner, Priority, Run *string
		Metadata                                               map[string]json.RawMessage
		AddBlockedBy, RemoveBlockedBy, AddBlocks, RemoveBlocks []string
		AddPaths, RemovePaths                                  []string
		Was                                                    *TaskWas // what it replaced; nil in older records
	}
	// TaskClaimed gives the task to the member. The member holds it under this fence until it
	// completes, fails or releases it, or loses it.
	TaskClaimed struct {
		Task, Member string
		Fence        int64
	}
	// TaskReleased returns a task to the queue. The task was in progress, out of retries, or
	// completed with a result that no longer holds. Owner is the member that should do it now.
	TaskReleased struct{ Task, Owner, Reason string }
	// TaskFailed ends an attempt. The task returns to the queue, or has failed after its last
	// retry. Unblocked lists the tasks with When always that are no longer blocked because of that.
	TaskFailed struct {
		Task, By, Reason, Result string
		Unblocked                []string
	}
	// TaskCompleted ends the task. Unblocked lists the tasks that are no longer blocked. Verified
	// lists who accepted it, if others had to. Verdict is what came of a verification.
	TaskCompleted struct {
		Task, By, Result string
		Unblocked        []string
		Verified         []string
		Verdict          string
	}
	// WorkSaved saves with the task the unfinished work of an owner that could not continue.
	WorkSaved struct {
		Task  string
		Saved Saved
	}
	// TaskDeleted deletes the task. Its id is not used again.
	TaskDeleted struct {
		Task      string
		Unblocked []string
	}
)

// The events of the mailbox.
type (
	// MessageSent puts one message into the inbox of each recipient.
	MessageSent struct{ Message Message }
	// MessagesDelivered says that these messages were delivered to the member.
	MessagesDelivered struct {
		Member string
		Seqs   []int64
	}
	// MessagesRead says that the member has read everything up to the message Through.
	MessagesRead struct {
		Member  string
		Through int64
	}
	// MessagesLate says that these messages waited too long for the member, and that the lead was
	// notified.
	MessagesLate struct {
		Member string
		Seqs   []int64
	}
	// MessagesResent sends late messages again. They stay the same messages.
	MessagesResent struct {
		Member string
		Seqs   []int64
	}
	// MessagesReturned removes messages from the inbox of a member that will never read them. They
	// were returned to their senders.
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
func (*MemberSpawned) Kind() string       { return "member_spawned" }
func (*MemberAttached) Kind() string      { return "member_attached" }
func (*MemberStarted) Kind() string       { return "member_started" }
func (*MemberStatusChanged) Kind() string { return "member_status_changed" }
func (*MemberDetached) Kind() string      { return "member_detached" }
func (*MemberTroubled) Kind() string      { return "member_troubled" }
func (*HandoverRequested) Kind() string   { return "handover_requested" }
func (*InterruptRequested) Kind() string  { return "interrupt_requested" }
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
	c.int("unsent", &e.Unsent)
	c.int("requestSeq", &e.RequestSeq)
	objects(c, "permissions", &e.Permissions)
	objects(c, "strikes", &e.Strikes)
	objects(c, "tasks", &e.Tasks)
	objects(c, "notes", &e.Notes)
	objects(c, "noteEnds", &e.NoteEnds)
	c.int("noteSeq", &e.NoteSeq)
}

func (e *TeamStatusChanged) fields(c *coder) {
	c.str("status", (*string)(&e.Status))
	c.str("reason", &e.Reason)
	c.str("report", &e.Report)
}

func (e *TeamCleanedUp) fields(c *coder)   { c.bool("forced", &e.Forced) }
func (e *DelegateChanged) fields(c *coder) { c.bool("on", &e.On) }
func (e *MemberSpawned) fields(c *coder)   { c.sub("member", false, &e.Member) }

func (e *MemberAttached) fields(c *coder) {
	c.str("member", &e.Member)
	c.str("host", &e.Host)
	c.int("lease", &e.Lease)
	c.str("pool", &e.Pool)
	c.str("machine", &e.Machine)
	c.str("note", &e.Note)
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
	c.str("own", &e.Own)
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

func (e *InterruptRequested) fields(c *coder) {
	c.str("member", &e.Member)
	c.str("by", &e.By)
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
	c.strs("addPaths", &e.AddPaths)
	c.strs("removePaths", &e.RemovePaths)
	part(c, "was", &e.Was)
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
	c.strs("unblocked", &e.Unblocked)
}

func (e *TaskCompleted) fields(c *coder) {
	c.str("task", &e.Task)
	c.str("by", &e.By)
	c.str("result", &e.Result)
	c.strs("unblocked", &e.Unblocked)
	c.strs("verified", &e.Verified)
	c.str("verdict", &e.Verdict)
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
