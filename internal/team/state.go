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

// Hook is a quality gate that belongs to the team itself, not to the project or the user.
type Hook struct {
	Event   string        // TeammateIdle, TaskCreated or TaskCompleted
	Command string        // run by /bin/sh
	Timeout time.Duration // 0 for the default
}

// Permissions say what the members of a team may do without asking, and who is asked about the
// rest.
type Permissions struct {
	Allow []string // rules, as Claude Code writes them: Bash(go test:*), Edit, mcp__server__tool
	// how long a request or a plan waits for its answer; 0 for [DefaultPatience]
	Timeout time.Duration
	// who answers a teammate's request that no rule answers: user, lead, allow or deny; "" for
	// user, or for the lead where that is a person or their own program
	Policy string
}

// PermissionPolicies are the values of [Permissions.Policy].
var PermissionPolicies = []string{"user", "lead", "allow", "deny"}

// Team has the fields of the team as a whole.
type Team struct {
	ID     string
	Name   string
	Status TeamStatus
	Goal   string
	Dir    string // where its members work; absolute
	Lead   string // name of the lead, which never changes
	// the name that its own agents have for it, where the team is only watched; "" for a team of
	// ours
	Observed    string
	Session     bool // not a team but one session is watched, of the agent that Observed names
	Delegate    bool // the lead may only coordinate
	Budget      Budget
	Exhausted   string // which budget is spent; "" for none
	Alerted     []Alerted
	Hooks       []Hook
	Permissions Permissions
	// that run at a time, without the lead; 0 for [DefaultMaxTeammates] where the lead spawns, and
	// no limit where the user does
	MaxTeammates int64
	// percent of a context at which a fresh session replaces the full one; 0 for
	// [DefaultHandoverAt]
	HandoverAt    int64
	Origin        string   // path of the team file that it was made from; "" for none
	OriginDigest  string   // SHA-256 of that file
	FileDigests   []string // of what that file says of the team itself: key=digest
	Report        string   // path of the lead's report; "" before there is one
	ReportAsked   bool     // the lead was asked for its report, and no new work has started since
	LastWords     string   // the lead's own report
	Usage         Usage    // of all members together
	CreatedAt     Time
	UpdatedAt     Time
	CleanedUp     bool
	Timing        Timing
	Facts         []Fact  // files that all members rely on, as they were when last recorded
	LeadSession   string  // id of the session that leads
	LeadMachine   string  // name of its computer; "" where it is unknown
	LeadAgent     bool    // it belongs to an agent
	LeadSince     Time    // when it took the lead, or came back
	LeadLost      Time    // since when no session leads; 0 while one does
	HeldAfter     int64   // while no session leads, members' messages after this one wait
	Checks        []Check // that must pass before the team's work is committed
	Clean         bool    // the checks run in a clean checkout of the tree to commit
	Changes       bool    // files that the checks change are committed too
	Base          Base    // the project when the team was created
	Consolidation Consolidation
	Restored      Restored  // the history before this journal's
	Missing       []Missing // see [State.Missing]
	Released      Released
	HooksOff      []HookOff
	Metadata      map[string]json.RawMessage // what its creator keeps with it
	// since when it winds down or is complete; 0 while it is active, and where it is not known
	EndingAt Time
}

// Restored says from which checkpoint a journal was started, because the one before it was lost. It
// is zero for a team's first journal.
type Restored struct {
	ID   string // of this history: the id of the command that restored it
	From string // the ID of the history that made the checkpoint; "" for the team's first
	Seq  int64  // that history's position at the checkpoint
}

// Member is the lead or a teammate.
type Member struct {
	Name    string
	Agent   string // which agent is its session: shell, external, claude, …
	Model   string
	Program string   // executable instead of the agent's own
	Args    []string // added to the agent's arguments
	Env     []string // NAME=value, added to its environment
	Role    string
	Prompt  string
	Color   string // in which its agent shows it, where the agent says so
	// worktree for a member with a git worktree and branch of its own; "" for the team's directory
	Isolation      string
	Status         MemberStatus
	Since          Time  // when it got that status
	Incarnation    int64 // counts its sessions; control messages name the session that they are for
	PermissionMode string
	Plan           Plan
	Shutdown       Shutdown
	Host           string // id of the host that holds its lease; "" for none
	Lease          int64  // counts the leases; an older lease is void
	Session        string // the agent's own id of its session, for resuming it
	Summary        string // what it says it is doing, or why it ended
	Note           string // for its next session: why that begins, and what the last one knew
	Handover       string // why a fresh session should replace the present one; "" for no request
	// seq of the request to interrupt its turn; 0 for none. It stays until the member's next turn.
	Interrupt    int64
	Setbacks     int64 // troubles in a row: turns that failed, and sessions that ended by themselves
	RetryAt      Time  // it is not tried again before then
	Context      int64 // percent of its session's context that is full, by the agent's own figures
	JoinedAt     Time
	Usage        Usage
	Inbox        []int64 // seqs of its messages that are not delivered yet, in order
	DeliveredSeq int64   // seq of the last message that was delivered to it
	ReadSeq      int64   // it has read everything up to this message
	Late         []int64 // seqs of late messages in the inbox that the lead was notified of
	Resent       int64   // counts how often late messages were sent again
	Offline      Time    // since when it is offline, as the lead was notified; 0 while it is not
	Left         Left    // its work on a branch that is not merged yet
	Budget       Budget
	Exhausted    string // which of its own budgets is spent; "" for none
	Alerted      []Alerted
	SessionCost  int64    // the part of Usage that its present session has cost, in millionths of a US dollar
	FileDigests  []string // of what its team file says of it: key=digest; nil for a member of no file
	Dropped      bool     // its team file no longer has it: it is not replaced
	Inherited    Usage    // of the members whose successor it is; it counts against the budget
	BudgetFrom   Time     // when the first member with its budget joined; 0 if it is the first itself
	Change       int64    // counts the joins and ends of members up to its own last one
	Told         Told     // what it was told of tasks and members
}

// Plan is the approval of a member's plan.
type Plan struct {
	Required bool   // it may not write before a plan is approved
	State    string // "", submitted, approved or rejected
	Request  string // id of the last submission
	Text     string // the plan, while it waits for an answer
	Feedback string // the lead's, with a rejection
	Deadline Time   // when the submission is rejected for want of an answer; 0 for never
	AskedAt  Time   // when it was submitted
}

// Shutdown is a request to a member to end.
type Shutdown struct {
	Request  string // its id; "" for no request
	Reason   string
	Deadline Time   // when the session ends whatever was answered
	Answer   string // "", approved or rejected
}

// Task is a piece of work on the team's list.
type Task struct {
	ID          string // "1", "2", …
	Name        string // by which people and agents call it; "" for its number
	Subject     string
	Description string
	ActiveForm  string
	Status      TaskStatus
	Owner       string // who holds it, or who it is meant for
	Assigned    bool   // another actor named the owner, who keeps the task when it is released
	Role        string // only members of this role take it; "" for any
	BlockedBy   []string
	Blocks      []string
	Priority    string
	Run         string        // command for a shell member
	In          string        // where the command runs: [InMerged], or "" for its member's directory
	Dir         string        // directory below that one in which it runs
	Env         []string      // NAME=value, added to its environment
	When        string        // [Always], or "" for after its blockers are done
	Timeout     time.Duration // of one attempt; 0 for the agent's own
	Retries     int64         // how many failed attempts are repeated
	Fence       int64         // of the newest claim; older claims are void
	Attempts    int64         // claims so far
	Failures    int64         // attempts that ended in a failure
	Failure     string        // why the last attempt failed; kept until the next claim
	Result      string
	Metadata    map[string]json.RawMessage
	FileDigests []string // of what its team file says of it: key=digest; nil for a task of no file
	// what the last owner had done when it could not continue; nil for nothing. It is replaced,
	// never changed
	Saved *Saved
	// where it started, and once it is completed what it did; nil before that is recorded. It is
	// replaced, never changed
	Work        *Work
	CreatedBy   string
	CompletedBy string
	CreatedAt   Time
	UpdatedAt   Time
	StartedAt   Time
	CompletedAt Time
	Usage       Usage

	blockage blockage
	open     []string // only in a copy for readers: the ids of the tasks that it waits for
	names    []string // their names, "" for a task without one
}

// Blocked returns the ids of the open tasks that this task waits for.
func (t Task) Blocked() []string { return t.open }

// OutOfRetries reports whether the task has failed after its last retry. It does not return to the
// queue by itself: a member must claim it by its id.
func (t Task) OutOfRetries() bool {
	return t.Failures > t.Retries && t.Status == Pending && t.Failure != ""
}

// Permission is a member's request that waits for an answer.
type Permission struct {
	Request     string
	Member      string
	Incarnation int64
	Tool        string
	Input       string // what the tool would be given, as JSON
	Deadline    Time
	AskedAt     Time // 0 where an older version recorded it
}

// State is a team after the record Seq. Only [State.Apply] changes it. It belongs to one goroutine,
// or to many that only read.
type State struct {
	seq         int64
	team        Team
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

	ready  [4]bitset // by priority: tasks that could be claimed
	under  bitset    // tasks in progress
	failed bitset    // tasks that have failed after their last retry
	traced bitset    // tasks whose start or work a host must record
	counts [4]int    // by status
	named  map[string]int

	tasksNamed map[string]int // place of each task with a name
}

// Seq returns the seq of the last record that was applied; 0 for a team that does not exist yet.
func (s *State) Seq() int64 { return s.seq }

// Position counts all records since the team was created. It includes those of lost journals, as
// far as a checkpoint had them.
func (s *State) Position() int64 { return s.team.Restored.Seq + s.seq }

// Remembers reports whether the command with that id is among the last [Remembered] ones.
func (s *State) Remembers(command string) bool { return s.recent.seq(command) != 0 }

// Exists reports whether the team was created and is not cleaned up.
func (s *State) Exists() bool { return s.team.ID != "" && !s.team.CleanedUp }

// Team returns the fields of the team as a whole.
func (s *State) Team() Team { return s.team }

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

// Tasks yields the tasks that were not deleted, in the order of their ids.
func (s *State) Tasks() iter.Seq[Task] {
	return func(yield func(Task) bool) {
		for i := range s.tasks {
			if t := &s.tasks[i]; t.Status != Deleted && !yield(s.show(t)) {
				return
			}
		}
	}
}

func (s *State) show(t *Task) (shown Task) {
	shown = *t
	shown.open = s.blockersOf(t)
	for _, id := range shown.open {
		shown.names = append(shown.names, s.task(id).Name)
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

func (s *State) lead() *Member { return &s.members[0] }

func (s *State) task(id string) *Task {
	if i := taskIndex(id); i >= 0 && i < len(s.tasks) {
		return &s.tasks[i]
	}
	return nil
}

// takes reports whether m may take t: it is meant for m by name, or for no member by name and for
// m's role or any role. A shell can only run a task's command, so it takes a task without a command
// only if it is meant for the shell by name. A lead that is an agent plans work for others, so it
// takes only its own tasks.
//
// A member whose own budget is spent takes none.
func (s *State) takes(m *Member, t *Task) bool {
	if m.Exhausted != "" {
		return false
	}
	if m.Name == s.team.Lead && m.Agent != External && t.Owner != m.Name {
		return false
	}
	if t.In == InMerged && m.Agent != Shell || len(t.BlockedBy) > 0 && s.hidden(m, t.In, t.BlockedBy) != nil {
		return false
	}
	return t.Owner == m.Name || t.Owner == "" && (t.Role == "" || t.Role == m.Role) && (m.Agent != Shell || t.Run != "")
}

// next returns the task that m would be given: the highest priority first, then the lowest id. A
// member that was interrupted is given none before it got a message.
func (s *State) next(m *Member) *Task {
	if m.Exhausted != "" || m.Interrupt != 0 {
		return nil
	}
	for p := len(s.ready) - 1; p >= 0; p-- {
		for i := range s.ready[p].all() {
			if s.takes(m, &s.tasks[i]) {
				return &s.tasks[i]
			}
		}
	}
	return nil
}

// Claimable returns the tasks that the member could claim now, in the order in which it would get
// them. For "" it returns those that any member could claim.
func (s *State) Claimable(member string) []Task {
	m := s.member(member)
	var found []Task
	for p := len(s.ready) - 1; p >= 0; p-- {
		for i := range s.ready[p].all() {
			if t := &s.tasks[i]; member == "" || m != nil && s.takes(m, t) {
				found = append(found, s.show(t))
			}
		}
	}
	return found
}

// HasWork reports whether there is a task that the member could claim now.
func (s *State) HasWork(member string) bool {
	m := s.member(member)
	return m != nil && s.next(m) != nil
}

// holds returns the tasks in progress by that member.
func (s *State) holds(member string) []*Task {
	var held []*Task
	if s.counts[statusIndex(InProgress)] == 0 {
		return nil
	}
	for i := range s.under.all() {
		if t := &s.tasks[i]; t.Owner == member {
			held = append(held, t)
		}
	}
	return held
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

// Held returns the tasks that the member has in progress.
func (s *State) Held(member string) []Task {
	var held []Task
	for _, t := range s.holds(member) {
		held = append(held, s.show(t))
	}
	return held
}
