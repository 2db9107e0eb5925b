package tui

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"cadre/internal/team"
)

// worked adds a task with a history: a failed attempt, a second one, a plan, a rejection and
// messages.
func (s *story) worked() {
	if t, _ := s.state.Find("lexer"); t.Attempts > 1 {
		return // it has been added
	}
	s.do("ann", &team.FailTask{Task: "lexer", Fence: 1, Reason: "the grammar is missing"})
	s.do(team.User, &team.UpdateTask{Task: "lexer", Description: ptr("Write the lexer.\n\n- one file\n- **no** " +
		"generator"), Metadata: nil})
	s.do(team.User, &team.ReleaseTask{Task: "lexer"})
	s.do(team.User, &team.AnswerPlan{Request: "plan-1@bob", Feedback: "Say which rules."})
	s.do("bob", &team.SubmitPlan{Plan: "## Plan\n\n1. Read `grammar.ebnf`.\n2. Write it."})
	bob, _ := s.state.Member("bob")
	s.do(team.User, &team.AnswerPlan{Request: bob.Plan.Request, Approved: true})
	s.do("bob", &team.ClaimTask{Task: "lexer"})
	s.do("ann", &team.SendMessage{To: "bob", Body: "Is task lexer done? I wait for #1."})
}

func ptr[T any](v T) *T { return &v }

// openNamed opens the view of the task with that name.
func (x *screen) openNamed(name string) {
	x.t.Helper()
	x.keys("2", "home")
	for range x.team.tasks {
		if x.team.tasks[x.taskIndex()].called == name {
			x.keys("enter")
			return
		}
		x.keys("down")
	}
	x.t.Fatalf("there is no task %s in the list", name)
}

// TestTask: Enter on a task shows all that is known of it, and its keys act on it.
func TestTask(t *testing.T) {
	s := newStory(t)
	s.worked()
	x := newScreen(s, 100, 60)
	x.open(s)
	x.openNamed("lexer")
	for _, text := range []string{"task lexer", "in_progress", "blocks      parser (blocked by lexer)",
		"• no generator",
		"Plan of bob: approved", "1. Read `grammar.ebnf`.", "1  ann, 09:00:15 to 09:01:57: failed, the grammar is missing",
		"2  bob,", "still runs", "ann → bob: Is task lexer done?"} {
		x.says(text)
	}
	x.keys("r")
	x.says("Only a task that is out of retries is tried again.")
	x.keys("u")
	x.says("Take task lexer from bob")
	x.keys("y")
	x.wants("demo *team.ReleaseTask &{Task:1 Member: Fence:0 Reason:}")
	x.keys("R", "ann", "enter")
	x.wants("reassign demo 1 ann")

	s.do("bob", &team.CompleteTask{Task: "1", Fence: s.fence("1"), Result: "41 tokens"})
	x.send(s.message())
	x.send(recordsMsg{ref: "demo", records: s.records[len(s.records)-1:], whole: true})
	x.says("41 tokens")
	x.says("completed")
	x.keys("u")
	x.says("No member works on the task.")
	x.keys("R")
	x.says("The task is done.")
	x.keys("enter")
	x.wants("session demo bob")
	x.keys("tab", "left")
	if x.place != atTask {
		t.Errorf("the way back from the session leads to %d", x.place)
	}
	x.keys("K")
	x.says("task ")
	if x.shown.id == "1" {
		t.Error("K did not open the task above")
	}
	x.keys("esc")
	if x.place != atTeam {
		t.Errorf("the way back leads to %d", x.place)
	}
}

// TestTaskThatFailed: a task that is out of retries is tried again from its view.
func TestTaskThatFailed(t *testing.T) {
	s := newStory(t)
	s.do("ann", &team.FailTask{Task: "lexer", Fence: 1, Reason: "the grammar is missing"})
	x := newScreen(s, 80, 24)
	x.open(s)
	x.openNamed("lexer")
	x.says("last failure  the grammar is missing")
	x.keys("r", "y")
	x.wants("demo *team.ReleaseTask &{Task:1 Member: Fence:0 Reason:}")
	x.keys("enter")
	if x.place != atTask {
		t.Error("a task without an owner opened a session")
	}
}

// TestTaskInThePast: the view of a task travels in time, and nothing can be done there.
func TestTaskInThePast(t *testing.T) {
	s := newStory(t)
	s.worked()
	x := newScreen(s, 100, 60)
	x.open(s)
	x.openNamed("lexer")
	asked := len(x.asked)
	for range 9 { // to the record of the first attempt
		x.keys("[")
	}
	x.says("in_progress")
	frame := stripped(strings.Join(x.frame(), "\n"))
	for _, later := range []string{"the grammar is missing", "Is task lexer done?", "generator", "Plan of bob"} {
		if strings.Contains(frame, later) {
			t.Errorf("the past shows %q:\n%s", later, frame)
		}
	}
	x.keys("u", "R")
	x.says("Nothing can be done in the past.")
	for _, one := range x.asked[asked:] {
		if !strings.HasPrefix(one, "moment") {
			t.Errorf("in the past the screen asked for %s", one)
		}
	}
	for x.travel.seq > 1 {
		x.keys("<")
	}
	x.says("task #1 does not exist")
	x.keys("0")
	x.says("2  bob,")
	x.send(tea.WindowSizeMsg{Width: 40, Height: 15})
	x.keys("end")
	x.says("I wait")
}

func (s *story) fence(id string) int64 {
	t, err := s.state.Find("#" + id)
	if err != nil {
		s.t.Fatal(err)
	}
	return t.Fence
}
