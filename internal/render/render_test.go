package render_test

import (
	"strings"
	"testing"
	"time"
	"unicode"

	"cadre/internal/render"
	"cadre/internal/team"
)

func TestClean(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"plain text, even with ünïcödé 漢字 ✓", "plain text, even with ünïcödé 漢字 ✓"},
		{"two\nlines\tand\ra return\u2028or\u2029else", "two↵lines and␍a return<U+2028>or<U+2029>else"},
		{"\x1b[2J\x1b]0;title\x07", "␛[2J␛]0;title␇"},
		{"right\u202eto left, \u200bnothing, \u009b2J", "right<U+202E>to left, <U+200B>nothing, <U+009B>2J"},
		{"bad \xff bytes", "bad \uFFFD bytes"},
		{strings.Repeat("é", 401), strings.Repeat("é", 399) + "…"},
		{strings.Repeat("x", 400), strings.Repeat("x", 400)},
		{"", ""},
	} {
		if got := render.Clean(c.text); got != c.want {
			t.Errorf("%q became %q, not %q", c.text, got, c.want)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add("a\x1b[31mb\r\n\u202e\xff")
	f.Fuzz(func(t *testing.T, s string) {
		line := render.Clean(s)
		if strings.ContainsFunc(line, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Zl, r) }) ||
			len([]rune(line)) > 400 {
			t.Errorf("%q became %q", s, line)
		}
	})
}

func TestLines(t *testing.T) {
	r := &team.Record{Actor: "ann", Events: []team.Event{
		&team.TaskCompleted{Task: "1", By: "ann", Unblocked: []string{"2", "3"}},
		&team.TaskFailed{Task: "2", By: "bob", Reason: "exit status 3"},
		&team.MessageSent{Message: team.Message{Seq: 7, To: "lead", Body: "all\nis \x1b[2Jwell"}},
		&team.MessagesDelivered{Member: "bob", Seqs: []int64{4}},
		&team.MessagesDelivered{Member: "bob", Seqs: []int64{5, 6}},
		&team.HookRejected{Hook: "TaskCompleted", Member: "ann", Count: 2, Feedback: "no"},
		&team.MemberStopped{Member: "bob"},
		&team.ShutdownAnswered{Member: "bob", Approved: false, Reason: "busy"},
		&team.LeadAttached{Session: "run-1"}, &team.LeadAttached{Session: team.User},
		&team.LeadAttached{Session: team.User, TakenOver: "run-1"},
		&team.LeadAttached{Session: "mcp-2", TakenOver: "run-1"},
		&team.LeadAttached{Session: team.User, From: "run-1"},
		&team.LeadAttached{Session: "run-1", From: "run-1"}, &team.LeadAttached{Session: "run-2", From: team.User},
		&team.FactsRecorded{Facts: []team.Fact{{Name: "go.mod"}, {Name: "schema"}}},
		&team.BranchLeft{Member: "ann", Branch: "cadre/demo@ann", Commit: "c0"}, &team.BranchLeft{Member: "ann"},
		&team.TeamMoved{From: "/old", Dir: "/new"},
		&team.TeamStatusChanged{Status: team.TeamActive, Report: "/there/report.md"},
		&team.TeamStatusChanged{Status: team.TeamComplete, Report: "/there/report.md"},
		&team.WorkSaved{Task: "1", Saved: team.Saved{Member: "ann"}},
		&team.WorkRecorded{Task: "1", Work: team.Work{Member: "ann", Base: "0123456789abcdef"}},
		&team.WorkRecorded{Task: "1", Work: team.Work{Member: "ann", Branch: "cadre/demo@ann", Base: "0123456789abcdef",
			Commit: "fedcba9876543210", Done: true, Files: []string{"a.go"}}},
		&team.WorkRecorded{Task: "2", Work: team.Work{Member: "ann", Base: "0123456789abcdef",
			Commit: "fedcba9876543210", Done: true, Files: []string{"a", "b"}, Others: []string{"bob"}}},
		&team.WorkRecorded{Task: "3", Work: team.Work{Member: "ann", Left: []string{"git is not installed"}}},
		&team.MessagesLate{Member: "bob", Seqs: []int64{4}},
		&team.MessagesResent{Member: "bob", Seqs: []int64{5, 6}},
		&team.MemberOffline{Member: "bob", Reason: "its session is gone"},
		&team.MemberOnline{Member: "bob"},
		&team.MemberReturned{Member: team.Member{Name: "bob"}},
		&team.TasksSkipped{Through: 3},
		&team.TaskClaimed{Task: "4"},
		&team.TaskUpdated{Task: "5", Owner: new("bob"), Priority: new("high"), Description: new("all"),
			AddBlockedBy: []string{"1", "2"}, RemoveBlocks: []string{"3"}, Was: &team.TaskWas{Priority: new("low")}},
		&team.BudgetAlerted{Member: "bob", What: "time", Percent: 50},
		&team.BudgetAlerted{What: "cost", Percent: 80},
		&team.GapNoticed{Source: "the lead's stream", Reason: "the connection was lost"},
	}}
	want := []string{
		"ann completed task 1, which frees task 2, 3",
		"bob FAILED task 2: exit status 3",
		"#7 cadre → lead: all↵is ␛[2Jwell",
		"bob received message #4",
		"bob received 2 messages",
		"the TaskCompleted hook rejected ann (2 in a row): no",
		"bob stopped",
		"bob rejected the shutdown: busy",
		"the run leads",
		"the user leads",
		"the user took the lead from the run",
		"session mcp-2 took the lead from the run",
		"the run handed the lead back to the user",
		"the run is back, and leads again",
		"the run leads",
		"the facts are recorded: go.mod, schema",
		"the work of ann is on the branch cadre/demo@ann, not merged",
		"no work of ann is left to merge",
		"the project was moved from /old to /new",
		"report written: /there/report.md; the team is not complete",
		"team is complete: /there/report.md",
		"the work of ann on task 1 is saved with the task",
		"task 1: starts from 0123456789ab",
		"task 1: ann changed 1 file (0123456789ab..fedcba987654 on cadre/demo@ann)",
		"task 2: ann changed 2 files (0123456789ab..fedcba987654), while others worked there: bob",
		"task 3: the commit that it starts from was not recorded: git is not installed",
		"message #4 for bob UNDELIVERED",
		"2 messages sent to bob again",
		"bob OFFLINE: its session is gone",
		"bob is online again",
		"bob is back",
		"a member took task 4",
		"task 5 changed: description, owner bob, priority low → high, blocked by task 1, 2, no longer blocks task 3",
		"50 % of the time budget of bob is spent",
		"80 % of the cost budget of the team is spent",
		"something of the lead's stream was missed: the connection was lost",
	}
	got := render.Lines(r, nil)
	if len(got) != len(want) {
		t.Fatalf("%d lines: %q", len(got), got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("line %d is %q, not %q", i, got[i], want[i])
		}
	}
}

func TestTable(t *testing.T) {
	var table render.Table
	table.Row("ID", "NAME", "SUBJECT")
	table.Row("1", "Änne", "first\nof all")
	table.Row("2", "漢字", "two columns each")
	table.Row("3", "a\u0308b", "one for a letter and its accent")
	table.Row("4", "👩‍💻", "two for the cluster")
	table.Row("10", "bob", strings.Repeat("long ", 20))
	var out strings.Builder
	if err := table.Write(&out); err != nil {
		t.Fatal(err)
	}
	want := "ID  NAME  SUBJECT\n1   Änne  first↵of all\n2   漢字  two columns each\n3   a\u0308b    one for a letter " +
		"and its accent\n4   👩‍💻    two for the cluster\n10  bob   " + strings.Repeat("long ", 20) + "\n"
	if out.String() != want {
		t.Errorf("it is\n%swant\n%s", out.String(), want)
	}
}

// TestTimes checks points in time, and how long ago they were.
func TestTimes(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.Local)
	for then, want := range map[time.Time]string{
		noon.Add(-12 * time.Hour): "00:00:00", noon.Add(-12*time.Hour - time.Second): "2026-02-28 23:59:59",
		noon.Add(12*time.Hour - time.Second): "23:59:59",
		noon.Add(12 * time.Hour):             "2026-03-02 00:00:00", noon.AddDate(-1, 0, 0): "2025-03-01 12:00:00",
	} {
		if got := render.When(team.Time(noon.UnixMilli()), team.Time(then.UnixMilli())); got != want {
			t.Errorf("%s is %q, not %q", then, got, want)
		}
	}
	for then, want := range map[team.Time]string{0: "never", 900_000: "1 min ago", 950_000: "50 s ago",
		990_001: "just now", 2_000_000: "just now", -8_000_000: "2 h ago", -200_000_000: "2 days ago"} {
		if got := render.Ago(1_000_000, then); got != want {
			t.Errorf("%d is %q, not %q", then, got, want)
		}
	}
}

func TestTaskState(t *testing.T) {
	for _, c := range []struct {
		task team.Task
		want string
	}{
		{team.Task{Status: team.Pending}, "pending"},
		{team.Task{Status: team.InProgress}, "in_progress"},
		{team.Task{Status: team.Pending, Failures: 1, Failure: "x"}, "failed"},
		{team.Task{Status: team.Pending, Failures: 1, Retries: 1, Failure: "x"}, "pending"},
		{team.Task{Status: team.Completed}, "completed"},
	} {
		if got := render.TaskState(c.task); got != c.want {
			t.Errorf("%+v is %q, not %q", c.task, got, c.want)
		}
	}
}
