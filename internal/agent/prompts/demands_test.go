package prompts_test

import (
	"encoding/json"
	"strings"
	"testing"

	"cadre/internal/agent/prompts"
	"cadre/internal/team"
)

// TestDemands checks that a task is assigned with what it demands, and again with the last
// rejection after a session was replaced.
func TestDemands(t *testing.T) {
	demanding := &team.CreateTask{Subject: "fix", Schema: json.RawMessage(`{"type":"object"}`),
		Check: &team.TaskCheck{Run: "go test ./...", Rounds: 3}}
	ann := &team.SpawnMember{Name: "ann", Agent: team.Claude}
	s := stage(t, ann, demanding, &team.ClaimTask{Task: "1", Member: "ann"})
	for _, want := range []string{`> {"type":"object"}`, "> go test ./...", "3 rounds", "after 3 of them"} {
		if got := prompts.Work(s, "1"); !strings.Contains(got, want) {
			t.Errorf("the task is assigned without %q:\n%s", want, got)
		}
	}
	if got := prompts.Work(s, "1"); strings.Contains(got, "The check failed") {
		t.Errorf("nothing was rejected:\n%s", got)
	}
	s = stage(t, ann, demanding, &team.ClaimTask{Task: "1", Member: "ann"},
		&team.RejectResult{Task: "1", Member: "ann", By: team.ByCheck, Feedback: "FAIL core"},
		&team.ReleaseTask{Task: "1", Member: "ann"}, &team.ClaimTask{Task: "1", Member: "ann"})
	if got := prompts.Work(s, "1"); !strings.Contains(got, "The check failed the last time:\n> FAIL core") {
		t.Errorf("the last rejection is not said again:\n%s", got)
	}
}
