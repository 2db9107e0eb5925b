package claude

import (
	"os"
	"path/filepath"
	"testing"

	"cadre/internal/agent"
	"cadre/internal/agent/agenttest"
)

// TestMovedDirectory checks that a session whose directory was moved starts: resumed if the program
// finds its history, otherwise as a new one. It reports which.
func TestMovedDirectory(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"claude", "claude@2.1.197"} {
		t.Run(name, func(t *testing.T) {
			p := agenttest.Installed(t, name)
			s := agenttest.NewServer(t, agenttest.Sequence(agenttest.Say("Yes.")))
			b := agenttest.NewBench(t, Agent{Program: p.Path}, agenttest.NewWorld(t, s, p))
			run := b.Start()
			b.Spec.Resume = agenttest.Next[agent.Started](run).Session
			run.Turn("remember the word")
			run.End()
			b.Spec.Dir = filepath.Join(t.TempDir(), "moved")
			if err := os.Rename(b.World.Dir, b.Spec.Dir); err != nil {
				t.Fatal(err)
			}
			again := b.Start()
			started := agenttest.Next[agent.Started](again)
			again.Turn("go on")
			again.End()
			if started.Resumed != (started.Session == b.Spec.Resume) || started.Session == "" {
				t.Errorf("it started as %+v, and %s was to be resumed", started, b.Spec.Resume)
			}
		})
	}
}
