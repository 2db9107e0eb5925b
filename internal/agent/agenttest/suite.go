package agenttest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cadre/internal/agent"
)

// Driver is a driver under test, with the peculiarities of its program.
type Driver struct {
	Program string                       // the name for [Installed]
	Agent   func(p Program) agent.Agent  // drives that program
	Shell   func(command string) Turn    // the model runs a command
	Write   func(file, text string) Turn // the model writes a file, by an absolute path
	// Plan submits a plan to the user. It is nil if the program has no tool for that.
	Plan func(plan string) Turn
	// MidTurn says that a working agent gets a prompt at its next tool boundary. Otherwise it gets
	// the prompt when its turn has ended.
	MidTurn bool
	Asks    bool // it asks before it runs a command or writes, in mode default
	Gates   bool // it asks the gate before every tool, not only where it asks for permission
	Mute    bool // its model is not even offered what the gate refuses
	Silent  bool // it does not show the output of a command
	Streams bool // it shows the output of a command while the command runs
	Vague   bool // the text of an error does not reveal its kind
	// Patient lists model errors after which a turn retries for minutes. They are not recorded.
	Patient []string
	Env     []string // added to the environment
	// Tokens is how many of the 330 tokens it counts that three model calls take in two turns; 0
	// for all.
	Tokens int64
}

// TestDriver is the suite that every driver must pass, with the real program. Starting a program
// costs seconds of processor time. Cases that need the same access therefore share a session.
func TestDriver(t *testing.T, d Driver) {
	t.Parallel()
	p := Installed(t, d.Program)
	for _, c := range []struct {
		name string
		test func(*testing.T, Driver, Program)
	}{
		{"Free", func(t *testing.T, d Driver, p Program) {
			d.share(t, p, agent.Access{Mode: "bypassPermissions", Writes: true}, []shared{{"Turn", testTurn},
				{"WhileAToolRuns", testWhileAToolRuns},
				{"Output", testOutput}, {"Urgent", testUrgent}, {"AtTheEndOfATurn", testAtTheEnd},
				{"Stop", testStop}})
		}},
		{"Asked", func(t *testing.T, d Driver, p Program) {
			d.share(t, p, agent.Access{Mode: "default", Writes: true}, []shared{{"TeamTool", testTeamTool},
				{"Permission", testPermission}, {"Refusals", testRefusals}})
		}},
		{"Errors", func(t *testing.T, d Driver, p Program) {
			d.share(t, p, agent.Access{Mode: "default", Writes: true}, errorCases())
		}},
		{"Gate", testGate}, {"Plan", testPlan}, {"KilledAndResumed", testKilled}, {"CannotStart", testCannotStart},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, d, p)
		})
	}
}

// shared is a case that runs in a session with earlier cases. The session waits, and has their
// turns in its history. Prompts have ids that no other case of the session uses.
type shared struct {
	name string
	test func(*testing.T, Driver, *Run, *Server)
}

// share runs the cases in one session. It stops after a failed case, because the state of the
// session is then unknown.
func (d Driver) share(t *testing.T, p Program, access agent.Access, cases []shared) {
	b, s := d.bench(t, p, nil)
	b.Spec.Access = access
	r := b.Start()
	for _, c := range cases {
		if !t.Run(c.name, func(one *testing.T) {
			b.T = one // a failed wait fails this case
			defer func() { b.T = t }()
			c.test(one, d, r, s)
		}) {
			t.Fatalf("the cases after %s need a working session:\n%s%s", c.name, r.Story(), s.Story())
		}
	}
}

func (d Driver) bench(t *testing.T, p Program, script Script) (*Bench, *Server) {
	t.Helper()
	s := NewServer(t, script)
	w := NewWorld(t, s, p)
	w.Env = append(w.Env, d.Env...)
	b := NewBench(t, d.Agent(p), w)
	b.Spec.ToolServer = b.ServeTools()
	return b, s
}

// byPrompt answers by the last message to the model. A prompt with "do N" gets the turns of N, one
// after the other as results come in. A message may contain several prompts; the last one counts.
// This happens after a prompt that was never answered.
func byPrompt(turns map[string][]Turn) Script {
	return func(r *Request) Turn {
		last, n := "", 0
		for _, m := range r.Messages {
			at := -1
			for key := range turns {
				if i := strings.LastIndex(m.Text, "do "+key); m.Role == "user" && i > at {
					last, n, at = key, 0, i
				}
			}
			if m.Role == "assistant" {
				n++
			}
		}
		list := turns[last]
		if len(list) == 0 {
			return Say("I have nothing to do.")
		}
		return list[min(n, len(list)-1)]
	}
}

func testTurn(t *testing.T, d Driver, r *Run, s *Server) {
	s.Answer(byPrompt(map[string][]Turn{"one": {d.Shell("echo from the shell"), Say("It said so.")},
		"two": {Say("Again.")}}))
	if started := Next[agent.Started](r); started.Session == "" || started.Resumed {
		t.Errorf("%+v", started)
	}
	r.Tell("p1", "do one")
	Next[agent.TurnStarted](r)
	tool := Next[agent.ToolStarted](r)
	if tool.Tool != "Bash" || !strings.Contains(tool.Input, "echo from the shell") {
		t.Errorf("got tool %+v", tool)
	}
	if done := Next[agent.ToolFinished](r); done.ID != tool.ID || !strings.Contains(done.Output,
		"from the shell") && !d.Silent {
		t.Errorf("got tool result %+v", done)
	}
	if end := Next[agent.TurnEnded](r); end.Text != "It said so." || end.Problem != nil || end.Interrupted {
		t.Errorf("the turn ended with %+v", end)
	}
	if parts := Written(r); !strings.Contains(parts, "It said so.") {
		t.Errorf("the session showed %q while it wrote", parts)
	}
	r.Got("p1")
	r.Tell("p2", "do two")
	if end := Next[agent.TurnEnded](r); end.Text != "Again." {
		t.Errorf("the second turn ended with %+v", end)
	}
	r.Got("p2")
	first := s.Requests()[0]
	if !first.Has("You are ann, a teammate.") || first.Count("do one") != 1 {
		t.Errorf("the model was shown:\n%s\n%s", first.System, first.LastUser())
	}
	var tokens int64
	for _, u := range Said[agent.Used](r) {
		tokens += u.Usage.Tokens()
	}
	if d.Tokens == 0 {
		d.Tokens = 330
	}
	if tokens != d.Tokens {
		t.Errorf("got %d tokens of %d: %+v", tokens, d.Tokens, Said[agent.Used](r))
	}
}

func testTeamTool(t *testing.T, d Driver, r *Run, s *Server) {
	s.Answer(func(r *Request) Turn {
		if r.Has(Status) {
			return Say("Good.")
		}
		return Use(r.Tool("TeamStatus"), map[string]any{"about": "us"})
	})
	r.Tell("look", "look")
	if end := Next[agent.TurnEnded](r); end.Text != "Good." {
		t.Errorf("the turn ended with %+v\n%s%s", end, r.Story(), s.Story())
	}
	if calls := r.Tools.Called(); len(calls) != 1 || !strings.Contains(calls[0], "us") {
		t.Errorf("called: %v", calls)
	}
	if tools := Said[agent.ToolStarted](r); len(tools) != 1 || tools[0].Tool != "TeamStatus" {
		t.Errorf("tools: %+v", tools)
	}
	if done := Said[agent.ToolFinished](r); len(done) != 1 || !strings.Contains(done[0].Output, Status) {
		t.Errorf("results: %+v", done)
	}
	if asked := Said[agent.PermissionAsked](r); len(asked) != 0 {
		t.Errorf("the session asked for %+v", asked)
	}
}

// testUrgent checks that an urgent message interrupts the model and comes next.
func testUrgent(t *testing.T, d Driver, r *Run, s *Server) {
	s.Answer(func(r *Request) Turn {
		if r.Has("stop that") {
			return Say("Stopped.")
		}
		return Turn{Text: "a long story", Wait: func(ctx context.Context) { <-ctx.Done() }}
	})
	r.Tell("story", "tell a story")
	s.WaitFor(t, "the story", func(r *Request) bool { return r.Has("tell a story") })
	Next[agent.TurnStarted](r)
	mail := Mail("urgent", 8, "stop that")
	mail.Urgent = true
	r.Prompt(mail)
	s.WaitFor(t, "the urgent message", func(r *Request) bool { return r.Has("stop that") })
	r.Got("urgent")
	for end := Next[agent.TurnEnded](r); end.Text != "Stopped."; end = Next[agent.TurnEnded](r) {
		if end.Problem != nil {
			t.Fatalf("the turn ended with %v", end.Problem)
		}
	}
}

// testAtTheEnd checks that a prompt that races the end of a turn is neither lost nor doubled.
func testAtTheEnd(t *testing.T, d Driver, r *Run, s *Server) {
	s.Answer(func(*Request) Turn { return Say("Yes.") })
	const rounds = 6
	for i := range rounds {
		r.Tell(fmt.Sprintf("a%d", i), fmt.Sprintf("first of round %d;", i))
		s.WaitFor(t, "it", func(r *Request) bool { return r.Has(fmt.Sprintf("first of round %d;", i)) })
		r.Tell(fmt.Sprintf("b%d", i), fmt.Sprintf("second of round %d;", i)) // while the answer is under way
		r.Got(fmt.Sprintf("a%d", i))
		r.Got(fmt.Sprintf("b%d", i))
		last := s.WaitFor(t, "the second", func(r *Request) bool {
			return r.Has(fmt.Sprintf("second of round %d;", i))
		})
		if last.Count(fmt.Sprintf("second of round %d;", i)) != 1 {
			t.Errorf("round %d: doubled\n%s", i, s.Story())
		}
	}
	requests := s.Requests()
	for i := range rounds {
		for _, what := range []string{"first", "second"} {
			if n := requests[len(requests)-1].Count(fmt.Sprintf("%s of round %d;", what, i)); n != 1 {
				t.Errorf("at the end the %s of round %d is there %d times", what, i, n)
			}
		}
	}
}

// testPlan checks that nothing is written before the plan is approved, and that a rejected plan is
// revised.
func testPlan(t *testing.T, d Driver, p Program) {
	b, s := d.bench(t, p, nil)
	s.script = d.plans(filepath.Join(b.World.Dir, "written"))
	b.Spec.Access.Writes = false
	b.Spec.Access.Mode = "bypassPermissions"
	allowed := false
	b.Spec.Gate = func(tool, _ string) error {
		if !allowed && (tool == "Bash" || tool == "Edit" || tool == "Write") {
			return errors.New("ann may change nothing before its plan is approved")
		}
		return nil
	}
	r := b.Start()
	r.Tell("p", "plan, then do it")
	if d.Plan == nil {
		Next[agent.TurnEnded](r)
		b.Absent("written")
		allowed = true
		if err := r.SetAccess(b.Ctx, agent.Access{Mode: "bypassPermissions", Writes: true}); err != nil &&
			!errors.Is(err, errors.ErrUnsupported) {
			t.Fatal(err)
		}
		r.Tell("go", "The plan is approved: now write.")
		b.WaitFile("written")
		return
	}
	first := Next[agent.PlanProposed](r)
	b.Absent("written")
	if !strings.Contains(first.Plan, "The first plan.") {
		t.Errorf("the plan is %q", first.Plan)
	}
	first.Answer(false, "think of the tests")
	second := Next[agent.PlanProposed](r)
	b.Absent("written")
	if !strings.Contains(second.Plan, "with tests") {
		t.Errorf("the second plan is %q", second.Plan)
	}
	allowed = true
	second.Answer(true, "")
	b.WaitFile("written")
}

// plans returns the script of a model that writes the file too early, proposes two plans, and
// writes it once it may.
func (d Driver) plans(file string) func(*Request) Turn {
	rounds := 0
	return func(r *Request) Turn {
		switch {
		case d.Plan != nil && r.Has("think of the tests") && rounds == 2:
			rounds++
			return d.Plan("The second plan, with tests.")
		case r.Has("now write") || rounds > 2:
			if strings.Contains(r.shown(), "[after the plan]") {
				return Say("Written.")
			}
			rounds++
			if rounds > 12 {
				return Say("[gave up]")
			}
			if _, err := os.Stat(file); err == nil {
				return Say("Written.")
			}
			return d.Write(file, "x")
		case rounds == 0:
			rounds++
			return d.Write(file, "too early")
		case rounds == 1 && d.Plan != nil:
			rounds++
			return d.Plan("The first plan.")
		}
		return Say("I wait.")
	}
}

// errorCases are cases with errors of the model in one session. The session reports each error, and
// works again when the model does.
func errorCases() (all []shared) {
	for _, c := range []struct {
		name string
		turn Turn
		kind agent.ProblemKind
	}{
		{"401", Fail(401, "the key is unknown here"), agent.ProblemLogin},
		{"403", Fail(403, "not with this key"), agent.ProblemLogin},
		{"500", Fail(500, "the house is on fire"), agent.ProblemModel},
		{"a cut stream", Turn{Text: "half of a word", Cut: true}, agent.ProblemModel},
		{"429", Fail(429, "slow down a little"), agent.ProblemLimit},
	} {
		all = append(all, shared{c.name, func(t *testing.T, d Driver, r *Run, s *Server) {
			s.Answer(func(*Request) Turn { return c.turn })
			r.Tell(c.name, "try what ends in "+c.name)
			ended := false
			told, _ := await(r, "an error", func(u agent.Update) (agent.Problem, bool) {
				switch u := u.(type) {
				case agent.Retrying:
					return u.Problem, true
				case agent.TurnEnded:
					if u.Problem != nil {
						ended = true
						return *u.Problem, true
					}
				}
				return agent.Problem{}, false
			})
			if told.Kind != c.kind && !d.Vague {
				t.Errorf("got a problem of kind %s, want %s: %s", told.Kind, c.kind, told.Text)
			}
			if strings.TrimSpace(told.Text) == "" {
				t.Error("the problem has no text")
			}
			t.Log(told.Kind, told.Text)
			s.Answer(func(*Request) Turn { return Say("Fine after %s.", c.name) })
			if !ended { // it retries by itself
				Next[agent.TurnEnded](r)
			}
			r.Tell("after "+c.name, "go on")
			if end := Next[agent.TurnEnded](r); end.Text != "Fine after "+c.name+"." || end.Problem != nil {
				t.Errorf("the next turn ended with %+v", end)
			}
		}})
	}
	return all
}

// testKilled checks a program that is killed in the middle of a turn. It continues with its
// history, but without what it had not received. The same holds after a second kill.
func testKilled(t *testing.T, d Driver, p Program) {
	b, s := d.bench(t, p, byPrompt(map[string][]Turn{
		"one": {Say("The first turn is over.")}, "two": {d.Shell("touch began; sleep 1000"), Say("never")},
		"three": {Say("I go on.")}, // Agents write their histories a moment later.
		"four":  {d.Shell("sleep 1; touch again; sleep 1000"), Say("never")},
		"five":  {Say("Still I go on.")}}))
	b.Spec.Access.Mode = "bypassPermissions"
	r := b.Start()
	id := Next[agent.Started](r).Session
	first := Mail("m", 5, "do one")
	r.Prompt(first)
	Next[agent.TurnEnded](r)
	r.Tell("p2", "do two")
	b.WaitFile("began")
	r.Prompt(Mail("m2", 6, "in between"))
	r.kill()
	if end := Next[agent.Ended](r); end.Err == nil {
		t.Error("the session ended without a reason")
	}
	b.Spec.Resume, b.Spec.Incarnation = id, 2
	again := b.Start()
	started := Next[agent.Started](again)
	if !started.Resumed || started.Session != id {
		t.Errorf("the session resumed as %+v, want %s", started, id)
	}
	has := map[int64]bool{}
	for _, seq := range started.Seen {
		has[seq] = true
	}
	if !has[5] {
		t.Errorf("the transcript has the messages %v", started.Seen)
	}
	for _, u := range Said[agent.Received](r) {
		if u.ID == "m2" && !has[6] {
			t.Error("the session acknowledged the message on its way, but its transcript lacks it")
		}
	}
	again.Tell("p3", "do three")
	if end := Next[agent.TurnEnded](again); end.Text != "I go on." {
		t.Errorf("the turn ended with %+v\n%s", end, again.Story())
	}
	req := s.WaitFor(t, "the history", func(r *Request) bool { return r.Has("do three") })
	if !strings.Contains(string(req.Raw), "The first turn is over.") {
		t.Errorf("the history is gone:\n%s", s.Story())
	}
	if n := req.Count("in between"); n > 1 || n == 1 != has[6] {
		t.Errorf("the message on its way is there %d times, and the transcript reports %v",
			n, started.Seen)
	}
	again.Tell("p4", "do four")
	b.WaitFile("again")
	again.kill()
	Next[agent.Ended](again)
	b.Spec.Incarnation = 3
	third := b.Start()
	if started := Next[agent.Started](third); !started.Resumed || started.Session != id {
		t.Errorf("the second time the session resumed as %+v, want %s", started, id)
	}
	third.Tell("p5", "do five")
	req = s.WaitFor(t, "all of the history", func(r *Request) bool { return r.Has("do five") })
	for _, what := range []string{"The first turn is over.", "I go on."} {
		if !strings.Contains(string(req.Raw), what) {
			t.Errorf("%q is missing in the history:\n%s", what, s.Story())
		}
	}
}

// testStop checks that a session ends quickly, even if one of its tools hangs and ignores signals.
func testStop(t *testing.T, d Driver, r *Run, s *Server) {
	s.Answer(byPrompt(map[string][]Turn{
		"hang": {d.Shell("trap '' TERM INT HUP; touch hangs; while true; do sleep 1; done"), Say("never")}}))
	r.Tell("hang", "do hang")
	r.WaitFile("hangs")
	ctx, cancel := context.WithTimeout(r.Ctx, time.Second)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- r.Stop(ctx) }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the session does not end")
	}
	if end := Next[agent.Ended](r); end.Err != nil {
		t.Errorf("the session was stopped, but reports %v", end.Err)
	}
}

func testCannotStart(t *testing.T, d Driver, p Program) {
	b, _ := d.bench(t, p, func(*Request) Turn { return Say("no") })
	for _, c := range []struct {
		name   string
		change func(*agent.Spec)
		words  string
	}{
		{"no such program", func(s *agent.Spec) { s.Program = "/nowhere/agent" }, "/nowhere/agent"},
		{"it fails at once", func(s *agent.Spec) { s.Program = "/bin/false" }, "exit status 1"},
		// gemini prints all sessions
		{"a wrong argument", func(s *agent.Spec) { s.Args = []string{"--no-such-argument-of-anybody"} }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := b.Spec
			c.change(&spec)
			s, err := b.Agent.Start(b.Ctx, spec, nil)
			var problem *agent.Problem
			if !errors.As(err, &problem) || problem.Text == "" || !strings.Contains(problem.Text, c.words) {
				t.Errorf("started with %v", err)
			}
			if s != nil && err == nil {
				s.Stop(b.Ctx)
			}
		})
	}
	t.Run("it is killed at once", func(t *testing.T) { // for lack of memory, say: a retry is allowed
		spec := b.Spec
		spec.Program = filepath.Join(t.TempDir(), "agent")
		if err := os.WriteFile(spec.Program, []byte("#!/bin/sh\nkill -9 $$\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		_, err := b.Agent.Start(b.Ctx, spec, nil)
		var problem *agent.Problem
		if err == nil || errors.As(err, &problem) || !strings.Contains(err.Error(), "killed") {
			t.Errorf("started with %#v", err)
		}
	})
}

// kill ends the program with SIGKILL, by the pid of the child that the driver started.
func (r *Run) kill() {
	r.T.Helper()
	pids, err := r.Spec.Procs.Pids()
	if err != nil || len(pids) == 0 {
		r.T.Fatalf("no child of the session is known: %v", err)
	}
	for _, pid := range pids {
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

// quiet fails if the session has already sent this update.
func (r *Run) quiet(u agent.Update) {
	r.T.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, said := range r.all {
		if one, ok := said.(agent.Received); ok && one == u {
			r.T.Errorf("the session sent it too early: %+v", u)
		}
	}
}

// Touch creates an empty file in the project.
func (b *Bench) Touch(name string) {
	b.T.Helper()
	if err := os.WriteFile(filepath.Join(b.World.Dir, name), nil, 0o600); err != nil {
		b.T.Fatal(err)
	}
}

// WaitFile waits until a file is in the project.
func (b *Bench) WaitFile(name string) {
	b.T.Helper()
	path := filepath.Join(b.World.Dir, name)
	deadline := time.Now().Add(patience)
	for {
		if _, err := os.Stat(path); err == nil {
			return
		}
		if time.Now().After(deadline) {
			b.T.Fatalf("%s does not appear", name)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Absent fails if a file is in the project.
func (b *Bench) Absent(name string) {
	b.T.Helper()
	if _, err := os.Stat(filepath.Join(b.World.Dir, name)); err == nil {
		b.T.Errorf("%s exists", name)
	}
}
