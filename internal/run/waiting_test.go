package run

import (
	"strings"
	"testing"

	"cadre/internal/team"
)

// TestWaitsForPeople: each task that only external members can do is named once, and again when one
// of them has claimed it.
func TestWaitsForPeople(t *testing.T) {
	m := makeTeam(t, file("{name: pat, agent: external}, {name: kim, agent: external, role: tester}, "+
		"{name: ann, agent: shell}", "{id: a, run: echo a}, {id: b, description: x, owner: pat, blockedBy: [a]}, "+
		"{id: c, description: x, role: tester}"))
	var w Waiting
	now := func() string {
		var all []string
		for _, one := range w.Outside(m.state) {
			all = append(all, one.Task.Called()+" "+string(one.Task.Status)+" "+strings.Join(one.Members, ","))
		}
		return strings.Join(all, "; ")
	}
	step := func(what, want string) {
		t.Helper()
		if got := now(); got != want {
			t.Errorf("%s, these wait: %q, not %q", what, got, want)
		}
	}
	step("at the beginning", "c pending kim")
	step("without a change", "")
	m.must(team.User, &team.CompleteTask{Task: "1"})
	step("when a is done", "b pending pat")
	m.must("kim", &team.ClaimTask{Task: m.task("c").ID})
	step("when c is claimed", "c in_progress kim")
	m.must("kim", &team.CompleteTask{Task: m.task("c").ID})
	step("when c is done", "")
}
