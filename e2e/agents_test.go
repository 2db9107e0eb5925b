package e2e

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"cadre/internal/agent/agenttest"
)

// TestMixedTeam checks a Claude lead that plans and spawns a Claude, a Codex and a Gemini teammate.
// All work and talk to each other, and the report arrives.
func TestMixedTeam(t *testing.T) {
	t.Parallel()
	colleagues := map[string]string{"ann": "bob", "bob": "eve", "eve": "ann"}
	s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
		me := who(r)
		if me != "lead" {
			id, calls := task(r)
			if id != "" && called(calls, "SendMessage") == 0 {
				return use(r, "SendMessage", map[string]any{"to": colleagues[me],
					"message": "I am at task " + id + ", says " + me})
			}
			return complete(r)
		}
		var all []agenttest.Call
		for _, m := range r.Messages {
			all = append(all, m.Calls...)
		}
		agents := []string{"claude", "codex", "gemini"}
		names := []string{"ann", "bob", "eve"}
		tasks := []map[string]any{
			{"subject": "Look", "description": "at all", "owner": "ann"},
			{"subject": "Write", "description": "it down", "owner": "bob", "blockedBy": []string{"1"}},
			{"subject": "Test", "description": "it", "owner": "eve", "blockedBy": []string{"1"}},
			{"subject": "Finish", "description": "it", "blockedBy": []string{"2", "3"}},
		}
		switch n, m := called(all, "SpawnTeammate"), called(all, "TaskCreate"); {
		case reports(r):
			return agenttest.Say("# The port\n\nAll four are done; the results are with the tasks.")
		case n < 3:
			return use(r, "SpawnTeammate", map[string]any{"name": names[n], "agent": agents[n],
				"prompt": "You work on the port."})
		case m < 4:
			return use(r, "TaskCreate", tasks[m])
		}
		return agenttest.Say("I wait.")
	}, "claude", "codex", "gemini")
	r := s.run("port the parser", "--agent", "claude", "--name", "port", "--permission-mode", "bypassPermissions")
	if r.code != 0 {
		t.Fatalf("exit status %d\n%s%s\n%s", r.code, r.out, r.err, s.model.Story())
	}
	report := s.report(r)
	for _, part := range []string{"All four are done", "result of task 1 by ann", "result of task 2 by bob",
		"result of task 3 by eve", "4 of 4"} {
		if !strings.Contains(report+r.out, part) {
			t.Errorf("the report lacks %q:\n%s", part, report)
		}
	}
	for from, to := range colleagues {
		if !slices.ContainsFunc(s.model.Requests(), func(r *agenttest.Request) bool {
			return who(r) == to &&
				r.Has("says "+from)
		}) {
			t.Errorf("%s never saw what %s wrote", to, from)
		}
	}
	for _, req := range s.model.Requests() {
		for from := range colleagues {
			for id := 1; id <= 4; id++ {
				if n := req.Count(fmt.Sprintf("I am at task %d, says %s\n</team-message>", id, from)); n > 1 {
					t.Errorf("request %d, of %s, has a message of %s %d times", req.N, who(req), from, n)
				}
			}
		}
	}
	status := read[struct {
		Status string
		Usage  struct{ InputTokens int64 }
	}](s.world, "status", "port")
	if status.Status != "complete" || status.Usage.InputTokens == 0 {
		t.Errorf("the team is %+v", status)
	}
}

// TestKilledAgents checks that an agent that is killed in the middle of a turn continues with its
// history by itself. The whole team does so too when cadre is run again.
func TestKilledAgents(t *testing.T) {
	t.Parallel()
	for name := range shells {
		t.Run(name, func(t *testing.T) {
			sampled(t, name)
			s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
				told := 0
				for _, m := range r.Messages {
					if m.Role == "user" {
						told += len(yours.FindAllString(m.Text, -1))
					}
				}
				switch _, calls := task(r); {
				case told == 0:
					return agenttest.Say("Hello, I am at work.")
				case told < 3 && len(calls) == 0: // cut off twice, by the death of the agent and by the death of cadre
					return shells[name](fmt.Sprintf("touch began-%d; sleep 1000", told))
				}
				return complete(r)
			}, name)
			file := s.file("name: killed\npermissions: {mode: bypassPermissions}\nmembers: [{name: ann, agent: " +
				name + "}, {name: eve, agent: external}]\ntasks: [{id: slow, owner: ann, description: take your " +
				"time}]\n")
			began := func(n int) {
				t.Helper()
				s.waitFor(fmt.Sprintf("began-%d", n), func() bool {
					_, err := os.Stat(filepath.Join(s.dir, fmt.Sprintf("began-%d", n)))
					return err == nil
				})
			}
			first := s.start("run", file)
			began(1)
			s.must("send", "killed", "--to", "ann", "--as", "eve", "the port is 4711")
			for _, pid := range s.agentPids(name) {
				syscall.Kill(pid, syscall.SIGKILL)
			}
			began(2)
			first.kill()
			r := s.run(file)
			if r.code != 0 {
				t.Fatalf("exit status %d\n%s%s\n%s", r.code, r.out, r.err, s.model.Story())
			}
			done := read[struct {
				Status   string
				Attempts int
				Result   string
			}](s.world, "task", "show", "killed", "1")
			if done.Status != "completed" || done.Result != "result of task slow by ann" || done.Attempts != 3 {
				t.Errorf("the task is %+v", done)
			}
			requests := s.model.Requests()
			last := requests[len(requests)-1]
			has := 0
			for _, req := range requests {
				if n := strings.Count(string(req.Raw), "the port is 4711"); n > 1 {
					t.Errorf("request %d has the message %d times", req.N, n)
				} else {
					has += n
				}
			}
			if has == 0 {
				t.Error("no request of the model has the message; want one")
			}
			if told := len(yours.FindAllString(string(last.Raw), -1)); told != 3 {
				t.Errorf("its history has the task %d times", told)
			}
		})
	}
}

// TestPlanApproval checks that a teammate that needs approval changes nothing before. The lead
// rejects its plan, the teammate revises it, and the lead approves it.
func TestPlanApproval(t *testing.T) {
	t.Parallel()
	for _, teammate := range []string{"claude", "codex", "gemini"} {
		t.Run(teammate, func(t *testing.T) {
			var s *studio
			request := regexp.MustCompile(`plan-\d+@ann`)
			s = newStudio(t, func(r *agenttest.Request) agenttest.Turn {
				if who(r) == "lead" {
					switch open := unanswered(r, request, "RespondToPlan"); {
					case reports(r):
						return agenttest.Say("It is written.")
					case r.Calls(r.Tool("SpawnTeammate")) == 0:
						return use(r, "SpawnTeammate", map[string]any{"name": "ann", "agent": teammate,
							"prompt": "Plan, then write.", "planApproval": true})
					case len(open) > 0 && r.Has("Write with tests."):
						return use(r, "RespondToPlan", map[string]any{"requestId": open[0], "approve": true})
					case len(open) > 0:
						return use(r, "RespondToPlan", map[string]any{"requestId": open[0], "approve": false,
							"feedback": "think of tests"})
					}
					return agenttest.Say("I wait.")
				}
				written := filepath.Join(s.dir, "written")
				write := map[string]agenttest.Turn{
					"claude": agenttest.Use("Write", map[string]any{"file_path": written, "content": "x"}),
					"codex": agenttest.Use("exec_command", map[string]any{"cmd": "echo x > written",
						"yield_time_ms": 30000}),
					"gemini": agenttest.Use("write_file", map[string]any{"file_path": written, "content": "x"}),
				}[teammate]
				plans := 0
				for _, m := range r.Messages {
					plans += called(m.Calls, "SubmitPlan")
				}
				tries := r.Calls("Write") + r.Calls("exec_command") + r.Calls("write_file")
				switch {
				case tries == 0: // too early
					return write
				case plans == 0:
					return use(r, "SubmitPlan", map[string]any{"plan": "Just write."})
				case plans == 1 && r.Has("think of tests"):
					return use(r, "SubmitPlan", map[string]any{"plan": "Write with tests."})
				case tries == 1 && r.Has("Your plan is approved"):
					return write
				}
				return agenttest.Say("I wait for the answer.")
			}, "claude", teammate)
			r := s.run("write it", "--agent", "claude", "--name", "plan", "--permission-mode", "bypassPermissions")
			if r.code != 0 {
				t.Fatalf("exit status %d\n%s%s\n%s", r.code, r.out, r.err, s.model.Story())
			}
			info, err := os.Stat(filepath.Join(s.dir, "written"))
			if err != nil {
				t.Fatal(err)
			}
			approved := int64(0)
			for _, e := range read[[]struct {
				At     int64
				Events []struct {
					Kind     string
					Approved bool
				}
			}](s.world, "log", "plan") {
				for _, event := range e.Events {
					if event.Kind == "plan_answered" && event.Approved {
						approved = e.At
					}
				}
			}
			if approved == 0 || info.ModTime().UnixMilli() < approved {
				t.Errorf("written at %d, approved at %d", info.ModTime().UnixMilli(), approved)
			}
		})
	}
}

// TestPermissions checks that permission requests are allowed, denied, and time out without a
// terminal. A mode is inherited, and changes while the member works.
func TestPermissions(t *testing.T) {
	t.Parallel()
	s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
		id, calls := task(r)
		if id != "" && len(calls) == 0 {
			return agenttest.Use("Bash", map[string]any{"command": "touch done-" + id, "description": "do it"})
		}
		return complete(r)
	}, "claude")
	file := s.file("name: ask\npermissions: {timeout: 3s, allow: ['Bash(touch done-d)']}\nmembers: [{name: ann, " +
		"agent: claude}]\n" +
		"tasks: [{id: a}, {id: b, blockedBy: [a]}, {id: c, blockedBy: [b]}, {id: d, blockedBy: [c]}, {id: e, " +
		"blockedBy: [d]}]\n")
	p := s.start("run", file)
	s.there("ask")
	type open struct {
		Permissions []struct{ Request, Input string }
		Tasks       map[string]int
	}
	waits := func(n string) string {
		t.Helper()
		request := ""
		s.waitFor("a request of task "+n, func() bool {
			for _, p := range read[open](s.world, "status", "ask").Permissions {
				if strings.Contains(p.Input, "done-"+n) {
					request = p.Request
				}
			}
			return request != ""
		})
		return request
	}
	s.must("permit", "ask", waits("a"))
	s.must("permit", "ask", waits("b"), "--deny", "--reason", "not today")
	waits("c") // it gets no answer
	s.waitFor("its end", func() bool { return read[open](s.world, "status", "ask").Tasks["completed"] >= 3 })
	s.must("mode", "ask", "ann", "bypassPermissions") // before the fifth command, which then needs no permission
	if code := p.wait(); code != 0 {
		t.Fatalf("exit status %d\n%s", code, s.model.Story())
	}
	for name, want := range map[string]bool{"a": true, "b": false, "c": false, "d": true, "e": true} {
		if _, err := os.Stat(filepath.Join(s.dir, "done-"+name)); (err == nil) != want {
			t.Errorf("the command of task %s: done is %t", name, err == nil)
		}
	}
	if !slices.ContainsFunc(s.model.Requests(), func(r *agenttest.Request) bool { return r.Has("not today") }) {
		t.Error("no request of the model has the reason: not today")
	}
}

// TestDelegateMode checks that the lead can neither edit nor run anything in delegate mode, but its
// teammates can.
func TestDelegateMode(t *testing.T) {
	t.Parallel()
	s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
		if who(r) != "lead" {
			id, calls := task(r)
			if id != "" && len(calls) == 0 {
				return agenttest.Use("Bash", map[string]any{"command": "touch by-teammate", "description": "do it"})
			}
			return complete(r)
		}
		switch {
		case reports(r):
			return agenttest.Say("Delegated.")
		case r.Calls("Bash") == 0:
			return agenttest.Use("Bash", map[string]any{"command": "touch by-lead", "description": "do it"})
		case r.Calls("Write") == 0:
			return agenttest.Use("Write", map[string]any{"file_path": filepath.Join(os.TempDir(), "by-lead"),
				"content": "x"})
		case r.Calls(r.Tool("SpawnTeammate")) == 0:
			return use(r, "SpawnTeammate", map[string]any{"name": "ann", "agent": "claude", "prompt": "Work."})
		case r.Calls(r.Tool("TaskCreate")) == 0:
			return use(r, "TaskCreate", map[string]any{"subject": "Touch", "description": "it"})
		}
		return agenttest.Say("I wait.")
	}, "claude")
	r := s.run("touch it", "--agent", "claude", "--name", "delegate", "--delegate", "--permission-mode",
		"bypassPermissions")
	if r.code != 0 {
		t.Fatalf("exit status %d\n%s%s\n%s", r.code, r.out, r.err, s.model.Story())
	}
	if _, err := os.Stat(filepath.Join(s.dir, "by-teammate")); err != nil {
		t.Error("the teammate was not allowed to work")
	}
	if _, err := os.Stat(filepath.Join(s.dir, "by-lead")); err == nil {
		t.Error("the lead ran a command")
	}
	denied := 0
	for _, req := range s.model.Requests() {
		if who(req) == "lead" && strings.Contains(req.Results(), "is in delegate mode and may not use") {
			denied++
		}
	}
	if denied != 2 {
		t.Errorf("%d of 2 tools were denied", denied)
	}
}

// TestShutdownOfAgents checks that after a shutdown the process is gone by the deadline. The agent
// may agree, refuse, end its turn without an answer, or hang in a tool. A member that refused gets
// a second request with another reason.
func TestShutdownOfAgents(t *testing.T) {
	t.Parallel()
	request := regexp.MustCompile(`shutdown-\d+@[a-z]+`)
	s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
		me, open := who(r), unanswered(r, request, "RespondToShutdown")
		switch {
		case len(open) == 0 && me == "hangs" && strings.Contains(r.LastUser(), "hang now"):
			return agenttest.Use("Bash", map[string]any{"command": "trap '' TERM INT HUP; touch hangs; while true; " +
				"do sleep 1; done", "description": "hang"})
		case len(open) > 0 && (me == "agrees" || me == "refuses"):
			return use(r, "RespondToShutdown", map[string]any{"requestId": open[0], "approve": me == "agrees",
				"reason": "because"})
		}
		return agenttest.Say("Yes?")
	}, "claude")
	s.must("create", "ends", "--permission-mode", "bypassPermissions")
	members := []string{"agrees", "refuses", "silent", "hangs"}
	for _, m := range members {
		s.must("spawn", "ends", m, "--agent", "claude")
	}
	s.must("send", "ends", "--to", "hangs", "hang now")
	s.waitFor("it hangs", func() bool { _, err := os.Stat(filepath.Join(s.dir, "hangs")); return err == nil })
	var ending sync.WaitGroup
	shutdown := func(m, deadline, reason string) {
		ending.Go(func() {
			if r := s.cadre("shutdown", "ends", m, "--deadline", deadline, "--reason", reason); r.code != 0 {
				t.Errorf("%s: exit status %d: %s", m, r.code, r.err)
			}
		})
	}
	shutdown("refuses", "10m", "the first reason")
	s.waitFor("it refuses", func() bool {
		return strings.Contains(s.must("inbox", "ends", "lead"),
			"refuses to shut down")
	})
	deadlines := map[string]string{"refuses": "30s", "hangs": "4s"}
	for _, m := range members {
		shutdown(m, cmp.Or(deadlines[m], "3m"), "the second reason")
	}
	ending.Wait()
	if !slices.ContainsFunc(s.model.Requests(), func(r *agenttest.Request) bool {
		return who(r) == "refuses" &&
			r.Has("the second reason")
	}) {
		t.Error("the second request did not reach the member that refused the first one")
	}
	for _, m := range read[struct {
		Members []struct{ Name, Status, Summary string }
	}](s.world, "status", "ends").Members {
		want := map[string]string{"agrees": "as asked", "refuses": "at the deadline", "silent": "as asked",
			"hangs": "at the deadline"}[m.Name]
		if want != "" && (m.Status != "stopped" || !strings.Contains(m.Summary, want)) {
			t.Errorf("%s is %s (%s), want it stopped %q", m.Name, m.Status, m.Summary, want)
		}
	}
	s.waitFor("no agent is left", func() bool { return len(s.pids("claude")) == 0 })
	s.must("cleanup", "ends", "--force")
	s.waitFor("nothing is left", func() bool { return len(s.processes()) == 0 })
}

// TestLastTextAndIdleNotices checks that the lead gets the last text of a turn without a report
// once, and that idle notices cost it no turn.
func TestLastTextAndIdleNotices(t *testing.T) {
	t.Parallel()
	s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
		switch {
		case who(r) != "lead":
			return agenttest.Say("The answer is 42.")
		case reports(r):
			return agenttest.Say("It is 42.")
		case r.Calls(r.Tool("SpawnTeammate")) == 0:
			return use(r, "SpawnTeammate", map[string]any{"name": "ann", "agent": "claude", "prompt": "Think."})
		}
		return agenttest.Say("I wait.")
	}, "claude")
	file := s.file("name: words\ngoal: think\nlead: {agent: claude}\npermissions: {mode: " +
		"bypassPermissions}\nmembers: [{name: idle, agent: shell, count: 9}]\n")
	var turns []string
	r := s.run(file)
	if r.code != 0 {
		t.Fatalf("exit status %d\n%s%s\n%s", r.code, r.out, r.err, s.model.Story())
	}
	for _, req := range s.model.Requests() {
		if who(req) == "lead" {
			turns = append(turns, req.Last().Text)
			if n := req.Count("The answer is 42."); n > 1 {
				t.Errorf("the lead has the text %d times", n)
			}
		}
	}
	// The lead has a turn for each of these: the goal, the result of its tool, the last text of
	// ann, and the request for the report. Nine idle notices and one of ann's start no turn.
	if len(turns) != 4 {
		t.Errorf("the lead had %d requests:\n%s", len(turns), s.model.Story())
	}
}

// TestModelErrors checks that the lead gets errors of the model in the agent's words. The task
// returns to the queue, and the team continues.
func TestModelErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, words string
		turn        agenttest.Turn
	}{
		{"401", "401", agenttest.Fail(401, "the key is unknown here")},
		{"500", "500", agenttest.Fail(500, "the house is on fire")},
		{"cut", "could not continue", agenttest.Turn{Text: "half of a word", Cut: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
				if who(r) == "ill" {
					return c.turn
				}
				return complete(r)
			}, "claude")
			s.env = append(s.env, "CLAUDE_CODE_MAX_RETRIES=1")
			file := s.file("name: errors\npermissions: {mode: bypassPermissions}\nmembers: [{name: ill, agent: " +
				"claude}, {name: late, agent: external}]\ntasks: [{id: one}]\n")
			p := s.start("run", file)
			s.there("errors")
			s.waitFor("the lead is told", func() bool {
				return slices.ContainsFunc(read[[]struct {
					Events []struct{ Kind, To, Body string }
				}](s.world, "log", "errors"), func(r struct {
					Events []struct{ Kind, To, Body string }
				}) bool {
					return slices.ContainsFunc(r.Events, func(e struct{ Kind, To, Body string }) bool {
						return e.Kind == "message_sent" && e.To == "lead" && strings.Contains(e.Body, c.words) &&
							strings.Contains(e.Body, "ill")
					})
				})
			})
			s.waitFor("the task is back in the queue", func() bool {
				return read[struct{ Status string }](s.world, "task", "show", "errors", "1").Status == "pending"
			})
			s.must("spawn", "errors", "well", "--agent", "claude")
			if code := p.wait(); code != 0 {
				t.Fatalf("exit status %d\n%s", code, s.model.Story())
			}
			if done := read[struct{ Status, CompletedBy string }](s.world, "task", "show", "errors",
				"1"); done.CompletedBy != "well" {
				t.Errorf("the task is %+v", done)
			}
		})
	}
}

// TestInteractiveLead checks a person's interactive Claude Code as the lead of a Codex teammate. It
// runs in tmux, with cadre mcp configured.
func TestInteractiveLead(t *testing.T) {
	t.Parallel()
	s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
		if who(r) == "bob" {
			return complete(r)
		}
		switch {
		case r.Has("result of task 1 by bob"):
			return agenttest.Say("Bob is done, and I know it.")
		case r.Calls(r.Tool("SpawnTeammate")) == 0 && strings.Contains(r.LastUser(), "lead a team"):
			return use(r, "SpawnTeammate", map[string]any{"name": "bob", "agent": "codex", "prompt": "You work."})
		case r.Calls(r.Tool("TaskCreate")) == 0 && r.Calls(r.Tool("SpawnTeammate")) > 0:
			return use(r, "TaskCreate", map[string]any{"subject": "Look", "description": "at it", "owner": "bob"})
		case strings.Contains(r.LastUser(), "any news"):
			return use(r, "TaskGet", map[string]any{"taskId": "1"})
		}
		return agenttest.Say("I lead now.")
	}, "claude", "codex")
	config := fmt.Sprintf(`{"mcpServers":{"cadre":{"type":"stdio","command":%q,"args":["mcp","--team","tmux"]}}}`,
		cadre)
	s.write(".mcp.json", config)
	settings := filepath.Join(s.root, ".claude.json")
	if err := os.WriteFile(settings, fmt.Appendf(nil,
		`{"hasCompletedOnboarding":true,"theme":"dark","bypassPermissionsModeAccepted":true,"customApiKeyResponses":{"approved":["dummy"],"rejected":[]},
"projects":{%q:{"hasTrustDialogAccepted":true,"hasCompletedProjectOnboarding":true,"enabledMcpjsonServers":["cadre"]}}}`, s.dir), 0o600); err != nil {
		t.Fatal(err)
	}
	program := agenttest.Installed(t, "claude").Path
	screen := s.terminal(program, "--permission-mode", "default", "--allowedTools", "mcp__cadre")
	t.Cleanup(func() {
		screen.close()
		s.cadre("cleanup", "tmux", "--force")
		s.waitFor("nothing is left", func() bool { return len(s.processes()) == 0 })
	})
	screen.shows("❯")
	screen.enter("lead a team")
	screen.shows("I lead now.")
	s.waitFor("bob is done", func() bool {
		return read[struct{ Status string }](s.world, "task", "show", "tmux", "1").Status == "completed"
	})
	screen.enter("any news")
	screen.shows("Bob is done, and I know it.")
}
