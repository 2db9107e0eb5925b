package host_test

import (
	"strings"
	"testing"

	"cadre/internal/agent"
	"cadre/internal/team"
)

// TestWhatASessionGivesBack checks that what a session returns is given again: the mail, and its
// opening text. Its task is announced again, and nothing comes twice.
func TestWhatASessionGivesBack(t *testing.T) {
	t.Parallel()
	s := newStage(t, &team.SpawnMember{Name: "ann", Agent: "scripted", Prompt: "You test."},
		&team.CreateTask{Subject: "Look", Description: "everywhere"})
	ann := next(t, modelled(s))
	ann.started <- agent.Started{Session: "s-1"}
	first := ann.peek(t)
	if !strings.Contains(first.Text, "You test.") {
		t.Fatalf("it begins with:\n%s", first.Text)
	}
	ann.updates <- agent.TurnStarted{}
	s.do("lead", &team.SendMessage{To: "ann", Body: "the port is 4711"})
	mail := ann.peek(t)
	ann.updates <- agent.NotTaken{ID: first.ID}
	ann.updates <- agent.NotTaken{ID: mail.ID}
	ann.updates <- agent.TurnEnded{Problem: &agent.Problem{Kind: agent.ProblemModel, Text: "the house is on fire"}}
	s.until("the task is back", func(st *team.State) bool {
		task,
			_ := st.Task("1")
		return task.Status == team.Pending
	})
	s.until("the message waits", func(st *team.State) bool { return len(mailOf(st, "ann", team.TypeMessage)) == 1 })
	s.do(team.User, &team.RetryMember{Member: "ann"})

	var all []string
	for len(all) == 0 || !strings.Contains(strings.Join(all, "\n"), "4711") ||
		!strings.Contains(strings.Join(all, "\n"), "Task 1 is yours now") {
		all = append(all, ann.given(t).Text)
	}
	for _, part := range []string{"You test.", "Task 1 is yours now", "the port is 4711"} {
		if n := strings.Count(strings.Join(all, "\n"), part); n != 1 {
			t.Errorf("it was told %q %d times:\n%s", part, n, strings.Join(all, "\n---\n"))
		}
	}
	s.until("the message has arrived", func(st *team.State) bool {
		return len(mailOf(st, "ann", team.TypeMessage)) == 0
	})
}

// TestDelegateReachesTheSession checks that delegate mode that is switched on while a lead in
// bypassPermissions works reaches its session.
func TestDelegateReachesTheSession(t *testing.T) {
	t.Parallel()
	s := newStageOf(t, &team.CreateTeam{TeamID: "demo-1", Name: "demo", Dir: t.TempDir(), LeadAgent: "scripted",
		PermissionMode: "bypassPermissions"})
	lead := next(t, modelled(s))
	if lead.Access.Gated {
		t.Error("the session is gated from the start; want it not gated")
	}
	lead.started <- agent.Started{Session: "s-1"}
	for _, on := range []bool{true, false} {
		s.do(team.User, &team.SetDelegate{On: on})
		if a := lead.allowed(t); a.Gated != on || a.Mode != "bypassPermissions" || !a.Writes {
			t.Errorf("delegate %t: it may %+v", on, a)
		}
	}
}
