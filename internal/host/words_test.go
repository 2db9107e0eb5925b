package host_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"cadre/internal/agent"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

// TestErrorsAreText checks that an error that an agent's program wrote for a terminal is plain text
// for the lead, for models and in the history. Messages between members stay as they are.
func TestErrorsAreText(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	const red, plain = "\x1b[1;31m429\x1b[0m: too \x1b]0;title\x07many\u009b2J \u202erequests",
		"429: too many <U+202E>requests"
	s := newStage(t, spawn("ann"), &team.CreateTask{Subject: "Look"}, &team.CreateTask{Subject: "Look again"})
	sessions := modelled(s)
	ann := next(t, sessions)
	ann.started <- agent.Started{}
	ann.given(t)
	ann.updates <- agent.TurnStarted{}
	ann.updates <- agent.Retrying{Problem: agent.Problem{Kind: agent.ProblemModel, Text: red}}
	ann.end <- errors.New("claude ended: " + red)
	again := next(t, sessions)
	again.started <- agent.Started{}
	if p := again.given(t); !strings.Contains(p.Text, plain) || strings.Contains(p.Text, "\x1b") {
		t.Errorf("the next session was told %q", p.Text)
	}
	again.updates <- agent.TurnStarted{}
	again.call(t, "SendMessage", `{"to":"lead","message":"red is \u001b[31m"}`)
	if got := s.inbox("lead", team.TypeMessage); len(got) != 1 || got[0] != "red is \x1b[31m" {
		t.Errorf("what ann said to the lead is %q", got)
	}
	again.updates <- agent.TurnEnded{Problem: &agent.Problem{Kind: agent.ProblemLogin, Text: red}}
	s.untilStatus("ann", team.Failed)
	if got := s.inbox("lead", team.TypeSystem); len(got) != 3 || strings.Count(strings.Join(got, "\n"), plain) != 3 {
		t.Errorf("the lead was told %q", got)
	}
	for r, err := range s.Read(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if line, _ := json.Marshal(r); !strings.Contains(string(line), "red is") &&
			(strings.Contains(string(line), `\u001b`) || strings.Contains(string(line), "\u009b")) {
			t.Errorf("record %d is %s", r.Seq, line)
		}
	}
}
