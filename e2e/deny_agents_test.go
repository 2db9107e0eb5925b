package e2e

import (
	"slices"
	"strings"
	"testing"

	"cadre/internal/agent/agenttest"
)

// TestPolicyDeny checks the policy deny, under which no request is asked. Tools that only read run,
// and everything else is denied at once. The model of a teammate learns whom to tell, the lead's
// model to put it into its report, and the person what was denied. The last text of an agent is
// shown once.
func TestPolicyDeny(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"claude", "codex", "gemini", "opencode"} {
		t.Run(name, func(t *testing.T) {
			sampled(t, name)
			t.Parallel()
			s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
				calls := all(r)
				commands := []string{"touch by-lead"}
				if who(r) != "lead" {
					commands = []string{"touch by-ann", "cat README.md"}
				}
				n := 0
				for _, c := range calls {
					if c.Name == shells[name]("").Calls[0].Name {
						n++
					}
				}
				switch {
				case n < len(commands):
					return shells[name](commands[n])
				case who(r) != "lead" && r.Has("RespondToShutdown with requestId"):
					return agenttest.Say("Goodbye.")
				case who(r) != "lead":
					return agenttest.Say("I could not make it.")
				case reports(r):
					return agenttest.Say("Nothing could be made.")
				case called(calls, "SpawnTeammate") == 0:
					return use(r, "SpawnTeammate", map[string]any{"name": "ann", "agent": name, "prompt": "Make it."})
				}
				return agenttest.Say("I wait.")
			}, name)
			r := s.run("make it", "--agent", name, "--name", "strict", "--policy", "deny")
			s.ended(r, 0)
			if has(s.dir, "by-lead") || has(s.dir, "by-ann") {
				t.Error("a denied command ran")
			}
			for _, told := range [][2]string{
				{"ann", "the policy of the team is to deny; if the work cannot be done without it, tell lead with " +
					"a message"}, {"ann", "A project to work in."},
				{"lead", "the policy of the team is to deny; if the work cannot be done without it, say so in " +
					"your report"},
			} {
				if !slices.ContainsFunc(s.of(told[0]), func(r *agenttest.Request) bool { return r.Has(told[1]) }) {
					t.Errorf("the model of %s was never shown %q", told[0], told[1])
				}
			}
			shown := r.out + r.err
			for words, times := range map[string]int{
				"! lead may not use Bash: touch by-lead: the policy of the team is to deny": 1,
				"! ann may not use Bash: touch by-ann: the policy of the team is to deny":   1,
				"asks to use": 0, "I could not make it.": 1,
			} {
				if n := strings.Count(shown, words); n != times {
					t.Errorf("%q is shown %d times, want %d", words, n, times)
				}
			}
		})
	}
}
