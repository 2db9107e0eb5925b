package teams

import (
	"time"

	"cadre/internal/team"
)

// TeamCreated reports that the team exists, with its lead.
type TeamCreated struct {
	Team TeamInfo
	Lead Member
}

// TeamRestored starts the history of a team that was restored from a checkpoint.
type TeamRestored struct{ Team TeamInfo }

// TeamStatusChanged reports the team's new state. Report is the path of the report's file, if there
// is one.
type TeamStatusChanged struct {
	Status TeamStatus
	Reason string
	Report string
}

// TeamCleanedUp is a team's last event. Forced reports that running sessions were ended for it.
type TeamCleanedUp struct{ Forced bool }

// TeamMoved reports that the project has moved from From to Dir.
type TeamMoved struct{ From, Dir string }

// DelegateChanged reports whether the lead may only coordinate from now on.
type DelegateChanged struct{ On bool }

// BudgetChanged gives the team a new budget.
type BudgetChanged struct{ Budget Budget }

// BudgetExhausted reports which part of the budget is spent. Running sessions are ended.
type BudgetExhausted struct{ What BudgetKind }

// BudgetAlerted reports that the lead was told which percentage of a budget is spent: of the
// team's, or of that Member's own.
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

// MemberBudgetExhausted reports which part of the member's own budget is spent. Its session is
// ended.
type MemberBudgetExhausted struct {
	Member string
	What   BudgetKind
}

// ReportAsked asks an agent that leads for its report, because all work is done.
type ReportAsked struct{}

// ReportGiven is the lead's report.
type ReportGiven struct{ Text string }

// GapNoticed reports that part of the output of Source was lost in an observed team. Earlier state
// is kept.
type GapNoticed struct{ Source, Reason string }

// MemberSpawned adds a member. Its session has not started yet.
type MemberSpawned struct{ Member Member }

// MemberStarted reports that a session of the member is running. Session is the agent's own id of
// it.
type MemberStarted struct{ Member, Session string }

// MemberStatusChanged reports the state of the member's session. Trouble says why its agent retries
// by itself, as in [MemberTroubled].
type MemberStatusChanged struct {
	Member  string
	Status  MemberStatus
	Summary string
	Trouble Trouble
}

// MemberDetached reports that the member's session has ended and another one continues: a resumed
// one, or a fresh one that gets Note.
type MemberDetached struct {
	Member, Reason string
	Fresh          bool
	Note           string
}

// MemberTroubled reports why the member could not continue, Setbacks times in a row now, and when
// it is tried again. With Setbacks 0 the trouble has passed.
type MemberTroubled struct {
	Member   string
	Trouble  Trouble
	Text     string
	Setbacks int64
	RetryAt  time.Time
}

// RateLimited reports that a model takes no turns before Until. Pool says for whom: the members
// that share an agent, an endpoint, a source of credentials and a model all wait. By was refused,
// for the Tries-th time in a row. Ended says that this ended its turn: it keeps its task, and
// continues by itself.
type RateLimited struct {
	Pool  string
	Until time.Time
	By    string
	Text  string
	Tries int64
	Ended bool
}

// RateLimitLifted reports that the model takes turns again. By is who found out or decided it.
type RateLimitLifted struct{ Pool, By string }

// TurnGranted reports that the member may start a turn, in a team with a limit of turns at a time.
type TurnGranted struct{ Member string }

// HandoverRequested asks for a fresh session that replaces the member's present one.
type HandoverRequested struct{ Member, Reason string }

// InterruptRequested asks the member's session to end its turn. By is who asked.
type InterruptRequested struct{ Member, By string }

// MemberStopped reports that the member ended on request.
type MemberStopped struct{ Member, Reason string }

// MemberFailed reports that the member's session ended by itself. Its tasks return to the queue.
type MemberFailed struct{ Member, Reason string }

// MemberReturned reports that a member of an observed team that had ended is back.
type MemberReturned struct{ Member Member }

// RuleAdded reports that the user added a permission rule: for the member, or for all without one.
type RuleAdded struct{ Rule, Member string }

// RuleRemoved reports that the user removed a permission rule that was added.
type RuleRemoved struct{ Rule, Member string }

// NoteSet reports that a note was set to a text. Seq numbers the changes of all notes of the team.
type NoteSet struct {
	Key, Text string
	Seq       int64
}

// NoteAppended reports that a text was added to a note, on a line of its own.
type NoteAppended struct {
	Key, Text string
	Seq       int64
}

// NoteDeleted reports that a note was deleted.
type NoteDeleted struct {
	Key string
	Seq int64
}

// ModeChanged reports what the member may do without asking from now on.
type ModeChanged struct {
	Member string
	Mode   PermissionMode
}

// ShutdownRequested asks a member to end. At the deadline the member's session is ended, even if
// the member rejected the request.
type ShutdownRequested struct {
	Member   string
	Request  string
	Reason   string
	Deadline time.Time
}

// ShutdownAnswered is the member's answer to the request to end.
type ShutdownAnswered struct {
	Member, Request string
	Approved        bool
	Reason          string
}

// ShutdownWithdrawn withdraws the request to end.
type ShutdownWithdrawn struct{ Member, Request string }

// PlanSubmitted submits a member's plan to the lead. Without an answer the plan is rejected at the
// deadline, if there is one.
type PlanSubmitted struct {
	Member, Request, Plan string
	Deadline              time.Time
}

// PlanAnswered answers a plan. By is "" if it got no answer in time.
type PlanAnswered struct {
	Member, Request string
	Approved        bool
	Feedback        string
	By              string
}

// PermissionRequested reports that a member asks to use a tool.
type PermissionRequested struct{ Permission Permission }

// PermissionAnswered ends a request for permission.
type PermissionAnswered struct {
	Request, Member string
	Outcome         Outcome
	By, Reason      string
}

// UsageReported adds to the usage of the member and the task. Context is the percentage of the
// session's context that is full, 0 if unknown.
type UsageReported struct {
	Member, Task string
	Usage        Usage
	Context      int
}

// HookRejected reports that a hook rejected the same thing again, Count times in a row now.
type HookRejected struct {
	Hook                   HookName
	Member, Task, Feedback string
	Count                  int64
}

// HookSwitched switches a hook off for the team, or on again. Command is the hook's command at that
// time, or the name of a function.
type HookSwitched struct {
	ID      string
	Event   HookName
	Source  HookSource
	Command string
	Off     bool
}

// TaskCreated adds a task to the list.
type TaskCreated struct{ Task Task }

// TaskUpdated reports which fields of the task changed. [TaskList.Get] returns the whole task.
type TaskUpdated struct {
	Task    string
	Changes []TaskChange
}

// TaskChange is the change of one field of a task.
type TaskChange struct {
	Field          string   // as in a task's JSON: subject, owner, blockedBy; metadata.KEY for a key of the metadata
	Was, Is        string   // the old and the new value; metadata as JSON. Was is empty in records of older versions
	Added, Removed []string // ids, for blockedBy and blocks
}

func changesOf(all []team.Change) (changes []TaskChange) {
	for _, c := range all {
		changes = append(changes, TaskChange(c))
	}
	return changes
}

// TaskClaimed reports that the member holds the task. Fence counts the claims of the task.
type TaskClaimed struct {
	Task, Member string
	Fence        int64
}

// PathsChanged reports that the member added paths to its task in progress, or gave some back.
type PathsChanged struct {
	Task, By       string
	Added, Removed []string
}

// WritesFound reports that the member changed files that belong to the task of Holder. With Unsure
// both ran commands when the files changed.
type WritesFound struct {
	Member, Task, Holder string
	Files                []string // from the team's directory, with slashes
	Unsure               bool
}

// TaskReleased returns the task to the queue, for Owner, or for any member if that is "".
type TaskReleased struct{ Task, Owner, Reason string }

// TaskRolledBack undoes the work of the task and returns it to the queue, for Owner, or for any
// member if that is "". Commit undid the work on the member's branch; it is "" if files in the
// team's directory were restored.
type TaskRolledBack struct{ Task, Owner, Commit, Reason string }

// TaskRevised reports that the task changed in the team file. Fields names the changed fields, as
// the journal does: run, timeoutMs.
type TaskRevised struct {
	Task   string
	Fields []string
}

// MemberRevised reports that the member changed in the team file. Dropped reports that the file no
// longer has the member.
type MemberRevised struct {
	Member  string
	Fields  []string
	Dropped bool
}

// TeamRevised reports that fields of the team changed in the team file.
type TeamRevised struct{ Fields []string }

// TaskFailed ends an attempt at the task. Result is a partial result. If the task is out of
// retries, Unblocked are the tasks with When "always" that are no longer blocked.
type TaskFailed struct {
	Task, By, Reason, Result string
	Unblocked                []string
}

// TaskSentBack reports that the result of a task was sent back to the member, with Feedback, for
// the Count-th time in this attempt. By is "result" for a result that does not fit its schema, and
// "check" for a check that did not pass; else it names the members who verified it. At Limit the
// attempt has failed: a TaskFailed follows.
type TaskSentBack struct {
	Task, Member, By, Feedback string
	Count, Limit               int64
}

// TaskSkipped reports that the task will never run, and counts as completed: it has When "failed",
// and none of the tasks that it depends on has failed. Unblocked are the tasks that are no longer
// blocked.
type TaskSkipped struct {
	Task, Reason string
	Unblocked    []string
}

// TaskCompleted completes the task. Unblocked are the tasks that are no longer blocked.
// Verified are those who accepted it, if others had to. Verdict is that of a task that verifies
// another one.
type TaskCompleted struct {
	Task, By, Result string
	Unblocked        []string
	Verified         []string
	Verdict          Verdict
}

// TaskSubmitted reports that the result of the task waits for others to accept it. Tasks are the
// tasks that verify it, which were created for that.
type TaskSubmitted struct {
	Task, By, Result string
	Round            int
	Tasks            []string
}

// WordsRecorded reports what the member said at the end of the turn in which it completed the task
// without a result.
type WordsRecorded struct{ Task, Member, Words string }

// TaskDeleted deletes the task. Unblocked are the tasks that are no longer blocked.
type TaskDeleted struct {
	Task      string
	Unblocked []string
}

// MessageSent reports that a message is pending for its recipients.
type MessageSent struct{ Message Message }

// MessagesDelivered reports that the member has these messages, by their Seq.
type MessagesDelivered struct {
	Member string
	Seqs   []int64
}

// MessagesRead reports that the member has read its messages up to Through.
type MessagesRead struct {
	Member  string
	Through int64
}

// MessagesReturned returns messages to their senders, because the member will never get them.
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
func (RateLimited) fact()           {}
func (RateLimitLifted) fact()       {}
func (TurnGranted) fact()           {}
func (HandoverRequested) fact()     {}
func (InterruptRequested) fact()    {}
func (MemberSpawned) fact()         {}
func (MemberStarted) fact()         {}
func (MemberStatusChanged) fact()   {}
func (MemberDetached) fact()        {}
func (MemberStopped) fact()         {}
func (MemberFailed) fact()          {}
func (RuleAdded) fact()             {}
func (RuleRemoved) fact()           {}
func (NoteSet) fact()               {}
func (NoteAppended) fact()          {}
func (NoteDeleted) fact()           {}
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
func (TaskSentBack) fact()          {}
func (TaskSkipped) fact()           {}
func (TaskDeleted) fact()           {}
func (TaskSubmitted) fact()         {}
func (WordsRecorded) fact()         {}
func (PathsChanged) fact()          {}
func (WritesFound) fact()           {}
func (MessageSent) fact()           {}
func (MessagesDelivered) fact()     {}
func (MessagesRead) fact()          {}
func (MessagesReturned) fact()      {}
