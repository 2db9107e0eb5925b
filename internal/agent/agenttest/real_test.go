package agenttest_test

import (
	"context"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"cadre/internal/agent/agenttest"
)

// headless says how to run each program once, without a driver.
var headless = []struct {
	name string
	args []string
	tool string
	call func(command string) agenttest.Turn
}{
	{"claude", []string{"-p", "--dangerously-skip-permissions"}, "Bash", bash},
	{"claude@2.1.197", []string{"-p", "--dangerously-skip-permissions"}, "Bash", bash},
	{"codex", []string{"exec", "--dangerously-bypass-approvals-and-sandbox"}, "exec_command",
		func(command string) agenttest.Turn {
			return agenttest.Use("exec_command", map[string]any{"cmd": command})
		}},
	{"gemini", []string{"--yolo", "-p"}, "run_shell_command", func(command string) agenttest.Turn {
		return agenttest.Use("run_shell_command", map[string]any{"command": command, "description": "run it"})
	}},
	{"opencode", []string{"run"}, "bash", func(command string) agenttest.Turn {
		return agenttest.Use("bash", map[string]any{"command": command, "description": "run it"})
	}},
}

func bash(command string) agenttest.Turn {
	return agenttest.Use("Bash", map[string]any{"command": command, "description": "run it"})
}

// TestRealPrograms checks that each program, run in its simplest way, uses only the test server. It
// runs a command, shows the model the output, and prints the model's answer.
func TestRealPrograms(t *testing.T) {
	for _, c := range headless {
		t.Run(c.name, func(t *testing.T) {
			p := agenttest.Installed(t, c.name)
			s := agenttest.NewServer(t, func(r *agenttest.Request) agenttest.Turn {
				if strings.Contains(r.Results(), "the sum is 42") {
					return agenttest.Say("All is well.")
				}
				return c.call("printf 'the %s is 42' sum")
			})
			w := agenttest.NewWorld(t, s, p)
			out := once(t, w, p.Path, append(c.args, "what is the sum?")...)
			if !strings.Contains(out, "All is well.") {
				t.Errorf("it said:\n%s\n%s", out, s.Story())
			}
			requests := s.Requests()
			if len(requests) != 2 {
				t.Fatalf("the model was asked %d times, want 2:\n%s", len(requests), s.Story())
			}
			for _, r := range requests {
				if r.Key != "dummy" || !r.Stream || r.Tool(c.tool) != c.tool || !r.Has("what is the sum?") {
					t.Errorf("request %d has the key %q, stream %t, the tools %v", r.N, r.Key, r.Stream, r.Tools)
				}
			}
			if first, second := requests[0], requests[1]; first.Calls(c.tool) != 0 || second.Calls(c.tool) != 1 ||
				strings.TrimSpace(first.Results()) != "" {
				t.Errorf("calls and results are wrong:\n%s", s.Story())
			}
		})
	}
}

// once runs a program to its end, in its own process group, and returns its output.
func once(t *testing.T, w agenttest.World, program string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, program, args...)
	c.Dir, c.Env = w.Dir, w.Env
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = 5 * time.Second
	out, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", program, err, out)
	}
	return string(out)
}
