package acp_test

import (
	"context"
	"os"
	"testing"

	"cadre/internal/agent"
	"cadre/internal/agent/acp"
	"cadre/internal/agent/agenttest"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "hook" { // run by the agent
		if err := acp.Hook(context.Background(), os.Args[2], os.Stdin, os.Stdout); err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) == 3 && os.Args[1] == "peer" {
		runPeer(os.Args[2])
	}
	agenttest.Main(m)
}

func TestGemini(t *testing.T) {
	agenttest.TestDriver(t, agenttest.Driver{
		Program: "gemini",
		Agent: func(p agenttest.Program) agent.Agent {
			return acp.Gemini([]string{os.Args[0], "hook"}).Program(p.Path)
		},
		Shell: func(command string) agenttest.Turn {
			return agenttest.Use("run_shell_command", map[string]any{"command": command, "description": "run it"})
		},
		Write: func(file, text string) agenttest.Turn {
			return agenttest.Use("write_file", map[string]any{"file_path": file, "content": text})
		},
		MidTurn: true, Asks: true, Gates: true, Mute: true, Silent: true, // about what a command printed
	})
}

func TestOpenCode(t *testing.T) {
	agenttest.TestDriver(t, agenttest.Driver{
		Program: "opencode",
		Agent:   func(p agenttest.Program) agent.Agent { return acp.OpenCode().Program(p.Path) },
		Shell: func(command string) agenttest.Turn {
			return agenttest.Use("bash", map[string]any{"command": command, "description": "run it"})
		},
		Write: func(file, text string) agenttest.Turn {
			return agenttest.Use("write", map[string]any{"filePath": file, "content": text})
		},
		MidTurn: true, Asks: true, Gates: true, Streams: true, Tokens: 220, // those of the last call of each turn
		// its report of a retry lacks the status
		Vague: true, Patient: []string{"429", "500", "a cut stream"},
	})
}
