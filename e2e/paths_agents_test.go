package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cadre/internal/agent/agenttest"
)

// TestPathsOfAgents checks that members of three agents that change one file do it one after the
// other, so that no write is lost.
func TestPathsOfAgents(t *testing.T) {
	t.Parallel()
	agents := map[string]string{"ann": "claude", "bob": "codex", "eve": "gemini"}
	s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
		if _, calls := task(r); len(calls) == 0 {
			return shells[agents[who(r)]]("sh count.sh")
		}
		return complete(r)
	}, "claude", "codex", "gemini")
	count := "n=$(cat counter 2>/dev/null || echo 0); sleep 4; echo $((n+1)) >counter"
	if err := os.WriteFile(filepath.Join(s.dir, "count.sh"), []byte(count), 0o600); err != nil {
		t.Fatal(err)
	}
	r := s.run(s.file(`name: counting
permissions: {mode: bypassPermissions}
members: [{name: ann, agent: claude}, {name: bob, agent: codex}, {name: eve, agent: gemini}]
tasks:
  - {id: one, owner: ann, description: count, paths: [counter]}
  - {id: two, owner: bob, description: count, paths: ["c*"]}
  - {id: three, owner: eve, description: count, paths: ["**"]}
`))
	if r.code != 0 {
		t.Fatalf("exit status %d\n%s%s", r.code, r.out, r.err)
	}
	counted, err := os.ReadFile(filepath.Join(s.dir, "counter"))
	if err != nil || strings.TrimSpace(string(counted)) != "3" {
		t.Errorf("the counter is %s, %v", counted, err)
	}
}

// TestWritesToPathsOfOthers checks that an agent is refused a file of another member's task, with
// whose it is and whom to ask. What it then does with a command is found, and told to both and the
// lead.
func TestWritesToPathsOfOthers(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"claude", "codex", "gemini"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s *studio
			s = newStudio(t, func(r *agenttest.Request) agenttest.Turn {
				_, calls := task(r)
				file := filepath.Join(s.dir, "src", "new.go")
				writes := map[string]agenttest.Turn{
					"claude": agenttest.Use("Write", map[string]any{"file_path": file, "content": "x"}),
					"codex": agenttest.Use("exec_command",
						map[string]any{"cmd": "apply_patch <<'EOF'\n*** Begin Patch\n" +
							"*** Add File: src/new.go\n+x\n*** End Patch\nEOF", "yield_time_ms": 30000}),
					"gemini": agenttest.Use("write_file", map[string]any{"file_path": file, "content": "x"}),
				}
				switch {
				case len(calls) == 0:
					return writes[name]
				case len(calls) == 1:
					return shells[name]("echo stolen >src/stolen.go")
				case len(calls) == 2:
					return shells[name]("touch go")
				}
				return complete(r)
			}, name)
			r := s.run(s.file(`name: others
permissions: {policy: allow}
members: [{name: ann, agent: ` + name + `}, {name: bob, agent: shell}]
tasks:
  - {id: held, owner: bob, run: 'mkdir -p src; touch begun; until test -e go; do sleep 0.05; done', paths: [src], timeout: 100s}
  - {id: wild, owner: ann, description: write it}
`))
			if r.code != 0 {
				t.Fatalf("exit status %d\n%s%s", r.code, r.out, r.err)
			}
			if !slices.ContainsFunc(s.model.Requests(), func(r *agenttest.Request) bool {
				return r.Has("belongs to task held while bob works on it (src)")
			}) {
				t.Errorf("%s is not told whose file it is\n%s", name, s.model.Story())
			}
			if has(s.dir, "src/new.go") {
				t.Error("the file was written")
			}
			if log := s.must("log", "others"); !strings.Contains(log,
				"ann changed files of task held of bob: src/stolen.go") {
				t.Errorf("the log does not say who wrote the file:\n%s", log)
			}
		})
	}
}
