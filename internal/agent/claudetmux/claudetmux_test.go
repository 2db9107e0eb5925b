package claudetmux_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cadre/internal/agent"
	"cadre/internal/agent/agenttest"
	"cadre/internal/agent/claudetmux"
)

func TestMain(m *testing.M) { agenttest.Main(m) }

// bench returns a bench for a Claude Code that knows its home, with a model that plays the script.
func bench(t *testing.T, script agenttest.Script) (*agenttest.Bench, *agenttest.Server) {
	t.Helper()
	program := agenttest.Installed(t, "claude")
	if _, err := os.Stat("/usr/bin/tmux"); err != nil {
		t.Skip("needs tmux")
	}
	model := agenttest.NewServer(t, script)
	w := agenttest.NewWorld(t, model, program)
	b := agenttest.NewBench(t, claudetmux.Agent{}, w)
	b.Spec.Program = program.Path
	b.Spec.ToolServer = nil
	settings := fmt.Sprintf(`{"hasCompletedOnboarding":true,"theme":"dark","bypassPermissionsModeAccepted":true,"customApiKeyResponses":{"approved":["dummy"],"rejected":[]},
"projects":{%q:{"hasTrustDialogAccepted":true,"hasCompletedProjectOnboarding":true}}}`, w.Dir)
	if err := os.WriteFile(filepath.Join(w.Home, ".claude.json"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	return b, model
}

// TestConversation checks a session at a terminal. A prompt is reported once as received, and what
// the agent says and does is reported. A prompt that comes during a turn is in the next turn. At
// the end of its turn the agent is idle.
func TestConversation(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	b, model := bench(t, func(r *agenttest.Request) agenttest.Turn {
		switch {
		case strings.Contains(r.Results(), "slow"):
			<-release
			return agenttest.Say("The first is done.")
		case r.Has("the first <b>task</b>") && r.Calls("Bash") == 0:
			return agenttest.Use("Bash", map[string]any{"command": "echo slow", "description": "wait"})
		case strings.Contains(r.LastUser(), "the second"):
			return agenttest.Say("The second is done.")
		}
		return agenttest.Say("Hm.")
	})
	b.Spec.Access.Mode = "bypassPermissions"
	r := b.Start()
	if s := agenttest.Next[agent.Started](r); s.Session == "" || s.Resumed {
		t.Errorf("it started as %+v", s)
	}
	r.Tell("1", "This is the first <b>task</b> & more.")
	r.Got("1")
	if u := agenttest.Next[agent.ToolStarted](r); u.Tool != "Bash" || !strings.Contains(u.Input, "echo slow") {
		t.Errorf("it used %+v", u)
	}
	if u := agenttest.Next[agent.ToolFinished](r); u.Output != "slow" || u.Failed {
		t.Errorf("its tool gave %+v", u)
	}
	model.WaitFor(t, "the result", func(r *agenttest.Request) bool { return strings.Contains(r.Results(), "slow") })
	r.Prompt(agenttest.Mail("2", 1, "and this is the second"))
	close(release)
	if u := agenttest.Next[agent.Used](r); u.Usage.InputTokens == 0 {
		t.Errorf("it used %+v", u)
	}
	if u := agenttest.Next[agent.TurnEnded](r); u.Text != "The first is done." || u.Problem != nil || u.Interrupted {
		t.Errorf("its turn ended with %+v", u)
	}
	r.Got("2")
	if u := agenttest.Next[agent.TurnEnded](r); u.Text != "The second is done." || u.Continues {
		t.Errorf("its turn ended with %+v", u)
	}
	last := model.Requests()[len(model.Requests())-1]
	for _, words := range []string{"the first <b>task</b> & more.", "and this is the second", `ref="1-`} {
		if n := last.Count(words); n != 1 {
			t.Errorf("it has %q %d times", words, n)
		}
	}
	if got := agenttest.Said[agent.Received](r); len(got) != 2 {
		t.Errorf("received were %v", got)
	}
}

// TestBetweenTools checks that a prompt which comes while tools run is in the context after them,
// in the same turn and once. A prompt that is too long for that is in the next turn.
func TestBetweenTools(t *testing.T) {
	t.Parallel()
	b, model := bench(t, func(r *agenttest.Request) agenttest.Turn {
		switch {
		case r.Has("the third"):
			return agenttest.Say("I have all.")
		case r.Has("the second"):
			return agenttest.Say("I have two.")
		case r.Has("the first"):
			return agenttest.Use("Bash", map[string]any{"command": "touch works; until [ -e go ]; do sleep 0.05; done",
				"description": "wait"})
		}
		return agenttest.Say("Hm.")
	})
	b.Spec.Access.Mode = "bypassPermissions"
	b.Spec.Scratch = filepath.Join(b.World.Home, "it's a folder")
	r := b.Start()
	r.Tell("1", "the first")
	agenttest.Next[agent.ToolStarted](r)
	r.Prompt(agenttest.Mail("2", 1, "and <b>this</b> is", "the second"))
	r.Tell("3", "the third"+strings.Repeat(" and more", 2000))
	if err := os.WriteFile(filepath.Join(b.World.Dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.Got("2")
	if u := agenttest.Next[agent.TurnEnded](r); u.Text != "I have two." {
		t.Errorf("its turn ended with %+v", u)
	}
	r.Got("3")
	if u := agenttest.Next[agent.TurnEnded](r); u.Text != "I have all." || u.Continues {
		t.Errorf("its next turn ended with %+v", u)
	}
	last := model.Requests()[len(model.Requests())-1]
	for _, words := range []string{"the second", "the third", `ref="2-`} {
		if n := last.Count(words); n != 1 {
			t.Errorf("it has %q %d times", words, n)
		}
	}
	if got := agenttest.Said[agent.Received](r); len(got) != 3 {
		t.Errorf("received were %v", got)
	}
}

// TestResume checks that a session whose host died continues with its history, and reports which
// messages that has. The files that the host left of its team are removed.
func TestResume(t *testing.T) {
	t.Parallel()
	b, model := bench(t, func(r *agenttest.Request) agenttest.Turn { return agenttest.Say("I have it.") })
	b.Spec.Access.Mode = "bypassPermissions"
	r := b.Start()
	first := agenttest.Next[agent.Started](r)
	r.Prompt(agenttest.Mail("1", 7, "the port is 4711"))
	agenttest.Next[agent.TurnEnded](r)
	teams, err := filepath.Glob(filepath.Join(b.World.Home, ".claude", "teams", "cadre-*"))
	if err != nil || len(teams) != 1 {
		t.Fatal(teams, err)
	}
	config, err := os.ReadFile(filepath.Join(teams[0], "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	r.End()
	// This is what a killed host leaves, with a message that its agent did not get.
	if err := os.MkdirAll(filepath.Join(teams[0], "inboxes"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"config.json": string(config),
		"inboxes/ann.json": `[{"from":"team-lead","text":"too late","timestamp":"2026-01-01T00:00:00.000Z","read":false}]`} {
		if err := os.WriteFile(filepath.Join(teams[0], name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.Spec.Resume = first.Session
	again := b.Start()
	if s := agenttest.Next[agent.Started](again); !s.Resumed || s.Session != first.Session ||
		fmt.Sprint(s.Seen) != "[7]" {
		t.Errorf("it continues as %+v", s)
	}
	again.Tell("2", "and the host?")
	again.Got("2")
	if u := agenttest.Next[agent.TurnEnded](again); u.Text != "I have it." {
		t.Errorf("its turn ended with %+v", u)
	}
	last := model.Requests()[len(model.Requests())-1]
	if !last.Has("the port is 4711") || !last.Has("and the host?") || last.Has("too late") {
		t.Errorf("it was told:\n%s", model.Story())
	}
	if n := len(agenttest.Said[agent.Text](again)); n != 1 {
		t.Errorf("it said %d texts again", n)
	}
	again.End()
	b.Spec.Resume = "00000000-0000-4000-8000-000000000000" // of which nothing is left
	fresh := b.Start()
	if s := agenttest.Next[agent.Started](fresh); s.Resumed || s.Session == b.Spec.Resume {
		t.Errorf("it began as %+v", s)
	}
}

// TestPermission checks that the agent asks for permission to use a tool, and obeys the answer.
func TestPermission(t *testing.T) {
	t.Parallel()
	b, _ := bench(t, func(r *agenttest.Request) agenttest.Turn {
		for n, word := range []string{"yes", "no"} {
			// The program may miss its own team file while it writes it, and asks to use the tool
			// again.
			if again := strings.Contains(r.Results(), "could not be delivered"); strings.Contains(r.LastUser(),
				"touch "+word) && (r.Calls("Bash") == n || again) {
				return agenttest.Use("Bash", map[string]any{"command": "touch made-" + word, "description": "make"})
			}
		}
		return agenttest.Say("done")
	})
	r := b.Start()
	r.Tell("yes", "touch yes")
	asked := agenttest.Next[agent.PermissionAsked](r)
	if asked.Tool != "Bash" || !strings.Contains(asked.Input, "touch made-yes") {
		t.Errorf("it asks for %+v", asked)
	}
	asked.Answer(true, "")
	agenttest.Next[agent.TurnEnded](r)
	r.Tell("no", "touch no")
	agenttest.Next[agent.PermissionAsked](r).Answer(false, "not that")
	agenttest.Next[agent.TurnEnded](r)
	for word, want := range map[string]bool{"yes": true, "no": false} {
		if _, err := os.Stat(filepath.Join(b.World.Dir, "made-"+word)); (err == nil) != want {
			t.Errorf("made-%s: %v", word, err)
		}
	}
}

// TestEnd checks that a stopped session ends with its terminal and its files, that an interrupt
// ends only the turn, and that a killed program has ended by itself.
func TestEnd(t *testing.T) {
	t.Parallel()
	b, model := bench(t, func(r *agenttest.Request) agenttest.Turn {
		if strings.Contains(r.LastUser(), "for ever") && r.Calls("Bash") == 0 {
			return agenttest.Use("Bash", map[string]any{"command": "tail -f /dev/null", "description": "wait"})
		}
		return agenttest.Say("done")
	})
	b.Spec.Access.Mode = "bypassPermissions"
	r := b.Start()
	agenttest.Next[agent.Started](r)
	r.Tell("1", "work for ever")
	agenttest.Next[agent.ToolStarted](r)
	if err := r.Interrupt(b.Ctx); err != nil {
		t.Fatal(err)
	}
	if u := agenttest.Next[agent.TurnEnded](r); !u.Interrupted {
		t.Errorf("its turn ended with %+v", u)
	}
	r.Tell("2", "and now?")
	if u := agenttest.Next[agent.TurnEnded](r); u.Text != "done" {
		t.Errorf("its turn ended with %+v\n%s", u, model.Story())
	}
	pids, err := b.Spec.Procs.Pids()
	if err != nil || len(pids) != 1 {
		t.Fatal(pids, err)
	}
	syscall.Kill(pids[0], syscall.SIGKILL) // the server of its terminal
	if u := agenttest.Next[agent.Ended](r); u.Err == nil {
		t.Error("it says that it was stopped")
	}
	again := b.Start()
	agenttest.Next[agent.Started](again)
	again.Tell("3", "hello")
	agenttest.Next[agent.TurnEnded](again)
	began := time.Now()
	again.End()
	if u := agenttest.Next[agent.Ended](again); u.Err != nil || time.Since(began) > 10*time.Second {
		t.Errorf("stopped it says %v, after %s", u.Err, time.Since(began))
	}
	if left, _ := filepath.Glob(filepath.Join(b.World.Home, ".claude", "t*", "cadre-*")); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
	entries, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range entries {
		if data, err := os.ReadFile(path); err == nil && strings.Contains("\x00"+string(data),
			"\x00HOME="+b.World.Home+"\x00") {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
			t.Errorf("left running is %q", line)
		}
	}
}
