package claude

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"cadre/internal/agent"
	"cadre/internal/agent/agenttest"
	"cadre/internal/agent/readonly"
)

// TestWhereACommandRuns checks that a call carries the folder in which it runs, because a shell
// stays where it changed to.
func TestWhereACommandRuns(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"claude", "claude@2.1.197"} {
		t.Run(name, func(t *testing.T) {
			p := agenttest.Installed(t, name)
			shell := driver(name).Shell
			s := agenttest.NewServer(t, agenttest.Sequence(shell("cd sub"), shell("touch here"),
				agenttest.Say("Done.")))
			b := agenttest.NewBench(t, Agent{Program: p.Path}, agenttest.NewWorld(t, s, p))
			sub := filepath.Join(b.World.Dir, "sub")
			if err := os.Mkdir(sub, 0o700); err != nil {
				t.Fatal(err)
			}
			var mu sync.Mutex
			var gated []string
			b.Spec.Gate = func(tool, input string) error {
				mu.Lock()
				defer mu.Unlock()
				gated = append(gated, where(input))
				return nil
			}
			r := b.Start()
			r.Tell("p", "go")
			var asked []string
			for asked == nil || asked[len(asked)-1] == "" {
				a := agenttest.Next[agent.PermissionAsked](r)
				asked = append(asked, where(a.Input))
				a.Answer(true, "")
			}
			if end := agenttest.Next[agent.TurnEnded](r); end.Text != "Done." {
				t.Errorf("it ended with %+v", end)
			}
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(gated, []string{"", sub}) || asked[len(asked)-1] != sub {
				t.Errorf("the gate got %q, and the user was asked %q", gated, asked)
			}
		})
	}
}

func where(input string) string {
	var in struct {
		Dir string `json:"cwd"`
	}
	json.Unmarshal([]byte(input), &in)
	return in.Dir
}

// TestExplores checks that a subagent that explores may run before a plan is approved, and that its
// tools pass the same gate.
func TestExplores(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"claude", "claude@2.1.197"} {
		t.Run(name, func(t *testing.T) {
			p := agenttest.Installed(t, name)
			shell := driver(name).Shell
			s := agenttest.NewServer(t, func(r *agenttest.Request) agenttest.Turn {
				if r.Has("find the notes") && !r.Has("plan it") { // the subagent
					switch r.Calls("Bash") {
					case 0:
						return shell("cat notes.txt")
					case 1:
						return shell("touch wrote")
					}
					return agenttest.Say("They say: the-notes")
				}
				if r.Calls("Agent")+r.Calls("Task") == 0 {
					tool := "Agent"
					if !slices.Contains(r.Tools, tool) {
						tool = "Task"
					}
					return agenttest.Use(tool, map[string]any{"subagent_type": "Explore", "description": "look",
						"prompt": "find the notes"})
				}
				return agenttest.Say("Planned.")
			})
			b := agenttest.NewBench(t, Agent{Program: p.Path}, agenttest.NewWorld(t, s, p))
			if err := os.WriteFile(filepath.Join(b.World.Dir, "notes.txt"), []byte("the-notes\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			scope := readonly.Scope{Dir: b.World.Dir, Roots: []string{b.World.Dir}}
			b.Spec.Access.Writes, b.Spec.Reads = false, scope.Unasked
			b.Spec.Gate = func(tool, input string) error {
				if tool == "Read" || scope.Unasked(tool, input) {
					return nil
				}
				return errors.New("ann may change nothing before its plan is approved")
			}
			r := b.Start()
			r.Tell("p", "plan it")
			s.WaitFor(t, "the notes", func(r *agenttest.Request) bool {
				return strings.Contains(r.Results(),
					"the-notes")
			})
			s.WaitFor(t, "the refusal", func(r *agenttest.Request) bool {
				return r.Has("may change nothing before its plan")
			})
			s.WaitFor(t, "the end", func(r *agenttest.Request) bool { return r.Has("plan it") && r.Has("They say") })
			b.Absent("wrote")
		})
	}
}
