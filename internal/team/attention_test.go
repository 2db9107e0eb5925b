package team

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const second = 1000 // of Time

// history is what happened in a team, one command a second from second 1. The user sends the
// commands, or the actor that a word before a command names. A number is the second of the next
// command. A nested history stands for its own elements.
type history []any

func (h history) flat() (all history) {
	for _, one := range h {
		if part, ok := one.(history); ok {
			all = append(all, part.flat()...)
		} else {
			all = append(all, one)
		}
	}
	return all
}

// state returns the team after that history.
func (h history) state(t *testing.T) *State {
	t.Helper()
	all := h.flat()
	if _, made := all[0].(*CreateTeam); !made {
		all = append(history{&CreateTeam{TeamID: "t1", Name: "demo", Dir: "/project"}}, all...)
	}
	s := &State{}
	actor, at := User, Time(0)
	for i, one := range all {
		switch one := one.(type) {
		case string:
			actor = one
		case int:
			at = Time(one-1) * second
		case Body:
			at += second
			c := Command{ID: fmt.Sprint("c", i), Actor: actor, At: at, Body: one}
			if strings.HasPrefix(actor, hostPrefix) {
				c.Lease = 1
			}
			d, err := Decide(s, c)
			if err != nil {
				t.Fatalf("%T by %s: %v", one, actor, err)
			}
			if d.Record != nil {
				s.Apply(d.Record)
			}
		}
	}
	return s
}

// lines formats the items, one per line: kind, who it waits for, since which second, hint, and
// sentence.
func lines(items []Item) string {
	var b strings.Builder
	for _, i := range items {
		hint := strings.Join(strings.Fields(fmt.Sprint(i.Hint.Action, " ", i.Hint.Member, " ", i.Hint.Task, " ",
			i.Hint.Request, " ", i.Hint.Name, " ", i.Hint.Agent)), " ")
		fmt.Fprintf(&b, "%s for %s since %d → %s: %s\n", i.Kind, i.WaitsFor, i.Since/second, hint, i.Text)
	}
	return b.String()
}

func TestAttention(t *testing.T) {
	alive := func() *Outside { return &Outside{Hosted: true, Led: true} } // as it should be
	dead := func() *Outside { return &Outside{} }
	saw := func(o *Outside, member string, s Sight) *Outside {
		if o.Sights == nil {
			o.Sights = map[string]Sight{}
		}
		o.Sights[member] = s
		return o
	}
	shell := func(name string) *SpawnMember { return &SpawnMember{Name: name, Agent: Shell} }
	fail := func(task string) *FailTask { return &FailTask{Task: task, Reason: "exit status 1"} }
	agentLead := &CreateTeam{TeamID: "t1", Name: "demo", Dir: "/project", LeadAgent: Claude}
	hosted := history{Host("h1"), &AttachMember{Member: "ann"}, &ReportStarted{Member: "ann", Session: "s"}}
	ask := history{"ann", &RequestPermission{Tool: "Bash", Input: `{"command":"make"}`, Deadline: 300 * second}}
	plan := history{"ann", &SubmitPlan{Plan: "1. look"}}
	ran := &CreateTeam{TeamID: "t1", Name: "demo", Dir: "/project", Origin: "/project/demo.yaml"}
	checked := &CreateTeam{TeamID: "t1", Name: "demo", Dir: "/project",
		Checks: []Check{{Name: "test", Command: "make test"}}}
	eve := &SpawnMember{Name: "eve", Agent: External}
	rejected := func(times int, r *RejectByHook) (h history) {
		for range times {
			h = append(h, r)
		}
		return h
	}
	for _, c := range []struct {
		name    string
		history history
		outside *Outside
		now     Time // in seconds; 100 by default
		want    string
	}{
		{name: "nothing", history: history{shell("ann"), hosted}, outside: alive()},
		{name: "a permission request", history: history{&SpawnMember{Name: "ann", Agent: External}, ask},
			outside: alive(),
			want:    "permission for user since 3 → answer_permission permission-1@ann: ann asks to use Bash: make\n"},
		{name: "a permission request that the lead answers",
			history: history{&SpawnMember{Name: "ann", Agent: External}, ask}, outside: &Outside{LeadActs: true},
			want: "permission for user since 3 → answer_permission permission-1@ann: ann asks to use Bash: make\n"},
		{name: "a plan", history: history{&SpawnMember{Name: "ann", Agent: External, PlanApproval: true}, plan},
			outside: alive(),
			want: "plan for user since 3 → answer_plan plan-1@ann: ann submitted a plan and changes nothing before " +
				"it is approved.\n"},
		{name: "a plan for a session that leads", history: history{&AttachLead{Session: "mcp-1"},
			&SpawnMember{Name: "ann", Agent: External, PlanApproval: true}, plan},
			outside: &Outside{Led: true, LeadActs: true},
			want: "plan for lead since 4 → answer_plan plan-1@ann: ann submitted a plan and changes nothing before " +
				"it is approved.\n"},
		{name: "a plan for a session that led", history: history{&AttachLead{Session: "mcp-1"},
			&SpawnMember{Name: "ann", Agent: External, PlanApproval: true}, plan}, outside: dead(),
			want: "plan for user since 4 → answer_plan plan-1@ann: ann submitted a plan and changes nothing before " +
				"it is approved.\n" +
				"dormant for user since 0 → resume: No process of the team is running.\n"},
		{name: "a missing directory", history: history{shell("ann")}, outside: &Outside{Hosted: true,
			Directory: "it does not exist"},
			want: "directory for user since 0 → move: The directory /project cannot be used: it does not exist.\n"},
		{name: "a missing directory of a team that no process runs", history: history{&AttachLead{Session: "run-1"},
			shell("ann"), hosted}, outside: &Outside{Sights: map[string]Sight{}, Directory: "it does not exist"},
			want: "directory for user since 0 → move: The directory /project cannot be used: it does not exist.\n"},
		{name: "it runs elsewhere", history: history{&AttachLead{Session: "run-1", Machine: "box"}, shell("ann")},
			outside: saw(&Outside{Elsewhere: "box"}, "lead", Sight{Seen: 50 * second}),
			want:    "elsewhere for user since 50 → take_over: Session run-1 leads the team on the machine box.\n"},
		{name: "a host that was killed", history: history{shell("ann"), hosted, User,
			&CreateTask{Subject: "one", Run: "true"}},
			outside: saw(dead(), "ann", Sight{Life: LifeOffline, Seen: 60 * second, HostGone: true}),
			want:    "dormant for user since 60 → resume: No process of the team is running; 1 task is not done.\n"},
		{name: "a run that can be resumed tries its failed tasks", history: history{ran, shell("ann"),
			&CreateTask{Subject: "one", Run: "false"}, hosted, "ann", &ClaimTask{Task: "1"}, fail("1")},
			outside: saw(dead(), "ann", Sight{Life: LifePaused}),
			want: "dormant for user since 0 → resume: No process of the team is running; 1 task is not done.\n" +
				"task_failed for user since 7 → resume: Task 1 (one) failed: exit status 1\n"},
		{name: "a lead that was killed, and its host", history: history{&AttachLead{Session: "run-1"}, shell("ann")},
			outside: dead(),
			want:    "dormant for user since 0 → resume: No process of the team is running.\n"},
		{name: "people alone need no process", history: history{&SpawnMember{Name: "eve", Agent: External}},
			outside: dead()},
		{name: "a session outside is alive while the lead is not", history: history{&AttachLead{Session: "mcp-1"},
			&SpawnMember{Name: "eve", Agent: External}},
			outside: saw(dead(), "eve", Sight{Life: LifeOnline}),
			want: "lead_lost for user since 0 → resume: No session leads: the process of session mcp-1 has " +
				"ended.\n"},
		{name: "a host that was killed beside a living lead", history: history{&AttachLead{Session: "mcp-1"},
			shell("ann"), shell("bob"), hosted}, outside: &Outside{Led: true, LeadActs: true},
			want: "unhosted for user since 0 → resume: No process runs the sessions of ann, bob.\n"},
		{name: "items that only a host finds", history: history{&SpawnMember{Name: "eve", Agent: External},
			&CreateTask{Name: "each", Subject: "one", ForEach: &ForEach{Glob: "*.go"}},
			&CreateTask{Name: "list", Subject: "two", ForEach: &ForEach{}}},
			outside: dead(),
			want:    "unhosted for user since 0 → resume: No process finds the items of task each.\n"},
		{name: "items that a host finds now", history: history{&SpawnMember{Name: "eve", Agent: External},
			&CreateTask{Name: "each", Subject: "one", ForEach: &ForEach{Run: "ls"}}}, outside: &Outside{Hosted: true}},
		{name: "a lead that was killed beside a living host", history: history{&AttachLead{Session: "mcp-1"},
			shell("ann"), hosted}, outside: &Outside{Hosted: true},
			want: "lead_lost for user since 0 → resume: No session leads: the process of session mcp-1 has ended.\n"},
		{name: "a lost lead", history: history{&AttachLead{Session: "mcp-1"}, shell("ann"),
			&SpawnMember{Name: "eve", Agent: External}, hosted, 400, &LoseLead{Session: "mcp-1", Since: 2 * second,
				Seen: 3 * second},
			"eve", &SendMessage{To: "ann", Body: "are you there?"}}, outside: &Outside{Hosted: true}, now: 500,
			want: "lead_lost for user since 400 → resume: No session leads: session mcp-1 is lost; ann, eve finish " +
				"their tasks and take no new ones; 1 message waits until a session leads.\n"},
		{name: "a lead that cannot log in", history: history{agentLead, shell("ann"), Host("h1"),
			&AttachMember{Member: "lead"}, &ReportStarted{Member: "lead", Session: "s"}, &ReportTrouble{Member: "lead",
				Trouble: "login", Text: "Please run /login"}},
			outside: alive(), want: "lead_failed for user since 5 → resume: The lead cannot continue: Please run " +
				"/login\n"},
		{name: "a member that cannot log in", history: history{&SpawnMember{Name: "ann", Agent: Claude},
			&SpawnMember{Name: "ann-2", Agent: External}, hosted, User, &CreateTask{Subject: "one"},
			Host("h1"), &ReportTrouble{Member: "ann", Trouble: "login", Text: "Please run /login"}}, outside: alive(),
			want: "failed for user since 7 → spawn ann ann-3 claude: ann failed: Please run /login\n"},
		{name: "a member that failed, told to an agent that leads",
			history: history{agentLead, &SpawnMember{Name: "ann", Agent: Claude}, hosted, User,
				&CreateTask{Subject: "one", Owner: "lead"},
				Host("h1"), &ReportTrouble{Member: "ann", Trouble: "login", Text: "Please run /login"}},
			outside: alive(),
			want:    "failed for lead since 6 → spawn ann ann-2 claude: ann failed: Please run /login\n"},
		{name: "a member that failed, and was replaced", history: history{&SpawnMember{Name: "ann", Agent: Claude},
			hosted, User, &CreateTask{Subject: "one"},
			Host("h1"), &ReportTrouble{Member: "ann", Trouble: "login", Text: "Please run /login"}, User,
			&SpawnMember{Name: "bob", Agent: External}}, outside: alive()},
		{name: "a member that failed when all was done", history: history{&SpawnMember{Name: "ann", Agent: Claude},
			hosted, &ReportTrouble{Member: "ann", Trouble: "login", Text: "Please run /login"}}, outside: alive()},
		{name: "a member that waits for a machine", now: 40,
			history: history{&CreateTeam{TeamID: "t1", Name: "demo", Dir: "/project", Remote: "origin"},
				&SpawnMember{Name: "ann", Agent: Shell, Isolation: Worktree, RunsOn: []string{"gpu"}}},
			outside: alive(),
			want: "machine for user since 2 → show_hosts: ann waits for a machine with the label gpu, and none has " +
				"taken it.\n"},
		{name: "a member that began to wait for a machine", now: 20,
			history: history{&CreateTeam{TeamID: "t1", Name: "demo", Dir: "/project", Remote: "origin"},
				&SpawnMember{Name: "ann", Agent: Shell, Isolation: Worktree, RunsOn: []string{"gpu"}}}, outside: alive()},
		{name: "a silent session", history: history{shell("ann"), hosted},
			outside: saw(alive(), "ann", Sight{Life: LifeOffline, Why: "silent for 11 min", Seen: 20 * second}),
			want:    "offline for user since 20 → show_log: ann is offline: silent for 11 min.\n"},
		{name: "a session outside that ended with a task", history: history{&SpawnMember{Name: "eve", Agent: External},
			&CreateTask{Subject: "one"}, "eve", &ClaimTask{Task: "1"}},
			outside: saw(alive(), "eve", Sight{Life: LifeOffline, Why: "its session has ended"}),
			want: "offline for user since 0 → reassign eve 1: eve is offline: its session has ended; it holds " +
				"task 1.\n"},
		{name: "a session outside that ended", history: history{&SpawnMember{Name: "eve", Agent: External}},
			outside: saw(alive(), "eve", Sight{Life: LifeOffline, Why: "its session has ended"}),
			want:    "offline for user since 0 → rejoin eve: eve is offline: its session has ended.\n"},
		{name: "a host that another one takes over", history: history{shell("ann"), hosted},
			outside: saw(alive(), "ann", Sight{Life: LifeOffline, HostGone: true})},
		{name: "recorded as offline", history: history{shell("ann"), hosted, 1000,
			&ReportOffline{Member: "ann", Incarnation: 1, Gone: "its host ended"}}, now: 1100, outside: alive(),
			want: "offline for user since 1000 → show_log: ann is offline: its heartbeats stopped.\n"},
		{name: "a task out of retries", history: history{shell("ann"), hosted, User,
			&CreateTask{Subject: "one", Run: "false"}, "ann", &ClaimTask{Task: "1"}, fail("1")}, outside: alive(),
			want: "task_failed for user since 7 → retry_task 1: Task 1 (one) failed: exit status 1\n"},
		{name: "a task that will be tried again", history: history{shell("ann"), hosted, User,
			&CreateTask{Subject: "one", Run: "false", Retries: 1}, "ann", &ClaimTask{Task: "1"}, fail("1")},
			outside: alive()},
		{name: "a task that was tried twice", history: history{shell("ann"), hosted, User,
			&CreateTask{Subject: "one", Run: "false", Retries: 1}, "ann", &ClaimTask{Task: "1"}, fail("1"),
			&ClaimTask{Task: "1"}, fail("1")}, outside: alive(),
			want: "task_failed for user since 9 → retry_task 1: Task 1 (one) failed 2 times: exit status 1\n"},
		{name: "a task for you", history: history{&CreateTask{Subject: "review it", Owner: "lead"},
			&CreateTask{Subject: "later", Owner: "lead", BlockedBy: []string{"1"}}}, outside: alive(),
			want: "task_yours for user since 2 → complete_task lead 1: Task 1 waits for you: review it\n"},
		{name: "a task for an agent that leads", history: history{agentLead, &CreateTask{Subject: "review it",
			Owner: "lead"}}, outside: alive()},
		{name: "tasks that no member takes", history: history{shell("ann"), hosted, User, &CreateTask{Subject: "think"},
			&CreateTask{Subject: "act", Run: "true"}, &CreateTask{Subject: "as a tester", Role: "tester", Run: "true",
				Priority: "high"}}, outside: alive(),
			want: "unassigned for user since 7 → assign_task 3: Task 3 and 1 more are open, and no member takes " +
				"them.\n"},
		{name: "a task without a command", history: history{shell("ann"), hosted, User,
			&CreateTask{Subject: "think"}},
			outside: alive(),
			want: "unassigned for user since 5 → set_command 1: Task 1 is open and unassigned: it has no command, " +
				"and every member that could take it is a shell: think\n"},
		{name: "a task of a member that has ended", history: history{&SpawnMember{Name: "ann", Agent: External},
			&CreateTask{Subject: "think", Owner: "ann"}, &ReportStopped{Member: "ann"}}, outside: alive(),
			want: "unassigned for user since 4 → spawn ann 1 ann-2 external: Task 1 is open and unassigned: think\n"},
		{name: "a task in a run whose members have ended", history: history{ran, shell("ann"),
			&CreateTask{Subject: "one", Run: "true"}, hosted, &ReportStopped{Member: "ann"}}, outside: alive(),
			want: "unassigned for user since 3 → resume: Task 1 is open and unassigned: one\n"},
		{name: "a task for a later member", history: history{&SpawnMember{Name: "ann", Agent: External},
			&CreateTask{Subject: "think", Owner: "eve"}}, outside: alive(),
			want: "unassigned for user since 3 → spawn 1 eve: Task 1 is assigned to eve, which was not spawned " +
				"yet: think\n"},
		{name: "a task without a teammate", history: history{&CreateTask{Subject: "think"}}, outside: alive(),
			want: "unassigned for user since 2 → spawn 1: Task 1 is open and unassigned: think\n"},
		{name: "a task beside a shell that has ended", history: history{&SpawnMember{Name: "ann", Agent: External},
			shell("sh"), &CreateTask{Subject: "think"}, &ReportStopped{Member: "ann"}, &ReportStopped{Member: "sh"}},
			outside: alive(),
			want: "unassigned for user since 4 → spawn ann 1 ann-2 external: Task 1 is open and unassigned: " +
				"think\n"},
		{name: "a spent budget", history: history{&SetBudget{Budget: Budget{Tokens: 100, CostMicroUSD: 1e6}},
			shell("ann"), hosted, &ReportUsage{Member: "ann", Usage: Usage{InputTokens: 120, CostMicroUSD: 900_000}}},
			outside: alive(),
			want: "budget for user since 0 → raise_budget: The token budget of the team is spent (used 120 tokens, " +
				"the limit is 100 tokens); no new work is started.\n"},
		{name: "a member's spent budget, and tasks that wait for it", history: history{
			&SpawnMember{Name: "ann", Agent: External, Budget: Budget{Tokens: 100}},
			&CreateTask{Subject: "more", Owner: "ann"},
			&ReportUsage{Member: "ann", Usage: Usage{InputTokens: 100}}}, outside: alive(),
			want: "budget for user since 0 → raise_budget ann: The token budget of ann is spent (100 of 100 tokens); " +
				"it gets no new work. 1 task waits for it.\n"},
		{name: "a member's spent budget, and a task that nobody else takes", history: history{
			&SpawnMember{Name: "ann", Agent: Shell, Budget: Budget{Tokens: 10}}, hosted,
			&CreateTask{Subject: "more", Run: "true"}, &ReportUsage{Member: "ann", Usage: Usage{InputTokens: 10}}},
			outside: alive(),
			want: "budget for user since 0 → raise_budget ann: The token budget of ann is spent (10 of 10 tokens); " +
				"it gets no new work.\n"},
		{name: "a budget that is nearly spent", history: history{
			&SetBudget{Budget: Budget{Tokens: 1000, CostMicroUSD: 1e6, Time: 1000 * time.Second}}, shell("ann"), hosted,
			&ReportUsage{Member: "ann", Usage: Usage{InputTokens: 499, CostMicroUSD: 800_000}}},
			outside: alive(), now: 900,
			want: "budget_low for user since 0 → raise_budget: 80 % of the cost budget of the team is spent ($0.80 " +
				"of $1.00).\nbudget_low for user since 0 → raise_budget: 89 % of the time budget of the team is " +
				"spent (14 min 59 s of 16 min 40 s).\n"},
		{name: "budgets of members", history: history{&SpawnMember{Name: "ann", Agent: Shell,
			Budget: Budget{Tokens: 10}},
			&SpawnMember{Name: "bob", Agent: Shell, Budget: Budget{Tokens: 10}},
			&SpawnMember{Name: "eve", Agent: Shell, Budget: Budget{Tokens: 10}},
			&ReportUsage{Member: "ann", Usage: Usage{InputTokens: 4}},
			&ReportUsage{Member: "bob", Usage: Usage{InputTokens: 5}},
			&ReportUsage{Member: "eve", Usage: Usage{InputTokens: 10}}}, outside: alive(), now: 1,
			want: "budget_low for user since 0 → raise_budget bob: 50 % of the token budget of bob is spent (5 of 10 " +
				"tokens).\nbudget for user since 0 → raise_budget eve: The token budget of eve is spent (10 of 10 " +
				"tokens); it gets no new work.\n"},
		{name: "a question to the person who leads", history: history{&SpawnMember{Name: "eve", Agent: External}, "eve",
			&SendMessage{To: "lead", Body: "which one?", Intent: "question"}, &SendMessage{To: "lead", Body: "done"}},
			outside: alive(), now: 10,
			want: "question for user since 3 → read_mail lead: eve asks you: which one?\n"},
		{name: "a question that was read", history: history{&SpawnMember{Name: "eve", Agent: External}, "eve",
			&SendMessage{To: "lead", Body: "which one?", Intent: "question"}, "lead",
			&ReceiveMessages{Member: "lead"}}, outside: alive(), now: 10},
		{name: "a question that was answered", history: history{&SpawnMember{Name: "eve", Agent: External}, "eve",
			&SendMessage{To: "lead", Body: "which one?", Intent: "question"},
			&SendMessage{To: "lead", Body: "and when?", Intent: "question"}, User,
			&SendMessage{To: "eve", Body: "the first", Answers: 1}}, outside: alive(), now: 10,
			want: "question for user since 4 → read_mail lead: eve asks you: and when?\n"},
		{name: "a question to an agent that leads", history: history{agentLead, &SpawnMember{Name: "eve",
			Agent: External}, "eve", &SendMessage{To: "lead", Body: "which one?", Intent: "question"}},
			outside: alive()},
		{name: "late messages", history: history{&SpawnMember{Name: "eve", Agent: External},
			&SendMessage{To: "eve", Body: "x"}, &SendMessage{To: "eve", Body: "y"}, 400, &MarkLate{Member: "eve"}},
			outside: alive(), now: 500,
			want: "late for user since 3 → read_mail eve: eve has not received 2 messages, the oldest for 8 min.\n"},
		{name: "facts that changed", history: history{shell("ann"), hosted}, outside: &Outside{Hosted: true,
			Stale: []string{"go.mod", "schema"}},
			want: "facts for user since 0 → record_facts: Facts changed since the team took note of them: go.mod, " +
				"schema.\n"},
		{name: "untrusted hooks", history: history{shell("ann"), hosted}, outside: &Outside{Hosted: true,
			Untrusted: []string{"TaskCreated", "TaskCompleted"}},
			want: "untrusted for user since 0 → trust: The project's hooks do not run, because you do not trust " +
				"them: TaskCreated, TaskCompleted.\n"},
		{name: "a failed check", history: history{checked, eve, &Consolidate{}, &ReportMerged{Attempt: 1},
			&ReportStaged{Attempt: 1}, &ReportCheck{Attempt: 1, Check: "test", Failure: "exit status 2"}},
			outside: alive(),
			want:    "check for user since 6 → consolidate: The check test failed, and nothing was committed.\n"},
		{name: "marked for its end", history: history{&SpawnMember{Name: "eve", Agent: External},
			&SetStatus{Status: TeamConsolidating}}, outside: dead(),
			want: "consolidate for user since 0 → consolidate: The work is done and waits to be checked and " +
				"committed.\n"},
		{name: "marked for its end, with an open task", history: history{&SpawnMember{Name: "eve", Agent: External},
			&CreateTask{Subject: "think", Owner: "eve"}, &SetStatus{Status: TeamConsolidating}}, outside: dead(),
			want: "consolidate for user since 0 → roll_back: The team winds down and starts nothing new, and 1 task " +
				"is open.\n"},
		{name: "a failed check, and new work", history: history{checked, eve, &Consolidate{},
			&ReportMerged{Attempt: 1}, &ReportStaged{Attempt: 1},
			&ReportCheck{Attempt: 1, Check: "test", Failure: "exit status 2"},
			&CreateTask{Subject: "mend", Owner: "eve"}}, outside: alive(),
			want: "check for user since 6 → show_task 1: The check test failed, and nothing was committed.\n"},
		{name: "a spent budget, and no process runs the team", history: history{&AttachLead{Session: "run-1"},
			&SetBudget{Budget: Budget{Tokens: 100}}, shell("ann"), hosted, &CreateTask{Subject: "one"},
			&ReportUsage{Member: "ann", Usage: Usage{InputTokens: 120}}}, outside: dead(),
			want: "budget for user since 0 → raise_budget: The token budget of the team is spent (used 120 tokens, " +
				"the limit is 100 tokens); no new work is started.\nunassigned for user since 7 → set_command 1: " +
				"Task 1 is open and unassigned: it has no command, and every member that could take it is a " +
				"shell: one\n"},
		{name: "a spent budget of the only member for a task", history: history{&AttachLead{Session: "run-1"},
			&SpawnMember{Name: "ann", Agent: Claude, Budget: Budget{Tokens: 100}}, hosted,
			&CreateTask{Subject: "one", Owner: "ann"},
			&ReportUsage{Member: "ann", Usage: Usage{InputTokens: 120}}}, outside: dead(),
			want: "budget for user since 0 → raise_budget ann: The token budget of ann is spent (used 120 tokens, " +
				"the limit is 100 tokens); it gets no new work. 1 task waits for it.\n"},
		{name: "a spent budget, and another member for the task", history: history{&AttachLead{Session: "run-1"},
			&SpawnMember{Name: "ann", Agent: Claude, Budget: Budget{Tokens: 100}},
			&SpawnMember{Name: "bob", Agent: Claude}, hosted, &CreateTask{Subject: "one"},
			&ReportUsage{Member: "ann", Usage: Usage{InputTokens: 120}}}, outside: dead(),
			want: "dormant for user since 0 → resume: No process of the team is running; 1 task is not done.\n" +
				"budget for user since 0 → raise_budget ann: The token budget of ann is spent (used 120 tokens, the " +
				"limit is 100 tokens); it gets no new work.\n"},
		{name: "a task for who leads, and no process runs the team", history: history{&AttachLead{Session: "run-1"}, eve,
			&CreateTask{Subject: "one", Owner: "lead"}}, outside: dead(),
			want: "dormant for user since 0 → complete_task 1: No process of the team is running; 1 task is not " +
				"done.\ntask_yours for user since 4 → complete_task lead 1: Task 1 waits for you: one\n"},
		{name: "a task for an external member of a run", history: history{&CreateTeam{TeamID: "demo-1", Name: "demo",
			Dir: "/there", Origin: "/there/demo.yaml"}, eve, &CreateTask{Subject: "one", Owner: "eve"}},
			outside: alive(),
			want:    "task_yours for user since 3 → claim_task eve 1: Task 1 waits for member eve: one\n"},
		{name: "a task for a member of a run that is there", history: history{&CreateTeam{TeamID: "demo-1", Name: "demo",
			Dir: "/there", Origin: "/there/demo.yaml"}, eve, &CreateTask{Subject: "one", Owner: "eve"}},
			outside: saw(alive(), "eve", Sight{Life: LifeOnline})},
		{name: "all done, and no process runs the team", history: history{eve, &CreateTask{Subject: "one"}, "eve",
			&ClaimTask{Task: "1"}, &CompleteTask{Task: "1"}}, outside: dead(),
			want: "consolidate for user since 0 → consolidate: All tasks are done, and no process runs the team; its " +
				"work waits to be checked and committed.\n"},
		{name: "all done, and all have ended", history: history{eve, &CreateTask{Subject: "one"}, "eve",
			&ClaimTask{Task: "1"}, &CompleteTask{Task: "1"}, User, &ReportStopped{Member: "eve"}}, outside: dead(),
			want: "consolidate for user since 0 → consolidate: All tasks are done, and no process runs the team; its " +
				"work waits to be checked and committed.\n"},
		{name: "all done, and the session that led has ended", history: history{&AttachLead{Session: "run-1"}, eve,
			&CreateTask{Subject: "one"}, "eve", &ClaimTask{Task: "1"}, &CompleteTask{Task: "1"}}, outside: dead(),
			want: "dormant for user since 0 → resume: No process of the team is running; all tasks are done, and " +
				"nothing is consolidated.\n"},
		{name: "all done, and a member is there", history: history{eve, &CreateTask{Subject: "one"}, "eve",
			&ClaimTask{Task: "1"}, &CompleteTask{Task: "1"}}, outside: saw(dead(), "eve", Sight{Life: LifeOnline})},
		{name: "all done, and a process runs the team", history: history{eve, &CreateTask{Subject: "one"}, "eve",
			&ClaimTask{Task: "1"}, &CompleteTask{Task: "1"}}, outside: alive()},
		{name: "complete, and its files are not committed", history: history{eve, &CreateTask{Subject: "one"}, "eve",
			&ClaimTask{Task: "1"}, &CompleteTask{Task: "1"}, User, &SetStatus{Status: TeamComplete}},
			outside: &Outside{Uncommitted: []string{"a", "b", "c", "d", "e", "f"}},
			want: "consolidate for user since 0 → consolidate: The work is done and waits to be checked and " +
				"committed: a, b, c, d, e and 1 more.\n"},
		{name: "complete, and everything is committed", history: history{eve, &CreateTask{Subject: "one"}, "eve",
			&ClaimTask{Task: "1"}, &CompleteTask{Task: "1"}, User, &SetStatus{Status: TeamComplete}}, outside: dead()},
		{name: "one is done, and one is not", history: history{eve, &CreateTask{Subject: "one"},
			&CreateTask{Subject: "two", Owner: "eve"}, "eve", &ClaimTask{Task: "1"}, &CompleteTask{Task: "1"}},
			outside: dead()},
		{name: "no task was there", history: history{eve}, outside: dead()},
		{name: "a consolidation that was killed", history: history{&SpawnMember{Name: "eve", Agent: External},
			&Consolidate{}}, outside: dead(),
			want: "interrupted for user since 3 → finish: Consolidation 1, started by the user, was " +
				"interrupted; no process continues it.\n"},
		{name: "a consolidation under way", history: history{&SpawnMember{Name: "eve", Agent: External},
			&Consolidate{}}, outside: &Outside{Consolidating: true}},
		{name: "a hook that keeps rejecting", history: history{eve, &CreateTask{Subject: "one"}, "eve",
			&ClaimTask{Task: "1"}, rejected(10, &RejectByHook{Hook: "TaskCompleted", Member: "eve", Task: "1",
				Feedback: "no tests"})}, outside: alive(),
			want: "hook for user since 14 → show_task 1: The hook TaskCompleted rejected the same thing of eve 10 " +
				"times (task 1): no tests\n"},
		{name: "a hook that rejected nine times", history: history{eve, &CreateTask{Subject: "one"}, "eve",
			&ClaimTask{Task: "1"}, rejected(9, &RejectByHook{Hook: "TaskCompleted", Member: "eve", Task: "1",
				Feedback: "no tests"})}, outside: alive()},
		{name: "a hook that agreed in the end", history: history{eve, &CreateTask{Subject: "one"}, "eve",
			&ClaimTask{Task: "1"}, rejected(12, &RejectByHook{Hook: "TaskCompleted", Member: "eve", Task: "1",
				Feedback: "no tests"}), &CompleteTask{Task: "1"}}, outside: alive()},
		{name: "a record that was not written", history: history{eve, &Consolidate{NoCommit: true},
			&ReportMerged{Attempt: 1}, &ReportStaged{Attempt: 1}, &ReportMade{Attempt: 1},
			&ReportConsolidated{Attempt: 1}}, outside: dead(),
			want: "interrupted for user since 3 → finish: Consolidation 1, started by the user, was " +
				"interrupted; no process continues it.\n"},
		{name: "a record that was written", history: history{eve, &Consolidate{NoCommit: true},
			&ReportMerged{Attempt: 1}, &ReportStaged{Attempt: 1}, &ReportMade{Attempt: 1},
			&ReportConsolidated{Attempt: 1}}, outside: &Outside{Sealed: true}},
		{name: "no look was taken", history: history{&AttachLead{Session: "mcp-1"}, shell("ann"),
			&CreateTask{Subject: "think"}},
			want: "unassigned for user since 4 → set_command 1: Task 1 is open and unassigned: it has no command, " +
				"and every member that could take it is a shell: think\n"},
		{name: "a branch that does not merge", history: history{&SpawnMember{Name: "ann", Agent: Claude,
			Isolation: Worktree}, &LeaveBranch{Member: "ann", Commit: "c1", Why: "it conflicts"}}, outside: alive(),
			want: "conflict for user since 3 → show_task 1: The work of ann on the branch cadre/demo@ann is to be " +
				"merged by hand; task 1 says how.\n"},
		{name: "marked for its end, with a branch",
			history: history{&SpawnMember{Name: "ann", Agent: Claude, Isolation: Worktree},
				&LeaveBranch{Member: "ann", Commit: "c1"}, &SetStatus{Status: TeamConsolidating}}, outside: dead(),
			want: "consolidate for user since 0 → consolidate: The work is done and waits to be checked and " +
				"committed: cadre/demo@ann.\n"},
		{name: "a team at its end", history: history{shell("ann"), &SetStatus{Status: TeamAborted}}, outside: dead()},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := c.history.state(t)
			now := c.now * second
			if now == 0 {
				now = 100 * second
			}
			if got := lines(s.Attention(now, c.outside)); got != c.want {
				t.Errorf("it is\n%s\nnot\n%s", got, c.want)
			}
		})
	}
}

// TestAttentionIsBounded checks that there are at most twenty similar items of tasks, and the last
// one stands for the rest.
func TestAttentionIsBounded(t *testing.T) {
	h := history{&SpawnMember{Name: "ann", Agent: External}}
	for i := range 50 {
		h = append(h, User, &CreateTask{Subject: "one"}, &CreateTask{Subject: "yours", Owner: "lead"}, "ann",
			&ClaimTask{Task: fmt.Sprint(2*i + 1)}, &FailTask{Task: fmt.Sprint(2*i + 1), Reason: "no"})
	}
	items := h.state(t).Attention(0, &Outside{})
	if len(items) != 2*mostAlike || items[19].Text != "Task 39 and 30 more are out of retries." ||
		items[39].Text != "Task 40 and 30 more wait for you." {
		t.Errorf("they are\n%s", lines(items))
	}
}

// TestAttentionForOthersIsBounded checks the same for tasks that wait for external members of a
// run. Tasks of a member whose session is seen do not count.
func TestAttentionForOthersIsBounded(t *testing.T) {
	h := history{&CreateTeam{TeamID: "demo-1", Name: "demo", Dir: "/there", Origin: "/there/demo.yaml"},
		&SpawnMember{Name: "eve", Agent: External}, &SpawnMember{Name: "kim", Agent: External}}
	for range 25 {
		h = append(h, &CreateTask{Subject: "one", Owner: "eve"}, &CreateTask{Subject: "two", Owner: "kim"})
	}
	items := h.state(t).Attention(0, &Outside{Hosted: true, Led: true,
		Sights: map[string]Sight{"kim": {Life: LifeOnline}}})
	if len(items) != mostAlike ||
		items[mostAlike-1].Text != "Task 39 waits for member eve, and 5 more tasks wait for members." {
		t.Errorf("they are\n%s", lines(items))
	}
}

// TestNothingOfAnObservedTeamWaits checks that an observed team has no items, because its agents
// are answered elsewhere.
func TestNothingOfAnObservedTeamWaits(t *testing.T) {
	s := &State{}
	s.Apply(&Record{Seq: 1, ID: "c", At: 1, Events: []Event{
		&TeamCreated{Team: Team{ID: "t", Name: "here", Observed: "fx", Status: TeamActive},
			Lead: Member{Name: "boss", Agent: External, Status: Active}},
		&TaskCreated{Task: Task{ID: "1", Subject: "one", Status: Pending, Failure: "no", Failures: 1}}}})
	if items := s.Attention(0, &Outside{Directory: "it does not exist"}); len(items) > 0 {
		t.Errorf("they are\n%s", lines(items))
	}
}

// TestAttentionOfAnyState checks that for any history and findings the list is the same each time,
// and its kinds are in order. No two items have the same key. Each has a text and a hint. The list
// is also the same after the state was encoded and read back.
func TestAttentionOfAnyState(t *testing.T) {
	order := []ItemKind{ItemPermission, ItemPlan, ItemQuestion, ItemInterrupted, ItemDirectory,
		ItemElsewhere, ItemDormant,
		ItemUnhosted, ItemLeadLost, ItemLeadFailed, ItemBudget, ItemBudgetLow, ItemFailed, ItemOffline,
		ItemHeld, ItemCheck, ItemConflict, ItemTaskFailed, ItemTaskYours, ItemUnassigned, ItemHook, ItemConsolidate,
		ItemLate, ItemFacts, ItemUntrusted}
	rapid.Check(t, func(t *rapid.T) {
		s, _ := foundedBy(t, rapid.SampledFrom([]string{External, "claude"}).Draw(t, "lead"))
		for n := range rapid.IntRange(1, 80).Draw(t, "steps") {
			if d, err := Decide(s, drawCommand(t, s, n+1)); err == nil && d.Record != nil {
				s.Apply(d.Record)
			}
		}
		var o *Outside
		if rapid.Bool().Draw(t, "looked") {
			flag := func(name string) bool { return rapid.Bool().Draw(t, name) }
			o = &Outside{Hosted: flag("hosted"), Led: flag("led"), LeadActs: flag("acts"),
				Consolidating: flag("consolidating"), Sealed: flag("sealed"), Sights: map[string]Sight{}}
			if flag("elsewhere") {
				o.Elsewhere = "box"
			}
			for _, m := range s.Members() {
				o.Sights[m.Name] = Sight{Life: rapid.SampledFrom([]Life{LifeOnline, LifeOffline, LifePaused,
					LifeOutside, LifeUnknown}).Draw(t, "life"), HostGone: flag("host gone")}
			}
		}
		now := s.team.UpdatedAt + Time(rapid.IntRange(0, 1000).Draw(t, "later"))
		items := s.Attention(now, o)
		for _, i := range items {
			if !slices.Contains(ItemKinds, i.Kind) {
				t.Fatalf("ItemKinds lacks %s", i.Kind)
			}
		}
		if again := reopened(t, s).Attention(now, o); lines(again) != lines(items) {
			t.Fatalf("read back it is\n%s\nnot\n%s", lines(again), lines(items))
		}
		last, keys := 0, map[string]bool{}
		for _, i := range items {
			at := slices.Index(order, i.Kind)
			if at < last {
				t.Fatalf("%s comes too late:\n%s", i.Kind, lines(items))
			}
			last = at
			if keys[i.Key()] || i.Text == "" || i.Hint.Action == "" || i.WaitsFor != ForUser &&
				i.WaitsFor != s.team.Lead {
				t.Fatalf("%+v is twice, or says nothing", i)
			}
			if body := asked(s, i.Hint); body != nil {
				c := Command{ID: "hint", Actor: User, At: now, Body: body}
				if _, err := Decide(s, c); err != nil {
					t.Fatalf("%+v is refused: %v", i, err)
				}
			}
			keys[i.Key()] = true
		}
		if s.over() && len(items) > 0 && items[0].Kind != ItemInterrupted {
			t.Fatalf("at its end it needs\n%s", lines(items))
		}
	})
}

// asked returns the command that a hint names; nil for one that only shows something, or that needs
// more than the hint says.
func asked(s *State, h Hint) Body {
	switch h.Action {
	case ActConsolidate:
		return &Consolidate{NoCommit: true}
	case ActRollBack:
		return &SetStatus{Status: TeamActive}
	case ActRetryTask:
		return &ReleaseTask{Task: h.Task}
	case ActCompleteTask:
		return &CompleteTask{Task: h.Task, Examined: true} // the command line acts as the user, who leads
	case ActDeleteTask:
		return &DeleteTask{Task: h.Task}
	case ActResume:
		if s.team.Exhausted != "" {
			return &SpawnMember{Name: "refused"} // a run would end at once
		}
	}
	return nil
}

// TestIndexesOfTasks checks that the index of tasks in progress and out of retries has what a walk
// over all tasks finds.
func TestIndexesOfTasks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, _ := foundedBy(t, External)
		for n := range rapid.IntRange(1, 80).Draw(t, "steps") {
			if d, err := Decide(s, drawCommand(t, s, n+1)); err == nil && d.Record != nil {
				s.Apply(d.Record)
			}
			var want, got [2][]string
			for task := range s.Tasks() {
				if task.Status == InProgress {
					want[0] = append(want[0], task.ID)
				}
				if task.OutOfRetries() {
					want[1] = append(want[1], task.ID)
				}
			}
			for task := range s.Underway() {
				got[0] = append(got[0], task.ID)
			}
			for task := range s.OutOfRetries() {
				got[1] = append(got[1], task.ID)
			}
			if !slices.Equal(got[0], want[0]) || !slices.Equal(got[1], want[1]) {
				t.Fatalf("indexed are %v, not %v", got, want)
			}
		}
	})
}

// TestConsolidateWaysOut checks that the refusal to consolidate a team with a failed task names the
// ways out, and that each of them is accepted.
func TestConsolidateWaysOut(t *testing.T) {
	s := history{&SpawnMember{Name: "eve", Agent: External}, &CreateTask{Subject: "one"}, "eve",
		&ClaimTask{Task: "1"}, &FailTask{Task: "1", Reason: "no"}}.state(t)
	err := s.Consolidatable()
	if CodeOf(err) != NotReady || !strings.Contains(err.Error(), "task 1 (one) failed: no") {
		t.Errorf("got %v, want NotReady because task 1 failed", err)
	}
	var actions []Action
	for _, h := range HintsOf(err) {
		actions = append(actions, h.Action)
		if _, err := Decide(s, Command{ID: "hint", Actor: User, At: 100 * second, Body: asked(s, h)}); err != nil {
			t.Errorf("%s: %v", h.Action, err)
		}
	}
	if want := []Action{ActRetryTask, ActDeleteTask}; !slices.Equal(actions, want) {
		t.Errorf("they are %v", actions)
	}
}

// TestWhatARequestIsFor: a request is listed by its command, file or URL. Where something else is
// asked for, the whole input is listed.
func TestWhatARequestIsFor(t *testing.T) {
	for _, c := range []struct{ tool, input, want string }{
		{"Bash", `{"command":"cd x\nmake","description":"build"}`, "cd x↵make"},
		{"Bash", `{"command":"make","additionalPermissions":{"network":true}}`,
			`{"command":"make","additionalPermissions":{"network":true}}`},
		{"Edit", `{"old_string":"a","new_string":"b","file_path":"/p/main.go"}`, "/p/main.go"},
		{"WebFetch", `{"url":"https://go.dev","prompt":"p"}`, "https://go.dev"},
		{"mcp__files__drop", `{"path":"/p","all":true}`, `{"path":"/p","all":true}`},
		{"mcp__box__run", `{"command":"make","host":"prod"}`, `{"command":"make","host":"prod"}`},
		{"Bash", `{"command":"make","dangerouslyDisableSandbox":true}`,
			`{"command":"make","dangerouslyDisableSandbox":true}`},
		{"Bash", `{"command":"make","dangerouslyDisableSandbox":false}`, "make"},
		{"Bash", "no JSON", "no JSON"},
	} {
		if got := InputWords(c.tool, c.input); got != c.want {
			t.Errorf("%s %s is listed as %s, want %s", c.tool, c.input, got, c.want)
		}
	}
}

// TestNestedTeamWaitsInItsParent: what is done with a nested team by doing it with its parent waits
// for nobody in the nested team.
func TestNestedTeamWaitsInItsParent(t *testing.T) {
	s := &State{}
	for i, c := range []Command{{Actor: User, Body: &CreateTeam{TeamID: "c", Name: "c", Dir: "/d", Depth: 1,
		Parent: Parent{Team: "up", Name: "up", Member: "sub", Task: "1", Worktree: true}}},
		{Actor: User, Body: &SpawnMember{Name: "ann", Agent: External}},
		{Actor: User, Body: &SetStatus{Status: TeamConsolidating}}, {Actor: User, Body: &Consolidate{}}} {
		c.ID = fmt.Sprint(i)
		d, err := Decide(s, c)
		if err != nil {
			t.Fatal(err)
		}
		s.Apply(d.Record)
	}
	o := &Outside{Directory: "it does not exist"}
	if items := s.Attention(0, o); len(items) > 0 {
		t.Errorf("in the nested team waits %+v", items)
	}
	s.team.Parent = Parent{}
	if items := s.Attention(0, o); len(items) != 2 {
		t.Errorf("in a team by itself waits %+v", items)
	}
}
