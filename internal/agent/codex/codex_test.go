package codex_test

import (
	"encoding/json"
	"os"
	"testing"

	"go.uber.org/goleak"

	"cadre/internal/agent"
	"cadre/internal/agent/agenttest"
	"cadre/internal/agent/codex"
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

func TestCodex(t *testing.T) {
	agenttest.TestDriver(t, agenttest.Driver{
		Program: "codex",
		Agent:   func(p agenttest.Program) agent.Agent { return codex.Agent{Program: p.Path} },
		Shell: func(command string) agenttest.Turn {
			return agenttest.Use("exec_command", map[string]any{"cmd": command, "yield_time_ms": 30000})
		},
		Write: func(file, text string) agenttest.Turn {
			quoted, _ := json.Marshal(text)
			return agenttest.Use("exec_command", map[string]any{"cmd": "printf %s " + string(quoted) + " > " + file, "yield_time_ms": 30000})
		},
		Plan: func(plan string) agenttest.Turn {
			return agenttest.Say("<proposed_plan>\n%s\n</proposed_plan>", plan)
		},
		MidTurn: true, Asks: true,
	})
}
