package claude

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/agent"
	"cadre/internal/agent/agenttest"
)

func TestMain(m *testing.M) { agenttest.Main(m) }

func driver(program string) agenttest.Driver {
	return agenttest.Driver{
		Program: program,
		Agent:   func(p agenttest.Program) agent.Agent { return Agent{Program: p.Path} },
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

// TestClaudeOld runs the suite with the version before the newest protocol.
func TestClaudeOld(t *testing.T) { agenttest.TestDriver(t, driver("claude@2.1.197")) }

// TestCostOfAResumedSession checks that what a session cost before it was resumed is not counted
// again.
func TestCostOfAResumedSession(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"claude", "claude@2.1.197"} {
		t.Run(name, func(t *testing.T) {
			p := agenttest.Installed(t, name)
			s := agenttest.NewServer(t, agenttest.Sequence(agenttest.Say("Yes.")))
			b := agenttest.NewBench(t, Agent{Program: p.Path}, agenttest.NewWorld(t, s, p))
			var costs []int64
			for range 2 {
				run := b.Start()
				b.Spec.Resume = agenttest.Next[agent.Started](run).Session
				run.Turn("go on")
				var tokens, cost int64
				for _, u := range agenttest.Said[agent.Used](run) {
					tokens += u.Usage.Tokens()
					cost += u.Usage.CostMicroUSD
				}
				if tokens != 110 {
					t.Fatalf("it used %d tokens", tokens)
				}
				costs = append(costs, cost)
				run.End()
			}
			if costs[0] == 0 || costs[1] != costs[0] {
				t.Errorf("two turns alike cost %v", costs)
			}
		})
	}
}

// TestGarbage checks that lines which the program never writes are ignored wherever they occur.
func TestGarbage(t *testing.T) {
	t.Parallel()
	d := driver("claude")
	p := agenttest.Installed(t, d.Program)
	s := agenttest.NewServer(t, agenttest.Sequence(d.Shell("touch ran"), agenttest.Say("Done.")))
	b := agenttest.NewBench(t, d.Agent(p), agenttest.NewWorld(t, s, p))
	agenttest.Noise(b, p)
	run := b.Start()
	run.Tell("p", "do one")
	agenttest.Next[agent.PermissionAsked](run).Answer(true, "")
	if end := agenttest.Next[agent.TurnEnded](run); end != (agent.TurnEnded{Text: "Done."}) {
		t.Errorf("the turn ended with %+v", end)
	}
	b.WaitFile("ran")
	run.Got("p")
}

// TestSaysNothingAnyMore checks that a program that closes its output and keeps running counts as
// ended.
func TestSaysNothingAnyMore(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	program := filepath.Join(home, "claude")
	script := `#!/bin/sh
read line; echo '{"type":"control_response","response":{"subtype":"success","request_id":"cadre-1"}}'
echo '{"type":"control_request","request_id":"1","request":{"subtype":"mcp_message","message":{"jsonrpc":"2.0","id":1,"method":"tools/list"}}}'
read line; read line; echo 'I hang up' >&2; exec >&-; sleep 1000
`
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	b := agenttest.NewBench(t, Agent{Program: program}, agenttest.World{Home: home, Dir: home})
	run := b.Start()
	run.Tell("p", "do one")
	if end := agenttest.Next[agent.Ended](run); end.Err == nil || !strings.Contains(end.Err.Error(), "I hang up") {
		t.Errorf("it ended with %v", end.Err)
	}
}
