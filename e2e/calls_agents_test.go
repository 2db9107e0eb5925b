package e2e

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"cadre/internal/agent/agenttest"
)

// TestCallsOfALead counts the model calls of a lead with two teammates and three tasks. The lead
// plans, and reports when it has all results. Events that need no action of the lead cost no call;
// one call for each completed task would make ten. A teammate may start when the others have all
// tasks, and then says that it has nothing to do. While the others still work, that may cost a
// call.
func TestCallsOfALead(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"claude", "codex"} {
		t.Run(name, func(t *testing.T) {
			planned := make(chan struct{})
			var once sync.Once
			var unneeded atomic.Int32 // turns of teammates that had no task
			s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
				if who(r) != "lead" {
					if id, _ := task(r); id == "" {
						unneeded.Add(1)
					}
					turn := complete(r)
					turn.Wait = func(ctx context.Context) {
						select {
						case <-planned:
						case <-ctx.Done():
						}
					}
					return turn
				}
				calls := all(r)
				tasks := []map[string]any{{"subject": "Look", "description": "at all"},
					{"subject": "Write", "description": "it"},
					{"subject": "Check", "description": "both", "blockedBy": []string{"1", "2"}}}
				switch n, m := called(calls, "SpawnTeammate"), called(calls, "TaskCreate"); {
				case reports(r):
					return agenttest.Say("All three are done.")
				case n < 2:
					return use(r, "SpawnTeammate", map[string]any{"name": []string{"ann", "bob"}[n], "prompt": "Help."})
				case m < 3:
					return use(r, "TaskCreate", tasks[m])
				}
				once.Do(func() { close(planned) })
				return agenttest.Say("I wait.")
			}, name)
			r := s.run("write it", "--agent", name, "--name", "few", "--permission-mode", "bypassPermissions")
			if r.code != 0 {
				t.Fatalf("exit status %d\n%s%s\n%s", r.code, r.out, r.err, s.model.Story())
			}
			leads := slices.DeleteFunc(s.model.Requests(), func(r *agenttest.Request) bool {
				return r.Side ||
					who(r) != "lead"
			})
			if most := 7 + int(min(1, unneeded.Load())); len(leads) > most {
				t.Errorf("the lead's model was called %d times for three tasks, want %d\n%s", len(leads), most,
					s.model.Story())
			}
			last := leads[len(leads)-1]
			for _, id := range []string{"1", "2", "3"} {
				if words := "> result of task " + id + " by "; last.Count(words) != 1 ||
					unneeded.Load() == 0 && !strings.Contains(last.SinceAnswer(), words) {
					t.Errorf("the lead had %q %d times before it reported:\n%s", words, last.Count(words),
						last.SinceAnswer())
				}
			}
			t.Logf("the lead's model was called %d times", len(leads))
		})
	}
}

// TestResumedWithItsMail checks that a resumed session gets its waiting mail in its first prompt:
// one call of its model, without a steer.
func TestResumedWithItsMail(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"claude", "codex"} {
		t.Run(name, func(t *testing.T) {
			s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
				if _, calls := task(r); len(calls) == 0 && !r.Has("the port is 4711") {
					return shells[name]("touch began; sleep 1000")
				}
				return complete(r)
			}, name)
			file := s.file("name: resumed\npermissions: {mode: bypassPermissions}\nmembers: [{name: ann, agent: " +
				name + "}, {name: eve, agent: external}]\ntasks: [{id: slow, owner: ann, description: take your " +
				"time}]\n")
			first := s.start("run", file)
			s.waitFor("the command runs", func() bool { return has(s.dir, "began") })
			first.kill()
			s.must("send", "resumed", "--to", "ann", "--as", "eve", "the port is 4711")
			before := len(s.model.Requests())
			if r := s.run(file); r.code != 0 {
				t.Fatalf("exit status %d\n%s%s\n%s", r.code, r.out, r.err, s.model.Story())
			}
			for _, r := range s.model.Requests()[before:] {
				if r.Side {
					continue
				}
				last := r.LastUser()
				for _, words := range []string{"Continue where you stopped", "Task slow is yours now",
					"the port is 4711\n</team-message>"} {
					if strings.Count(last, words) != 1 {
						t.Errorf("the first prompt after the resume has %q %d times:\n%s", words,
							strings.Count(last, words), last)
					}
				}
				break
			}
		})
	}
}

// TestTextsAreEscapedOnce checks that JSON in a text reaches models and people as it was written,
// without a second escaping.
func TestTextsAreEscapedOnce(t *testing.T) {
	t.Parallel()
	const command = `echo '<a> & b' > made`
	for _, name := range []string{"claude", "codex", "gemini", "opencode"} {
		t.Run(name, func(t *testing.T) {
			sampled(t, name)
			s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
				calls := all(r)
				if who(r) == "lead" {
					switch {
					case reports(r):
						return agenttest.Say("It is made.")
					case called(calls, "SpawnTeammate") == 0:
						return use(r, "SpawnTeammate", map[string]any{"name": "ann", "agent": name, "prompt": "Help."})
					case called(calls, "TaskCreate") == 0:
						return use(r, "TaskCreate", map[string]any{"subject": "Make it", "description": "<a> & b",
							"metadata": map[string]any{"rule": "<a> & b"}, "owner": "ann"})
					case called(calls, "TaskGet") == 0:
						return use(r, "TaskGet", map[string]any{"taskId": "1"})
					case called(calls, "RespondToPermission") == 0 && requested(r) != "":
						return use(r, "RespondToPermission", map[string]any{"requestId": requested(r), "allow": true})
					}
					return agenttest.Say("I wait.")
				}
				if id, mine := task(r); id != "" && len(mine) == 0 {
					return shells[name](command)
				}
				return complete(r)
			}, slices.Compact([]string{"claude", name})...)
			p := s.start("run", "make a file", "--agent", "claude", "--name", "once", "--policy", "lead")
			if code := p.wait(); code != 0 {
				t.Fatalf("exit status %d\n%s\n%s", code, p.said(), s.model.Story())
			}
			asked, kept := false, false
			for _, r := range s.model.Requests() {
				for _, m := range r.Messages {
					texts := m.Text
					for _, result := range m.Results {
						texts += "\n" + result.Text
					}
					for _, escape := range []string{`\u003c`, `\u003e`, `\u0026`} {
						if strings.Contains(texts, escape) {
							t.Errorf("request %d, of %s, has %s:\n%s", r.N, who(r), escape, texts)
						}
					}
					asked = asked || who(r) == "lead" && strings.Contains(texts, `"command":"`+command+`"`)
					kept = kept || strings.Contains(texts, `metadata "rule": "<a> & b"`)
				}
			}
			if !asked || !kept {
				t.Errorf("the lead saw the command unchanged: %t; the metadata unchanged: %t\n%s",
					asked, kept, s.model.Story())
			}
			if told := s.must("log", "once") + s.must("task", "show", "once", "1") + p.said(); strings.Contains(told,
				`\u003`) || strings.Contains(told, `\u0026`) {
				t.Errorf("the output for people has escapes:\n%s", told)
			}
		})
	}
}

// TestLimitOfTeammates checks a lead that spawns one teammate too many. The tool refuses and says
// what helps. The spawn works after another teammate has ended.
func TestLimitOfTeammates(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"claude", "codex"} {
		t.Run(name, func(t *testing.T) {
			const refused = "team small has 1 teammate, and may have at most 1 at a time (MAX_TEAMMATES_REACHED). " +
				"To shut down a teammate that is not needed: ShutdownTeammate."
			s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
				if who(r) != "lead" {
					return agenttest.Say("There is nothing for me to do.")
				}
				calls := all(r)
				switch n := called(calls, "SpawnTeammate"); {
				case reports(r):
					return agenttest.Say("It is done.")
				case n < 2:
					return use(r, "SpawnTeammate", map[string]any{"name": []string{"ann", "bob"}[n], "agent": name,
						"prompt": "Help."})
				case called(calls, "ShutdownTeammate") == 0:
					return use(r, "ShutdownTeammate", map[string]any{"name": "ann", "withinSeconds": 0})
				case n < 200 && !r.Has("bob joined the team"): // ann's host needs a moment to end her
					return use(r, "SpawnTeammate", map[string]any{"name": "bob", "agent": name, "prompt": "Help."})
				}
				return agenttest.Say("I wait.")
			}, name)
			r := s.run("--goal", "help", "--agent", name, "--name", "small", "--max-teammates", "1",
				"--permission-mode", "bypassPermissions")
			if r.code != 0 {
				t.Fatalf("exit status %d\n%s%s\n%s", r.code, r.out, r.err, s.model.Story())
			}
			for _, words := range []string{refused, "bob joined the team"} {
				if !slices.ContainsFunc(s.model.Requests(), func(r *agenttest.Request) bool {
					return who(r) == "lead" &&
						r.Has(words)
				}) {
					t.Errorf("the lead did not read %q\n%s", words, s.model.Story())
				}
			}
		})
	}
}
