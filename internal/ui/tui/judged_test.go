package tui

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"cadre/internal/team"
)

// The stories of tasks that others verify, that a check sends back, and that make others.

// adds adds the members that the task needs. It reports whether the story lacks the task.
func (s *story) adds(task string) bool {
	if _, err := s.state.Find(task); err == nil {
		return false
	}
	for _, m := range [...][2]string{{"cyn", "reviewer"}, {"dan", "reviewer"}, {"eve", ""}} {
		if _, err := s.state.Named(m[0]); err != nil {
			s.do(team.User, &team.SpawnMember{Name: m[0], Agent: team.External, Role: m[1]})
		}
	}
	return true
}

// verified adds a task that two members verify, in its second round.
func (s *story) verified() {
	if !s.adds("grammar") {
		return
	}
	s.do(team.User, &team.CreateTask{Name: "grammar", Subject: "Write down the grammar", Owner: "eve",
		Verify: &team.Verify{By: "reviewer", Count: 2}})
	s.do("eve", &team.ClaimTask{Task: "grammar"})
	s.do("eve", &team.CompleteTask{Task: "grammar", Fence: 1, Result: "It has 40 tokens."})
	s.judge("cyn", team.VerdictRejected, "One token is missing:\n文字列")
	s.do("eve", &team.ClaimTask{Task: "grammar"})
	s.do("eve", &team.CompleteTask{Task: "grammar", Fence: s.fence("5"), Result: "It has **41** tokens."})
	s.judge("cyn", team.VerdictAccepted, "All tokens are there.")
}

// judge has the member verify the task grammar.
func (s *story) judge(member, verdict, reason string) {
	s.t.Helper()
	of, _ := s.state.Find("grammar")
	for _, v := range s.state.Verifications(of.ID) {
		if v.Status == team.Pending {
			s.do(member, &team.ClaimTask{Task: "#" + v.ID})
			s.do(member, &team.CompleteTask{Task: "#" + v.ID, Fence: 1, Result: reason, Verdict: verdict})
			return
		}
	}
	s.t.Fatal("no verification of the task grammar is open")
}

// checked adds a task whose result does not fit its schema, and whose check fails.
func (s *story) checked() {
	if !s.adds("rules") {
		return
	}
	s.do(team.User, &team.CreateTask{Name: "rules", Subject: "List the rules", BlockedBy: []string{"lexer"},
		When: team.Always, Check: &team.TaskCheck{Run: "go test ./rules", Rounds: 5}, Schema: []byte(`{"type":"array"}`)})
	s.do(team.User, &team.UpdateTask{Task: "rules", RemoveBlockedBy: []string{"lexer"}})
	s.do("eve", &team.ClaimTask{Task: "rules"})
	s.do("eve", &team.RejectResult{Task: "rules", Fence: 1, By: team.ByResult, Feedback: "at '': got string, want array"})
	s.do("eve", &team.RejectResult{Task: "rules", Fence: 1, By: team.ByCheck, Feedback: "--- FAIL: TestRules\n" +
		"    rules_test.go:12: rule 7 is missing\x1b[2J\nFAIL"})
}

// grouped adds a task that made three others.
func (s *story) grouped() {
	if !s.adds("fix") {
		return
	}
	s.do(team.User, &team.CreateTask{Name: "fix", Subject: "Fix each package", ForEach: &team.ForEach{
		Items: []json.RawMessage{team.TextItem("lexer"), team.TextItem("parser"), team.TextItem("printer")}}})
	s.do("eve", &team.ClaimTask{Task: "fix-1"})
	s.do("eve", &team.CompleteTask{Task: "fix-1", Fence: 1, Result: "done"})
	s.do("eve", &team.ClaimTask{Task: "fix-2"})
}

// TestJudgedTask: the view of a task shows who verifies it and what each said, and when it is
// completed, how it was checked.
func TestJudgedTask(t *testing.T) {
	s := newStory(t)
	s.verified()
	x := newScreen(s, 100, 60)
	x.open(s)
	x.openNamed("grammar")
	for _, text := range []string{"verifying (round 2)", "verified by   2 of reviewer",
		"round 2 of 3: 1 of 2 accepted", "cyn rejected it (task 6): One token is missing:", "文字列",
		"cyn accepted it (task 8): All tokens are there.", "reviewer is to verify it (task 9)",
		"Result that is being verified", "It has 41 tokens."} {
		x.says(text)
	}
	s.judge("dan", team.VerdictAccepted, "Yes.")
	x.send(s.message())
	x.send(recordsMsg{ref: "demo", records: s.records[len(s.records)-1:], whole: true})
	x.says("checked      accepted by cyn, dan")
	x.says("dan accepted it (task 9): Yes.")
	if frame := stripped(strings.Join(x.frame(), "\n")); strings.Contains(frame, "being verified") {
		t.Errorf("a completed task is said to be verified:\n%s", frame)
	}
}

// TestTaskThatIsSentBack: the view of a task shows why its last result was sent back, and in which
// round.
func TestTaskThatIsSentBack(t *testing.T) {
	s := newStory(t)
	s.checked()
	x := newScreen(s, 100, 60)
	x.open(s)
	x.openNamed("rules")
	for _, text := range []string{"also if a task that it depends on has failed",
		"go test ./rules (until it passes, 5 rounds)", "Sent back", "the check failed in round 1 of 5:",
		"rules_test.go:12: rule 7 is missing", "the result does not fit its schema (1 of 3): at '': got string"} {
		x.says(text)
	}
}

// TestFold: the tasks that a group made are folded under it, with a count, until a key shows them.
// A narrowed list has all that match.
func TestFold(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 100, 40)
	x.open(s)
	x.keys("z")
	x.says("No task of this team makes others.")
	s.grouped()
	x.send(s.message())
	x.keys("2")
	x.says("1 of 3 done: Fix each package")
	shows := func(is bool) {
		t.Helper()
		if is != slices.ContainsFunc(x.team.tasks, func(r taskRow) bool { return r.called == "fix-2" }) {
			t.Errorf("a folded task has a row: %v, not %v", !is, is)
		}
	}
	shows(false)
	x.keys("z")
	shows(true)
	x.keys("z")
	shows(false)
	x.keys("/", "s:in_progress", "enter")
	shows(true)
	x.keys("z")
	x.says("A narrowed list has all tasks that match.")
	x.keys("/")
	x.input.field.set("")
	x.keys("enter")
	x.openNamed("fix")
	for _, text := range []string{"its tasks", "1 of 3 done", "fix-1, completed, eve, lexer",
		"fix-3, pending, printer"} {
		x.says(text)
	}
}
