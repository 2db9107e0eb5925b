package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"cadre/internal/agent/agenttest"
	"cadre/internal/agent/wake"
)

// TestLeadThroughMCP checks an agent's own session as the lead, through cadre mcp. It gets a
// briefing, sees the completed tasks of its teammates behind a tool result, and waits for them in
// one call.
func TestLeadThroughMCP(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"claude", "codex"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
				calls := all(r)
				switch {
				case called(calls, "SpawnTeammate") == 0:
					return use(r, "SpawnTeammate", map[string]any{"name": "bob", "agent": "external",
						"prompt": "You work."})
				case called(calls, "TaskCreate") == 0:
					return use(r, "TaskCreate", map[string]any{"subject": "Look", "description": "at it",
						"owner": "bob"})
				case called(calls, "TeamStatus") == 0:
					return use(r, "TeamStatus", map[string]any{"wait_seconds": 600})
				case called(calls, "TaskList") == 0:
					return use(r, "TaskList", nil)
				}
				return agenttest.Say("I lead, and I know.")
			}, name)
			server := []string{"-c", fmt.Sprintf("mcp_servers.cadre.command=%q", cadre), "-c",
				`mcp_servers.cadre.args=["mcp","--team","led"]`,
				"-c", `mcp_servers.cadre.default_tools_approval_mode="approve"`}
			args := append(append([]string{"exec"}, server...), "lead a team")
			if name == "claude" {
				args = []string{"-p", "--mcp-config",
					fmt.Sprintf(`{"mcpServers":{"cadre":{"type":"stdio","command":%q,"args":["mcp","--team","led"]}}}`,
						cadre),
					"--allowedTools", "mcp__cadre", "--", "lead a team"}
			}
			c := exec.CommandContext(t.Context(), agenttest.Installed(t, name).Path, args...)
			c.Dir, c.Env = s.dir, s.env
			ended := make(chan result, 1)
			go func() { ended <- finish(t, c) }()
			s.model.WaitFor(t, "the task is there", func(r *agenttest.Request) bool {
				return called(all(r), "TaskCreate") > 0
			})
			s.must("task", "claim", "led", "1", "--as", "bob")
			s.must("task", "done", "led", "1", "--as", "bob", "--result", "the port is 4711")
			var r result
			select {
			case r = <-ended:
			case <-time.After(patience):
				t.Fatalf("the lead waits for\n%s", s.model.Story())
			}
			if r.code != 0 || !strings.Contains(r.out, "I lead, and I know.") {
				t.Fatalf("exit status %d\n%s%s\n%s", r.code, r.out, r.err, s.model.Story())
			}
			requests := s.model.Requests()
			for _, words := range []string{"You are lead, the lead of a team of coding agents named led, run by cadre.",
				"call TeamStatus with wait_seconds", "<team-message> is mail from members"} {
				if !strings.Contains(string(requests[0].Raw), words) {
					t.Errorf("the briefing lacks %q:\n%s", words, requests[0].Raw)
				}
			}
			last := requests[len(requests)-1]
			if n := last.Count("Task 1 (Look) is completed by bob."); n != 1 {
				t.Errorf("the lead is told %d times that the task is completed:\n%s", n, s.model.Story())
			}
			if !last.Has(`#1 [completed] Look (bob): \"the port is 4711\"`) &&
				!last.Has(`#1 [completed] Look (bob): "the port is 4711"`) {
				t.Errorf("its task list does not show the result:\n%s", s.model.Story())
			}
			// One request for each call, and one for the last text: the lead did not poll.
			if n := len(all(last)); n != 4 {
				t.Errorf("the lead made %d calls:\n%s", n, s.model.Story())
			}
		})
	}
}

// TestIdleCodexIsWoken checks that a Codex whose turn has ended is woken when a teammate completes
// a task. It is woken once, and not before its turn has ended.
func TestIdleCodexIsWoken(t *testing.T) {
	t.Parallel()
	s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
		calls := all(r)
		switch {
		case called(calls, "SpawnTeammate") == 0:
			return use(r, "SpawnTeammate", map[string]any{"name": "bob", "agent": "external", "prompt": "You work."})
		case called(calls, "TaskCreate") < 2:
			return use(r, "TaskCreate", map[string]any{"subject": fmt.Sprintf("Look %d", called(calls, "TaskCreate")),
				"description": "at it", "owner": "bob"})
		case strings.Contains(r.LastUser(), "There is news from your team.") &&
			called(calls, "ReadMessages") < strings.Count(told(r), "There is news from your team."):
			return use(r, "ReadMessages", nil)
		}
		return agenttest.Say("I lead now, and was woken %d times.",
			strings.Count(told(r), "There is news from your team."))
	}, "codex")
	program := agenttest.Installed(t, "codex").Path
	config := filepath.Join(s.root, ".codex", "config.toml")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	text = fmt.Appendf(text, "[mcp_servers.cadre]\ncommand = %q\nargs = [\"mcp\", \"--team\", "+
		"\"idle\"]\ndefault_tools_approval_mode = \"approve\"\n[projects.%q]\ntrust_level = \"trusted\"\n", cadre,
		s.dir)
	if err := os.WriteFile(config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	screen := s.terminal(program)
	t.Cleanup(func() {
		screen.close()
		// The server stays when the terminal is closed, with its own supervisor.
		stop := exec.Command(program, "app-server", "daemon", "stop")
		stop.Dir, stop.Env = s.dir, s.env
		if out, err := stop.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		for _, pid := range s.pids("app-server daemon pid-update-loop") {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	screen.shows("Ask Codex to do anything")
	screen.do("send-keys", "-l", "lead a team")
	screen.shows("› lead a team")
	// The program treats a fast line as pasted, with Enter as a part of it.
	for len(s.model.Requests()) == 0 {
		screen.do("send-keys", "Enter")
		select {
		case <-time.After(time.Second):
		case <-t.Context().Done():
			t.Fatal(screen.screen())
		}
	}
	screen.shows("was woken 0 times")
	for _, words := range []string{"You are lead, the lead of a team", "messages, results and failures wake you"} {
		if raw := string(s.model.Requests()[0].Raw); !strings.Contains(raw, words) {
			t.Errorf("the briefing lacks %q:\n%s", words, raw)
		}
	}
	for n := 1; n <= 2; n++ {
		id := fmt.Sprint(n)
		s.must("task", "claim", "idle", id, "--as", "bob")
		s.must("task", "done", "idle", id, "--as", "bob", "--result", "the port is 471"+id)
		screen.shows(fmt.Sprintf("was woken %d times", n))
		requests := slices.DeleteFunc(s.model.Requests(), func(r *agenttest.Request) bool { return r.Side })
		last := requests[len(requests)-1]
		if got := last.Count("the port is 471" + id); got != 1 {
			t.Errorf("codex has the result of task %s %d times:\n%s", id, got, s.model.Story())
		}
	}
}

// told returns the texts of users in the session.
func told(r *agenttest.Request) (text string) {
	for _, m := range r.Messages {
		if m.Role == "user" {
			text += m.Text + "\n"
		}
	}
	return text
}

// TestIdleClaudeIsWoken checks that the Stop hook wakes a Claude Code whose turn has ended when a
// teammate completes a task, once for each task. A failed hook wakes no session.
func TestIdleClaudeIsWoken(t *testing.T) {
	t.Parallel()
	const news = "There is news from your team."
	s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
		calls := all(r)
		switch {
		case !slices.Contains(r.Tools, "mcp__cadre__SpawnTeammate"): // it starts before its servers are there
			return agenttest.Say("My tools are not here.")
		case called(calls, "SpawnTeammate") == 0:
			return use(r, "SpawnTeammate", map[string]any{"name": "bob", "agent": "external", "prompt": "You work."})
		case called(calls, "TaskCreate") < 2:
			return use(r, "TaskCreate", map[string]any{"subject": fmt.Sprintf("Look %d", called(calls, "TaskCreate")),
				"description": "at it", "owner": "bob"})
		case called(calls, "ReadMessages") < r.Count(news):
			return use(r, "ReadMessages", nil)
		}
		return agenttest.Say("I lead now, and was woken %d times.", r.Count(news))
	}, "claude")
	s.write(".mcp.json",
		fmt.Sprintf(`{"mcpServers":{"cadre":{"type":"stdio","command":%q,"args":["mcp","--team","idle"]}}}`, cadre))
	for name, text := range map[string]string{
		".claude.json": fmt.Sprintf(`{"hasCompletedOnboarding":true,"theme":"dark","bypassPermissionsModeAccepted":true,"customApiKeyResponses":{"approved":["dummy"],"rejected":[]},
"projects":{%q:{"hasTrustDialogAccepted":true,"hasCompletedProjectOnboarding":true,"enabledMcpjsonServers":["cadre"]}}}`, s.dir),
		".claude/settings.json": wake.Hook, // as the help says, for any name of the team and the directory
	} {
		path := filepath.Join(s.root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(s.dir, ".claude"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.write(".claude/settings.local.json", fmt.Sprintf(`{"hooks": {"Stop": [{"hooks": [
{"type": "command", "command": "%[1]s wake --team idle --nonsense", "asyncRewake": true, "timeout": 600},
{"type": "command", "command": "%[1]s wake --team other", "asyncRewake": true, "timeout": 600}]}]}}`, cadre))
	s.must("create", "other") // another session leads it
	for i, v := range s.env {
		if path, ok := strings.CutPrefix(v, "PATH="); ok {
			s.env[i] = "PATH=" + filepath.Dir(cadre) + ":" + path
		}
	}
	screen := s.terminal(agenttest.Installed(t, "claude").Path, "--permission-mode", "default",
		"--allowedTools", "mcp__cadre")
	t.Cleanup(screen.close)
	screen.shows("❯")
	for n := 1; !strings.Contains(screen.screen(), "was woken 0 times"); n++ {
		screen.enter("lead a team")
		screen.wait("nothing comes of the words", func() bool {
			return strings.Contains(screen.screen(), "was woken 0 times") || strings.Count(screen.screen(),
				"My tools are not here.") == n
		})
	}
	if raw := string(s.model.Requests()[len(s.model.Requests())-1].Raw); !strings.Contains(raw,
		"messages, results and failures wake you") {
		t.Errorf("the briefing does not say that cadre wakes it:\n%s", raw)
	}
	for n := 1; n <= 2; n++ {
		id := fmt.Sprint(n)
		s.must("task", "claim", "idle", id, "--as", "bob")
		s.must("task", "done", "idle", id, "--as", "bob", "--result", "the port is 471"+id)
		screen.shows(fmt.Sprintf("was woken %d times", n))
		requests := slices.DeleteFunc(s.model.Requests(), func(r *agenttest.Request) bool { return r.Side })
		if got := requests[len(requests)-1].Count("the port is 471" + id); got != 1 {
			t.Errorf("it has the result of task %s %d times:\n%s", id, got, s.model.Story())
		}
	}
	if n := s.model.Requests()[len(s.model.Requests())-1].Count("nonsense"); n > 0 {
		t.Errorf("the model got the text of a failed hook:\n%s", s.model.Story())
	}
	screen.close()
	s.waitFor("no command waits for a session that has ended", func() bool { return len(s.pids("cadre wake")) == 0 })
}
