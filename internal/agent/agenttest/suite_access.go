package agenttest

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/agent"
)

func testPermission(t *testing.T, d Driver, r *Run, s *Server) {
	if !d.Asks {
		t.Skip("the session does not ask")
	}
	s.Answer(byPrompt(map[string][]Turn{"one": {d.Shell("touch allowed"), Say("Done.")},
		"two": {d.Shell("touch denied"), Say("Not done.")}}))
	r.Tell("p1", "do one")
	asked := Next[agent.PermissionAsked](r)
	if asked.Tool != "Bash" || !strings.Contains(asked.Input, "touch allowed") {
		t.Errorf("asked for %+v", asked)
	}
	r.Absent("allowed")
	asked.Answer(true, "")
	if end := Next[agent.TurnEnded](r); end.Text != "Done." {
		t.Errorf("the turn ended with %+v", end)
	}
	r.WaitFile("allowed")
	r.Tell("p2", "do two")
	Next[agent.PermissionAsked](r).Answer(false, "not today")
	for end := Next[agent.TurnEnded](r); end.Text != "Not done."; end = Next[agent.TurnEnded](r) {
		if end.Problem != nil {
			t.Fatalf("the turn ended with %v", end.Problem)
		}
		r.Tell("again", "go on") // some programs end the turn with a refusal
	}
	r.Absent("denied")
}

// testRefusals checks a model that is refused twice. It gets the reason each time, and the turn
// ends without another prompt.
func testRefusals(t *testing.T, d Driver, r *Run, s *Server) {
	if !d.Asks {
		t.Skip("the session does not ask")
	}
	s.Answer(byPrompt(map[string][]Turn{"both": {d.Shell("touch first"), d.Shell("touch second"),
		Say("Neither.")}}))
	r.Tell("both", "do both")
	for _, reason := range []string{"not on mondays", "not on tuesdays"} {
		Next[agent.PermissionAsked](r).Answer(false, reason)
		s.WaitFor(t, "why", func(r *Request) bool { return r.Has(reason) })
	}
	if end := Next[agent.TurnEnded](r); end.Text != "Neither." || end.Problem != nil {
		t.Errorf("the turn ended with %+v\n%s", end, s.Story())
	}
	r.Absent("first")
	r.Absent("second")
}

// testGate checks that the gate blocks what it forbids, in every mode of the session.
func testGate(t *testing.T, d Driver, p Program) {
	b, s := d.bench(t, p, nil)
	file := filepath.Join(b.World.Dir, "written")
	s.script = byPrompt(map[string][]Turn{"one": {d.Shell("touch ran"), d.Write(file, "x"), Say("I may not.")}})
	b.Spec.Access.Mode = "default"
	if d.Gates {
		b.Spec.Access.Mode = "bypassPermissions"
	}
	b.Spec.Access.Gated = true
	b.Spec.Gate = func(tool, _ string) error {
		if tool == "Bash" || tool == "Edit" || tool == "Write" {
			return errors.New("ann may only coordinate")
		}
		return nil
	}
	r := b.Start()
	r.Tell("p", "do one")
	for end := Next[agent.TurnEnded](r); end.Text != "I may not."; end = Next[agent.TurnEnded](r) {
		if end.Problem != nil {
			t.Fatalf("the turn ended with %v\n%s", end.Problem, r.Story())
		}
		r.Tell("again", "go on") // some programs end the turn with a refusal
	}
	b.Absent("ran")
	b.Absent("written")
	if asked := Said[agent.PermissionAsked](r); len(asked) > 0 {
		t.Errorf("a person was asked for %+v", asked)
	}
	if d.Gates && !d.Mute {
		s.WaitFor(t, "why", func(r *Request) bool { return r.Has("ann may only coordinate") })
	}
}
