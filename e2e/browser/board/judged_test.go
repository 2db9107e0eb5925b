package board

import (
	"encoding/json"
	"fmt"
	"testing"

	"cadre/internal/team"
)

// judged is a team with a task that others verify in its second round, one that its check sent back, one that is
// skipped, and one that made three others.
func judged(t testing.TB) *story {
	s := newStory(t, "judged", "Port the parser")
	for _, m := range [][2]string{{"ann", ""}, {"cyn", "reviewer"}, {"dan", "reviewer"}} {
		s.do(team.User, &team.SpawnMember{Name: m[0], Agent: team.External, Role: m[1]})
	}
	fence := func(name string) int64 { t, _ := s.state.Find(name); return t.Fence }
	says := func(member, verdict, reason string) {
		of, _ := s.state.Find("grammar")
		for _, v := range s.state.Verifications(of.ID) {
			if v.Status == team.Pending {
				s.do(member, &team.ClaimTask{Task: "#" + v.ID})
				s.do(member, &team.CompleteTask{Task: "#" + v.ID, Fence: 1, Result: reason, Verdict: verdict})
				return
			}
		}
	}
	s.do(team.User, &team.CreateTask{Name: "grammar", Subject: "Write down the grammar",
		Verify: &team.Verify{By: "reviewer", Count: 2}})
	s.do("ann", &team.ClaimTask{Task: "grammar"})
	s.do("ann", &team.CompleteTask{Task: "grammar", Fence: fence("grammar"), Result: "It has 40 tokens."})
	says("cyn", team.VerdictRejected, "One token is missing.")
	s.do("ann", &team.ClaimTask{Task: "grammar"})
	s.do("ann", &team.CompleteTask{Task: "grammar", Fence: fence("grammar"), Result: "It has 41 tokens."})
	says("cyn", team.VerdictAccepted, "All tokens are there.")
	s.do(team.User, &team.CreateTask{Name: "rules", Subject: "List the rules",
		Check: &team.TaskCheck{Run: "go test ./rules", Rounds: 5}, Schema: []byte(`{"type":"array"}`)})
	s.do("ann", &team.ClaimTask{Task: "rules"})
	s.do("ann", &team.RejectResult{Task: "rules", Fence: 1, By: team.ByResult, Feedback: "got string, want array"})
	s.do("ann", &team.RejectResult{Task: "rules", Fence: 1, By: team.ByCheck, Feedback: "--- FAIL: TestRules\n    rule 7 is missing"})
	s.do(team.User, &team.CreateTask{Name: "fix", Subject: "Fix each package", ForEach: &team.ForEach{
		Items: []json.RawMessage{team.TextItem("lexer"), team.TextItem("parser"), team.TextItem("printer")}}})
	s.do("ann", &team.ClaimTask{Task: "fix-1"})
	s.do("ann", &team.CompleteTask{Task: "fix-1", Fence: 1, Result: "done"})
	s.do(team.User, &team.CreateTask{Name: "mourn", Subject: "Say what failed", BlockedBy: []string{"fix-1"}, When: team.OnFailure})
	return s
}

// TestJudged shows tasks that others verify, that a check sent back, and that made others. It follows a verdict live.
func TestJudged(t *testing.T) {
	s := judged(t)
	w := serve(t, s)
	b := browse(t, 1300, 900)
	source := axe(t)
	column := func(state, text string) {
		t.Helper()
		b.until(fmt.Sprintf(`(document.querySelector(".column.%s") || {innerText: ""}).innerText.includes(%q)`, state, text))
	}
	b.login(w, "#team=judged")
	column("verifying", "Write down the grammar")
	column("verifying", "round 2 of 3")
	column("blocked", "1 of 3 done")
	column("completed", "mourn")
	b.until(`![...document.querySelectorAll(".task .id")].some(e => e.innerText === "fix-2")`)
	b.press("Show 3 made tasks")
	b.until(`[...document.querySelectorAll(".task .id")].some(e => e.innerText === "fix-2")`)
	b.press("Fold 3 made tasks")
	b.until(`![...document.querySelectorAll(".task .id")].some(e => e.innerText === "fix-2")`)
	b.fill(".find input", "s:pending")
	b.until(`[...document.querySelectorAll(".task .id")].some(e => e.innerText === "fix-2")`)

	of, _ := s.state.Find("grammar")
	rules, _ := s.state.Find("rules")
	b.login(w, "#team=judged&task="+rules.ID)
	for _, text := range []string{"Sent back: the check failed, 1 of 5", "rule 7 is missing",
		"the result does not fit its schema (1 of 3): got string, want array"} {
		b.shows(text)
	}
	b.login(w, "#team=judged&task="+of.ID)
	for _, text := range []string{"2 of reviewer, in at most 3 rounds", "Round 2 of 3: 1 of 2 accepted", "rejected it",
		"One token is missing.", "is to verify it", "Result that is being verified", "It has 41 tokens."} {
		b.shows(text)
	}
	b.accessible(source, "a task that others verify")
	open := of.Submission.Tasks[1]
	w.cadre("task", "claim", "judged", "#"+open, "--as", "dan")
	b.shows("verifies it")
	w.cadre("task", "done", "judged", "#"+open, "--as", "dan", "--accept", "--result", "Indeed.")
	b.shows("Indeed.")
	b.shows("accepted by cyn, dan")
	b.until(`!document.body.innerText.includes("being verified")`)
}

// TestJudgedIsNarrow: what is said of judged tasks fits a page of 360 pixels, in light and dark, and axe finds nothing.
func TestJudgedIsNarrow(t *testing.T) {
	source := axe(t)
	s := judged(t)
	w := serve(t, s)
	b := browse(t, 360, 740)
	of, _ := s.state.Find("grammar")
	rules, _ := s.state.Find("rules")
	fix, _ := s.state.Find("fix")
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(scheme)
		for _, v := range [][2]string{{"", "1 of 3 done"}, {"&task=" + of.ID, "One token is missing."},
			{"&task=" + rules.ID, "rule 7 is missing"}, {"&task=" + fix.ID, "Its tasks"}} {
			b.login(w, "#team=judged"+v[0])
			b.shows(v[1])
			if v[0] == "" {
				b.accessible(source, scheme+", "+v[1])
			}
			if wide := js[int](b, "document.documentElement.scrollWidth"); wide > 360 {
				t.Errorf("%s is %d pixels wide", v[1], wide)
			}
		}
	}
}
