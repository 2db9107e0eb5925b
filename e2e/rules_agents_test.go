package e2e

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"cadre/internal/agent/agenttest"
	"cadre/internal/team"
)

// TestPermissionRulesOfAgents: the person answers a request always, and the agent is not asked
// again, also after the host was killed. Another command is asked, and so is another member. On the
// screen the person answers that one always for all members.
func TestPermissionRulesOfAgents(t *testing.T) {
	t.Parallel()
	const counts, other = "sh count.sh", "sh other.sh"
	commands := map[string]string{"1": counts, "2": counts, "3": other, "4": counts, "5": counts}
	for _, name := range []string{"claude", "codex"} {
		t.Run(name, func(t *testing.T) {
			s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
				id, calls := task(r)
				if id != "" && len(calls) == 0 {
					return shells[name](commands[id])
				}
				return complete(r)
			}, name)
			s.write("count.sh", "echo again >>counted\n")
			s.write("other.sh", "echo once >>others\n")
			s.must("create", "demo", "--goal", "Count")
			t.Cleanup(func() { s.cadre("cleanup", "demo", "--force") })
			s.must("spawn", "demo", "ann", "--agent", name)

			type open struct {
				Permissions []struct{ Request, Member, Input string }
				Tasks       map[string]int
			}
			asks := func(member, command string) (request string) {
				t.Helper()
				s.waitFor(member+" asks for "+command, func() bool {
					for _, p := range read[open](s.world, "status", "demo").Permissions {
						if p.Member == member && strings.Contains(p.Input, command) {
							request = p.Request
						}
					}
					return request != ""
				})
				return request
			}
			works := func(id, owner string) {
				t.Helper()
				s.must("task", "add", "demo", "task "+id, "--owner", owner)
			}
			completed := func(n, counted, requests int) {
				t.Helper()
				s.waitFor(fmt.Sprintf("%d tasks are completed", n), func() bool {
					return read[open](s.world, "status", "demo").Tasks["completed"] == n
				})
				if got := len(s.lines("counted")); got != counted {
					t.Errorf("after %d tasks the command ran %d times, want %d", n, got, counted)
				}
				waited := 0 // a request that a rule allows is answered in the same record
				for _, record := range read[[]struct{ Events []event }](s.world, "log", "demo") {
					for i, e := range record.Events {
						if e.is("permission_requested") && !slices.ContainsFunc(record.Events[i:], func(e event) bool {
							return e.is("permission_answered")
						}) {
							waited++
						}
					}
				}
				if waited != requests {
					t.Errorf("%d requests waited for the person, want %d:\n%s", waited, requests, s.must("log", "demo"))
				}
			}

			works("1", "ann")
			said := s.must("permit", "demo", asks("ann", counts), "--always")
			if !strings.Contains(said, "Bash("+counts+")") {
				t.Errorf("the answer says %q", said)
			}
			completed(1, 1, 1)

			hosts := s.pids(cadre + " host ")
			if len(hosts) == 0 {
				t.Fatalf("there is no host: %v", s.processes())
			}
			for _, pid := range hosts {
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Error(err)
				}
			}
			s.waitFor("the host is dead", func() bool { return strings.Contains(s.must("status", "demo"), "dormant") })
			s.must("resume", "demo")
			works("2", "ann")
			completed(2, 2, 1)

			works("3", "ann")
			s.must("permit", "demo", asks("ann", other))
			completed(3, 2, 2)

			s.must("spawn", "demo", "bob", "--agent", name)
			works("4", "bob")
			asks("bob", counts)
			p := s.screen(100, 30, "demo")
			p.shows("! needs you 1")
			p.keys("a")
			p.shows("asks to use")
			p.keys("A")
			p.shows("Bash(" + counts + ")")
			p.keys("Enter")
			completed(4, 3, 3)
			works("5", "bob")
			completed(5, 4, 3)
			p.keys("q")
			p.ended()

			rules := read[[]struct{ Rule, Member, By string }](s.world, "permission", "demo")
			if len(rules) != 2 || rules[0].Member != "ann" || rules[1].Member != "" || rules[1].By != team.User ||
				rules[0].Rule != "Bash("+counts+")" || rules[1].Rule != rules[0].Rule {
				t.Errorf("the rules are %+v", rules)
			}
		})
	}
}

// TestWatchLiveDiff: the screen shows the diff of an agent's worktree while the agent edits, and
// follows the edits.
func TestWatchLiveDiff(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"claude", "codex"} {
		t.Run(name, func(t *testing.T) {
			var s *studio
			s = newStudio(t, func(r *agenttest.Request) agenttest.Turn {
				id, calls := task(r)
				if id != "" && len(calls) == 0 {
					return shells[name](fmt.Sprintf("echo the first edit >>notes.txt; until test -e %[1]s/go-1; do "+
						"sleep 0.05; done; "+
						"echo the second edit >>notes.txt; until test -e %[1]s/go-2; do sleep 0.05; done", s.dir))
				}
				return complete(r)
			}, name)
			s.repository()
			s.must("create", "demo", "--goal", "Edit", "--permission-mode", "bypassPermissions")
			t.Cleanup(func() { s.cadre("cleanup", "demo", "--force") })
			s.must("spawn", "demo", "ann", "--agent", name, "--isolation", "worktree")
			s.must("task", "add", "demo", "edit", "--owner", "ann")

			p := s.screen(100, 30, "demo")
			p.shows("ann")
			p.keys("S-Down")
			p.shows("▸ ann")
			p.keys("Enter")
			p.shows("to ann ▸")
			p.shows("the first edit >>notes.txt")
			p.keys("Tab", "d")
			p.shows("+the first edit")
			if strings.Contains(p.screen(), "+the second edit") {
				t.Errorf("the diff has an edit that was not made yet:\n%s", p.screen())
			}
			s.write("go-1", "")
			p.shows("+the second edit")
			if n := s.count("demo", "task_completed"); len(n) > 0 {
				t.Error("the task is completed, and the diff was to be shown before")
			}
			s.write("go-2", "")
			p.keys("Escape")
			p.shows("Task 1 is done.")
			p.keys("q")
			if code := p.ended(); code != 0 {
				t.Errorf("the screen ended with %d:\n%s", code, p.screen())
			}
		})
	}
}
