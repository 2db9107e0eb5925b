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

// A resumed session goes on counting what it cost; each turn is billed once.
func TestCostOfAResumedSession(t *testing.T) {
	program := agenttest.Installed(t, "claude")
	model := agenttest.NewServer(t, func(*agenttest.Request) agenttest.Turn { return agenttest.Turn{Text: "Hm.", In: 100000, Out: 1000} })
	b := agenttest.NewBench(t, claude.Agent{Program: program.Path}, agenttest.NewWorld(t, model, program))
	turn := func(r *agenttest.Run, id string) (cost int64) {
		r.Tell(id, "go on")
		agenttest.Next[agent.TurnEnded](r)
		for _, u := range agenttest.Said[agent.Used](r) {
			cost += u.Usage.CostMicroUSD
		}
		return cost
	}
	r := b.Start()
	session := agenttest.Next[agent.Started](r).Session
	first := turn(r, "one")
	r.End()
	if first == 0 {
		t.Fatal("the first turn cost nothing")
	}
	b.Spec.Resume, b.Spec.Spent = session, first
	if second := turn(b.Start(), "two"); second != first {
		t.Errorf("the first turn cost %d and the second, in a resumed session, %d", first, second)
	}
}
