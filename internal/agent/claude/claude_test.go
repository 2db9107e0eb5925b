package claude_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"cadre/internal/agent"
	"cadre/internal/agent/agenttest"
	"cadre/internal/agent/claude"
)

func TestMain(m *testing.M) {
	agenttest.Relay()
	code := m.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		code = 1
	}
	os.Exit(code)
}

func driver(program string) agenttest.Driver {
	return agenttest.Driver{
		Program: program,
		Agent:   func(p agenttest.Program) agent.Agent { return claude.Agent{Program: p.Path} },
		Shell: func(command string) agenttest.Turn {
			return agenttest.Use("Bash", map[string]any{"command": command, "description": "run it"})
		},
		Write: func(file, text string) agenttest.Turn {
			return agenttest.Use("Write", map[string]any{"file_path": file, "content": text})
		},
		Plan: func(plan string) agenttest.Turn {
			return agenttest.Use("ExitPlanMode", map[string]any{"plan": plan})
		},
		MidTurn: true, Asks: true, Gates: true,
	}
}

func TestClaude(t *testing.T) { agenttest.TestDriver(t, driver("claude")) }

// The version before the newest protocol.
func TestClaudeOld(t *testing.T) { agenttest.TestDriver(t, driver("claude@2.1.197")) }
