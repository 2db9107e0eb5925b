package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cadre/internal/agent/agenttest"
)

// looked lists commands with which a member looks around, and a word that each of them prints.
var looked = []struct{ command, prints string }{
	{"ls", "notes.txt"}, {"cat notes.txt", "the-notes"}, {"grep -rn the-notes .", "notes.txt:1"},
	{"find . -name 'notes*'", "./notes.txt"}, {"git log --oneline", "the-commit"},
	{"git status --short", "?? later.txt"}, {"sed -n 1p notes.txt", "the-notes"},
	{"ls missing.txt 2>/dev/null || head -1 notes.txt | tr a-z A-Z", "THE-NOTES"},
}

// forbidden lists commands that must not run without a permission. They write, read outside the
// project, or match an ask rule of the user.
var forbidden = []string{"touch wrote", "find . -name victim -delete", "sed -n 'w wrote' notes.txt",
	"cat ../secret.txt", "cat link.txt", "ls > wrote", "stat notes.txt"}

// TestLooksAround checks that a member whose plan waits for approval can look around without a
// request, and changes nothing. The same holds for a member that asks before it acts.
func TestLooksAround(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		agent string
		plans bool
	}{{"claude", true}, {"codex", true}, {"opencode", true}, {"claude", false}, {"codex", false}, {"opencode", false},
		{"gemini", false}} {
		name := c.agent + " asks"
		if c.plans {
			name = c.agent + " plans"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !c.plans {
				sampled(t, c.agent)
			}
			commands := []string{}
			for _, l := range looked {
				commands = append(commands, l.command)
			}
			commands = append(commands, forbidden...)
			s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
				if who(r) == "lead" {
					switch {
					case reports(r):
						return agenttest.Say("Seen.")
					case r.Calls(r.Tool("SpawnTeammate")) == 0:
						return use(r, "SpawnTeammate", map[string]any{"name": "ann", "agent": c.agent,
							"prompt": "Look around.", "planApproval": c.plans})
					}
					return agenttest.Say("I wait.")
				}
				n := r.Calls("Bash") + r.Calls("exec_command") + r.Calls("bash") + r.Calls("run_shell_command")
				if n >= len(commands) {
					return agenttest.Say("I have seen it.")
				}
				switch c.agent {
				case "codex":
					return agenttest.Use("exec_command", map[string]any{"cmd": commands[n], "yield_time_ms": 30000})
				case "gemini":
					return agenttest.Use("run_shell_command", map[string]any{"command": commands[n],
						"description": "look"})
				case "opencode":
					return agenttest.Use("bash", map[string]any{"command": commands[n], "description": "look"})
				}
				return agenttest.Use("Bash", map[string]any{"command": commands[n], "description": "look"})
			}, "claude", c.agent)
			for file, text := range map[string]string{"notes.txt": "the-notes\n", "victim": "x\n",
				"../secret.txt":         "the-secret\n",
				".claude/settings.json": `{"permissions":{"ask":["Bash(stat:*)"]}}`} {
				if err := os.MkdirAll(filepath.Join(s.dir, ".claude"), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(s.dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink("../secret.txt", filepath.Join(s.dir, "link.txt")); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=t", "-c", "user.email=t@t",
				"commit", "-q", "-m", "the-commit"}} {
				cmd := exec.Command("git", args...)
				cmd.Dir = s.dir
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("git %v: %v\n%s", args, err, out)
				}
			}
			if err := os.WriteFile(filepath.Join(s.dir, "later.txt"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			r := s.run("--goal", "look", "--agent", "claude", "--name", "look", "--policy", "deny")
			if r.code != 0 {
				t.Fatalf("exit status %d\n%s%s\n%s", r.code, r.out, r.err, s.model.Story())
			}
			results := ""
			for _, req := range s.model.Requests() {
				if who(req) != "lead" {
					results += req.Results() + "\n"
				}
			}
			for _, l := range looked {
				if !strings.Contains(results, l.prints) {
					t.Errorf("%s did not run", l.command)
				}
			}
			if strings.Contains(results, "the-secret") {
				t.Error("a file outside the project was read")
			}
			if strings.Contains(results, "Modify:") {
				t.Error("a command that matches an ask rule ran without a permission")
			}
			if _, err := os.Stat(filepath.Join(s.dir, "wrote")); err == nil {
				t.Error("a file was written")
			}
			if _, err := os.Stat(filepath.Join(s.dir, "victim")); err != nil {
				t.Error("a file was deleted")
			}
			// No person was asked; the rules answered everything.
			input := map[string]string{}
			for _, record := range read[[]struct {
				Events []struct {
					Kind, Request, Input, Outcome, By string
				}
			}](s.world, "log", "look") {
				for _, e := range record.Events {
					var in struct{ Command string }
					switch e.Kind {
					case "permission_requested":
						if err := json.Unmarshal([]byte(e.Input), &in); err != nil || in.Command == "" {
							t.Errorf("asked for %q: %v", e.Input, err)
						}
						input[e.Request] = in.Command
					case "permission_answered":
						command := input[e.Request]
						if allowed := e.Outcome == "allowed"; e.By != "" || allowed &&
							slices.Contains(forbidden, command) || !allowed && !slices.Contains(forbidden, command) {
							t.Errorf("%q was %s by %q", command, e.Outcome, e.By)
						}
					}
				}
			}
			if t.Failed() {
				t.Log(results)
			}
		})
	}
}
