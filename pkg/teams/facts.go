package teams

import (
	"time"

	"cadre/internal/team"
)

// TeamCreated says that the team exists, with its lead.
type TeamCreated struct {
	Team TeamInfo
	Lead Member
}

// TeamRestored begins the history of a team whose folder was lost, from a checkpoint.
type TeamRestored struct{ Team TeamInfo }

// TeamStatusChanged says where the team is in its life now. Report is the path of the report's
// file, where the change comes with one.
type TeamStatusChanged struct {
	Status TeamStatus
	Reason string
	Report string
}

// TeamCleanedUp is a team's last event. Forced says that sessions that ran were ended for it.
type TeamCleanedUp struct{ Forced bool }

// TeamMoved says that the project is in Dir now, and was in From.
type TeamMoved struct{ From, Dir string }

// DelegateChanged says whether the lead may only coordinate from now on.
type DelegateChanged struct{ On bool }

// BudgetChanged gives the team a new budget.
type BudgetChanged struct{ Budget Budget }

// BudgetExhausted says which part of the budget is spent. Running sessions are ended.
type BudgetExhausted struct{ What BudgetKind }

// BudgetAlerted says that the lead was told that so many percent of a budget are spent: of the team's,
// or of that Member's own.
type BudgetAlerted struct {
	Member  string
	What    BudgetKind
	Percent int // 50, 80 or 95
}

// MemberBudgetChanged gives the member a new budget of its own.
type MemberBudgetChanged struct {
	Member string
	Budget Budget
}

// MemberBudgetExhausted says which part of the member's own budget is spent. Its session is ended.
type MemberBudgetExhausted struct {
	Member string
	What   BudgetKind
}

// ReportAsked asks a lead that is an agent for its report: all work is done.
type ReportAsked struct{}

// ReportGiven is the lead's report.
type ReportGiven struct{ Text string }

// GapNoticed says that something of what Source said of an observed team was lost. What is known
// stays.
type GapNoticed struct{ Source, Reason string }

// MemberSpawned adds a member. Its session is yet to be started.
type MemberSpawned struct{ Member Member }

// MemberStarted says that a session of the member runs. Session is the agent's own id of it.
type MemberStarted struct{ Member, Session string }

// MemberStatusChanged says what the member's session does now. Trouble says why its agent tries
// again by itself, as in [MemberTroubled].
type MemberStatusChanged struct {
	Member  string
	Status  MemberStatus
	Summary string
	Trouble Trouble
}

// MemberDetached says that the member's session is gone and another one continues: by resuming it,
// or a Fresh one, which is told Note.
type MemberDetached struct {
	Member, Reason string
	Fresh          bool
	Note           string
}

// MemberTroubled says what kept the member from continuing, Setbacks times in a row now, and when
// it is tried again. With Setbacks 0 the trouble is over.
type MemberTroubled struct {
	Member   string
	Trouble  Trouble
	Text     string
	Setbacks int64
	RetryAt  time.Time
}

// HandoverRequested asks for a fresh session of the member, which continues for the present one.
type HandoverRequested struct{ Member, Reason string }

// InterruptRequested asks the member's session to end its turn, for By.
type InterruptRequested struct{ Member, By string }

// MemberStopped says that the member ended as it was asked to.
type MemberStopped struct{ Member, Reason string }

// MemberFailed says that the member's session ended by itself. Its tasks are returned to the queue.
type MemberFailed struct{ Member, Reason string }

// MemberReturned says that a member of an observed team that had ended is there again.
type MemberReturned struct{ Member Member }

// ModeChanged says what the member may do without asking from now on.
type ModeChanged struct {
	Member string
	Mode   PermissionMode
}

// ShutdownRequested asks a member to end. At the deadline it is ended, whatever it answered.
type ShutdownRequested struct {
	Member   string
	Request  string
	Reason   string
	Deadline time.Time
}

// ShutdownAnswered is what the member says to the request to end.
type ShutdownAnswered struct {
	Member, Request string
	Approved        bool
	Reason          string
}

// ShutdownWithdrawn takes the request to end back.
type ShutdownWithdrawn struct{ Member, Request string }

// PlanSubmitted lays a member's plan before the lead. It is rejected at the deadline, where it has
// one, if nobody answers.
type PlanSubmitted struct {
	Member, Request, Plan string
	Deadline              time.Time
}

// PlanAnswered answers a plan. By is "" where nobody answered in time.
type PlanAnswered struct {
	Member, Request string
	Approved        bool
	Feedback        string
	By              string
}

// PermissionRequested says that a member asks for leave to use a tool.
type PermissionRequested struct{ Permission Permission }

// PermissionAnswered ends a request for permission.
type PermissionAnswered struct {
	Request, Member string
	Outcome         Outcome
	By, Reason      string
}

// UsageReported adds to what the member used, and for which task. Context is the percentage of its
// session's context that is full, 0 where the agent does not say.
type UsageReported struct {
	Member, Task string
	Usage        Usage
	Context      int
}

// HookRejected says that a hook rejected the same thing, Count times in a row now.
type HookRejected struct {
	Hook                   HookName
	Member, Task, Feedback string
	Count                  int64
}

// HookSwitched switches a hook off for the team, or on again. Command is what the hook ran then, or
// the name of a function.
type HookSwitched struct {
	ID      string
	Event   HookName
	Source  HookSource
	Command string
	Off     bool
}

// TaskCreated adds a task to the list.
type TaskCreated struct{ Task Task }

// TaskUpdated says what was changed of the task. [TaskList.Get] shows the whole task.
type TaskUpdated struct {
	Task    string
	Changes []TaskChange
}

// TaskChange is what an update changed of a task.
type TaskChange struct {
	Field          string   // as in a task's JSON: subject, owner, blockedBy; metadata.KEY for a key of the metadata
	Was, Is        string   // the value before and now; metadata as JSON. Was is empty in records of older versions
	Added, Removed []string // ids, for blockedBy and blocks
}

func changesOf(all []team.Change) (changes []TaskChange) {
	for _, c := range all {
		changes = append(changes, TaskChange(c))
	}
	return changes
}

// TaskClaimed says that the member has the task now. Fence counts the claims of the task.
type TaskClaimed struct {
	Task, Member string
	Fence        int64
}

// TaskReleased returns the task to the queue, meant for Owner, or for anybody.
type TaskReleased struct{ Task, Owner, Reason string }

// TaskRolledBack undoes the work of the task and returns it to the queue, meant for Owner, or for
// anybody. Commit undid it on the member's branch; it is "" where files were put back in the team's
// directory.
type TaskRolledBack struct{ Task, Owner, Commit, Reason string }

// TaskRevised says that the team file says something else of the task than before. Fields names what
// changed, as the journal does: run, timeoutMs.
type TaskRevised struct {
	Task   string
	Fields []string
}

// MemberRevised says that the team file says something else of the member than before. Dropped says
// that the file no longer has the member.
type MemberRevised struct {
	Member  string
	Fields  []string
	Dropped bool
}

// TeamRevised says that the team file says something else of the team than before.
type TeamRevised struct{ Fields []string }

// TaskFailed ends an attempt at the task. Result is what there is of one. Unblocked are the tasks
// with When "always" that wait for nothing now, because the task is out of retries.
type TaskFailed struct {
	Task, By, Reason, Result string
	Unblocked                []string
}

// TaskCompleted completes the task. Unblocked are the tasks that wait for nothing now.
type TaskCompleted struct {
	Task, By, Result string
	Unblocked        []string
}

// TaskDeleted takes the task off the list. Unblocked are the tasks that wait for nothing now.
type TaskDeleted struct {
	Task      string
	Unblocked []string
}

// MessageSent says that a message waits for its recipients.
type MessageSent struct{ Message Message }

// MessagesDelivered says that the member has these messages, by their Seq.
type MessagesDelivered struct {
	Member string
	Seqs   []int64
}

// MessagesRead says that the member has read what it was given, up to the message Through.
type MessagesRead struct {
	Member  string
	Through int64
}

// MessagesReturned takes mail from a member that will never get it. It went back to its senders.
type MessagesReturned struct {
	Member string
	Seqs   []int64
}

func (TeamCreated) fact()           {}
func (GapNoticed) fact()            {}
func (MemberReturned) fact()        {}
func (TeamRestored) fact()          {}
func (TeamStatusChanged) fact()     {}
func (TeamCleanedUp) fact()         {}
func (TeamMoved) fact()             {}
func (DelegateChanged) fact()       {}
func (BudgetChanged) fact()         {}
func (BudgetExhausted) fact()       {}
func (BudgetAlerted) fact()         {}
func (MemberBudgetChanged) fact()   {}
func (MemberBudgetExhausted) fact() {}
func (ReportAsked) fact()           {}
func (ReportGiven) fact()           {}
func (MemberTroubled) fact()        {}
func (HandoverRequested) fact()     {}
func (InterruptRequested) fact()    {}
func (MemberSpawned) fact()         {}
func (MemberStarted) fact()         {}
func (MemberStatusChanged) fact()   {}
func (MemberDetached) fact()        {}
func (MemberStopped) fact()         {}
func (MemberFailed) fact()          {}
func (ModeChanged) fact()           {}
func (ShutdownRequested) fact()     {}
func (ShutdownAnswered) fact()      {}
func (ShutdownWithdrawn) fact()     {}
func (PlanSubmitted) fact()         {}
func (PlanAnswered) fact()          {}
func (PermissionRequested) fact()   {}
func (PermissionAnswered) fact()    {}
func (UsageReported) fact()         {}
func (HookRejected) fact()          {}
func (HookSwitched) fact()          {}
func (TaskCreated) fact()           {}
func (TaskUpdated) fact()           {}
func (TaskClaimed) fact()           {}
func (TaskReleased) fact()          {}
func (TaskRolledBack) fact()        {}
func (TaskFailed) fact()            {}
func (TaskRevised) fact()           {}
func (MemberRevised) fact()         {}
func (TeamRevised) fact()           {}
func (TaskCompleted) fact()         {}
func (TaskDeleted) fact()           {}
func (MessageSent) fact()           {}
func (MessagesDelivered) fact()     {}
func (MessagesRead) fact()          {}
func (MessagesReturned) fact()      {}
