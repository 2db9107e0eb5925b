package team

import (
	"encoding/json"
	"iter"
	"slices"
	"strings"
)

// Time is a point in time in UTC milliseconds since 1970: for people and for timeouts. It never
// decides order.
type Time int64

// The actors of a command that are not members of the team.
const (
	User       = "@user"  // the human whose team it is
	hostPrefix = "@host:" // a process that runs sessions
)

// Host is the actor that stands for the host with this id.
func Host(id string) string { return hostPrefix + id }

// TeamStatus is where a team is in its life.
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
	Spawning     MemberStatus = "spawning" // its session is yet to be started
	Active       MemberStatus = "active"
	Idle         MemberStatus = "idle"
	Blocked      MemberStatus = "blocked"       // waits for an answer
	ShuttingDown MemberStatus = "shutting_down" // agreed to stop, its session is ending
	Stopped      MemberStatus = "stopped"       // ended as it was asked to
	Failed       MemberStatus = "failed"        // ended by itself
)

// Running reports whether a member in this state has, or is to have, a session.
func (s MemberStatus) Running() bool { return s != Stopped && s != Failed }

// TaskStatus is what became of a task.
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

// External is the agent of a member that has no session of ours: a person or a program of their own
// acts as it.
const External = "external"

// Agents that are models behind a program of their own. acp: with a command behind it is any that
// speaks the Agent Client Protocol.
const (
	Claude   = "claude"
	Codex    = "codex"
	Gemini   = "gemini"
	OpenCode = "opencode"
	// ClaudeTmux is Claude's program in a terminal, to which a person can go.
	ClaudeTmux = "claude-tmux"
	ACP        = "acp:"
)

// Shell is the agent that runs the commands of tasks and needs no model.
const Shell = "shell"

// DefaultHandoverAt leaves an agent enough room to end its turn, and is below what agents compact
// their contexts at by themselves.
const DefaultHandoverAt = 80

// DefaultPatience is how long a permission request waits for an answer, in milliseconds.
const DefaultPatience = 5 * 60 * 1000

// Worktree is the isolation of a member that works in a git worktree and on a branch of its own.
const Worktree = "worktree"

// MaxSetbacks is how many troubles in a row end a teammate, and what is tried for the lead.
const MaxSetbacks = 5

// FileIDKey is the metadata key that holds a task's id in the team file it came from, a JSON
// string.
const FileIDKey = "id"

// Budget is what a team may spend at most; zero means without limit.
type Budget struct {
	Tokens       int64
	CostMicroUSD int64
	Millis       int64 // time since the team was created
}

// Hook is a quality gate that came with the team itself, not with the project or the user.
type Hook struct {
	Event   string // TeammateIdle, TaskCreated or TaskCompleted
	Command string // run by /bin/sh
	Seconds int64  // timeout; 0 for the default
}

// Permissions say what the members of a team may do without asking, and who is asked about the
// rest.
type Permissions struct {
	Allow  []string // rules, as Claude Code writes them: Bash(go test:*), Edit, mcp__server__tool
	Millis int64    // how long a request, and a plan, waits for its answer; 0 for [DefaultPatience]
	// who settles a teammate's request that no rule settles: user, lead, allow or deny; "" for
	// user, and the lead where that is a person or a program of theirs
	Policy string
}

// PermissionPolicies are the values of [Permissions.Policy].
var PermissionPolicies = []string{"user", "lead", "allow", "deny"}

// Team is what holds for the team as a whole.
type Team struct {
	ID     string
	Name   string
	Status TeamStatus
	Goal   string
	Dir    string // where its members work; absolute
	Lead   string // name of the lead, for life
	// the name by which its own agents know it, where it is a team that is watched; "" for a team
	// of ours
	Observed    string
	Session     bool // what is watched is no team but one session, of the agent that Observed names
	Delegate    bool // the lead may only coordinate
	Budget      Budget
	Exhausted   string // which budget was spent; "" while there is one left
	Hooks       []Hook
	Permissions Permissions
	// that run at a time, the lead not counted; 0 for [DefaultMaxTeammates] that a lead spawns, and
	// any number that the user does
	MaxTeammates int64
	// percent of a context at which a fresh session goes on for the full one; 0 for
	// [DefaultHandoverAt]
	HandoverAt    int64
	Origin        string // path of the team file that it was made from, if any
	OriginDigest  string // SHA-256 of that file
	Report        string // where the lead's report is, once there is one
	ReportAsked   bool   // the lead was asked for its last words, and nothing new was begun since
	LastWords     string // the lead's own report, when it was asked for
	Usage         Usage  // of all members together
	CreatedAt     Time
	UpdatedAt     Time
	CleanedUp     bool
	Timing        Timing
	Facts         []Fact  // files that everybody relies on, as they were when the team last took note of them
	LeadSession   string  // id of the session that leads
	LeadMachine   string  // name of the computer that it is on; "" for one that nobody told
	LeadAgent     bool    // it is an agent's own session
	LeadSince     Time    // when it took the lead, or came back
	LeadLost      Time    // since when nobody leads; 0 while somebody does
	HeldAfter     int64   // while nobody leads, the messages that members send after this one wait
	Checks        []Check // have to pass before its work is committed
	Clean         bool    // they run in a clean checkout of what is to be committed
	Changes       bool    // files that they change are committed, too
	Base          Base    // what the project was when it was created
	Consolidation Consolidation
	Restored      Restored  // where the history before this journal's is
	Missing       []Missing // see [State.Missing]
	Released      Released
}

// Restored says on which checkpoint a journal was founded, because the one before it was lost. It
// is zero for a team's first journal.
type Restored struct {
	ID   string // of this history: that of the command that restored it
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
	Color   string // that its agent shows it in, where the agent says so
	// worktree: it works in a git worktree and on a branch of its own; "" for the team's directory
	Isolation      string
	Status         MemberStatus
	Since          Time  // when it came to be in that state
	Incarnation    int64 // counts its sessions; control messages name the one they are for
	PermissionMode string
	Plan           Plan
	Shutdown       Shutdown
	Host           string // id of the host that holds its lease; "" for none
	Lease          int64  // counts the leases; an older one has lost the member
	Session        string // the agent's own id of its session, for resuming it
	Summary        string // what it said it is doing, or why it ended
	Note           string // for its next session: why that begins, and what the one before knew
	Handover       string // why a fresh session is to go on for the present one; "" while none is
	Setbacks       int64  // troubles in a row: turns that failed, and sessions that ended by themselves
	RetryAt        Time   // it is left alone until then
	Context        int64  // percent of its session's context that is full, by its own figures
	JoinedAt       Time
	Usage          Usage
	Inbox          []int64 // seqs of the messages it was sent and not yet given, in order
	DeliveredSeq   int64   // seq of the last message it was given
	ReadSeq        int64   // it has read everything up to this message
	Late           []int64 // seqs in the inbox that the lead was told of, because they wait for long
	Resent         int64   // counts how often late messages were sent again
	Offline        Time    // since when nothing is heard of it, so far as the lead was told; 0 while something is
	Left           Left    // its work on a branch that is not merged yet
	SessionCost    int64   // of Usage, what its present session has cost, in millionths of a US dollar
}

// Plan is the approval of a member's plan.
type Plan struct {
	Required bool   // it may write nothing before a plan is approved
	State    string // "", submitted, approved or rejected
	Request  string // id of the last submission
	Text     string // the plan, while it waits for an answer
	Feedback string // the lead's, with a rejection
	Deadline Time   // when the submission is rejected because nobody answered; 0 for never
	AskedAt  Time   // when it was submitted
}

// Shutdown is a request to a member to end.
type Shutdown struct {
	Request  string // its id; "" while there is none
	Reason   string
	Deadline Time   // when the session is ended whatever was answered
	Answer   string // "", approved or rejected
}

// Task is a piece of work on the team's list.
type Task struct {
	ID          string // "1", "2", …
	Subject     string
	Description string
	ActiveForm  string
	Status      TaskStatus
	Owner       string // who holds it, or for whom it is meant
	Assigned    bool   // the owner was named by somebody else, and keeps the task when it is released
	Role        string // only members of this role take it; "" for any
	BlockedBy   []string
	Blocks      []string
	Priority    string
	Run         string // command for a shell member
	In          string // where that runs: [InMerged], or "" for where its member works
	TimeoutMS   int64  // of one attempt; 0 for the agent's own
	Retries     int64  // failed attempts after which it is tried again
	Fence       int64  // of the newest claim; an older one is void
	Attempts    int64  // claims so far
	Failures    int64  // attempts that ended in a failure
	Failure     string // why the last attempt failed; kept until the next claim
	Result      string
	Metadata    map[string]json.RawMessage
	// what the last owner left behind when it could not continue; nil for nothing. It is replaced,
	// never changed
	Saved *Saved
	// what it started from, and once it is completed what it did; nil while nobody recorded that.
	// It is replaced, never changed
	Work        *Work
	CreatedBy   string
	CompletedBy string
	CreatedAt   Time
	UpdatedAt   Time
	StartedAt   Time
	CompletedAt Time
	Usage       Usage

	blockers int      // how many of BlockedBy are open
	open     []string // in a copy for readers: which ones
}

// Blocked returns the ids of the open tasks that it waits for.
func (t Task) Blocked() []string { return t.open }

// GivenUp reports whether the task failed as often as it was to be tried: it is not taken from the
// list again by itself, only when somebody claims it by its id.
func (t Task) GivenUp() bool {
	return t.Failures > t.Retries && t.Status == Pending && t.Failure != ""
}

// Message is one entry of the mailbox.
type Message struct {
	Seq         int64
	From        string // "" for the team itself
	To          string // "*" for a broadcast
	Recipients  []string
	Type        string
	Intent      string // info, question, challenge, resolution, or ""
	Priority    string // normal or urgent
	Body        string
	Summary     string // its sender's own few words for it; "" where its agent asks for none
	Ref         string // id of the request that it belongs to
	Incarnation int64  // of the recipient it is for; 0 for any
	Quiet       bool   // it starts no turn: it is given with the next message that does
	SentAt      Time
	ResentAt    Time // when it was last sent again

	waiting int // recipients that were not given it yet
}

// Types of messages.
const (
	TypeMessage            = "message"
	TypeBroadcast          = "broadcast"
	TypeSystem             = "system"
	TypeIdle               = "idle"
	TypeShutdownRequest    = "shutdown_request"
	TypeShutdownResponse   = "shutdown_response"
	TypePlanRequest        = "plan_approval_request"
	TypePlanResponse       = "plan_approval_response"
	TypePermissionRequest  = "permission_request"
	TypePermissionResponse = "permission_response"
	TypeTaskAssignment     = "task_assignment"
)

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

// State is a team after the record Seq. It is changed by [State.Apply] alone, and belongs to one
// goroutine, or to many that only read.
type State struct {
	seq         int64
	team        Team
	members     []Member // in the order in which they joined; the lead is the first
	tasks       []Task   // the task with id n is tasks[n-1]
	messages    map[int64]*Message
	messageSeq  int64
	lastMail    []int64 // seqs of the records with the last messages, one for each message
	requestSeq  int64
	permissions []Permission
	strikes     map[string]int64 // rejections in a row, by what was rejected
	rejections  []Rejection      // what was rejected [MaxStrikes] times in a row and has not passed since
	answers     []Answer         // the last ones, for whoever answers second
	recent      recent

	ready  [4]bitset // by priority: tasks that could be claimed by somebody
	under  bitset    // tasks in progress
	failed bitset    // tasks that are out of retries
	traced bitset    // tasks of which a host is to record what they start from, or what they did
	counts [4]int    // by status
	named  map[string]int
}

// Seq is that of the last record that was applied; 0 for a team that does not exist yet.
func (s *State) Seq() int64 { return s.seq }

// Position counts all records since the team was created, those of lost journals too, as far as a
// checkpoint had them.
func (s *State) Position() int64 { return s.team.Restored.Seq + s.seq }

// Remembers reports whether the command of that id is among the last [Remembered] ones.
func (s *State) Remembers(command string) bool { return s.recent.seq(command) != 0 }

// Exists reports whether the team was created and not cleaned up since.
func (s *State) Exists() bool { return s.team.ID != "" && !s.team.CleanedUp }

// Team returns what holds for the team as a whole.
func (s *State) Team() Team { return s.team }

// Members returns the lead and then the teammates in the order in which they joined.
func (s *State) Members() []Member { return slices.Clone(s.members) }

// Member returns the member of that name.
func (s *State) Member(name string) (Member, bool) {
	if m := s.member(name); m != nil {
		return *m, true
	}
	return Member{}, false
}

// Task returns the task with that id; a deleted one is returned too.
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
	return shown
}

// Count returns the number of tasks in that state.
func (s *State) Count(status TaskStatus) int { return s.counts[statusIndex(status)] }

// Inbox returns the messages that the member was sent and may be given now, in order.
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

// MessageSeq is the seq of the last message that was sent.
func (s *State) MessageSeq() int64 { return s.messageSeq }

// LastMail returns where the last messages are: for each of at most [RecentMail] of them the seq of
// its record, in order. A restored team has none of before that.
func (s *State) LastMail() []int64 { return slices.Clone(s.lastMail) }

// RecentMail is of how many messages a team remembers where they are.
const RecentMail = 10

// Permissions returns the requests that wait for an answer.
func (s *State) Permissions() []Permission { return slices.Clone(s.permissions) }

// Recipients returns the names of the members to whom mail can be sent, for help in errors.
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

func (s *State) blockersOf(t *Task) []string {
	if t.blockers == 0 {
		return nil
	}
	var open []string
	for _, id := range t.BlockedBy {
		if b := s.task(id); b != nil && b.Status.open() {
			open = append(open, id)
		}
	}
	return open
}

// takes reports whether m may take t: it is meant for m by name, or for nobody else and for the
// role of m or any. A shell does nothing but run a task's command, so what has none is left to
// others, unless it was given to the shell by name. A lead that is an agent plans work for others,
// so it is offered only what is its own.
func (s *State) takes(m *Member, t *Task) bool {
	if m.Name == s.team.Lead && m.Agent != External && t.Owner != m.Name {
		return false
	}
	if t.In == InMerged && m.Agent != Shell || len(t.BlockedBy) > 0 && s.hidden(m, t.In, t.BlockedBy) != nil {
		return false
	}
	return t.Owner == m.Name || t.Owner == "" && (t.Role == "" || t.Role == m.Role) && (m.Agent != Shell || t.Run != "")
}

// next returns the task that m would be given: the highest priority first, then the lowest id.
func (s *State) next(m *Member) *Task {
	for p := len(s.ready) - 1; p >= 0; p-- {
		for i := range s.ready[p].all() {
			if s.takes(m, &s.tasks[i]) {
				return &s.tasks[i]
			}
		}
	}
	return nil
}

// Claimable returns the tasks that the member could claim now, in the order in which they would be
// given to it; "" asks for those that anybody could.
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
		return "nobody"
	}
	return strings.Join(list, ", ")
}

func (t *Task) label() string { return "task " + t.ID + " (" + Inline(brief(t.Subject)) + ")" }

// Held returns the tasks that the member has in progress.
func (s *State) Held(member string) []Task {
	var held []Task
	for _, t := range s.holds(member) {
		held = append(held, s.show(t))
	}
	return held
}
