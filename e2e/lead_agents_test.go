package e2e

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"cadre/internal/agent/agenttest"
)

// A lead that an agent's own session is, through cadre mcp, is briefed, hears of what its teammates completed behind the result of a tool, and waits for that in
// one call.
func TestLeadThroughMCP(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"claude", "codex"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
				calls := all(r)
				switch {
				case called(calls, "SpawnTeammate") == 0:
					return use(r, "SpawnTeammate", map[string]any{"name": "bob", "agent": "external", "prompt": "You work."})
				case called(calls, "TaskCreate") == 0:
					return use(r, "TaskCreate", map[string]any{"subject": "Look", "description": "at it", "owner": "bob"})
				case called(calls, "TeamStatus") == 0:
					return use(r, "TeamStatus", map[string]any{"wait_seconds": 600})
				case called(calls, "TaskList") == 0:
					return use(r, "TaskList", nil)
				}
				return agenttest.Say("I lead, and I know.")
			}, name)
			server := []string{"-c", fmt.Sprintf("mcp_servers.cadre.command=%q", cadre), "-c", `mcp_servers.cadre.args=["mcp","--team","led"]`,
				"-c", `mcp_servers.cadre.default_tools_approval_mode="approve"`}
			args := append(append([]string{"exec"}, server...), "lead a team")
			if name == "claude" {
				args = []string{"-p", "--mcp-config", fmt.Sprintf(`{"mcpServers":{"cadre":{"type":"stdio","command":%q,"args":["mcp","--team","led"]}}}`, cadre),
					"--allowedTools", "mcp__cadre", "--", "lead a team"}
			}
			c := exec.CommandContext(t.Context(), agenttest.Installed(t, name).Path, args...)
			c.Dir, c.Env = s.dir, s.env
			ended := make(chan result, 1)
			go func() { ended <- finish(t, c) }()
			s.model.WaitFor(t, "the task is there", func(r *agenttest.Request) bool { return called(all(r), "TaskCreate") > 0 })
			s.must("task", "claim", "led", "1", "--as", "bob")
			s.must("task", "done", "led", "1", "--as", "bob", "--result", "the port is 4711")
			var r result
			select {
			case r = <-ended:
			case <-time.After(2 * time.Minute):
				t.Fatalf("it waits on\n%s", s.model.Story())
			}
			if r.code != 0 || !strings.Contains(r.out, "I lead, and I know.") {
				t.Fatalf("exit status %d\n%s%s\n%s", r.code, r.out, r.err, s.model.Story())
			}
			requests := s.model.Requests()
			for _, words := range []string{"You are lead, the lead of a team of coding agents named led, run by cadre.", "call TeamStatus with wait_seconds", "<team-message> is mail of members"} {
				if !strings.Contains(string(requests[0].Raw), words) {
					t.Errorf("its briefing has no %q:\n%s", words, requests[0].Raw)
				}
			}
			last := requests[len(requests)-1]
			if n := last.Count("Task 1 (Look) is completed by bob."); n != 1 {
				t.Errorf("it is told %d times that the task is completed:\n%s", n, s.model.Story())
			}
			if !last.Has(`#1 [completed] Look (bob): \"the port is 4711\"`) && !last.Has(`#1 [completed] Look (bob): "the port is 4711"`) {
				t.Errorf("its list does not show the result:\n%s", s.model.Story())
			}
			// One call each, and the last words: it did not poll.
			if n := len(all(last)); n != 4 {
				t.Errorf("it made %d calls:\n%s", n, s.model.Story())
			}
		})
	}
}
