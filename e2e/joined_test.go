package e2e

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestKilledMemberComesBackByTheWordsOfItsNotice checks the notice about a killed member. The lead
// gets a command that brings the member back. Run in a shell, the command starts the same agent
// under the same rules.
func TestKilledMemberComesBackByTheWordsOfItsNotice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.plays("2.1.329")
	p.until(`"leadSessionId"`)
	folder := filepath.Join(w.root, "claude", "teams", p.name)
	tim := func() string {
		var config struct{ Members []map[string]any }
		data, err := os.ReadFile(filepath.Join(folder, "config.json"))
		if err != nil || json.Unmarshal(data, &config) != nil {
			return ""
		}
		for _, m := range config.Members {
			if m["name"] == "tim" {
				return strings.Join([]string{m["agentType"].(string), m["model"].(string), m["mode"].(string)}, ", ")
			}
		}
		return ""
	}
	const want = "a tester's tester, small, acceptEdits"
	first := w.start("join", p.name, "--name", "tim", "--agent", "shell", "--type", "a tester's tester", "--model",
		"small", "--permission-mode", "acceptEdits")
	eventually(t, "it has joined", func() bool { return tim() == want })
	first.awaits("shell is tim on team " + p.name)
	eventually(t, "no program writes the team's files", func() bool { return unlocked(folder) })
	first.kill()
	words := ""
	within(t, 5*patience, "the lead is told", func() bool { // a lock that the member held is respected for a minute
		var inbox []struct{ From, Text string }
		data, err := os.ReadFile(filepath.Join(folder, "inboxes", "team-lead.json"))
		if err != nil || json.Unmarshal(data, &inbox) != nil {
			return false
		}
		for _, e := range inbox {
			var notice struct{ Result string }
			if e.From == "tim" && json.Unmarshal([]byte(e.Text), &notice) == nil {
				if _, command, ok := strings.Cut(notice.Result, "Bring it back with: "); ok {
					words = command
				}
			}
		}
		return words != "" && tim() == ""
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	again := exec.CommandContext(ctx, "/bin/sh", "-c", "exec "+words)
	again.Dir, again.Env = w.dir, append(w.env, "PATH="+filepath.Dir(cadre)+":"+os.Getenv("PATH"))
	var said strings.Builder
	again.Stdout, again.Stderr = &said, &said
	if err := again.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is back", func() bool { return tim() == want })
	if err := again.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	again.Wait()
	if !strings.Contains(said.String(), "shell is tim") || tim() != "" {
		t.Errorf("by %q it came back as %q, and left %q on the roster", words, said.String(), tim())
	}
}

// TestJoinInPlanMode checks that a member that joins in plan mode changes nothing before the lead
// has approved a plan. An agent that cannot be restricted like that does not join, and says why.
func TestJoinInPlanMode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.plays("2.1.329")
	p.until(`"leadSessionId"`)
	w.refused(w.cadre("join", p.name, "--name", "tim", "--agent", "external"), 2,
		`"external" is not an agent; use one of: claude, codex, gemini, opencode, acp:COMMAND, claude-tmux, shell`)
	r := w.cadre("join", p.name, "--name", "tim", "--agent", "shell", "--permission-mode", "plan")
	if r.code != 2 || !strings.Contains(r.err, "shell cannot be held to a plan") {
		t.Errorf("the command ended with %d: %s%s", r.code, r.out, r.err)
	}
	config, err := os.ReadFile(filepath.Join(w.root, "claude", "teams", p.name, "config.json"))
	if err != nil || strings.Contains(string(config), `"tim"`) {
		t.Errorf("the roster is %s, %v", config, err)
	}
}

// TestTeammateThatCannotBe checks that an invalid configuration is refused with the reason. The
// lead does not see the pane of a teammate that it started, so it gets the reason as a message.
func TestTeammateThatCannotBe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.plays("2.1.329")
	p.until(`"leadSessionId"`)
	w.refused(w.cadre("join", p.name), 2, "--name NAME")
	if err := os.MkdirAll(w.home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.home, "claude-teammates.yaml"), []byte("teammates: [{agent: nobody}]"),
		0o600); err != nil {
		t.Fatal(err)
	}
	const wrong = `unknown agent "nobody"`
	w.refused(w.cadre("join", p.name, "--name", "tim"), 2, "claude-teammates.yaml", wrong)
	told := func() (all []string) {
		var inbox []struct{ From, Text string }
		data, err := os.ReadFile(filepath.Join(w.root, "claude", "teams", p.name, "inboxes", "team-lead.json"))
		if err == nil && json.Unmarshal(data, &inbox) != nil {
			t.Fatalf("the lead's inbox is %s", data)
		}
		for _, e := range inbox {
			if e.From == "tim" {
				all = append(all, e.Text)
			}
		}
		return all
	}
	if all := told(); len(all) > 0 {
		t.Errorf("only the person who joins should be told, but the lead has %q", all)
	}
	w.refused(w.cadre("--agent-id", "tim@"+p.name, "--agent-name", "tim", "--team-name", p.name), 2,
		"claude-teammates.yaml", wrong)
	var notice struct{ Type, IdleReason, Result string }
	if all := told(); len(all) != 1 || json.Unmarshal([]byte(all[0]), &notice) != nil ||
		notice.Type != "idle_notification" || notice.IdleReason != "failed" ||
		!strings.Contains(notice.Result, "tim could not be started") || !strings.Contains(notice.Result, wrong) {
		t.Errorf("the lead is told %q", all)
	}
}

// unlocked reports whether no process holds a lock on a file of the team of Claude Code. A lock of
// a killed process is respected for a minute.
func unlocked(folder string) bool {
	for _, pattern := range []string{"*.lock", filepath.Join("*", "*.lock")} {
		if locks, err := filepath.Glob(filepath.Join(folder, pattern)); err != nil || len(locks) > 0 {
			return false
		}
	}
	return true
}
