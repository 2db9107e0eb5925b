package team

import (
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"time"
)

// The actors of a command that are not members of the team.
const (
	User       = "@user"  // the human who owns the team
	hostPrefix = "@host:" // a process that runs sessions
)

// Host returns the actor name of the host with this id.
func Host(id string) string { return hostPrefix + id }

// TeamStatus is the status of a team.
type TeamStatus string

// The states of a team.
const (
	TeamPending       TeamStatus = "pending" // no teammate yet
	TeamActive        TeamStatus = "active"
	TeamConsolidating TeamStatus = "consolidating"
	TeamComplete      TeamStatus = "complete"
	TeamAborted       TeamStatus = "aborted"
)

// MemberStatus is what a member's session does.
type MemberStatus string

// The states of a member.
const (
	Spawning     MemberStatus = "spawning" // its session is not started yet
	Active       MemberStatus = "active"
	Idle         MemberStatus = "idle"
	Blocked      MemberStatus = "blocked"       // waits for a permission, an approval or another answer
	ShuttingDown MemberStatus = "shutting_down" // agreed to stop, its session is ending
	Stopped      MemberStatus = "stopped"       // ended on request
	Failed       MemberStatus = "failed"        // ended by itself
)

// Running reports whether a member in this status has, or will get, a session.
func (s MemberStatus) Running() bool { return s != Stopped && s != Failed }

// TaskStatus is the status of a task.
type TaskStatus string

// The states of a task.
const (
	Pending    TaskStatus = "pending"
	InProgress TaskStatus = "in_progress"
	Completed  TaskStatus = "completed"
	Deleted    TaskStatus = "deleted"
)

func (s TaskStatus) open() bool { return s == Pending || s == InProgress }

// Priorities of tasks, the most urgent last.
var Priorities = []string{"low", "medium", "high", "critical"}

// PermissionModes that a member can be in, by the names that Claude Code gives them.
var PermissionModes = []string{"default", "acceptEdits", "auto", "bypassPermissions", "dontAsk", "plan"}

// External is the agent of a member that has no session of ours: a person or their own program acts
// as it.
const External = "external"

// Agents with a model, each run by a program of its own. acp: followed by a command is any agent
// that speaks the Agent Client Protocol.
const (
	Claude   = "claude"
	Codex    = "codex"
	Gemini   = "gemini"
	OpenCode = "opencode"
	// ClaudeTmux is Claude's program in a terminal that a person can open.
	ClaudeTmux = "claude-tmux"
	ACP        = "acp:"
)

// Shell is the agent that runs the commands of tasks and needs no model.
const Shell = "shell"

// DefaultHandoverAt leaves an agent enough room to end its turn, and is below the level at which
// agents compact their contexts by themselves.
const DefaultHandoverAt = 80

// DefaultPatience is how long a permission request waits for an answer.
const DefaultPatience = 5 * time.Minute

// Worktree is the isolation of a member that works in a git worktree and on a branch of its own.
const Worktree = "worktree"

// MaxSetbacks is how many troubles in a row end a teammate. For the lead it is the number of tries.
const MaxSetbacks = 5

// FileIDKey is the metadata key with a task's id in its team file, a JSON string. Histories from
// before tasks had names use it.
const FileIDKey = "id"

// ParametersKey is the metadata key of a team with the values of the parameters of its team file
// that are not the defaults: a JSON list of {name, text}.
const ParametersKey = "parameters"

// Hook is a quality gate that belongs to the team itself, not to the project or the user.
type Hook struct {
	Event   string        // TeammateIdle, TaskCreated or TaskCompleted
	Command string        // command for /bin/sh
	Timeout time.Duration // limit for one run; 0 for the default
}

// Permissions say what the members of a team may do without asking, and who is asked about the
// rest.
type Permissions struct {
	Allow   []string      // rules in Claude Code's notation: Bash(go test:*), Edit, mcp__server__tool
	Timeout time.Duration // how long a request or a plan waits for its answer; 0 for [DefaultPatience]
	Policy  string        // who answers if no rule does: user, lead, allow or deny; "" for user, or an external lead
}

// PermissionPolicies are the values of [Permissions.Policy].
var PermissionPolicies = []string{"user", "lead", "allow", "deny"}

// Team has the fields of the team as a whole.
type Team struct {
	ID            string     // id of the team, which no other team ever has
	Name          string     // name of the team
	Status        TeamStatus // pending, active, consolidating, complete or aborted
	Goal          string     // what the team is to do
	Dir           string     // absolute path of the directory in which its members work
	Lead          string     // name of the lead, which never changes
	Observed      string     // name that its own agents have for it, if the team is only observed; "" for other teams
	Session       bool       // not a team but one session is observed, of the agent that Observed names
	Delegate      bool       // the lead may only coordinate
	Budget        Budget
	Exhausted     string // which budget is spent: tokens, cost or time; "" for none
	Alerted       []Alerted
	Hooks         []Hook
	Permissions   Permissions
	MaxParallel   int64    // how many teammates have a turn at a time; 0 for no limit
	Depth         int64    // how deep it is nested in other teams; 0 for a team by itself
	MaxDepth      int64    // how deep teams may be nested in it; 0 for none
	Parent        Parent   // the member that it is for, if it is nested
	Outbox        []int64  // messages to the parent's lead that were not passed on yet
	Children      []Child  // the teams that its members run, in the order in which they began
	MaxTeammates  int64    // how many run at a time; 0 for [DefaultMaxTeammates] if the lead spawns, else no limit
	HandoverAt    int64    // percent of a context at which a fresh session takes over; 0 for [DefaultHandoverAt]
	Origin        string   // path of the team file that it was made from; "" for none
	OriginDigest  string   // SHA-256 of that file
	FileDigests   []string // digests of what that file says of the team itself, as key=digest
	Report        string   // path of the lead's report; "" before there is one
	ReportAsked   bool     // the lead was asked for its report, and no new work has started since
	LastWords     string   // text of the lead's report
	Usage         Usage    // tokens and cost of all members together
	CreatedAt     Time     // when the team was created
	UpdatedAt     Time     // when it last changed
	CleanedUp     bool     // it was removed
	Timing        Timing
	Facts         []Fact         // files that all members rely on, as they were when last recorded
	LeadSession   string         // id of the session that leads
	LeadMachine   string         // name of its computer; "" if unknown
	LeadAgent     bool           // it is a session of an agent
	LeadSince     Time           // when it took the lead, or resumed it
	LeadLost      Time           // since when no session leads; 0 while one does
	HeldAfter     int64          // while no session leads, messages of members after this number wait
	Checks        []Check        // that must pass before the team's work is committed
	Commands      []NamedCommand // that tasks can name as their check
	Clean         bool           // the checks run in a clean checkout of the tree to commit
	Changes       bool           // files that the checks change are committed too
	Remote        string         // git remote through which work travels between machines; "" for a team on one machine
	Base          Base           // the project when the team was created
	Consolidation Consolidation
	Restored      Restored  // the history before this journal's
	Missing       []Missing // see [State.Missing]
	Released      Released
	HooksOff      []HookOff
	Rules         []Rule                     // permission rules that were added while the team worked
	Metadata      map[string]json.RawMessage // what its creator keeps with it
	// since when it winds down or is complete; 0 while it is active, or if unknown
	EndingAt Time
}

// Restored says from which checkpoint a journal was started, because the one before it was lost. It
// is zero for a team's first journal.
type Restored struct {
	ID   string // id of this history: the id of the command that restored it
	From string // id of the history that made the checkpoint; "" for the team's first
	Seq  int64  // number of records that this history had at the checkpoint
}

// Member is the lead or a teammate.
type Member struct {
	Name           string       // name of the member, unique in the team
	Agent          string       // agent that runs its sessions: claude, codex, shell, external, …
	Model          string       // model that it uses; "" for the agent's own
	Program        string       // executable instead of the agent's own
	Args           []string     // arguments that are added to the agent's own
	Env            []string     // NAME=value, added to its environment
	Role           string       // its role; "" for none
	Prompt         string       // what it is told first
	Color          string       // color in which its agent shows it, if the agent reports one
	Nested         *Nested      // what its teams are made from, if it is a team; nil for other members
	Isolation      string       // worktree if it has a git worktree and branch of its own; "" for the team's directory
	Status         MemberStatus // spawning, active, idle, blocked, shutting_down, stopped or failed
	Since          Time         // since when it has that status
	Incarnation    int64        // number of its present session; counts from 1
	PermissionMode string       // default, acceptEdits, auto, bypassPermissions, dontAsk or plan; "" for default
	OwnMode        string       // permission mode that it has as soon as the parent team allows it; "" for the present one
	Plan           Plan         // its plan, if it works in plan mode
	Shutdown       Shutdown
	RunsOn         []string // labels of the machine that runs it; none where the team itself is run
	Machine        string   // name of the machine with a label that last ran it; "" for none
	Host           string   // id of the host that holds its lease; "" for none
	Lease          int64    // number of its present lease; older leases are void
	Session        string   // the agent's own id of its session, for resuming it
	Summary        string   // what it is doing, in its own words, or why it ended
	Note           string   // for its next session: why that starts, and what the last one knew
	Handover       string   // why a fresh session should replace the present one; "" for no request
	Interrupt      int64    // number of the request to interrupt its turn, until its next turn; 0 for none
	Setbacks       int64    // failed turns and unexpected ends of sessions in a row
	RetryAt        Time     // it is not started again before then
	Pool           string   // pool of its session, whose rate limit it shares; "" while it is unknown
	Turn           int64    // seq of the record that granted it its turn, in a team with MaxParallel; 0 for none
	Limited        Time     // since when it waits for a rate limit with its turn cut short; 0 for no such wait
	Context        int64    // percent of its context that is full, by the agent's own figures
	JoinedAt       Time     // when it joined the team
	Usage          Usage    // tokens and cost of all its sessions
	Inbox          []int64  // numbers of the messages that are not delivered to it yet, in order
	DeliveredSeq   int64    // number of the last message that was delivered to it
	ReadSeq        int64    // it has read all messages up to this number
	Late           []int64  // numbers of late messages that the lead was notified of
	Resent         int64    // number of times that late messages were sent again
	Offline        Time     // since when it is recorded as offline; 0 while it is not
	Left           Left     // its work on a branch that is not merged yet
	Budget         Budget
	Exhausted      string // which of its own budgets is spent: tokens, cost or time; "" for none
	Alerted        []Alerted
	SessionCost    int64    // what its present session has cost, in millionths of a US dollar
	FileDigests    []string // digests of what its team file says of it, as key=digest; nil for a member of no file
	Dropped        bool     // its team file no longer has it, and it is not replaced
	Inherited      Usage    // usage of its predecessors, which counts against its budget
	BudgetFrom     Time     // when the first member with its budget joined; 0 if it is the first itself
	Change         int64    // number of joins and ends of members, up to its own last one
	Told           Told     // what it was told of tasks and members
}

// Plan is the approval of a member's plan.
type Plan struct {
	Required bool   // it may not write before a plan is approved
	State    string // submitted, approved or rejected; "" for none
	Request  string // id of the last plan
	Text     string // the plan, while it waits for an answer
	Feedback string // why the last plan was rejected
	Deadline Time   // when the plan is rejected without an answer; 0 for never
	AskedAt  Time   // when the last plan was submitted
}

// Shutdown is a request to a member to end.
type Shutdown struct {
	Request  string // id of the request; "" for no request
	Reason   string // why the member is to end
	Deadline Time   // when the session ends whatever it answers
	Answer   string // approved or rejected; "" before the answer
}

// Task is a piece of work on the team's list.
type Task struct {
	ID          string // number of the task: "1", "2", …
	Name        string // name of the task; "" for a task without one
	Subject     string // its title
	Description string // what to do
	// what a member is doing while it works on the task, as in "Writing the tests"
	ActiveForm string
	Status     TaskStatus // pending, in_progress, completed or deleted
	Owner      string     // member that has it, or that it is assigned to
	// another member or the user named the owner, who keeps it when it is released
	Assigned  bool
	Role      string          // only members of this role take it; "" for any
	BlockedBy []string        // ids of the tasks that must be completed first
	Blocks    []string        // ids of the tasks that wait for it
	Priority  string          // low, medium, high or critical
	Run       string          // command for a shell member
	In        string          // where the command runs: [InMerged], or "" for its member's directory
	Dir       string          // directory below that one in which the command runs
	Env       []string        // NAME=value, added to its environment
	When      string          // [Always], [OnFailure], or "" for after its blockers are done
	Timeout   time.Duration   // limit for one attempt of its command; 0 for an hour
	Retries   int64           // number of failed attempts that are repeated
	Fence     int64           // number of the newest claim; older claims are void
	Attempts  int64           // number of claims so far
	Failures  int64           // number of attempts that failed
	Failure   string          // why the last attempt failed; kept until the next claim
	FailedBy  string          // who made that attempt; kept as long
	Result    string          // what its owner reported when it was completed
	Schema    json.RawMessage // JSON Schema that its result must fit; nil for any result
	Check     *TaskCheck      // command that must pass before it is completed; nil for none
	Verify    *Verify         // who must accept it before it counts as completed; nil for nobody
	// its result, while others verify it; else nil. It is replaced, never changed
	Submission *Submission
	// the last result that was sent back, until it is completed; nil for none. It is replaced,
	// never changed
	Rejected *TaskRejection
	Verified []string // who accepted it, once it is completed
	Workers  []string // who worked on it since it was last completed, where others verify it
	Verifies string   // id of the task that this one verifies; "" for other tasks
	Verdict  string   // what came of verifying: accepted or rejected; "" before that
	// the last text of the turn in which it was completed without a result
	LastWords string
	// why it will never run, if it counts as completed because of that; "" for other tasks
	Skipped  string
	Metadata map[string]json.RawMessage // what its creator keeps with it
	// patterns of the files that it changes; none for a task that says nothing of them
	Paths []string
	// patterns that belong to it while it is in progress: its paths, and those that its owner added
	Holds []string
	// the items for which it makes tasks that do it; nil for a task that is done by
	// a member. It is replaced, never changed
	ForEach  *ForEach
	Expanded bool            // it has made these tasks, and waits for them
	Of       string          // id of the group that made it; "" for a task that no group made
	Item     json.RawMessage // the item of that group
	// digests of what its team file says of it, as key=digest; nil for a task of no file
	FileDigests []string
	// what the last owner had done when it could not continue; nil for nothing. It is replaced,
	// never changed
	Saved *Saved
	// where it started, and once it is completed what it did; nil before that is recorded. It is
	// replaced, never changed
	Work        *Work
	CreatedBy   string // who added it: a member, or @user
	CompletedBy string // who completed it
	CreatedAt   Time   // when it was added
	UpdatedAt   Time   // when it last changed
	StartedAt   Time   // when it was last claimed; 0 while it is pending
	CompletedAt Time   // when it was completed
	Usage       Usage  // tokens and cost of the work on it

	blockage blockage
	marked   bool     // it has no name, and another task has, or had, its number as a name
	open     []string // only in a copy for readers: the ids of the tasks that it waits for
	path     string   // only in such a copy: the path for which it waits; "" for none
	names    []string // what those are called; "" for one that is called by its number alone
}

// Blocked returns the ids of the open tasks that this task waits for: its blockers, or tasks that
// have a path of it.
func (t Task) Blocked() []string { return t.open }

// WaitsForPath returns a path of the task for which it waits, because it belongs to another task;
// "" for none.
func (t Task) WaitsForPath() string { return t.path }

// OutOfRetries reports whether the task has failed after its last retry. It does not return to the
// queue by itself: a member must claim it by its id.
func (t Task) OutOfRetries() bool {
	return t.Failures > t.retries() && t.Status == Pending && t.Failure != ""
}

// retries returns how often a failed attempt is repeated. The tasks of a list or a matrix cannot be
// made if they could not be made before.
func (t Task) retries() int64 {
	if t.ForEach != nil && !t.ForEach.Outside() {
		return 0
	}
	return t.Retries
}

// Worker returns the member that has the task, completed it, or failed it after its last retry;
// else the one that should do it, or "".
func (t Task) Worker() string {
	switch {
	case t.OutOfRetries() && t.FailedBy != "": // older snapshots do not have it
		return t.FailedBy
	case t.Owner != "":
		return t.Owner
	}
	return t.CompletedBy
}

// Permission is a member's request that waits for an answer.
type Permission struct {
	Request     string // id of the request
	Member      string // who asks
	Incarnation int64  // number of the session that asks
	Tool        string // name of the tool
	Input       string // input that the tool would get, as JSON
	Deadline    Time   // when it is denied without an answer
	AskedAt     Time   // when it was asked; 0 in records of older versions
}

// State is a team after the record Seq. Only [State.Apply] changes it. It belongs to one goroutine,
// or to many that only read.
type State struct {
	seq         int64
	team        Team
	here        Here     // see [State.SetHere]
	members     []Member // in the order in which they joined; the lead is the first
	tasks       []Task   // the task with id n is tasks[n-1]
	messages    map[int64]*Message
	messageSeq  int64
	unsent      int64   // how many numbers up to messageSeq were skipped; see [leap]
	lastMail    []int64 // seqs of the records with the last messages, one per message
	requestSeq  int64
	permissions []Permission
	strikes     map[string]int64 // rejections in a row, by what was rejected
	rejections  []Rejection      // things that were rejected [MaxStrikes] times in a row and have not passed since
	answers     []Answer         // the last ones, for a person who answers second
	recent      recent
	notebook
	rateLimits []RateLimit // of the pools, in the order in which they were limited first

	ready   [4]bitset // by priority: tasks that could be claimed
	under   bitset    // tasks in progress
	failed  bitset    // tasks that have failed after their last retry
	traced  bitset    // tasks whose start or work a host must record
	holding bitset    // tasks in progress whose paths are kept from other members
	groups  bitset    // pending tasks with ForEach
	due     bitset    // those of them for which ExpandTask has something to do
	counts  [4]int    // by status
	named   map[string]int

	tasksNamed map[string]int // place of each task with a name
}

// Seq returns the seq of the last record that was applied; 0 for a team that does not exist yet.
func (s *State) Seq() int64 { return s.seq }

// Position counts all records since the team was created. It includes those of lost journals, as
// far as a checkpoint had them.
func (s *State) Position() int64 { return s.team.Restored.Seq + s.seq }

// Remembers reports whether the command with that id is among the last [Remembered] ones.
func (s *State) Remembers(command string) bool { return s.Recorded(command) != 0 }

// Recorded returns the seq of the record that the command with that id became; 0 if it is not among
// the last [Remembered] ones.
func (s *State) Recorded(command string) int64 { return s.recent.seq(command) }

// Exists reports whether the team was created and is not cleaned up.
func (s *State) Exists() bool { return s.team.ID != "" && !s.team.CleanedUp }

// Team returns the fields of the team as a whole.
func (s *State) Team() Team { return s.here.of(s.team) }

// Members returns the lead and then the teammates in the order in which they joined.
func (s *State) Members() []Member { return slices.Clone(s.members) }

// AppendMembers appends [State.Members] to members.
func (s *State) AppendMembers(members []Member) []Member { return append(members, s.members...) }

// Member returns the member of that name.
func (s *State) Member(name string) (Member, bool) {
	if m := s.member(name); m != nil {
		return *m, true
	}
	return Member{}, false
}

// Task returns the task with that id, even a deleted one.
func (s *State) Task(id string) (Task, bool) {
	if t := s.task(id); t != nil {
		return s.show(t), true
	}
	return Task{}, false
}

// Listed reports whether there is a task with that id that was not deleted.
func (s *State) Listed(id string) bool {
	t := s.task(id)
	return t != nil && t.Status != Deleted
}

// Tasks yields the tasks that were not deleted, in the order of their ids.
func (s *State) Tasks() iter.Seq[Task] {
	return func(yield func(Task) bool) {
		l := s.line()
		for i := range s.tasks {
			if t := &s.tasks[i]; t.Status != Deleted && !yield(s.shown(t, l)) {
				return
			}
		}
	}
}

// show returns a copy of the task for readers.
func (s *State) show(t *Task) Task { return s.shown(t, s.line()) }

// shown is show for several tasks with one lineup.
func (s *State) shown(t *Task, l *lineup) (shown Task) {
	shown = *t
	if shown.open = s.blockersOf(t); len(shown.open) == 0 {
		shown.open, shown.path = l.blockers(t)
	}
	for _, id := range shown.open {
		name := ""
		if b := s.task(id); b.Name != "" || b.marked {
			name = b.Ref()
		}
		shown.names = append(shown.names, name)
	}
	return shown
}

// Count returns the number of tasks in that state.
func (s *State) Count(status TaskStatus) int { return s.counts[statusIndex(status)] }

// Inbox returns the messages that can be delivered to the member now, in order.
func (s *State) Inbox(member string) []Message {
	m := s.member(member)
	if m == nil {
		return nil
	}
	var mail []Message
	for _, seq := range m.Inbox {
		if msg := s.messages[seq]; msg != nil && !s.held(msg) {
			mail = append(mail, *msg)
		}
	}
	return mail
}

// MessageSeq returns the seq of the last message that was sent.
func (s *State) MessageSeq() int64 { return s.messageSeq }

// MessageCount returns how many messages were sent. Numbers that were skipped when the team was
// restored do not count.
func (s *State) MessageCount() int64 { return s.messageSeq - s.unsent }

// LastMail returns the seqs of the records with the last messages, at most [RecentMail], in order.
// A restored team has no messages from before its restoration.
func (s *State) LastMail() []int64 { return slices.Clone(s.lastMail) }

// RecentMail is how many of the last messages a team can find in its journal.
const RecentMail = 10

// Permissions returns the requests that wait for an answer.
func (s *State) Permissions() []Permission { return slices.Clone(s.permissions) }

// Recipients returns the names of the members that can receive mail, for help in errors.
func (s *State) Recipients() []string {
	var names []string
	for i := range s.members {
		if s.members[i].Status.Running() {
			names = append(names, s.members[i].Name)
		}
	}
	return names
}

func (s *State) member(name string) *Member {
	if i, ok := s.named[name]; ok {
		return &s.members[i]
	}
	return nil
}

// known returns the name as the state has it. A name in a record is part of the record's line,
// which would be kept as long as the name.
func (s *State) known(name string) string {
	if m := s.member(name); m != nil {
		return m.Name
	}
	if name == User {
		return User
	}
	return strings.Clone(name)
}

func (s *State) lead() *Member { return &s.members[0] }

func (s *State) task(id string) *Task {
	if i := taskIndex(id); i >= 0 && i < len(s.tasks) {
		return &s.tasks[i]
	}
	return nil
}

func statusIndex(s TaskStatus) int {
	switch s {
	case InProgress:
		return 1
	case Completed:
		return 2
	case Deleted:
		return 3
	}
	return 0
}

func priorityIndex(p string) int { return max(0, slices.Index(Priorities, p)) }

func names(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}
