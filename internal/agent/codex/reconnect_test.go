package codex

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"cadre/internal/agent"
	"cadre/internal/agent/agenttest"
)

// bench returns a bench for the real program behind a relay.
func bench(t *testing.T, script agenttest.Script) (*agenttest.Bench, *agenttest.Server, *relay) {
	t.Helper()
	p := agenttest.Installed(t, "codex")
	s := agenttest.NewServer(t, script)
	b := agenttest.NewBench(t, Agent{Program: p.Path}, agenttest.NewWorld(t, s, p))
	return b, s, throughRelay(b, p)
}

// slow is a turn with a command that prints began, and continues when it is allowed to.
const slow = "touch began; until test -e go; do sleep 0.05; done; echo finished"

// story returns the updates of the session without its usage, which arrives at no fixed time.
func story(r *agenttest.Run) (all []string) {
	for _, u := range agenttest.Said[agent.Update](r) {
		switch u := u.(type) {
		case agent.Started, agent.Used, agent.TextPart:
		case agent.ToolStarted:
			all = append(all, "ToolStarted "+u.Tool)
		default:
			all = append(all, agenttest.Words(u))
		}
	}
	return all
}

// saidOnce fails unless the session sent exactly these updates, and counted every token once.
func saidOnce(t *testing.T, r *agenttest.Run, tokens int64, want ...string) {
	t.Helper()
	got := slices.DeleteFunc(story(r), func(said string) bool { // it depends on the time
		return strings.HasPrefix(said, "ToolOutput ")
	})
	if !slices.Equal(got, want) {
		t.Errorf("the session said\n  %s\nand not\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
	if sum := spent(r, tokens); sum != tokens {
		t.Errorf("%d tokens are counted, not %d: %+v", sum, tokens, agenttest.Said[agent.Used](r))
	}
}

// spent returns the number of counted tokens, once there are that many.
func spent(r *agenttest.Run, tokens int64) int64 {
	for {
		var sum int64
		for _, u := range agenttest.Said[agent.Used](r) {
			sum += u.Usage.Tokens()
		}
		if sum >= tokens {
			return sum
		}
		agenttest.Next[agent.Used](r)
	}
}

// TestCutWhileAToolRuns checks that a turn continues on a new connection when the old one breaks
// while a tool runs.
func TestCutWhileAToolRuns(t *testing.T) {
	t.Parallel()
	b, _, r := bench(t, agenttest.Sequence(agenttest.Turn{Text: "I begin.", Calls: shell(slow).Calls},
		agenttest.Say("Done."), agenttest.Say("Again.")))
	b.Spec.Access.Mode = "bypassPermissions"
	run := b.Start()
	run.Tell("one", "do one")
	b.WaitFile("began")
	for n := range 3 {
		r.cut()
		r.connections(n + 2)
	}
	b.Touch("go")
	agenttest.Next[agent.TurnEnded](run)
	run.Tell("two", "do two")
	agenttest.Next[agent.TurnEnded](run)
	saidOnce(t, run, 330,
		`TurnStarted`, `Received ID="one"`, `Text Text="I begin."`, `ToolStarted Bash`,
		`ToolFinished ID="toolu_0001" Output="finished\n"`, `Text Text="Done."`, `TurnEnded Text="Done."`,
		`TurnStarted`, `Received ID="two"`, `Text Text="Again."`, `TurnEnded Text="Again."`)
}

// TestCutBetweenTurns breaks the connection between turns, when the program unloads the thread. The
// thread comes back with its history, tools and instructions.
func TestCutBetweenTurns(t *testing.T) {
	t.Parallel()
	b, s, r := bench(t, func(r *agenttest.Request) agenttest.Turn {
		switch {
		case strings.Contains(r.LastUser(), "one"):
			return agenttest.Say("Done.")
		case r.Results() == "":
			return agenttest.Use(r.Tool("TeamStatus"), nil)
		}
		return agenttest.Say("Good.")
	})
	run := b.Start()
	for n := range 2 { // before the first turn, and before the second
		r.cut()
		r.connections(n + 2)
		run.Tell([]string{"one", "two"}[n], []string{"do one", "and two"}[n])
		agenttest.Next[agent.TurnEnded](run)
	}
	saidOnce(t, run, 330, `TurnStarted`, `Received ID="one"`, `Text Text="Done."`, `TurnEnded Text="Done."`,
		`TurnStarted`, `Received ID="two"`, `ToolStarted TeamStatus`,
		`ToolFinished ID="toolu_0001" Output="The team is well."`, `Text Text="Good."`, `TurnEnded Text="Good."`)
	last := s.WaitFor(t, "the second prompt", func(r *agenttest.Request) bool { return r.Has("and two") })
	if !last.Has("You are ann, a teammate.") || last.Count("do one") != 1 {
		t.Errorf("the model was shown:\n%s\n%s", last.System, s.Story())
	}
}

// TestEndWithoutConnection checks that the end of a turn, and everything else that was missed
// without a connection, is read from the thread's history.
func TestEndWithoutConnection(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		last   agenttest.Turn
		tokens int64
		want   []string
	}{
		{"well", agenttest.Say("Done."), 220, []string{`Text Text="Done."`, `TurnEnded Text="Done."`}},
		{"badly", agenttest.Fail(429, "slow down"), 110,
			[]string{
				`TurnEnded Problem={Kind="limit" Text="exceeded retry limit, last status: 429 Too Many Requests"}`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, _, r := bench(t, agenttest.Sequence(shell(slow), c.last))
			b.Spec.Access.Mode = "bypassPermissions"
			run := b.Start()
			thread := agenttest.Next[agent.Started](run).Session
			run.Tell("p", "do one")
			b.WaitFile("began")
			r.hold()
			r.cut()
			b.Touch("go")
			r.idle(thread)
			r.release()
			agenttest.Next[agent.TurnEnded](run)
			saidOnce(t, run, c.tokens, append([]string{`TurnStarted`, `Received ID="p"`, `ToolStarted Bash`,
				`ToolFinished ID="toolu_0001" Output="finished\n"`}, c.want...)...)
		})
	}
}

// TestPlanWithoutConnection checks the same for a plan that ends such a turn.
func TestPlanWithoutConnection(t *testing.T) {
	t.Parallel()
	asked, let := make(chan struct{}), make(chan struct{})
	plan := agenttest.Say("<proposed_plan>\nRead, then write.\n</proposed_plan>")
	plan.Wait = func(ctx context.Context) {
		close(asked)
		select {
		case <-let:
		case <-ctx.Done():
		}
	}
	b, _, r := bench(t, agenttest.Sequence(plan))
	b.Spec.Access.Writes = false
	run := b.Start()
	thread := agenttest.Next[agent.Started](run).Session
	run.Tell("p", "do one")
	run.Got("p")
	select {
	case <-asked:
	case <-b.Ctx.Done():
		t.Fatal("the model is not asked")
	}
	r.hold()
	r.cut()
	close(let)
	r.idle(thread)
	r.release()
	agenttest.Next[agent.TurnEnded](run)
	saidOnce(t, run, 110, `TurnStarted`, `Received ID="p"`, `PlanProposed Plan="Read, then write.\n"`, `TurnEnded`)
}

// TestPromptOnABrokenConnection checks that the model gets a prompt once, even if the prompt or its
// answer is lost.
func TestPromptOnABrokenConnection(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"turn/start", "turn/steer"} {
		for what, where := range map[string]fate{"the prompt is lost": cutBefore, "its answer is lost": cutBehind} {
			t.Run(method+", "+what, func(t *testing.T) {
				b, s, r := bench(t, agenttest.Sequence(shell(slow), agenttest.Say("Done."), agenttest.Say("Done."),
					agenttest.Say("Done.")))
				b.Spec.Access.Mode = "bypassPermissions"
				cuts := 0
				r.at = func(toProgram bool, m rpc) fate {
					if !toProgram || m.Method != method || cuts > 0 {
						return passes
					}
					cuts++
					return where
				}
				run := b.Start()
				r.keep(agenttest.Next[agent.Started](run).Session)
				run.Tell("one", "do one")
				b.WaitFile("began")
				run.Tell("two", "the port is 4711")
				b.Touch("go")
				run.Got("one")
				run.Got("two")
				s.WaitFor(t, "the second prompt", func(r *agenttest.Request) bool { return r.Has("the port is 4711") })
				agenttest.Next[agent.TurnEnded](run)
				run.Tell("three", "and now?")
				run.Got("three")
				agenttest.Next[agent.TurnEnded](run)
				last := s.WaitFor(t, "the third prompt", func(r *agenttest.Request) bool { return r.Has("and now?") })
				for _, text := range []string{"do one", "the port is 4711", "and now?"} {
					if n := last.Count(text); n != 1 {
						t.Errorf("%q is there %d times:\n%s", text, n, s.Story())
					}
				}
				if cuts == 0 {
					t.Error("nothing was cut")
				}
				var received []string
				for _, u := range agenttest.Said[agent.Received](run) {
					received = append(received, u.ID)
				}
				if !slices.Equal(received, []string{"one", "two", "three"}) {
					t.Errorf("received were %v", received)
				}
			})
		}
	}
}

// TestInterruptedByAnotherClient checks that a turn which another client interrupted counts as
// failed, because this driver did not ask for that.
func TestInterruptedByAnotherClient(t *testing.T) {
	t.Parallel()
	b, _, r := bench(t, agenttest.Sequence(shell("touch began; sleep 1000")))
	b.Spec.Access.Mode = "bypassPermissions"
	run := b.Start()
	run.Tell("p", "do one")
	b.WaitFile("began")
	s := run.Session.(*session)
	s.mu.Lock()
	turn := object{"threadId": s.thread, "turnId": s.turn}
	s.mu.Unlock()
	if err := r.beside().call(b.Ctx, "turn/interrupt", turn, nil); err != nil {
		t.Fatal(err)
	}
	if end := agenttest.Next[agent.TurnEnded](run); end.Interrupted || end.Problem == nil {
		t.Errorf("the turn ended with %+v", end)
	}
}

// TestPermissionOnABrokenConnection checks that a permission request and its answer survive the
// loss of the connection.
func TestPermissionOnABrokenConnection(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]func(*relay, func()){
		"answered on the next one":  func(r *relay, answer func()) { r.cut(); r.connections(2); answer() },
		"answered on none":          func(r *relay, answer func()) { r.hold(); r.cut(); answer(); r.release() },
		"answered on a broken one":  func(r *relay, answer func()) { r.loseAnswer(); answer() },
		"answered before it breaks": func(r *relay, answer func()) { answer(); r.cut() },
	} {
		t.Run(name, func(t *testing.T) {
			b, _, r := bench(t, agenttest.Sequence(shell("touch ran; echo x"), agenttest.Say("Done.")))
			run := b.Start()
			run.Tell("p", "do one")
			asked := agenttest.Next[agent.PermissionAsked](run)
			between(r, func() { asked.Answer(true, "") })
			agenttest.Next[agent.TurnEnded](run)
			input := fmt.Sprintf("{\"command\":\"touch ran; echo x\",\"cwd\":%q,\"description\":\"\"}", b.World.Dir)
			saidOnce(t, run, 220, `TurnStarted`, `Received ID="p"`, `ToolStarted Bash`,
				fmt.Sprintf("PermissionAsked Tool=\"Bash\" Input=%q", input),
				`ToolFinished ID="toolu_0001" Output="x\n"`, `Text Text="Done."`, `TurnEnded Text="Done."`)
		})
	}
}

// loseAnswer loses the driver's next answer to the program, together with the connection.
func (r *relay) loseAnswer() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = func(toProgram bool, m rpc) fate {
		if toProgram && m.Method == "" {
			r.at = nil
			return cutBefore
		}
		return passes
	}
}

// gated are team's tools whose calls wait until the test releases them.
type gated struct {
	*agenttest.Tools
	called chan struct{}
	let    chan struct{}
	once   sync.Once
}

func (g *gated) Call(ctx context.Context, name string, input json.RawMessage) (string, bool) {
	text, failed := g.Tools.Call(ctx, name, input)
	g.once.Do(func() {
		close(g.called)
		select {
		case <-g.let:
		case <-ctx.Done():
		}
	})
	return text, failed
}

// TestTeamToolOnABrokenConnection checks that a tool call is carried out once, however often the
// connection breaks before its result arrives.
func TestTeamToolOnABrokenConnection(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]func(*relay, func()){
		"a result on the next one": func(r *relay, let func()) { r.cut(); r.connections(2); let() },
		"a result on a broken one": func(r *relay, let func()) { r.loseAnswer(); let(); r.connections(2) },
		"a result without any":     func(r *relay, let func()) { r.hold(); r.cut(); let(); r.release() },
		"a result on the third one": func(r *relay, let func()) {
			r.cut()
			r.connections(2)
			r.cut()
			r.connections(3)
			let()
		},
	} {
		t.Run(name, func(t *testing.T) {
			status := func(about string) agenttest.Turn {
				return agenttest.Use("TeamStatus", map[string]any{"about": about})
			}
			b, s, r := bench(t, agenttest.Sequence(status("one"), status("two"), agenttest.Say("Good.")))
			tools := &gated{Tools: b.Tools, called: make(chan struct{}), let: make(chan struct{})}
			b.Spec.Tools = tools
			run := b.Start()
			run.Tell("p", "look")
			select {
			case <-tools.called:
			case <-b.Ctx.Done():
				t.Fatal("the tool is not called")
			}
			between(r, func() { close(tools.let) })
			agenttest.Next[agent.TurnEnded](run)
			saidOnce(t, run, 330, `TurnStarted`, `Received ID="p"`, `ToolStarted TeamStatus`,
				`ToolFinished ID="toolu_0001" Output="The team is well."`,
				`ToolStarted TeamStatus`, `ToolFinished ID="toolu_0002" Output="The team is well."`,
				`Text Text="Good."`, `TurnEnded Text="Good."`)
			if calls := b.Tools.Called(); !slices.Equal(calls, []string{`TeamStatus{"about":"one"}`,
				`TeamStatus{"about":"two"}`}) {
				t.Errorf("called was %v\n%s", calls, s.Story())
			}
		})
	}
}

// TestCutWhileConnecting checks that a connection that breaks while it is being made is made again.
func TestCutWhileConnecting(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"initialize", "thread/resume"} {
		for what, where := range map[string]fate{"before": cutBefore, "behind": cutBehind} {
			t.Run(what+" "+method, func(t *testing.T) {
				b, _, r := bench(t, agenttest.Sequence(shell(slow), agenttest.Say("Done.")))
				b.Spec.Access.Mode = "bypassPermissions"
				run := b.Start()
				run.Tell("p", "do one")
				b.WaitFile("began")
				r.mu.Lock()
				cuts := 0
				r.at = func(toProgram bool, m rpc) fate {
					if toProgram && m.Method == method && cuts < 3 {
						cuts++
						return where
					}
					return passes
				}
				r.mu.Unlock()
				r.cut()
				r.connections(5)
				b.Touch("go")
				agenttest.Next[agent.TurnEnded](run)
				saidOnce(t, run, 220, `TurnStarted`, `Received ID="p"`, `ToolStarted Bash`,
					`ToolFinished ID="toolu_0001" Output="finished\n"`, `Text Text="Done."`, `TurnEnded Text="Done."`)
			})
		}
	}
}

// TestGarbage checks that messages which the app-server never sends are ignored wherever they
// occur.
func TestGarbage(t *testing.T) {
	t.Parallel()
	b, _, r := bench(t, agenttest.Sequence(shell("echo x"), agenttest.Say("Done.")))
	b.Spec.Access.Mode = "bypassPermissions"
	r.noise = garbage
	run := b.Start()
	run.Tell("p", "do one")
	agenttest.Next[agent.TurnEnded](run)
	saidOnce(t, run, 220, `TurnStarted`, `Received ID="p"`, `ToolStarted Bash`,
		`ToolFinished ID="toolu_0001" Output="x\n"`, `Text Text="Done."`, `TurnEnded Text="Done."`)
}

// garbage lists meaningless messages.
var garbage = []string{"", "garbage", "{", "[1,2]", "null", `"text"`, `{"method":5}`,
	`{"method":"no/such/thing","params":[1]}`, `{"method":"turn/completed"}`,
	`{"method":"turn/completed","params":{"turn":7}}`,
	`{"method":"item/completed","params":{"item":{"type":"later","id":[]}}}`, `{"id":"4711","result":{}}`,
	`{"id":{},"error":{"code":1,"message":"x"}}`}
