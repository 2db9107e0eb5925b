package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cadre/internal/agent/agenttest"
)

// TestModeInTheMiddleOfATurn changes the permission mode of a member while its command runs. The
// turn is not interrupted, nothing is retried, and the next command runs in the new mode. Claude
// needs a new session to skip permissions, which continues with the old history. Codex takes a
// narrower mode with its next turn.
func TestModeInTheMiddleOfATurn(t *testing.T) {
	t.Parallel()
	for _, one := range []struct{ agent, before, after string }{
		{"claude", "default", "bypassPermissions"}, {"codex", "bypassPermissions", "default"},
	} {
		t.Run(one.agent, func(t *testing.T) {
			s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
				id, calls := task(r)
				if id == "" || len(calls) > 0 {
					return complete(r)
				}
				return shells[one.agent]("touch began-" + id +
					"; while [ ! -e go ]; do sleep 0.1; done; touch ended-" + id)
			}, one.agent)
			file := s.file("name: modes\npermissions: {policy: allow}\nmembers: [{name: ann, agent: " + one.agent +
				", permissionMode: " + one.before + "}]\n" +
				"tasks: [{id: a}, {id: b, blockedBy: [a]}]\n")
			p := s.start("run", file)
			s.waitFor("the first command runs", func() bool {
				_,
					err := os.Stat(filepath.Join(s.dir, "began-a"))
				return err == nil
			})
			s.must("mode", "modes", "ann", one.after)
			s.must("send", "modes", "--to", "ann", "The mode has changed.") // the host checks again
			if one.after == "bypassPermissions" {
				p.awaits("that takes a new session")
			}
			if err := os.WriteFile(filepath.Join(s.dir, "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if code := p.wait(); code != 0 {
				t.Fatalf("exit status %d\n%s\n%s", code, p.said(), s.model.Story())
			}
			for _, name := range []string{"ended-a", "ended-b"} {
				if _, err := os.Stat(filepath.Join(s.dir, name)); err != nil {
					t.Errorf("a command was interrupted: %v\n%s", err, s.model.Story())
				}
			}
			want := 0
			if one.after == "bypassPermissions" {
				want = 1
			}
			if n := strings.Count(p.said(), "permission mode"); n != want {
				t.Errorf("the change of the mode is told %d times, want %d:\n%s", n, want, p.said())
			}
			asked := map[string]bool{}
			for _, r := range read[[]struct {
				Events []struct{ Kind, Input string }
			}](s.world, "log", "modes") {
				for _, e := range r.Events {
					for _, id := range []string{"a", "b"} {
						asked[id] = asked[id] || e.Kind == "permission_requested" &&
							strings.Contains(e.Input, "began-"+id)
					}
				}
			}
			if asks := one.before == "default"; asked["a"] != asks || asked["b"] == asks {
				t.Errorf("the permission requests are for the commands %v", asked)
			}
			said := "Your permission mode is now " + one.after + ".\n</from-the-team>"
			if !slices.ContainsFunc(s.model.Requests(), func(r *agenttest.Request) bool { return r.Count(said) == 1 }) {
				t.Errorf("ann was not told its mode exactly once\n%s", s.model.Story())
			}
			if !slices.ContainsFunc(s.model.Requests(), func(r *agenttest.Request) bool {
				return r.Has("Task a is yours now") && r.Has("Task b is yours now")
			}) {
				t.Errorf("the second task was done without the history of the first\n%s", s.model.Story())
			}
		})
	}
}
