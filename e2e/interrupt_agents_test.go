package e2e

import (
	"testing"

	"cadre/internal/agent/agenttest"
)

// TestInterruptEndsTheCommand: when the person interrupts the turn of an agent, the command that it
// waits for ends too.
func TestInterruptEndsTheCommand(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"claude", "codex", "gemini"} {
		t.Run(name, func(t *testing.T) {
			mark := mark()
			s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
				if id, calls := task(r); id != "" && len(calls) == 0 {
					return shells[name]("touch begun; sleep " + mark)
				}
				return agenttest.Say("I wait.")
			}, name)
			s.must("create", "demo", "--goal", "Wait", "--permission-mode", "bypassPermissions")
			t.Cleanup(func() { s.cadre("cleanup", "demo", "--force") })
			s.must("spawn", "demo", "ann", "--agent", name)
			s.must("task", "add", "demo", "wait", "--owner", "ann")
			s.waitFor("the command runs", func() bool { return has(s.dir, "begun") && len(marked(t, mark)) > 0 })
			s.must("interrupt", "demo", "ann")
			noneLeft(t, mark)
			if n := len(s.agentPids(name)); n == 0 {
				t.Error("the session has ended with the command")
			}
		})
	}
}
