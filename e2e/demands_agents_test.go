package e2e

import (
	"slices"
	"strings"
	"testing"

	"cadre/internal/agent/agenttest"
)

// TestDemandsOfAgents has Claude do a task whose result must fit a schema, and Codex one that is
// tried until a command passes. Each first completes its task too early, is told why, and corrects
// that in the same attempt.
func TestDemandsOfAgents(t *testing.T) {
	t.Parallel()
	s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
		id, calls := task(r)
		result, again := "forty-one", r.Has("does not fit its schema (1 of 3)")
		if who(r) == "bob" {
			result, again = "I fixed it", r.Has("the check failed in round 1 of 4")
		}
		done := func(result string) agenttest.Turn {
			return use(r, "TaskUpdate", map[string]any{"taskId": id, "status": "completed", "result": result})
		}
		switch n := called(calls, "TaskUpdate"); {
		case id == "" || n > 1:
			return agenttest.Say("There is nothing more for me to do.")
		case n == 0:
			return done(result)
		case !again:
			return agenttest.Say("It is done.")
		case who(r) == "ann":
			return done(`{"tokens": 41}`)
		case len(calls) == 1:
			return shells["codex"]("touch fixed")
		}
		return done(result)
	}, "claude", "codex")
	r := s.run(s.file(`name: demo
permissions: {mode: bypassPermissions}
members: [{name: ann, agent: claude}, {name: bob, agent: codex}]
tasks:
  - {id: count, owner: ann, result: {type: object, required: [tokens], properties: {tokens: {type: integer}}}}
  - id: fix
    owner: bob
    blockedBy: [count]
    until: {run: 'test -e fixed || ! echo not fixed yet', rounds: 4}
`))
	s.ended(r, 0)
	for member, text := range map[string]string{"ann": "the result is not JSON", "bob": "not fixed yet"} {
		if !slices.ContainsFunc(s.model.Requests(), func(r *agenttest.Request) bool {
			return who(r) == member && r.Has(text)
		}) {
			t.Errorf("%s was not told %q", member, text)
		}
	}
	for id, result := range map[string]string{"1": `{"tokens": 41}`, "2": "I fixed it"} {
		if is := s.task(id); is.Result != result || is.Attempts != 1 {
			t.Errorf("task %s has the result %q after %d attempts", id, is.Result, is.Attempts)
		}
	}
	log := s.must("log", "demo")
	for _, line := range []string{"task count goes back to ann: the result does not fit its schema (1 of 3)",
		"task fix goes back to bob: the check failed in round 1 of 4"} {
		if !strings.Contains(log, line) {
			t.Errorf("the log does not say %q:\n%s", line, log)
		}
	}
}
