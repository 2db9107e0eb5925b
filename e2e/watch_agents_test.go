package e2e

import (
	"fmt"
	"strings"
	"testing"

	"cadre/internal/agent/agenttest"
)

// screen opens the screen of a team, in a terminal of that size.
func (s *studio) screen(width, height int, team string) *terminal {
	s.t.Helper()
	p := s.terminalOf(width, height, cadre, "watch", team)
	p.story = s.model.Story
	return p
}

// says types a line.
func (p *terminal) says(line, key string) {
	p.t.Helper()
	p.keys("-l", line)
	p.shows("▸ " + line)
	p.keys(key)
}

// selects presses Down until the item with these words in its row is selected and shows the text.
// The list selects nothing by itself after an item was settled.
func (p *terminal) selects(row, text string) {
	p.t.Helper()
	p.wait("no item of "+row+" shows "+text, func() bool {
		screen := p.screen()
		for line := range strings.Lines(screen) {
			if strings.HasPrefix(line, "▸") && strings.Contains(line, row) && strings.Contains(screen, text) {
				return true
			}
		}
		p.keys("Down")
		return false
	})
}

// order fails the test unless the history has events with these fields, in this order.
func (s *studio) order(team string, want ...event) {
	s.t.Helper()
	next := 0
	for _, e := range s.history(team) {
		if next < len(want) && e.has(want[next]) {
			next++
		}
	}
	if next < len(want) {
		s.t.Errorf("the history lacks %v after %v:\n%s", want[next], want[:next], s.must("log", team))
	}
}

// has reports whether the event has these fields.
func (e event) has(fields event) bool {
	for name, value := range fields {
		if e[name] != value {
			return false
		}
	}
	return true
}

// TestWatchAgents steers a real agent from the screen: it rejects a plan and approves the next one,
// answers a permission, writes to the agent while it works, interrupts its turn, and sends an
// urgent message. Then it looks at the team as it was. Each step is on the screen, in the history,
// and is seen by the model.
func TestWatchAgents(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"claude", "codex", "gemini"} {
		t.Run(name, func(t *testing.T) {
			s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
				calls := all(r)
				commands := 0
				for _, c := range calls {
					if c.Name == shells[name]("").Calls[0].Name {
						commands++
					}
				}
				switch id, _ := task(r); {
				case id == "" && !r.Has("Your plan is approved") && called(calls, "SubmitPlan") == 0:
					return agenttest.Say("I wait for a task.")
				case r.Has("drop everything"):
					return complete(r)
				case called(calls, "SubmitPlan") == 0:
					return use(r, "SubmitPlan", map[string]any{"plan": "Just write."})
				case called(calls, "SubmitPlan") == 1 && r.Has("think of tests"):
					return use(r, "SubmitPlan", map[string]any{"plan": "Write with tests."})
				case !r.Has("Your plan is approved"):
					return agenttest.Say("I wait for the answer.")
				case commands == 0:
					return shells[name]("touch building; until test -e go; do sleep 0.05; done; echo the build is done")
				case commands == 1, commands == 2 && r.Has("go on, please"):
					return shells[name](fmt.Sprint("sh pause.sh ", commands))
				}
				return agenttest.Say("I stop here.")
			}, name)
			s.write("pause.sh", "touch pausing-$1\nexec sleep 1000\n")
			s.must("create", "demo", "--goal", "Port the parser", "--allow", "Bash(sh pause.sh:*)")
			t.Cleanup(func() { s.cadre("cleanup", "demo", "--force") })
			s.must("spawn", "demo", "ann", "--agent", name, "--plan-approval")
			s.must("task", "add", "demo", "write", "--owner", "ann")

			p := s.screen(100, 30, "demo")
			p.shows("! needs you 1")
			p.keys("a")
			p.shows("Just write.")
			p.answers("n", "reject ann ▸")
			p.says("think of tests", "Enter")
			p.shows("The plan of ann is rejected.")
			p.selects("submitted a plan", "Write with tests.")
			p.answers("y", "The plan of ann is approved.")
			if has(s.dir, "building") {
				t.Error("the command ran before the plan was approved")
			}

			p.selects("asks to use", "touch building")
			p.answers("y", "ann may do it.")
			s.waitFor("the command runs", func() bool { return has(s.dir, "building") })
			p.keys("Escape")
			p.shows("MEMBER") // a key right behind Escape would be another key
			p.keys("S-Down")
			p.shows("▸ ann")
			p.keys("Enter")
			p.shows("to ann ▸")
			p.shows("touch building")

			p.says("mind the tabs", "Enter")
			p.shows("It gets the message at the next tool boundary.")
			s.write("go", "")
			p.shows("the build is done")
			s.waitFor("the next command runs", func() bool { return has(s.dir, "pausing-1") })
			boundary := s.model.WaitFor(t, "the end of the build", func(r *agenttest.Request) bool {
				return strings.Contains(r.Results(), "the build is done")
			})
			if !boundary.Has("mind the tabs") {
				t.Errorf("behind its command the agent is told\n%s", boundary.SinceAnswer())
			}

			p.shows("sh pause.sh 1")
			p.keys("Escape")
			p.shows("Interrupt the turn of ann?")
			p.keys("Escape")
			p.shows("ann is interrupted, and waits for a message.")
			p.shows("ann · idle")
			asked := len(s.of("ann"))

			p.says("go on, please", "Enter")
			p.shows("Sent to ann.")
			s.waitFor("the agent goes on", func() bool { return has(s.dir, "pausing-2") })
			if next := s.of("ann")[asked]; !next.Has("go on, please") {
				t.Errorf("after the interrupt the agent went on by itself:\n%s", next.SinceAnswer())
			}
			p.shows("sh pause.sh 2")
			p.shows("ann · active")
			p.says("drop everything", "C-s")
			p.shows("It interrupts the turn.")
			p.shows("Task 1 is done.")

			p.shows("ann · idle")
			p.keys("Escape")
			p.shows("1 of 1 task done")
			p.keys("4")
			p.shows("◆ plan")
			p.keys("1", "{")
			p.shows("0 now")
			p.shows("0 of 1 task done")
			p.keys("a") // what waited then
			p.shows("what waited for you")
			p.keys("0")
			p.shows("Nothing waits for you.")
			p.keys("Escape")
			p.shows("1 of 1 task done")
			p.keys("q")
			if code := p.ended(); code != 0 {
				t.Errorf("the screen ended with %d:\n%s", code, p.screen())
			}

			sent := func(body, priority string) event {
				return event{"kind": "message_sent", "from": "@user", "body": body, "priority": priority}
			}
			s.order("demo", event{"kind": "plan_submitted", "plan": "Just write."},
				event{"kind": "plan_answered", "feedback": "think of tests"},
				event{"kind": "plan_submitted", "plan": "Write with tests."},
				event{"kind": "plan_answered", "approved": true},
				event{"kind": "permission_requested", "member": "ann"},
				event{"kind": "permission_answered", "outcome": "allowed", "by": "@user"},
				sent("mind the tabs", "normal"),
				event{"kind": "interrupt_requested", "member": "ann", "by": "@user"},
				sent("go on, please", "normal"), sent("drop everything", "urgent"),
				event{"kind": "task_completed", "by": "ann"})
		})
	}
}

// TestWatchDelegates switches delegate mode of a real lead on the screen. In the mode the lead can
// run nothing, and after it it can again.
func TestWatchDelegates(t *testing.T) {
	t.Parallel()
	s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
		if reports(r) {
			return agenttest.Say("Eve has checked it.")
		}
		calls := all(r)
		for n, word := range []string{"port the parser", "try it now", "try it again"} {
			if r.Calls("Bash") == n && r.Has(word) {
				return agenttest.Use("Bash",
					map[string]any{"command": fmt.Sprint("touch try-", n), "description": "try"})
			}
		}
		if called(calls, "TaskCreate") == 0 {
			return use(r, "TaskCreate", map[string]any{"subject": "Check", "description": "it", "owner": "eve"})
		}
		return agenttest.Say("I wait.")
	}, "claude")
	run := s.start("run", s.file("name: demo\ngoal: port the parser\nlead: {agent: claude}\n"+
		"permissions: {mode: bypassPermissions}\nmembers: [{name: eve, agent: external}]\n"))
	s.waitFor("the lead has made a task", func() bool {
		r := s.cadre("task", "show", "demo", "1")
		return r.code == 0 && has(s.dir, "try-0")
	})

	p := s.screen(100, 30, "demo")
	p.shows("▸ lead")
	p.keys("BTab")
	p.shows("Switch delegate mode on")
	p.keys("y")
	p.shows("Delegate mode is on.")
	p.shows(" · delegate mode")
	p.keys("Enter")
	p.shows("to lead ▸")
	p.says("try it now", "Enter")
	denied := s.model.WaitFor(t, "the denial", func(r *agenttest.Request) bool {
		return strings.Contains(r.Results(), "is in delegate mode and may not use")
	})
	if !denied.Has("try it now") || has(s.dir, "try-1") {
		t.Errorf("in delegate mode the lead ran a command, or its model was not told:\n%s", denied.SinceAnswer())
	}
	p.shows("delegate mode") // in the session too
	p.keys("Tab", "Left")
	p.shows("MEMBER")
	p.keys("D")
	p.shows("Switch delegate mode off?")
	p.keys("y")
	p.shows("Delegate mode is off.")
	p.keys("Enter")
	p.shows("to lead ▸")
	p.says("try it again", "Enter")
	s.waitFor("the lead may run commands again", func() bool { return has(s.dir, "try-2") })
	p.keys("C-c")
	if code := p.ended(); code != 0 {
		t.Errorf("the screen ended with %d:\n%s", code, p.screen())
	}
	s.order("demo", event{"kind": "delegate_changed", "on": true},
		event{"kind": "message_sent", "from": "@user", "body": "try it now"},
		event{"kind": "delegate_changed"},
		event{"kind": "message_sent", "from": "@user", "body": "try it again"})

	s.must("task", "claim", "demo", "1", "--as", "eve")
	s.must("task", "done", "demo", "1", "--as", "eve", "--result", "it holds")
	if code := run.wait(); code != 0 {
		t.Errorf("the run ended with %d: %s", code, run.said())
	}
}
