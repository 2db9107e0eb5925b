package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"cadre/internal/agent/agenttest"
)

// TestVerificationByAgents has Claude do a task and Codex verify it. Codex gives it back once,
// Claude mends it, and Codex accepts it. Codex sees the work in its own worktree. When Claude
// tries to verify its own work with the tools, it is refused.
func TestVerificationByAgents(t *testing.T) {
	t.Parallel()
	s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
		id, calls := task(r)
		if who(r) == "bob" {
			return verifies(r, id, calls)
		}
		return author(r, id, calls)
	}, "claude", "codex")
	s.repository()
	r := s.run(s.file(`name: verified
permissions: {mode: bypassPermissions}
members:
  - {name: ann, agent: claude, isolation: worktree}
  - {name: bob, agent: codex, role: reviewer, isolation: worktree}
tasks:
  - {id: word, owner: ann, description: write the word, verify: {by: reviewer}}
`))
	if r.code != 0 {
		t.Fatalf("exit status %d\n%s%s", r.code, r.out, r.err)
	}
	shown := func(member, text string) bool {
		return slices.ContainsFunc(s.model.Requests(), func(r *agenttest.Request) bool {
			return who(r) == member && r.Has(text)
		})
	}
	for member, texts := range map[string][]string{
		"ann": {"When it is done, others verify it", "ann worked on task word itself, and nobody verifies their own work",
			"The last result was not accepted by", "the word is not final"},
		"bob": {"verdict accepted or rejected", "saw: draft", "saw: final", "cadre/verified@ann"},
	} {
		for _, text := range texts {
			if !shown(member, text) {
				t.Errorf("%s was not shown %q", member, text)
			}
		}
	}
	if word := s.gitSays("show", "cadre/verified@ann:word.txt"); strings.TrimSpace(word) != "final" {
		t.Errorf("the word is %q", word)
	}
	log := s.must("log", "verified")
	for _, line := range []string{"bob rejected the result (1 of 3): the word is not final",
		"ann completed task word, accepted by bob"} {
		if !strings.Contains(log, line) {
			t.Errorf("the log does not say %q:\n%s", line, log)
		}
	}
}

// author writes the word, completes its task, and then tries to verify it itself.
func author(r *agenttest.Request, id string, calls []agenttest.Call) agenttest.Turn {
	word, verification := "draft", "2"
	if r.Has("The last result was not accepted by") {
		word, verification = "final", "3"
	}
	switch {
	case id == "":
		return agenttest.Say("There is nothing for me to do.")
	case len(calls) == 0:
		return shells["claude"]("echo " + word + " >word.txt")
	case called(calls, "TaskUpdate") == 0:
		return use(r, "TaskUpdate", map[string]any{"taskId": id, "status": "completed",
			"result": "I wrote the word " + word})
	case called(calls, "TaskUpdate") == 1:
		return use(r, "TaskUpdate", map[string]any{"taskId": verification, "status": "in_progress"})
	}
	return agenttest.Say("I am done.")
}

// verifies looks at the word, and rejects the first one.
func verifies(r *agenttest.Request, id string, calls []agenttest.Call) agenttest.Turn {
	verdict, reason := "accepted", "the word is final"
	if id == "2" {
		verdict, reason = "rejected", "the word is not final"
	}
	switch {
	case id == "":
		return agenttest.Say("There is nothing for me to do.")
	case len(calls) == 0:
		return shells["codex"](fmt.Sprintf("sleep 4; echo saw: $(cat word.txt) # %s", id)) // the author tries meanwhile
	case called(calls, "TaskUpdate") == 0:
		return use(r, "TaskUpdate", map[string]any{"taskId": id, "status": "completed", "verdict": verdict,
			"result": reason})
	}
	return agenttest.Say("I looked at it.")
}
