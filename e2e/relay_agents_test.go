package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os/exec"
	"strings"
	"testing"

	"cadre/internal/agent/agenttest"
)

// begins creates a team with a task, and then continues with next.
func begins(next agenttest.Script) agenttest.Script {
	return func(r *agenttest.Request) agenttest.Turn {
		switch {
		case r.Calls("TeamCreate") == 0:
			return agenttest.Use("TeamCreate", map[string]any{"team_name": "fx"})
		case r.Calls("TaskCreate") == 0:
			return agenttest.Use("TaskCreate", map[string]any{"subject": "Look", "description": "at it"})
		}
		return next(r)
	}
}

// TestRelayedTeam checks a program that uses Claude Code through cadre observe --sdk-url. It gets
// Claude Code's lines unchanged, and between them what the team does. In the end the team is kept.
func TestRelayedTeam(t *testing.T) {
	t.Parallel()
	s := newStudio(t, begins(func(*agenttest.Request) agenttest.Turn { return agenttest.Say("The team is there.") }),
		"claude@2.1.47")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c := exec.CommandContext(ctx, cadre, "observe", "--sdk-url", ":0", "--exec", "claude", "--pass", "--json",
		"--as-team", "watched")
	c.Dir, c.Env = s.dir, append(s.env, "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS=1", "CLAUDE_CODE_ENABLE_TASKS=1")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var words strings.Builder
	c.Stderr = &words
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(in,
		`{"type":"user","message":{"role":"user","content":"begin a team"},"parent_tool_use_id":null,"session_id":""}`)
	kinds := map[string]int{}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l struct{ Type, Result string }
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Errorf("%q: %v", lines.Text(), err)
		}
		if kinds[l.Type]++; l.Type == "result" && l.Result == "The team is there." {
			in.Close()
		}
	}
	if err := c.Wait(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, words.String(), s.model.Story())
	}
	for _, kind := range []string{"system", "assistant", "result", "team:created", "team:task:created"} {
		if kinds[kind] == 0 {
			t.Errorf("there is no line of type %s: %v", kind, kinds)
		}
	}
	if board := s.must("task", "list", "watched"); !strings.Contains(board, "Look") {
		t.Errorf("kept is\n%s", board)
	}
}

// TestRelayIsKilled checks that a killed relay does not end a program that it did not start. The
// next relay connects to that program again, and the team continues in its history.
func TestRelayIsKilled(t *testing.T) {
	t.Parallel()
	s := newStudio(t, begins(func(r *agenttest.Request) agenttest.Turn {
		switch {
		case r.Has("make one more") && r.Calls("TaskCreate") == 1:
			return agenttest.Use("TaskCreate", map[string]any{"subject": "Listen", "description": "to it"})
		case r.Has("make one more"):
			return agenttest.Say("There are two.")
		}
		return agenttest.Say("The team is there.")
	}), "claude@2.1.47")
	s.env = append(s.env, "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS=1", "CLAUDE_CODE_ENABLE_TASKS=1",
		"CLAUDE_CODE_SESSION_ACCESS_TOKEN=between-the-two-of-us")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	address := ":0"
	relay := func(prompt, answer string) *watcher {
		w := s.watch("--sdk-url", address, "--pass", "--json", "--as-team", "watched")
		fmt.Fprintf(w.in,
			`{"type":"user","message":{"role":"user","content":%q},"parent_tool_use_id":null,"session_id":""}`+"\n",
			prompt)
		const told = "the program is started with --sdk-url "
		if !w.err.has(ctx, told) {
			t.Fatal("cadre observe does not print where the program connects")
		}
		if address == ":0" {
			_, words, _ := strings.Cut(w.err.String(), told)
			to, err := url.Parse(strings.Fields(words)[0])
			if err != nil {
				t.Fatal(err)
			}
			address = to.Host // the next relay has the same address
			claude := s.program("claude", "--sdk-url", to.String())
			if err := claude.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { claude.Process.Kill(); claude.Wait() })
		}
		if !w.out.has(ctx, `"result":"`+answer+`"`) {
			t.Fatalf("the program does not print %q\n%s", answer, s.model.Story())
		}
		return w
	}
	first := relay("begin a team", "The team is there.")
	first.Process.Kill()
	<-first.ended
	second := relay("make one more", "There are two.")
	second.in.Close()
	second.end()
	history := strings.Join(s.events("watched"), "\n")
	if strings.Count(history, `"team_created"`) != 1 || strings.Count(history, `"task_created"`) != 2 ||
		!strings.Contains(history, `"Listen"`) {
		t.Errorf("kept is\n%s", history)
	}
}
