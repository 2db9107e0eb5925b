package teams

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"cadre/internal/team"
)

// User is the name under which the user, who owns the team, sends messages and gives orders.
const User = team.User

// Usage is the use of models, as the agents report it.
type Usage struct {
	InputTokens      int64
	OutputTokens     int64
	CacheReadTokens  int64
	CacheWriteTokens int64
	CostMicroUSD     int64 // millionths of a US dollar; 0 if the agent does not report it
}

// TeamInfo is the state of a team as a whole.
type TeamInfo struct {
	ID          string // never reused, while the name can be used again
	Name        string
	Status      TeamStatus
	Goal        string
	Dir         string // where its members work; absolute
	Lead        string
	Delegate    bool // the lead may only coordinate
	Permissions PermissionRules
	Budget      Budget
	HandoverAt  int // percent; 0 for 80
	// MaxTeammates bounds the number of teammates at a time. 0 means 10 for the lead, and no limit
	// for the user.
	MaxTeammates int
	MaxParallel  int        // how many teammates have a turn at a time; 0 for no limit
	Depth        int        // how deep it is nested in other teams; 0 for a team by itself
	Remote       string     // git remote through which work travels between machines; "" for none
	Parent       string     // id of the team that it is nested in; "" for none
	Exhausted    BudgetKind // which budget was spent: tokens, cost or time; "" while none is
	Liveness     Liveness
	Report       string // path of the report's file; "" before it is written
	Metadata     map[string]json.RawMessage
	Usage        Usage // of all members together
	CreatedAt    time.Time
	UpdatedAt    time.Time
}

// Member is the present state of the lead or a teammate.
type Member struct {
	Name           string
	Agent          string
	Model          string
	Role           string
	Prompt         string
	Status         MemberStatus
	Incarnation    int64 // counts its sessions, from 1
	PermissionMode PermissionMode
	Plan           Plan
	Shutdown       string // id of the pending request to end; "" for none
	Session        string // the agent's own id of its session, for resuming it
	Summary        string // its own summary of its work, or why it ended
	Context        int    // percent of its session's context that is full; 0 if unknown
	Isolation      Isolation
	RunsOn         []string   // labels of the machine that runs it; none where the team is run
	Machine        string     // name of the machine with them that last ran it; "" for none
	Budget         Budget     // of its own
	Exhausted      BudgetKind // which budget of its own was spent; "" while none is
	Undelivered    int        // its pending messages
	JoinedAt       time.Time
	Usage          Usage
}

// Plan is the state of the approval of a member's plan.
type Plan struct {
	Required bool // it may not change anything before a plan is approved
	State    PlanState
	Request  string    // id of the last submission
	Text     string    // the text of the plan, while it waits for an answer
	Feedback string    // the lead's answer
	Deadline time.Time // when it is rejected without an answer; zero for never
}

// Task is a piece of work on the team's list.
type Task struct {
	ID           string // "1", "2", …; never used again
	Name         string // its name; "" for a task without one
	Subject      string
	Description  string
	ActiveForm   string // the subject in the present continuous form: "Fixing the parser"
	Status       TaskStatus
	Owner        string   // the member that holds it or should do it
	Role         string   // only members of this role take it; "" for any
	BlockedBy    []string // ids of the tasks that it depends on
	Blocks       []string
	Waiting      []string // tasks for which it waits: those of BlockedBy that are open, or those that have a path of it
	Paths        []string // patterns of the files that it changes
	Holds        []string // those that belong to it now; none unless it is in progress
	WaitsForPath string   // the path for which it waits; "" for none
	// ForEach says for which items it makes tasks; nil for a task by itself. The tasks that it made
	// are in BlockedBy, and it is completed when they are.
	ForEach      *ForEach
	Expanded     bool            // it has made these tasks
	Of           string          // id of the task that made it; "" for none
	Item         json.RawMessage // its item, for a task that another one made
	Priority     Priority
	Run          string // command for a shell member
	RunIn        RunIn
	RunDir       string
	RunEnv       []string
	When         When
	Timeout      time.Duration
	Retries      int    // failed attempts after which it is retried
	Attempts     int    // claims so far
	Failures     int    // attempts that failed
	Failure      string // why the last attempt failed
	OutOfRetries bool   // it is out of retries, and can only be claimed by its id
	Result       string
	LastWords    string          // of the turn in which it was completed without a result
	Schema       json.RawMessage // JSON Schema that the result must fit; nil for any result
	Check        string          // command that must pass before it is completed; "" for none
	Rounds       int             // how often an attempt is tried until Check passes; 0 for a plain check
	Verify       *Verify         // who must accept it before it counts as completed; nil for nobody
	Submission   *Submission     // its result, while others verify it
	SentBack     SentBack        // the last result that was sent back
	Verified     []string        // who accepted it
	Verifies     string          // id of the task that it verifies; "" for other tasks
	Verdict      Verdict         // of a task that verifies another one
	Skipped      string          // why it will never run, if it counts as completed because of that; "" for other tasks
	Metadata     map[string]json.RawMessage
	CreatedBy    string
	CompletedBy  string
	CreatedAt    time.Time
	UpdatedAt    time.Time
	StartedAt    time.Time // zero before the first claim
	CompletedAt  time.Time // zero until it is completed
	Usage        Usage
}

// SentBack says why the result of a task was sent back to its member. It is zero before that, and
// once the task is completed.
type SentBack struct {
	// "result" for a result that does not fit, "check" for a check that did not pass, or the names
	// of the members who verified it and did not accept it
	By            string
	Feedback      string
	Results       int // results that did not fit, in the present attempt
	Checks        int // failures of the check, in the present attempt
	Verifications int // how often those who verify it did not accept it, in the present attempt
}

// Message is one message. A sender sets To and Body, and Intent and Priority if they matter.
type Message struct {
	Seq        int64 // its id, and its place in the order
	From       string
	To         string   // "*" for a broadcast
	Recipients []string // of a broadcast
	Type       MessageType
	Intent     Intent                     // "" for none
	Priority   MessagePriority            // "" for normal
	Body       string                     // at most 1 MiB
	Ref        string                     // id of the request or task that it is about
	Metadata   map[string]json.RawMessage // what its sender stores with it
	SentAt     time.Time
	// DeliveredAt and ReadAt are when it was delivered to the owner of the mailbox, and marked as
	// read; zero before that.
	DeliveredAt, ReadAt time.Time
}

// Permission is a member's open request.
type Permission struct {
	Request  string // its id
	Member   string
	Tool     string
	Input    string // what the tool would be given, as JSON
	Deadline time.Time
}

func clock(t team.Time) time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(t)).UTC()
}

func millis(t time.Time) team.Time { return team.Time(t.UnixMilli()) }

func infoOf(t team.Team) TeamInfo {
	return TeamInfo{ID: t.ID, Name: t.Name, Status: TeamStatus(t.Status), Goal: t.Goal, Dir: t.Dir, Lead: t.Lead,
		Delegate:    t.Delegate,
		Permissions: rulesOf(t.Permissions), Budget: Budget(t.Budget), HandoverAt: int(t.HandoverAt),
		MaxTeammates: int(t.MaxTeammates), MaxParallel: int(t.MaxParallel), Depth: int(t.Depth), Parent: t.Parent.Team,
		Remote:    t.Remote,
		Exhausted: BudgetKind(t.Exhausted),
		Report:    t.Report,
		Metadata:  maps.Clone(t.Metadata), Liveness: livenessOf(t.Timing), Usage: Usage(t.Usage),
		CreatedAt: clock(t.CreatedAt), UpdatedAt: clock(t.UpdatedAt)}
}

func memberOf(m team.Member) Member {
	return Member{Name: m.Name, Agent: m.Agent, Model: m.Model, Role: m.Role, Prompt: m.Prompt,
		Status:      MemberStatus(m.Status),
		Incarnation: m.Incarnation, PermissionMode: PermissionMode(m.PermissionMode),
		Plan: Plan{m.Plan.Required, PlanState(m.Plan.State),
			m.Plan.Request, m.Plan.Text, m.Plan.Feedback, clock(m.Plan.Deadline)}, Shutdown: m.Shutdown.Request,
		Session: m.Session, Summary: m.Summary, Context: int(m.Context), Isolation: Isolation(m.Isolation),
		RunsOn: slices.Clone(m.RunsOn), Machine: m.Machine, Budget: Budget(m.Budget), Exhausted: BudgetKind(m.Exhausted),
		Undelivered: len(m.Inbox), JoinedAt: clock(m.JoinedAt), Usage: Usage(m.Usage)}
}

func taskOf(t team.Task) Task {
	var check team.TaskCheck
	if t.Check != nil {
		check = *t.Check
	}
	var back SentBack
	if r := t.Rejected; r != nil {
		back = SentBack{By: r.By, Feedback: r.Feedback, Results: int(r.Results), Checks: int(r.Checks),
			Verifications: int(r.Verifications)}
	}
	return Task{Schema: slices.Clone(t.Schema), Check: check.Run, Rounds: int(check.Rounds), SentBack: back,
		Skipped: t.Skipped, ID: t.ID, Name: t.Name, Subject: t.Subject, Description: t.Description,
		ActiveForm: t.ActiveForm,
		Status:     TaskStatus(t.Status),
		Owner:      t.Owner, Role: t.Role, BlockedBy: slices.Clone(t.BlockedBy), Blocks: slices.Clone(t.Blocks),
		Waiting: slices.Clone(t.Blocked()),
		Paths:   slices.Clone(t.Paths), Holds: slices.Clone(t.Holds), WaitsForPath: t.WaitsForPath(),
		ForEach: forEachOf(t.ForEach), Expanded: t.Expanded, Of: t.Of, Item: slices.Clone(t.Item),
		Priority: Priority(t.Priority), Run: t.Run, RunIn: RunIn(t.In), RunDir: t.Dir, RunEnv: slices.Clone(t.Env),
		When: When(t.When), Timeout: t.Timeout,
		Retries:  int(t.Retries),
		Attempts: int(t.Attempts), Failures: int(t.Failures), Failure: t.Failure, OutOfRetries: t.OutOfRetries(),
		Result: t.Result, LastWords: t.LastWords, Verify: verifyOf(t.Verify), Submission: submissionOf(t.Submission),
		Verified: slices.Clone(t.Verified), Verifies: t.Verifies,
		Verdict:  Verdict(t.Verdict),
		Metadata: maps.Clone(t.Metadata), CreatedBy: t.CreatedBy, CompletedBy: t.CompletedBy,
		CreatedAt: clock(t.CreatedAt),
		UpdatedAt: clock(t.UpdatedAt), StartedAt: clock(t.StartedAt), CompletedAt: clock(t.CompletedAt),
		Usage: Usage(t.Usage)}
}

// called returns the task's name, or its id if it has none.
func (t Task) called() string { return cmp.Or(t.Name, t.ID) }

func messageOf(m team.Message) Message {
	return Message{Seq: m.Seq, From: m.From, To: m.To, Recipients: slices.Clone(m.Recipients),
		Type:     MessageType(m.Type),
		Intent:   Intent(m.Intent),
		Priority: MessagePriority(m.Priority), Body: m.Body, Ref: m.Ref, Metadata: maps.Clone(m.Metadata),
		SentAt: clock(m.SentAt)}
}

func messagesOf(mail []team.Message) []Message {
	var all []Message
	for _, m := range mail {
		all = append(all, messageOf(m))
	}
	return all
}

func permissionOf(p team.Permission) Permission {
	return Permission{Request: p.Request, Member: p.Member, Tool: p.Tool, Input: p.Input, Deadline: clock(p.Deadline)}
}
