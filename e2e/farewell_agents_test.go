package e2e

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"cadre/internal/agent/agenttest"
)

// TestFarewell checks the end of a team. A task waits for the teammate that its lead spawns later.
// An idle notice names the open task. Teammates are asked to shut down and get time for it. The
// lead has stopped with its team.
func TestFarewell(t *testing.T) {
	t.Parallel()
	request := regexp.MustCompile(`shutdown-\d+@[a-z]+`)
	s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
		me := who(r)
		if open := unanswered(r, request, "RespondToShutdown"); me == "ann" && len(open) > 0 {
			return use(r, "RespondToShutdown", map[string]any{"requestId": open[0], "approve": true})
		} else if me == "bob" && len(open) > 0 {
			return agenttest.Say("Goodbye.")
		}
		if me != "lead" {
			id, calls := task(r)
			if me == "ann" && id == "1" && called(calls, "SendMessage") == 0 && !r.Has("Carry on.") {
				return agenttest.Say("I need a word with you.") // twice: also after the reminder
			}
			return complete(r)
		}
		tasks := []map[string]any{{"subject": "Look", "description": "at all", "owner": "ann"},
			{"subject": "Write", "description": "it", "owner": "bob", "blockedBy": []string{"1"}}}
		switch n, m := r.Calls(r.Tool("TaskCreate")), r.Calls(r.Tool("SpawnTeammate")); {
		case reports(r):
			return agenttest.Say("It is written.")
		case n < len(tasks):
			return use(r, "TaskCreate", tasks[n])
		case m < 2:
			return use(r, "SpawnTeammate", map[string]any{"name": []string{"ann", "bob"}[m],
				"agent": []string{"claude", "codex"}[m], "prompt": "Help."})
		case r.Has("still holds task 1") && r.Calls(r.Tool("SendMessage")) == 0:
			return use(r, "SendMessage", map[string]any{"to": "ann", "message": "Carry on."})
		}
		return agenttest.Say("I wait.")
	}, "claude", "codex")
	r := s.run("write it", "--agent", "claude", "--name", "parting", "--permission-mode", "bypassPermissions")
	if r.code != 0 {
		t.Fatalf("exit status %d\n%s%s\n%s", r.code, r.out, r.err, s.model.Story())
	}
	saw := func(who_, words string) bool {
		return slices.ContainsFunc(s.model.Requests(), func(r *agenttest.Request) bool {
			return who(r) == who_ &&
				r.Has(words)
		})
	}
	for _, one := range [][2]string{{"lead", "the task waits until you spawn a teammate of that name"},
		{"lead", "I need a word with you.\n\nann ended its turn and still holds task 1 (Look)."},
		{"ann", "All tasks are done; thank you."}, {"bob", "All tasks are done; thank you."}} {
		if !saw(one[0], one[1]) {
			t.Errorf("%s never read %q", one[0], one[1])
		}
	}
	for _, req := range s.model.Requests() {
		if who(req) == "lead" && strings.Contains(req.LastUser(), "Goodbye.") {
			t.Error("the last text of a teammate that the lead dismissed woke the lead")
		}
	}
	status := read[struct {
		Status    string
		Members   []struct{ Name, Status, Summary string }
		Standings map[string]string
	}](s.world, "status", "parting")
	want := map[string]string{"ann": "shut down as asked", "bob": "shut down as asked", "lead": "the team is complete"}
	for _, m := range status.Members {
		if m.Status != "stopped" || m.Summary != want[m.Name] || status.Standings[m.Name] != "stopped" {
			t.Errorf("%s is %s (%s): %s, want it stopped: %s",
				m.Name, m.Status, status.Standings[m.Name], m.Summary, want[m.Name])
		}
	}
	if status.Status != "complete" {
		t.Errorf("the team is %s", status.Status)
	}
}
