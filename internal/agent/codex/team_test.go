package codex_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cadre/internal/agent"
	"cadre/internal/agent/agenttest"
	"cadre/internal/agent/codex"
)

func bench(t *testing.T, script agenttest.Script) (*agenttest.Bench, *agenttest.Server) {
	t.Helper()
	program := agenttest.Installed(t, "codex")
	model := agenttest.NewServer(t, script)
	return agenttest.NewBench(t, codex.Agent{Program: program.Path}, agenttest.NewWorld(t, model, program)), model
}

// notes gives the project an MCP server, and returns the name of its only tool.
func notes(b *agenttest.Bench) string {
	b.T.Helper()
	command := b.ServeTools()
	var args []string
	for _, a := range command[1:] {
		args = append(args, fmt.Sprintf("%q", a))
	}
	f, err := os.OpenFile(filepath.Join(b.World.Home, ".codex", "config.toml"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		b.T.Fatal(err)
	}
	fmt.Fprintf(f, "\n[mcp_servers.notes]\ncommand = %q\nargs = [%s]\n", command[0], strings.Join(args, ", "))
	if err := f.Close(); err != nil {
		b.T.Fatal(err)
	}
	return "mcp__notes/TeamStatus"
}

// TestToolOfTheProjectsServer checks that a tool of the project's own MCP server needs permission
// like any other, and runs only after it was allowed.
func TestToolOfTheProjectsServer(t *testing.T) {
	t.Parallel()
	for _, allowed := range []bool{true, false} {
		t.Run(fmt.Sprint(allowed), func(t *testing.T) {
			var tool string
			b, model := bench(t, func(r *agenttest.Request) agenttest.Turn {
				if r.Calls("TeamStatus") == 0 {
					return agenttest.Use(tool, map[string]any{"about": "all"})
				}
				return agenttest.Say("I know.")
			})
			tool = notes(b)
			r := b.Start()
			r.Tell("p", "look")
			asked := agenttest.Next[agent.PermissionAsked](r)
			if asked.Tool != "mcp__notes__TeamStatus" || !strings.Contains(asked.Input, "all") {
				t.Errorf("it asks for %s %s", asked.Tool, asked.Input)
			}
			asked.Answer(allowed, "")
			agenttest.Next[agent.TurnEnded](r)
			if called := len(b.Tools.Called()); (called == 1) != allowed {
				t.Errorf("the tool was called %d times\n%s", called, model.Story())
			}
		})
	}
}

// TestSteeredIntoAnInterruptedTurn checks that a prompt is returned if its turn is interrupted
// before the turn took it.
func TestSteeredIntoAnInterruptedTurn(t *testing.T) {
	t.Parallel()
	b, _ := bench(t, func(r *agenttest.Request) agenttest.Turn {
		if r.Has("begin") && r.Calls("exec_command") == 0 {
			return agenttest.Use("exec_command", map[string]any{"cmd": "touch began; sleep 60", "yield_time_ms": 60000})
		}
		return agenttest.Say("Yes.")
	})
	b.Spec.Access.Mode = "bypassPermissions"
	r := b.Start()
	r.Tell("one", "begin")
	agenttest.Next[agent.ToolStarted](r)
	r.Prompt(agent.Prompt{ID: "two", Text: "the port is 4711"})
	r.Prompt(agent.Prompt{ID: "three", Text: "stop that", Urgent: true})
	if back := agenttest.Next[agent.NotTaken](r); back.ID != "two" {
		t.Errorf("%q was given back", back.ID)
	}
	if end := agenttest.Next[agent.TurnEnded](r); !end.Interrupted {
		t.Errorf("the turn ended: %+v", end)
	}
	r.Got("three")
	agenttest.Next[agent.TurnEnded](r)
	r.Tell("two", "the port is 4711")
	r.Got("two")
}

// TestNarrowerAccess checks that narrower access applies to the running turn too.
func TestNarrowerAccess(t *testing.T) {
	t.Parallel()
	var tried int
	b, model := bench(t, func(r *agenttest.Request) agenttest.Turn {
		switch {
		case r.Calls("exec_command") == 0:
			return agenttest.Use("exec_command", map[string]any{"cmd": "touch began; sleep 60", "yield_time_ms": 60000})
		case tried == 0:
			tried++
			return agenttest.Use("exec_command", map[string]any{"cmd": "touch forbidden", "yield_time_ms": 10000})
		}
		return agenttest.Say("So be it.")
	})
	b.Spec.Access.Mode = "bypassPermissions"
	forbidden := false
	b.Spec.Gate = func(tool, _ string) error {
		if forbidden && tool == "Bash" {
			return fmt.Errorf("%s is for others", tool)
		}
		return nil
	}
	r := b.Start()
	r.Tell("one", "begin")
	agenttest.Next[agent.ToolStarted](r)
	forbidden = true
	if err := r.Session.SetAccess(b.Ctx, agent.Access{Mode: "bypassPermissions", Writes: true,
		Gated: true}); err != nil {
		t.Fatal(err)
	}
	if end := agenttest.Next[agent.TurnEnded](r); !end.Interrupted || !end.Continues {
		t.Errorf("the turn ended: %+v", end)
	}
	if end := agenttest.Next[agent.TurnEnded](r); end.Interrupted || end.Problem != nil {
		t.Errorf("it continues: %+v", end)
	}
	if _, err := os.Stat(filepath.Join(b.World.Dir, "forbidden")); err == nil {
		t.Errorf("it did what is forbidden\n%s", model.Story())
	}
}

// TestApprovedWhileATurnRuns checks that a prompt after the approval of a plan does not go to the
// running read-only turn, which could not carry the plan out.
func TestApprovedWhileATurnRuns(t *testing.T) {
	t.Parallel()
	asked, given := make(chan struct{}), make(chan struct{})
	b, model := bench(t, func(r *agenttest.Request) agenttest.Turn {
		switch {
		case !r.Has("the plan is approved"):
			close(asked)
			<-given
			return agenttest.Say("I wait for the answer.")
		case r.Calls("exec_command") == 0:
			return agenttest.Use("exec_command", map[string]any{"cmd": "touch written", "yield_time_ms": 10000})
		}
		return agenttest.Say("It is done.")
	})
	b.Spec.Access.Writes = false
	r := b.Start()
	r.Tell("one", "plan it")
	<-asked
	if err := r.Session.SetAccess(b.Ctx, agent.Access{Mode: "bypassPermissions", Writes: true}); err != nil {
		t.Fatal(err)
	}
	told := make(chan struct{})
	go func() {
		defer close(told)
		r.Tell("two", "the plan is approved")
	}()
	select {
	case <-told:
		t.Error("it was given to the turn that runs")
	case <-time.After(300 * time.Millisecond):
	}
	close(given)
	<-told
	if end := agenttest.Next[agent.TurnEnded](r); end.Text != "I wait for the answer." {
		t.Errorf("the turn ended: %+v", end)
	}
	agenttest.Next[agent.TurnEnded](r)
	if _, err := os.Stat(filepath.Join(b.World.Dir, "written")); err != nil {
		t.Errorf("it did not carry its plan out: %v\n%s", err, model.Story())
	}
}
