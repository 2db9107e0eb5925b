package codex

import (
	"encoding/json"
	"testing"

	"cadre/internal/agent"
	"cadre/internal/agent/agenttest"
)

func TestMain(m *testing.M) { agenttest.Main(m) }

var driver = agenttest.Driver{
	Program: "codex",
	Agent:   func(p agenttest.Program) agent.Agent { return Agent{Program: p.Path} },
	Shell:   shell,
	Write: func(file, text string) agenttest.Turn {
		quoted, _ := json.Marshal(text)
		return shell("printf %s " + string(quoted) + " > " + file)
	},
	Plan: func(plan string) agenttest.Turn {
		return agenttest.Say("<proposed_plan>\n%s\n</proposed_plan>", plan)
	},
	MidTurn: true, Asks: true, Streams: true,
}

// shell is a turn in which the model runs a command.
func shell(command string) agenttest.Turn {
	return agenttest.Use("exec_command", map[string]any{"cmd": command, "yield_time_ms": 30000})
}

func TestCodex(t *testing.T) { agenttest.TestDriver(t, driver) }

// TestTokensOfAResumedSession checks that what a thread had spent before it was resumed is not
// counted again.
func TestTokensOfAResumedSession(t *testing.T) {
	t.Parallel()
	p := agenttest.Installed(t, "codex")
	s := agenttest.NewServer(t, agenttest.Sequence(agenttest.Say("Yes.")))
	b := agenttest.NewBench(t, driver.Agent(p), agenttest.NewWorld(t, s, p))
	for range 2 {
		run := b.Start()
		b.Spec.Resume = agenttest.Next[agent.Started](run).Session
		run.Turn("go on")
		if sum := spent(run, 110); sum != 110 {
			t.Errorf("%d tokens are counted: %+v", sum, agenttest.Said[agent.Used](run))
		}
		run.End()
	}
}
