package host_test

import (
	"strings"
	"testing"

	"cadre/internal/agent"
	"cadre/internal/team"
)

// TestNotesOfASession checks what a session is told of notes: their beginnings with its first
// prompt, which they do not cause; each change of others with its next mail, which they do not
// cause either; and all of them again after its context was shortened and in a fresh session.
func TestNotesOfASession(t *testing.T) {
	t.Parallel()
	s := newStage(t, spawn("ann"), &team.SetNote{Key: "decisions/api", Text: "Errors are JSON."})
	sessions := modelled(s)
	ann := next(t, sessions)
	ann.started <- agent.Started{Session: "s-1"}
	s.untilStatus("ann", team.Idle)
	s.do("lead", &team.SetNote{Key: "plan", Text: "first the parser"})
	s.do("lead", &team.SendMessage{To: "ann", Body: "look"})
	says := func(p agent.Prompt, words ...string) {
		t.Helper()
		for _, one := range words {
			if strings.Count(p.Text, one) != 1 {
				t.Errorf("it was not told %q once:\n%s", one, p.Text)
			}
		}
	}
	p := ann.turn(t, "Looked.", func() {
		ann.call(t, "NoteWrite", `{"key":"tried","text":"a cache"}`)
		ann.updates <- agent.Compacted{}
	})
	says(p, `- decisions/api (the user): "Errors are JSON."`, "look\n", "lead wrote the note plan.")
	s.untilStatus("ann", team.Idle)
	s.do(team.User, &team.AppendNote{Key: "plan", Text: "then the lexer"})
	s.do("lead", &team.AppendNote{Key: "plan", Text: "then the tests"})
	s.do("lead", &team.CreateTask{Subject: "Lex"})
	p = ann.turn(t, "Half of it.", func() {
		ann.updates <- agent.Used{Usage: team.Usage{InputTokens: 10}, Context: 91}
	})
	says(p, "Your context was shortened.", `- plan (lead): "first the parser then the lexer then the tests"`,
		`- tried (ann): "a cache"`, "Task 1 is yours now")
	again := next(t, sessions)
	again.started <- agent.Started{Session: "s-2"}
	says(again.given(t), "You continue for an earlier session", `- tried (ann): "a cache"`)
}

// TestNotesWithATask changes a note while a session waits. It is told with its next task, which
// comes without mail, and no more once it was told with mail.
func TestNotesWithATask(t *testing.T) {
	t.Parallel()
	s := newStage(t, spawn("ann"))
	ann := next(t, modelled(s))
	ann.started <- agent.Started{Session: "s-1"}
	s.untilStatus("ann", team.Idle)
	s.do("lead", &team.SetNote{Key: "plan", Text: "first the parser"})
	s.do("lead", &team.CreateTask{Subject: "Lex"})
	p := ann.turn(t, "Done.", func() {
		ann.call(t, "NoteWrite", `{"key":"tried","text":"a cache"}`)
		ann.call(t, "TaskUpdate", `{"taskId":"1","status":"completed","result":"lexed"}`)
	})
	if got := strings.Count(p.Text, "The notes of the team have changed:\n- lead wrote the note plan.\n"); got != 1 {
		t.Errorf("it was told of the note %d times:\n%s", got, p.Text)
	}
	s.untilStatus("ann", team.Idle)
	s.do("lead", &team.SendMessage{To: "ann", Body: "look"})
	if p = ann.turn(t, "Looked."); strings.Count(p.Text, "lead wrote the note plan.") != 1 {
		t.Errorf("it was not told once with its mail:\n%s", p.Text)
	}
	s.untilStatus("ann", team.Idle)
	s.do("lead", &team.CreateTask{Subject: "Parse"})
	if p = ann.turn(t, "Half of it.", func() {
		ann.call(t, "TaskUpdate", `{"taskId":"2","status":"completed","result":"parsed"}`)
	}); strings.Contains(p.Text, "note") {
		t.Errorf("it was told again:\n%s", p.Text)
	}
	s.untilStatus("ann", team.Idle)
	s.do("lead", &team.AppendNote{Key: "plan", Text: "then the tests"})
	s.do("lead", &team.CreateTask{Subject: "Test", Owner: "ann"}) // its assignment is a message
	if p = ann.turn(t, "Half of it."); strings.Count(p.Text, "lead wrote the note plan.") != 1 {
		t.Errorf("it was not told once with the task that was assigned to it:\n%s", p.Text)
	}
}
