package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"cadre/internal/agent/agenttest"
)

// liveRun is a run whose output lines are read as they come.
type liveRun struct {
	*exec.Cmd
	lines chan string
	all   []string
}

// follow starts a run with these arguments. It collects the lines of both outputs.
func (s *studio) follow(args ...string) *liveRun {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	s.t.Cleanup(cancel)
	w := &liveRun{Cmd: exec.CommandContext(ctx, cadre, append([]string{"run"}, args...)...),
		lines: make(chan string, 1000)}
	w.Dir, w.Env = s.dir, s.env
	out, err := w.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	w.Stderr = w.Stdout
	if err := w.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() {
		defer close(w.lines)
		for in := bufio.NewScanner(out); in.Scan(); {
			w.lines <- in.Text()
		}
		io.Copy(io.Discard, out)
	}()
	return w
}

// until reads lines up to the first that holds all of the words.
func (w *liveRun) until(t *testing.T, within time.Duration, words ...string) string {
	t.Helper()
	deadline := time.After(within)
	for {
		select {
		case line, ok := <-w.lines:
			if !ok {
				t.Fatalf("the run ended without a line with %q:\n%s", words, strings.Join(w.all, "\n"))
			}
			w.all = append(w.all, line)
			has := true
			for _, word := range words {
				has = has && strings.Contains(line, word)
			}
			if has {
				return line
			}
		case <-deadline:
			t.Fatalf("there is no line with %q after %s:\n%s", words, within, strings.Join(w.all, "\n"))
		}
	}
}

// end reads the remaining lines. It returns all lines and the exit status.
func (w *liveRun) end() (string, int) {
	for line := range w.lines {
		w.all = append(w.all, line)
	}
	w.Wait()
	return strings.Join(w.all, "\n"), w.ProcessState.ExitCode()
}

// atOnce limits the time from an agent's failure to its line on the terminal, on a busy machine.
// Each of these agents retries for a minute or more.
const atOnce = 30 * time.Second

// TestErrorsAreShownAtOnce checks that the first failure of the model is on the terminal, with what
// to do. A failure that only a person can fix ends the attempt.
func TestErrorsAreShownAtOnce(t *testing.T) {
	t.Parallel()
	logs := map[string]string{"claude": "claude auth login", "codex": "codex login",
		"gemini": "start gemini and choose", "opencode": "opencode auth login"}
	for _, name := range []string{"claude", "codex", "gemini", "opencode"} {
		for _, status := range []int{401, 403, 429, 500} {
			t.Run(fmt.Sprint(name, "/", status), func(t *testing.T) {
				t.Parallel()
				s := newStudio(t, func(*agenttest.Request) agenttest.Turn {
					return agenttest.Fail(status, "the house is on fire")
				}, name)
				w := s.follow("sort the shed", "--agent", name, "--name", "shed")
				s.model.WaitFor(t, "the goal", func(*agenttest.Request) bool { return true })
				if status > 403 {
					w.until(t, atOnce, "lead ", "if this lasts")
					w.Process.Signal(syscall.SIGINT)
					w.end()
					return
				}
				w.until(t, atOnce, "lead ", logs[name])
				out, code := w.end()
				if code != 1 || !strings.Contains(out, "not finished: ") || strings.Contains(out, "in a row") {
					t.Errorf("exit status %d\n%s", code, out)
				}
				if n := len(s.model.Requests()); n > 2 {
					t.Errorf("the model got %d requests", n)
				}
				text, err := os.ReadFile(filepath.Join(s.dir, "shed-report.md"))
				if err != nil || !strings.Contains(string(text), "Not finished: ") ||
					!strings.Contains(string(text), logs[name]) {
					t.Errorf("the report does not say why nothing was done: %v\n%s", err, text)
				}
			})
		}
	}
}

// TestNoNetworkIsShown checks that an unreachable model is reported at once too.
func TestNoNetworkIsShown(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"claude", "codex", "gemini", "opencode"} {
		t.Run(name, func(t *testing.T) {
			sampled(t, name)
			t.Parallel()
			s := newStudio(t, func(*agenttest.Request) agenttest.Turn { return agenttest.Say("no") }, name)
			const nowhere = "http://127.0.0.1:9"
			for i, v := range s.env {
				s.env[i] = strings.ReplaceAll(v, s.model.URL, nowhere)
			}
			for _, file := range []string{".codex/config.toml", ".config/opencode/opencode.json"} {
				path := filepath.Join(s.root, file)
				text, err := os.ReadFile(path)
				if err == nil {
					err = os.WriteFile(path, []byte(strings.ReplaceAll(string(text), s.model.URL, nowhere)), 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			w := s.follow("sort the shed", "--agent", name)
			w.until(t, patience, "lead ", "check the network")
			w.Process.Signal(syscall.SIGINT)
			w.end()
		})
	}
}

// TestMissingAgents checks that a missing program is found before the team exists. A rerun finds it
// before a member joins in vain.
func TestMissingAgents(t *testing.T) {
	t.Parallel()
	s := newStudio(t, complete, "claude")
	file := s.file("name: gone\npermissions: {mode: bypassPermissions}\nmembers: [{name: ann, agent: codex}, {name: " +
		"bob, agent: claude, command: /nowhere/claude}]\ntasks: [{id: one, owner: ann}]\n")
	r := s.run(file)
	s.ended(r, 2)
	for _, words := range []string{"codex cannot work here: not installed; install Codex", "(ann)",
		"/nowhere/claude", "(bob)"} {
		if !strings.Contains(r.err, words) {
			t.Errorf("the command does not print %q: %s", words, r.err)
		}
	}
	if s.cadre("status", "gone").code != 2 {
		t.Error("status of the removed team did not end with 2")
	}

	program := filepath.Join(s.dir, "claude-here")
	script := "#!/bin/sh\nexit 3\n"
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	file = s.file("name: going\npermissions: {mode: bypassPermissions}\nmembers: [{name: ann, agent: claude, " +
		"command: ./claude-here}]\ntasks: [{id: one}]\n")
	s.ended(s.run(file), 1)
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	r = s.run(file)
	s.ended(r, 1)
	if out := s.must("status", "going"); strings.Contains(out, "ann-again") ||
		!regexp.MustCompile(`ann failed`).MatchString(r.err) {
		t.Errorf("the run prints %s\n%s", r.err, out)
	}
	if !strings.Contains(s.report(r), "ann failed") {
		t.Errorf("the report does not say why nothing was done:\n%s", s.report(r))
	}
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	s.ended(s.run(file), 1)
	if out := s.must("status", "going"); !strings.Contains(out, "ann-again-2") {
		t.Errorf("ann did not start after her program came back:\n%s", out)
	}
}
