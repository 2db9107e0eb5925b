package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"cadre/internal/agent/agenttest"
)

// headless is how a person runs an agent once, for its output: the arguments before a prompt, and
// those that continue its last session.
var headless = []struct {
	agent      string
	run, again []string
}{
	{"codex", []string{"exec", "--json", "--dangerously-bypass-approvals-and-sandbox"},
		[]string{"exec", "--json", "--dangerously-bypass-approvals-and-sandbox", "resume", "--last"}},
	{"gemini", []string{"--yolo", "--output-format", "stream-json", "-p"}, []string{"--yolo", "--output-format",
		"stream-json", "--resume", "latest", "-p"}},
	{"opencode", []string{"run", "--format", "json"}, []string{"run", "--format", "json", "--continue"}},
}

// TestObservedPrints checks that the output of a single run of a real agent is observed live,
// through a pipe. Its actions are shown before its model may finish. An interrupted run has failed.
// A continued session is the same member. A failed turn is reported in the agent's words.
func TestObservedPrints(t *testing.T) {
	t.Parallel()
	for _, a := range headless {
		t.Run(a.agent, func(t *testing.T) {
			sampled(t, a.agent)
			s := newStudio(t, nil, a.agent)
			watch := func(args ...string) *watcher {
				return s.watch(append([]string{"-", "--agent", a.agent}, args...)...)
			}
			works := a.agent + " is active: Bash: "
			runs := 0
			// run is one run, whose model answers with a text after a command. It calls during
			// while the run lasts.
			run := func(args []string, answer func(kept *watcher) agenttest.Turn, during func(*watched, *watcher)) (
				kept, programs, state *watcher) {
				kept, programs, state = watch("--as-team", "watched"), watch("--json", "--pass"), watch("--state")
				last := kept.after(works, answer(kept))
				runs++
				result := fmt.Sprintf("run %d is done", runs)
				s.model.Answer(func(r *agenttest.Request) agenttest.Turn {
					if !strings.Contains(r.Results(), result) {
						return shells[a.agent](fmt.Sprintf("printf 'run %%s is done' %d", runs))
					}
					return last
				})
				program := s.show(s.program(a.agent, append(args[:len(args):len(args)], "do one")...), kept,
					programs, state)
				if during != nil {
					during(program, kept)
				}
				program.end()
				for _, w := range []*watcher{kept, programs, state} {
					w.end()
				}
				if log := s.must("log", "watched"); !strings.HasSuffix(log, kept.out.String()) {
					t.Errorf("the log is\n%s\nbut the output was\n%s", log, kept.out)
				}
				notices := programs.passed(program.said)
				if len(notices) < 2 || strings.Join(notices[:2], " ") != "team:created team:member:joined" {
					t.Errorf("the notices are %v", notices)
				}
				return kept, programs, state
			}
			say := func(words string) func(*watcher) agenttest.Turn {
				return func(*watcher) agenttest.Turn { return agenttest.Say("%s", words) }
			}
			member := func() (m struct {
				Status, Summary, Session string
				Incarnation              int
				Usage                    struct{ InputTokens, OutputTokens int }
			}) {
				kept := read[struct{ Members []json.RawMessage }](s.world, "status", "watched")
				if err := json.Unmarshal(kept.Members[len(kept.Members)-1], &m); err != nil {
					t.Fatal(err)
				}
				return m
			}

			_, _, state := run(a.run, say("All is well."), nil)
			first := member()
			if first.Status != "idle" || first.Summary != "All is well." || first.Incarnation != 1 ||
				first.Usage.InputTokens != 200 || first.Usage.OutputTokens != 20 {
				t.Errorf("after its first run the member is %+v", first)
			}
			seen := observedTeam[struct {
				Members []struct{ Name, AgentID, Status string }
			}](t, state.out.String())
			if len(seen.Members) != 1 || seen.Members[0].AgentID != first.Session || seen.Members[0].Status != "idle" {
				t.Errorf("in the end the member is %+v", seen)
			}
			if out, want := s.must("status", "watched"), "watched is a session of "+a.agent+" that is not observed "+
				"now; to continue: cadre observe --agent "+a.agent+
				" ... --as-team watched"; !strings.Contains(out, want) {
				t.Errorf("its status is\n%s", out)
			}

			waits := make(chan struct{})
			kept, _, _ := run(a.run, func(*watcher) agenttest.Turn {
				return agenttest.Turn{Text: "Never.", Wait: func(ctx context.Context) {
					select {
					case <-waits: // it asks again
					default:
						close(waits)
					}
					<-ctx.Done()
				}}
			}, func(program *watched, kept *watcher) {
				select {
				case <-waits:
				case <-time.After(3 * patience): // opencode takes half a minute to start on a busy machine
					t.Errorf("its model gets no request:\n%s", program.said)
				}
				program.Process.Signal(os.Interrupt)
			})
			if m := member(); m.Status != "failed" || m.Summary != "the session ended in the middle of a turn" ||
				m.Session == first.Session || m.Incarnation != 1 {
				t.Errorf("after the interrupt the member is %+v", m)
			}
			if at, out := strings.Index(kept.out.String(), works), kept.out.String(); at < 0 ||
				strings.Contains(out[:at], "All is well.") {
				t.Errorf("its last words are shown in the next turn:\n%s", out)
			}

			run(a.again, say("It is still so."), nil)
			if m := member(); m.Status != "idle" || m.Summary != "It is still so." || m.Incarnation != 2 ||
				m.Usage.OutputTokens < 40 {
				t.Errorf("after it continues the member is %+v", m)
			}

			run(a.run, func(*watcher) agenttest.Turn { return agenttest.Fail(401, "the key is unknown here") }, nil)
			if m := member(); m.Status != "blocked" || !strings.Contains(m.Summary, "the key is unknown here") {
				t.Errorf("after a failed turn the member is %+v", m)
			}
		})
	}
}
