package e2e

import (
	"os"
	"slices"
	"strings"
	"testing"

	"cadre/internal/agent/agenttest"
)

// TestAgentsThatCannotStart checks an agent that cannot start, or cannot reach its model. The lead
// is told at once in the agent's own words, and the team continues without it.
func TestAgentsThatCannotStart(t *testing.T) {
	t.Parallel()
	s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
		switch {
		case who(r) != "lead":
			return complete(r)
		case reports(r):
			return agenttest.Say("One was enough.")
		}
		return agenttest.Say("I wait.")
	}, "claude", "codex", "gemini")
	broken := s.write("broken", "#!/bin/sh\necho 'broken: cannot find libnode.so.42' >&2\nexit 127\n")
	if err := os.Chmod(broken, 0o755); err != nil {
		t.Fatal(err)
	}
	s.write(".claude/agents/odd.md", "---\ntools: {no: list}\n---\nOdd.\n")
	file := s.file(`name: starts
goal: start
lead: {agent: claude}
permissions: {mode: bypassPermissions}
members:
  - {name: well, agent: claude}
  - {name: broken, agent: claude, command: ./broken}
  - {name: broken-codex, agent: codex, command: ./broken}
  - {name: broken-gemini, agent: gemini, command: ./broken}
  - {name: keyless, agent: claude, prompt: begin, env: {ANTHROPIC_API_KEY: ""}}
  - {name: keyless-codex, agent: codex, prompt: begin, env: {CADRE_TEST_KEY: ""}}
  - {name: keyless-gemini, agent: gemini, prompt: begin, env: {GEMINI_API_KEY: ""}}
  - {name: odd, agent: claude, role: odd}
tasks: [{id: one}]
`)
	r := s.run(file)
	s.ended(r, 0)
	if strings.Contains(r.out, "could not continue") {
		t.Errorf("a failure was retried that only a person can fix:\n%s", r.out)
	}
	for name, words := range map[string]string{
		"broken": "broken: cannot find libnode.so.42", "broken-codex": "broken: cannot find libnode.so.42",
		"broken-gemini": "broken: cannot find libnode.so.42",
		"keyless":       "Not logged in", "keyless-codex": "CADRE_TEST_KEY",
		"keyless-gemini": "Gemini API key is missing",
		"odd":            "tools is map[no:list], not a list of names",
	} {
		told := slices.ContainsFunc(s.of("lead"), func(r *agenttest.Request) bool {
			_, rest, found := strings.Cut(r.LastUser()+r.Results()+r.Last().Text, name+" has failed:\n> ")
			rest, _, _ = strings.Cut(rest, "</from-the-team>")
			return found && strings.Contains(rest, words)
		})
		if !told {
			t.Errorf("the lead was not told that %s has failed: … %s", name, words)
		}
	}
}

// TestLeadThatCannotStart checks that a lead that cannot start ends the run, in its own words. If
// its program is missing, no run starts.
func TestLeadThatCannotStart(t *testing.T) {
	t.Parallel()
	s := newStudio(t, func(*agenttest.Request) agenttest.Turn { return agenttest.Say("no") }, "claude")
	file := func(more string) string {
		return s.file("name: headless\ngoal: start\nlead: {agent: claude, " + more + "}\n")
	}
	r := s.run(file("command: /nowhere/claude"))
	s.ended(r, 2)
	if !strings.Contains(r.err, "/nowhere/claude: no such file or directory (lead)") {
		t.Errorf("the run prints %s", r.err)
	}
	r = s.run(file(`env: {ANTHROPIC_API_KEY: ""}`))
	s.ended(r, 1)
	if !strings.Contains(r.err, "not finished: the lead cannot continue: Not logged in") ||
		!strings.Contains(r.err, "claude auth login") {
		t.Errorf("the run prints %s", r.err)
	}
}
