package e2e

import (
	"testing"

	"cadre/internal/team"
)

// TestWatchPast looks at a team as it was, on its screen in a terminal: its timeline, the moment of
// a mark, and the present again. The next screen says what changed since.
func TestWatchPast(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("create", "demo")
	w.must("spawn", "demo", "ann", "--agent", "external", "--plan-approval")
	w.must("task", "add", "demo", "lexer", "--owner", "ann")
	w.must("task", "add", "demo", "parser", "--blocked-by", "1")
	rep := w.replica("demo")
	do := func(actor string, body team.Body) {
		t.Helper()
		if _, err := rep.Do(t.Context(), team.Command{Actor: actor, Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	do("ann", &team.SubmitPlan{Plan: "Look first."})
	var request string
	rep.View(func(s *team.State) {
		ann, _ := s.Member("ann")
		request = ann.Plan.Request
	})
	do(team.User, &team.AnswerPlan{Request: request, Approved: true})
	do("ann", &team.ClaimTask{Task: "1"})

	p := w.terminalOf(90, 24, cadre, "watch", "demo")
	p.shows("MEMBER")
	p.keys("4")
	p.shows("◆ plan")
	p.keys("5")
	p.shows("└→ ○ #2 parser")
	p.keys("{") // to the plan, before the task was claimed
	p.shows("0 now")
	p.shows("┬─ · #1 lexer")
	p.keys("0")
	p.shows("┬─ ▸ #1 lexer")
	p.keys("/")
	p.keys("-l", "s:pro")
	p.keys("Enter")
	p.shows("no state begins with")
	p.keys("C-u")
	p.keys("-l", "s:in m:ann")
	p.keys("Enter")
	p.shows("1 of 2: s:in m:ann")
	p.keys("q")
	if status := p.ended(); status != 0 {
		t.Fatalf("the screen ended with %d:\n%s", status, p.screen())
	}

	do("ann", &team.CompleteTask{Task: "1", Result: "done"})
	p = w.terminalOf(90, 24, cadre, "watch", "demo")
	p.shows("since you last looked at demo")
	p.keys("s")
	p.shows("1 task was completed: 1.")
	p.keys("Left")
	p.keys("q")
	if status := p.ended(); status != 0 {
		t.Errorf("the screen ended with %d:\n%s", status, p.screen())
	}
}
