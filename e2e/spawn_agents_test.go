package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/agent/agenttest"
)

// TestSpawnOfAnAgent checks that a teammate is not added if its program or its login is missing. A
// teammate whose session fails later waits for the person.
func TestSpawnOfAnAgent(t *testing.T) {
	t.Parallel()
	s := newStudio(t, complete, "claude")
	s.must("create", "hands")
	refused := func(code int, name string, words string, args ...string) {
		t.Helper()
		r := s.cadre(append([]string{"spawn", "hands", name}, args...)...)
		if r.code != code || !strings.Contains(r.err, name+" was not added: ") || !strings.Contains(r.err, words) ||
			strings.Contains(r.out, "joined") {
			t.Errorf("spawn %s %q: exit status %d\n%s%s", name, args, r.code, r.out, r.err)
		}
		if s.cadre("status", "hands").code != 0 || strings.Contains(s.must("status", "hands"), name) {
			t.Errorf("%s is in the team", name)
		}
	}
	script := func(name, text string) string {
		path := filepath.Join(s.dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	broken := script("broken", "echo 'cannot find libnode.so.42' >&2; exit 127")
	late := script("late", fmt.Sprintf("case \"$1\" in --version|auth) exec '%s' \"$@\";; esac\necho 'it broke "+
		"later' >&2; exit 9", agenttest.Installed(t, "claude").Path))

	refused(2, "ann", "codex cannot work here: not installed; install Codex", "--agent", "codex")
	refused(2, "bob", "/nowhere/claude", "--agent", "claude", "--command", "/nowhere/claude")
	refused(2, "carl", "cannot find libnode.so.42", "--agent", "claude", "--command", broken)
	refused(1, "dora", "To log in: claude auth login", "--agent", "claude", "--env", "ANTHROPIC_API_KEY=")

	if out := s.must("spawn", "hands", "eve", "--agent", "claude", "--wait"); !strings.Contains(out,
		"its session runs") {
		t.Errorf("the item is %s", out)
	}
	if log := s.must("log", "hands"); !strings.Contains(log, "eve started") {
		t.Errorf("eve did not start:\n%s", log)
	}

	r := s.cadre("spawn", "hands", "fred", "--agent", "claude", "--command", late, "--wait")
	if r.code != 1 || !strings.Contains(r.err, "fred could not start: it broke later") ||
		strings.Contains(r.out, "joined") {
		t.Errorf("exit status %d\n%s%s", r.code, r.out, r.err)
	}
	s.must("spawn", "hands", "gil", "--agent", "claude", "--command", late)
	s.waitFor("the failure of gil is listed", func() bool {
		return strings.Contains(s.cadre("attention").out, "gil failed: it broke later")
	})
	s.must("cleanup", "hands", "--force")
}

// TestLeadSpawnsWithinTheServer checks that a lead cannot add more teammates with its tool than the
// server of its team may run.
func TestLeadSpawnsWithinTheServer(t *testing.T) {
	t.Parallel()
	spawn := func(r *agenttest.Request, name string) agenttest.Turn {
		return agenttest.Use(r.Tool("SpawnTeammate"),
			map[string]any{"name": name, "agent": "claude", "prompt": "Wait."})
	}
	s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
		switch {
		case !r.Has("the lead of a team"):
			return agenttest.Say("I wait.")
		case r.Calls(r.Tool("SpawnTeammate")) == 0:
			return spawn(r, "ann")
		case r.Calls(r.Tool("SpawnTeammate")) == 1:
			return spawn(r, "bob")
		}
		return agenttest.Say("I have one teammate.")
	}, "claude")
	s.serve("--max-sessions", "1")
	s.must("run", "--detach", "lead somebody", "--agent", "claude", "--name", "led")
	s.model.WaitFor(t, "the refusal", func(r *agenttest.Request) bool {
		return r.Has("the server runs 1 teammates, of at most 1")
	})
	if status := s.must("status", "led"); !strings.Contains(status, "ann") || strings.Contains(status, "bob") {
		t.Errorf("the team is\n%s", status)
	}
	s.must("abort", "led", "--yes")
}

// TestLoginsInDoctor checks that doctor says for each agent whether it is logged in, and never
// prints a key.
func TestLoginsInDoctor(t *testing.T) {
	t.Parallel()
	s := newStudio(t, complete, "claude", "codex", "gemini")
	type check struct{ Name, Login, Detail string }
	logins := func() map[string]check {
		all := map[string]check{}
		for _, c := range read[[]check](s.world, "doctor") {
			all[c.Name] = c
			if strings.Contains(c.Detail, "dummy") {
				t.Errorf("doctor prints a key: %s", c.Detail)
			}
		}
		return all
	}
	all := logins()
	for _, name := range []string{"claude", "codex", "gemini"} {
		if all[name].Login != "logged in" {
			t.Errorf("%s: got %+v, want it logged in", name, all[name])
		}
	}
	s.env = append(s.env, "ANTHROPIC_API_KEY=", "CADRE_TEST_KEY=", "GEMINI_API_KEY=")
	if err := os.Remove(filepath.Join(s.root, ".gemini/settings.json")); err != nil {
		t.Fatal(err)
	}
	all = logins()
	for name, how := range map[string]string{"claude": "claude auth login", "codex": "set CADRE_TEST_KEY",
		"gemini": "start gemini"} {
		if all[name].Login != "not logged in" || !strings.Contains(all[name].Detail, "to log in: "+how) {
			t.Errorf("%s: got %+v, want it not logged in, with %q", name, all[name], how)
		}
	}
	if err := os.Remove(filepath.Join(s.root, ".codex/config.toml")); err != nil {
		t.Fatal(err)
	}
	if c := logins()["codex"]; c.Login != "not logged in" || !strings.Contains(c.Detail, "codex login") {
		t.Errorf("codex: got %+v, want it not logged in, with: codex login", c)
	}
}

// TestGoalStartsItsLeadAtOnce checks that a run for a goal starts the program of its lead once, for
// the session. It does not ask for the version first, which takes some programs seconds.
func TestGoalStartsItsLeadAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	program := filepath.Join(w.dir, "bin", "gemini")
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho \"$*\" >> '"+w.dir+"/calls'\necho 'no model today' "+
		">&2\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i, v := range w.env {
		if path, ok := strings.CutPrefix(v, "PATH="); ok {
			w.env[i] = "PATH=" + filepath.Dir(program) + ":" + path
		}
	}
	r := w.cadre("run", "sort the shed", "--agent", "gemini", "--name", "quick")
	if r.code != 1 || !strings.Contains(r.out+r.err, "no model today") {
		t.Errorf("exit status %d\n%s%s", r.code, r.out, r.err)
	}
	calls, err := os.ReadFile(filepath.Join(w.dir, "calls"))
	if err != nil || strings.Contains(string(calls), "--version") || !strings.Contains(string(calls), "acp") {
		t.Errorf("it was called with %q, %v", calls, err)
	}
}
