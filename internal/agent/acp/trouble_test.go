package acp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cadre/internal/agent"
	"cadre/internal/agent/acp"
	"cadre/internal/agent/agenttest"
)

// program describes a real agent as far as these tests need it.
type program struct {
	name  string
	agent func(agenttest.Program) agent.Agent
	shell func(command string) agenttest.Turn
}

var programs = []program{
	{"gemini", func(p agenttest.Program) agent.Agent {
		return acp.Gemini([]string{os.Args[0], "hook"}).Program(
			p.Path)
	}, func(command string) agenttest.Turn {
		return agenttest.Use("run_shell_command", map[string]any{"command": command, "description": "run it"})
	}},
	{"opencode", func(p agenttest.Program) agent.Agent { return acp.OpenCode().Program(p.Path) },
		func(command string) agenttest.Turn {
			return agenttest.Use("bash", map[string]any{"command": command, "description": "run it"})
		}},
}

func (p program) bench(t *testing.T, script agenttest.Script) (*agenttest.Bench, *agenttest.Server) {
	t.Helper()
	installed := agenttest.Installed(t, p.name)
	s := agenttest.NewServer(t, script)
	b := agenttest.NewBench(t, p.agent(installed), agenttest.NewWorld(t, s, installed))
	b.Spec.Access.Mode = "bypassPermissions"
	b.Spec.ToolServer = b.ServeTools()
	return b, s
}

// each runs the test with each of the named programs, or with all.
func each(t *testing.T, test func(*testing.T, program), names ...string) {
	for _, p := range programs {
		if len(names) == 0 || slices.Contains(names, p.name) {
			t.Run(p.name, func(t *testing.T) { test(t, p) })
		}
	}
}

// fates returns what became of each prompt: received or returned.
func fates(r *agenttest.Run) map[string]string {
	all := map[string]string{}
	for _, u := range agenttest.Said[agent.Received](r) {
		all[u.ID] += "received"
	}
	for _, u := range agenttest.Said[agent.NotTaken](r) {
		all[u.ID] += "back"
	}
	return all
}

// TestAModelThatFails checks a model that fails before it has answered, while mail is on the way.
// By the end of the turn every prompt was received or returned, once. The next prompt starts one
// turn, and the context has each received prompt once.
func TestAModelThatFails(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"at once", "with mail on its way"} {
		t.Run(when, func(t *testing.T) {
			each(t, func(t *testing.T, p program) {
				var fail atomic.Bool
				fail.Store(true)
				b, s := p.bench(t, func(r *agenttest.Request) agenttest.Turn {
					switch {
					case r.Has("do it again"):
						return agenttest.Say("Done.")
					case !fail.Load():
						return agenttest.Say("I have nothing to do.")
					case when == "at once", r.Results() != "":
						return agenttest.Fail(400, "the house is on fire")
					}
					return p.shell("touch began; until test -e go; do sleep 0.05; done")
				})
				r := b.Start()
				r.Tell("first", "do it")
				want := []string{"first"}
				if when != "at once" {
					agenttest.Next[agent.ToolStarted](r)
					waitFor(t, b, "began")
					r.Prompt(agenttest.Mail("mail", 7, "the port is 4711"))
					touch(t, b, "go")
					want = append(want, "mail")
				}
				if end := agenttest.Next[agent.TurnEnded](r); end.Problem == nil {
					t.Fatalf("the turn ended with %+v", end)
				}
				fail.Store(false)
				fate := fates(r)
				for _, id := range want {
					if f := fate[id]; f != "received" && f != "back" {
						t.Errorf("%s: %q\n%s", id, f, r.Story())
					}
				}
				again := "do it again"
				if fate["mail"] == "back" { // as the coordinator does
					again += "\n" + agenttest.Mail("mail", 7, "the port is 4711").Text
				}
				r.Tell("again", again)
				if end := agenttest.Next[agent.TurnEnded](r); end.Text != "Done." {
					t.Errorf("the turn ended with %+v", end)
				}
				r.Tell("last", "do it again, and then nothing") // so that everything else is done by then
				agenttest.Next[agent.TurnEnded](r)
				if n := len(agenttest.Said[agent.TurnEnded](r)); n != 3 {
					t.Errorf("there were %d turns:\n%s%s", n, r.Story(), s.Story())
				}
				all := s.Requests()
				for _, req := range all {
					if n := req.Count("the port is 4711"); n > 1 {
						t.Errorf("request %d has the message %d times", req.N, n)
					}
				}
				last := all[len(all)-1]
				if when != "at once" && !last.Has("the port is 4711") {
					t.Error("the message is lost")
				}
				if !last.Has("You are ann, a teammate.") {
					t.Errorf("it does not know any more who it is")
				}
			})
		})
	}
}

// TestAnInterruptedTurn checks that an agent that forgot an interrupted turn is told again who it
// is and what it was given.
func TestAnInterruptedTurn(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"model", "tool"} {
		t.Run(where, func(t *testing.T) {
			each(t, func(t *testing.T, p program) {
				b, s := p.bench(t, func(r *agenttest.Request) agenttest.Turn {
					switch {
					case r.Has("stop that"):
						return agenttest.Say("Stopped.")
					case r.Results() == "":
						return p.shell("echo one")
					case where == "tool":
						return p.shell("touch began; sleep 1000")
					}
					return agenttest.Turn{Text: "a long story", Wait: func(ctx context.Context) { <-ctx.Done() }}
				})
				r := b.Start()
				r.Tell("first", "the task is to count")
				if agenttest.Next[agent.ToolFinished](r); where == "tool" {
					waitFor(t, b, "began")
				} else {
					s.WaitFor(t, "the result", func(r *agenttest.Request) bool {
						return strings.Contains(r.Results(), "one")
					})
				}
				urgent := agenttest.Mail("urgent", 3, "stop that")
				urgent.Urgent = true
				r.Prompt(urgent)
				for end := agenttest.Next[agent.TurnEnded](
					r); end.Text != "Stopped."; end = agenttest.Next[agent.TurnEnded](r) {
					if !end.Interrupted {
						t.Fatalf("the turn ended with %+v", end)
					}
				}
				if f := fates(r); f["first"] != "received" || f["urgent"] != "received" {
					t.Errorf("%v", f)
				}
				req := s.WaitFor(t, "the urgent message", func(r *agenttest.Request) bool { return r.Has("stop that") })
				for _, what := range []string{"You are ann, a teammate.", "the task is to count", "stop that"} {
					if n := req.Count(what); n != 1 {
						t.Errorf("it is told %q %d times:\n%+v", what, n, req.Messages)
					}
				}
			})
		})
	}
}

// TestTheGateAboveTheUsersSettings checks that the gate applies whatever the user's own settings
// allow: commands by name, whole MCP servers, or an agent mode of their own. It applies to a member
// that needs approval from its start, and to a lead as soon as it may only coordinate.
func TestTheGateAboveTheUsersSettings(t *testing.T) {
	t.Parallel()
	for _, who := range []string{"a teammate that needs approval", "a lead that is restricted while it works"} {
		t.Run(who, func(t *testing.T) {
			each(t, func(t *testing.T, p program) {
				var gated atomic.Bool
				b, s := p.bench(t, nil)
				step := 0
				s.Answer(func(r *agenttest.Request) agenttest.Turn {
					switch step++; step {
					case 1:
						return p.shell("touch too-early")
					case 2:
						return agenttest.Use(r.Tool("write_down"),
							map[string]any{"file": filepath.Join(b.World.Dir, "by-server")})
					case 3:
						return agenttest.Use(r.Tool("TeamStatus"), map[string]any{"about": "us"})
					}
					return agenttest.Say("That is all.")
				})
				allowAll(t, b.World, b.Serve(writer{}, "notes"))
				b.Spec.Gate = func(tool, _ string) error {
					if gated.Load() && tool != "Read" && tool != "TeamStatus" {
						return errors.New("ann may not use " + tool + " now")
					}
					return nil
				}
				if who[0:6] == "a lead" {
					b.Spec.Lead = "ann"
				} else {
					b.Spec.Access.Writes, b.Spec.Access.Gated = false, true
					gated.Store(true)
				}
				r := b.Start()
				if b.Spec.Lead == "ann" {
					gated.Store(true)
					if err := r.SetAccess(b.Ctx, agent.Access{Mode: "bypassPermissions", Writes: true,
						Gated: true}); err != nil {
						t.Fatal(err)
					}
				}
				r.Tell("p", "do it all")
				for end := agenttest.Next[agent.TurnEnded](
					r); end.Text != "That is all."; end = agenttest.Next[agent.TurnEnded](r) {
					if end.Problem != nil {
						t.Fatalf("the turn ended with %v\n%s", end.Problem, r.Story())
					}
					r.Tell(fmt.Sprint("again-", step), "go on") // some programs end the turn with a refusal
				}
				for _, name := range []string{"too-early", "by-server"} {
					if _, err := os.Stat(filepath.Join(b.World.Dir, name)); err == nil {
						t.Errorf("%s is there\n%s", name, r.Story())
					}
				}
				if len(b.Tools.Called()) != 1 {
					t.Errorf("the team's tool was called %d times\n%s", len(b.Tools.Called()), r.Story())
				}
				if asked := agenttest.Said[agent.PermissionAsked](r); len(asked) > 0 {
					t.Errorf("a person was asked for %+v", asked)
				}
				// Once it is allowed, it runs.
				gated.Store(false)
				if err := r.SetAccess(b.Ctx, agent.Access{Mode: "bypassPermissions", Writes: true}); err != nil {
					t.Fatal(err)
				}
				step = 0
				r.Tell("now", "do it all")
				waitFor(t, b, "by-server")
			})
		})
	}
}

// TestAServersToolIsAskedAbout checks that in mode default the tools of an MCP server need
// permission, under the name that rules have for them.
func TestAServersToolIsAskedAbout(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p program) {
		b, s := p.bench(t, nil)
		s.Answer(func(r *agenttest.Request) agenttest.Turn {
			if r.Results() == "" {
				return agenttest.Use(r.Tool("write_down"),
					map[string]any{"file": filepath.Join(b.World.Dir, "by-server")})
			}
			return agenttest.Say("That is all.")
		})
		addServer(t, b.World, b.Serve(writer{}, "notes"))
		b.Spec.Access.Mode = "default"
		r := b.Start()
		r.Tell("p", "write")
		asked := agenttest.Next[agent.PermissionAsked](r)
		if asked.Tool != "mcp__notes__write_down" {
			t.Errorf("asked was for %+v", asked)
		}
		asked.Answer(true, "")
		waitFor(t, b, "by-server")
		agenttest.Next[agent.TurnEnded](r)
	})
}

// writer is an MCP server of the project, whose tool writes a file.
type writer struct{}

func (writer) List() []agent.Tool {
	return []agent.Tool{{Name: "write_down", Description: "Writes a file.",
		Schema: json.RawMessage(`{"type":"object","properties":{"file":{"type":"string"}},"required":["file"]}`)}}
}

func (writer) Call(_ context.Context, _ string, input json.RawMessage) (string, bool) {
	var in struct{ File string }
	if err := json.Unmarshal(input, &in); err != nil {
		return err.Error(), true
	}
	if err := os.WriteFile(in.File, []byte("x"), 0o600); err != nil {
		return err.Error(), true
	}
	return "written", false
}

// addServer adds an MCP server named notes to the users' settings of both programs.
func addServer(t *testing.T, w agenttest.World, command []string) {
	t.Helper()
	change(t, filepath.Join(w.Home, ".gemini/settings.json"),
		map[string]any{"mcpServers": map[string]any{"notes": map[string]any{"command": command[0],
			"args": command[1:]}}})
	change(t, filepath.Join(w.Home, ".config/opencode/opencode.json"),
		map[string]any{"mcp": map[string]any{"notes": map[string]any{"type": "local", "command": command}}})
}

// allowAll does the same as addServer, and allows everything in the user's settings.
func allowAll(t *testing.T, w agenttest.World, command []string) {
	t.Helper()
	change(t, filepath.Join(w.Home, ".gemini/settings.json"), map[string]any{
		"mcpServers": map[string]any{"notes": map[string]any{"command": command[0], "args": command[1:],
			"trust": true}},
		"tools": map[string]any{"allowed": []string{"run_shell_command", "write_file"}},
	})
	all := map[string]any{"*": "allow", "bash": "allow", "notes_*": "allow"}
	change(t, filepath.Join(w.Home, ".config/opencode/opencode.json"), map[string]any{
		"mcp": map[string]any{"notes": map[string]any{"type": "local", "command": command}}, "permission": all,
		"agent": map[string]any{"build": map[string]any{"permission": all}},
	})
}

// change adds settings to a file.
func change(t *testing.T, path string, add map[string]any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]any{}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for k, v := range add {
		all[k] = v
	}
	if text, err = json.Marshal(all); err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func touch(t *testing.T, b *agenttest.Bench, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(b.World.Dir, name), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func waitFor(t *testing.T, b *agenttest.Bench, name string) {
	t.Helper()
	for {
		if _, err := os.Stat(filepath.Join(b.World.Dir, name)); err == nil {
			return
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-b.Ctx.Done():
			t.Fatalf("%s does not appear", name)
		}
	}
}
