package e2e

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"cadre/internal/agent/agenttest"
)

// TestRefusedShutdown checks a teammate that refuses to shut down. The waiting command prints that
// at once, and that the request can be withdrawn. Asked again for another reason, the teammate
// agrees. Then both who asked are told that it has stopped.
func TestRefusedShutdown(t *testing.T) {
	t.Parallel()
	request := regexp.MustCompile(`shutdown-\d+@[a-z]+`)
	for _, name := range []string{"claude", "codex", "gemini", "opencode"} {
		t.Run(name, func(t *testing.T) {
			sampled(t, name)
			t.Parallel()
			s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
				if open := unanswered(r, request, "RespondToShutdown"); len(open) > 0 {
					agrees := r.Has("the second reason")
					return use(r, "RespondToShutdown", map[string]any{"requestId": open[0], "approve": agrees,
						"reason": map[bool]string{true: "done now", false: "one test to go"}[agrees]})
				}
				return agenttest.Say("Yes?")
			}, name)
			s.must("create", "parting", "--permission-mode", "bypassPermissions")
			s.must("spawn", "parting", "ann", "--agent", name, "--prompt", "Hello.")
			withdrawn := s.start("shutdown", "parting", "ann", "--deadline", "5m")
			withdrawn.awaits("ann refuses to shut down: one test to go; it is ended at the deadline, in ")
			s.must("shutdown", "parting", "ann", "--withdraw")
			if code := withdrawn.wait(); code != 1 || !strings.Contains(withdrawn.said(),
				"ann no longer has to shut down") {
				t.Errorf("exit status %d\n%s", code, withdrawn.said())
			}
			first := s.start("shutdown", "parting", "ann", "--deadline", "5m", "--reason", "the first reason")
			first.awaits("ann refuses to shut down: one test to go; it is ended at the deadline, in ")
			r := s.cadre("shutdown", "parting", "ann", "--deadline", "1m", "--reason", "the second reason")
			if r.code != 0 || !strings.Contains(r.out, "ann has stopped: shut down as asked") ||
				strings.Contains(r.err, "refuses") {
				t.Errorf("exit status %d\n%s%s", r.code, r.out, r.err)
			}
			if code := first.wait(); code != 0 || !strings.Contains(first.said(),
				"ann has stopped: shut down as asked") {
				t.Errorf("exit status %d\n%s", code, first.said())
			}
			for _, reason := range []string{"the first reason", "the second reason"} {
				if !slices.ContainsFunc(s.of("ann"), func(r *agenttest.Request) bool { return r.Has(reason) }) {
					t.Errorf("the model was never shown %q", reason)
				}
			}
			s.must("cleanup", "parting", "--force")
		})
	}
}
