package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cadre/internal/agent/agenttest"
)

// watchedClaude is a Claude Code whose stream goes through cadre observe.
type watchedClaude struct {
	*studio
	mu     sync.Mutex
	raw    bytes.Buffer // what Claude Code printed
	out    bytes.Buffer // what cadre did
	more   chan struct{}
	claude *exec.Cmd
	cadre  *exec.Cmd
	ended  chan error // of cadre
}

// locked is one of its buffers to write to.
type locked struct {
	*watchedClaude
	to *bytes.Buffer
}

func (l locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
	return l.to.Write(p)
}

// start starts both, with a pipe between them that keeps a copy.
func (c *watchedClaude) start(env []string, prompt string, args ...string) {
	c.t.Helper()
	c.claude = exec.Command(lookIn(c.t, c.env, "claude"), "-p", prompt, "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions")
	c.claude.Dir, c.claude.Env = c.dir, append(slices.Clone(c.env), env...)
	stream, err := c.claude.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	c.cadre = exec.Command(cadre, append([]string{"observe", "-"}, args...)...)
	c.cadre.Dir, c.cadre.Env = c.dir, c.env
	c.cadre.Stdout = locked{c, &c.out}
	var errs bytes.Buffer
	c.cadre.Stderr = &errs
	into, err := c.cadre.StdinPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	for _, cmd := range []*exec.Cmd{c.claude, c.cadre} {
		if err := cmd.Start(); err != nil {
			c.t.Fatal(err)
		}
		c.t.Cleanup(func() { cmd.Process.Kill() })
	}
	c.t.Cleanup(func() {
		if c.t.Failed() {
			c.t.Logf("cadre printed\n%s%s\nthe model was asked\n%s", c.printed(), errs.String(), c.model.Story())
		}
	})
	go func() {
		io.Copy(into, io.TeeReader(stream, locked{c, &c.raw}))
		c.claude.Wait()
		into.Close()
	}()
	c.ended = make(chan error, 1)
	go func() { c.ended <- c.cadre.Wait() }()
}

func lookIn(t *testing.T, env []string, program string) string {
	t.Helper()
	for _, one := range env {
		if path, ok := strings.CutPrefix(one, "PATH="); ok {
			for _, dir := range filepath.SplitList(path) {
				if found, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
					return found
				}
			}
		}
	}
	t.Fatalf("%s is nowhere", program)
	return ""
}

func (c *watchedClaude) printed() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.String()
}

// sees waits until cadre has printed the text.
func (c *watchedClaude) sees(ctx context.Context, text string) bool {
	for !strings.Contains(c.printed(), text) {
		select {
		case <-c.more:
		case <-time.After(10 * time.Millisecond): // another waiter may have had the word
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// end waits until cadre has ended by itself, because its input has.
func (c *watchedClaude) end() {
	c.t.Helper()
	select {
	case err := <-c.ended:
		if err != nil {
			c.t.Errorf("cadre observe ended with %v", err)
		}
	case <-time.After(time.Minute):
		c.t.Error("cadre observe does not end")
	}
}

// passed holds what was passed on against what came.
func (c *watchedClaude) passed() (notices []string) {
	c.t.Helper()
	var original strings.Builder
	for line := range strings.Lines(c.printed()) {
		if strings.HasPrefix(line, `{"type":"team:`) {
			var n struct{ Type string }
			json.Unmarshal([]byte(line), &n)
			notices = append(notices, n.Type)
			continue
		}
		original.WriteString(line)
	}
	if c.raw.String() != original.String() || original.Len() == 0 {
		c.t.Errorf("Claude Code printed\n%s\nand passed on was\n%s", c.raw.String(), original.String())
	}
	return notices
}

// The lead of a team of Claude Code 2.1.47, observed live: before the model may say what comes next, the observer has shown what happened.
func TestObservedClaude(t *testing.T) {
	var c *watchedClaude
	steps := []struct {
		tool  string
		input map[string]any
		seen  string
	}{
		{"TeamCreate", map[string]any{"team_name": "fx", "description": "a team"}, `{"type":"team:created"`},
		{"TaskCreate", map[string]any{"subject": "Build it", "description": "All of it.", "activeForm": "Building it"}, `{"type":"team:task:created"`},
		{"Task", map[string]any{"description": "alice works", "prompt": "ROLE=alice Work.", "subagent_type": "general-purpose", "team_name": "fx", "name": "alice"}, `{"type":"team:member:joined"`},
		{"TaskUpdate", map[string]any{"taskId": "1", "owner": "alice", "status": "in_progress"}, `{"type":"team:task:claimed"`},
		{"SendMessage", map[string]any{"type": "message", "recipient": "alice", "content": "Go on.", "summary": "go on"}, `{"type":"team:message:received"`},
		{"TaskUpdate", map[string]any{"taskId": "1", "status": "completed"}, `{"type":"team:task:completed"`},
		{"TaskList", map[string]any{}, ""},
	}
	done := make(chan struct{})
	var once sync.Once
	s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
		if r.Has("ROLE=alice") && !r.Has("ROLE=lead") {
			return agenttest.Say("I am at work.")
		}
		n := calls(r)
		if n >= len(steps) {
			once.Do(func() { close(done) })
			return agenttest.Say("All is done.")
		}
		turn := agenttest.Use(steps[n].tool, steps[n].input)
		if n > 0 && steps[n-1].seen != "" {
			turn.Wait = func(ctx context.Context) { c.sees(ctx, steps[n-1].seen) }
		}
		return turn
	}, "claude@2.1.47")
	c = &watchedClaude{studio: s, more: make(chan struct{}, 1)}
	c.start([]string{"CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS=1", "CLAUDE_CODE_ENABLE_TASKS=1"}, "ROLE=lead Lead.", "--json", "--pass", "--as-team", "watched")
	select {
	case <-done:
	case <-time.After(90 * time.Second):
		t.Fatal("the lead does not come to its end")
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c.sees(ctx, "All is done.")
	c.claude.Process.Kill() // with a teammate in it, it does not end by itself
	c.end()
	notices := c.passed()
	want := []string{"team:created", "team:task:created", "team:member:joined", "team:task:claimed", "team:message:received", "team:task:completed"}
	at := 0
	for _, one := range notices {
		if at < len(want) && one == want[at] {
			at++
		}
	}
	if at < len(want) {
		t.Errorf("seen in order: %v; of these %v is missing", notices, want[at])
	}
	if out := s.must("status", "watched"); !strings.Contains(out, "1 of 1 tasks done") || !strings.Contains(out, "alice") {
		t.Errorf("kept is\n%s", out)
	}
	if r := s.cadre("task", "add", "watched", "one more"); r.code != 2 {
		t.Errorf("it takes a task: %+v", r)
	}
}

// calls is how many tools the model has called.
func calls(r *agenttest.Request) (n int) {
	for _, m := range r.Messages {
		n += len(m.Calls)
	}
	return n
}

// Claude Code 2.1.329 has tasks without a terminal, and no team: what it says is passed on, and nothing is made of it.
func TestObservedClaudeWithoutATeam(t *testing.T) {
	steps := []agenttest.Turn{
		agenttest.Use("TaskCreate", map[string]any{"subject": "Build it", "description": "All of it."}),
		agenttest.Use("TaskUpdate", map[string]any{"taskId": "1", "status": "in_progress"}),
		agenttest.Use("TaskList", map[string]any{}),
		agenttest.Say("All is done."),
	}
	s := newStudio(t, func(r *agenttest.Request) agenttest.Turn { return steps[min(calls(r), len(steps)-1)] }, "claude")
	c := &watchedClaude{studio: s, more: make(chan struct{}, 1)}
	c.start([]string{"CLAUDE_CODE_ENABLE_TODO_TOOLS=1"}, "ROLE=lead Lead.", "--json", "--pass", "--as-team", "watched")
	c.end()
	if notices := c.passed(); len(notices) > 0 {
		t.Errorf("there is no team, and seen was %v", notices)
	}
	if !strings.Contains(c.raw.String(), `"TaskCreate"`) || !strings.Contains(c.raw.String(), "All is done.") {
		t.Errorf("Claude Code made no task:\n%s", c.raw.String())
	}
	if r := s.cadre("status", "watched"); r.code != 2 {
		t.Errorf("a team is kept: %s", r.out)
	}
}

// A person's interactive Claude Code leads a team of its own, with a teammate in its own process or in a pane beside it; its transcripts alone show live what both
// do.
func TestObservedTranscripts(t *testing.T) {
	for _, mode := range []string{"in-process", "tmux"} {
		t.Run(mode, func(t *testing.T) {
			turn := func(r *agenttest.Request, turns ...agenttest.Turn) agenttest.Turn {
				return turns[min(calls(r), len(turns)-1)]
			}
			s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
				switch {
				case r.Has("ROLE=lead"):
					return turn(r, agenttest.Use("TaskCreate", map[string]any{"subject": "Build it", "description": "All of it."}),
						agenttest.Use("TaskUpdate", map[string]any{"taskId": "1", "owner": "alice"}),
						agenttest.Use("Agent", map[string]any{"description": "alice works", "prompt": "ROLE=alice Work.", "subagent_type": "general-purpose", "name": "alice"}),
						agenttest.Say("I wait for her."))
				case r.Has("ROLE=alice"):
					return turn(r, agenttest.Use("TaskUpdate", map[string]any{"taskId": "1", "status": "in_progress"}),
						agenttest.Use("TaskUpdate", map[string]any{"taskId": "1", "status": "completed"}),
						agenttest.Use("SendMessage", map[string]any{"to": "team-lead", "summary": "it is done", "message": "All of it is built."}),
						agenttest.Say("That is all."))
				}
				return agenttest.Say("Well.")
			}, "claude")
			s.env = append(s.env, "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS=1", "CLAUDE_CODE_ENABLE_TODO_TOOLS=1")
			for name, text := range map[string]string{
				".claude.json": fmt.Sprintf(`{"hasCompletedOnboarding":true,"theme":"dark","bypassPermissionsModeAccepted":true,"customApiKeyResponses":{"approved":["dummy"],"rejected":[]},
"projects":{%q:{"hasTrustDialogAccepted":true,"hasCompletedProjectOnboarding":true}}}`, s.dir),
				".claude/settings.json": `{"env":{"CLAUDE_CODE_ENABLE_TODO_TOOLS":"1"},"skipDangerousModePermissionPrompt":true}`,
			} {
				path := filepath.Join(s.root, name)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			p := s.start("observe", "--transcripts", filepath.Join(s.root, ".claude"), "--follow", "--json", "--as-team", "watched")
			screen := s.terminal(lookIn(t, s.env, "claude"), "--teammate-mode", mode, "--dangerously-skip-permissions")
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("%s\n%s\n%s", p.said(), screen.screen(), s.model.Story())
				}
				p.kill()
				screen.close()
				s.waitFor("nothing is left", func() bool { return len(s.processes()) == 0 })
			})
			screen.shows("❯")
			screen.enter("ROLE=lead Lead.")
			for _, event := range []string{`"team:created"`, `"team:task:created"`, `"team:member:joined"`, `"team:task:claimed"`, `"team:task:completed"`, `"content":"All of it is built."`} {
				p.awaits(event)
			}
			p.Process.Signal(os.Interrupt)
			if code := p.wait(); code != 0 {
				t.Errorf("interrupted it ends with %d", code)
			}
			for _, event := range []string{`"team:task:created"`, `"team:member:joined"`, `"team:task:claimed"`, `"team:task:completed"`, `"content":"All of it is built."`} {
				if n := strings.Count(p.said(), event); n != 1 {
					t.Errorf("%s was said %d times", event, n)
				}
			}
			done := read[struct{ Status, Owner, CompletedBy string }](s.world, "task", "show", "watched", "1")
			if done.Status != "completed" || done.Owner != "alice" || done.CompletedBy != "alice" {
				t.Errorf("the task is %+v", done)
			}
		})
	}
}
