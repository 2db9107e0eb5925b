package host_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cadre/internal/agent"
	"cadre/internal/host"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

// pair starts a host with two models and returns their sessions, which run.
func pair(t *testing.T, s *stage) (ann, bob *session) {
	t.Helper()
	sessions := modelled(s)
	ann, bob = next(t, sessions), next(t, sessions)
	if ann.Member != "ann" {
		ann, bob = bob, ann
	}
	ann.started <- agent.Started{}
	bob.started <- agent.Started{}
	return ann, bob
}

// TestRateLimitIsShared checks that a rate limit of one member holds back all members of its pool,
// that nobody loses a task over it, and that one of them tries first when its time has passed.
func TestRateLimitIsShared(t *testing.T) {
	t.Parallel()
	s := newStage(t, spawn("ann"), spawn("bob"), &team.CreateTask{Subject: "Look", Owner: "ann"})
	ann, bob := pair(t, s)
	ann.given(t)
	s.untilStatus("bob", team.Idle)
	ann.updates <- agent.TurnStarted{}
	ann.updates <- agent.TurnEnded{Problem: &agent.Problem{Kind: agent.ProblemLimit, Text: "429: too many requests",
		After: time.Second}}
	s.untilStatus("ann", team.Blocked)
	s.do("lead", &team.SendMessage{To: "bob", Body: "go on"})
	var limits []team.ReportedRateLimit
	s.View(func(st *team.State) { limits = st.RateLimits() })
	if len(limits) != 1 || strings.Join(limits[0].Members, " ") != "ann bob" || limits[0].Pool != "scripted, login" {
		t.Fatalf("the limits are %+v", limits)
	}
	first, other := ann, bob
	var p agent.Prompt
	select {
	case p = <-ann.prompts:
	case p = <-bob.prompts:
		first, other = bob, ann
	case <-time.After(20 * time.Second):
		t.Fatal("nobody tries again")
	}
	if now := s.Now(); now < limits[0].Until {
		t.Errorf("%s starts %d ms too early", first.Member, limits[0].Until-now)
	}
	if first == ann && !strings.Contains(p.Text, "Task 1 is yours now") {
		t.Errorf("it is not told of its task again: %s", p.Text)
	}
	first.taken <- p.ID
	first.updates <- agent.TurnStarted{}
	s.untilStatus(first.Member, team.Active)
	if len(other.prompts) > 0 {
		t.Errorf("%s starts beside the first one", other.Member)
	}
	first.updates <- agent.Text{Text: "hello"}
	other.given(t)
	s.View(func(st *team.State) {
		for _, m := range st.Members() {
			if m.Setbacks != 0 {
				t.Errorf("%s has %d setbacks", m.Name, m.Setbacks)
			}
		}
	})
	if task := s.task("1"); task.Status != team.InProgress || task.Owner != "ann" || task.Attempts != 1 {
		t.Errorf("the task is %+v", task)
	}
}

// TestRateLimitOutlivesItsHost checks that a member that another host takes over waits on.
func TestRateLimitOutlivesItsHost(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	s := newStage(t, spawn("ann"), &team.CreateTask{Subject: "Look", Owner: "ann"})
	sessions := modelled(s)
	ann := next(t, sessions)
	ann.started <- agent.Started{}
	ann.given(t)
	ann.updates <- agent.TurnStarted{}
	ann.updates <- agent.TurnEnded{Problem: &agent.Problem{Kind: agent.ProblemLimit, Text: "429",
		After: 2 * time.Second}}
	s.untilStatus("ann", team.Blocked)
	var until team.Time
	s.View(func(st *team.State) { until = st.RateLimits()[0].Until })
	s.do(team.Host("h2"), &team.AttachMember{Member: "ann", From: "h1", Pool: "scripted, login"}) // as if h1 had died
	again := next(t, sessions)
	if now := s.Now(); now < until {
		t.Errorf("its session starts %d ms before the limit is over", until-now)
	}
	again.started <- agent.Started{}
	if p := again.given(t); !strings.Contains(p.Text, "Task 1 is yours now") {
		t.Errorf("it does not continue its task: %s", p.Text)
	}
}

// TestMaxParallel checks that no more teammates have a turn than the team allows.
func TestMaxParallel(t *testing.T) {
	t.Parallel()
	s := newStageOf(t, &team.CreateTeam{TeamID: "demo-1", Name: "demo", Dir: t.TempDir(), MaxParallel: 1}, spawn("ann"),
		spawn("bob"), &team.CreateTask{Subject: "small", Priority: "low", Owner: "ann"},
		&team.CreateTask{Subject: "urgent", Priority: "critical", Owner: "bob"})
	sessions := modelled(s)
	bob := next(t, sessions)
	if bob.Member != "bob" {
		t.Fatalf("%s starts before the member with the more urgent task", bob.Member)
	}
	bob.started <- agent.Started{}
	bob.turn(t, "done", func() {
		// Only the run in which the host has that bug waits to see it, however busy the machine is.
		for began := time.Now(); os.Getenv("CADRE_MUTANT") != "" && len(sessions) == 0 &&
			time.Since(began) < 10*time.Second; {
			time.Sleep(10 * time.Millisecond)
		}
		if len(sessions) > 0 {
			t.Error("two members have a turn")
		}
		bob.call(t, "TaskUpdate", `{"taskId":"2","status":"completed","result":"done"}`)
	})
	ann := next(t, sessions)
	ann.started <- agent.Started{}
	p := ann.given(t)
	ann.updates <- agent.TurnStarted{}
	s.untilStatus("ann", team.Active)
	s.do("lead", &team.SendMessage{To: "bob", Body: "look again"})
	ann.call(t, "TaskUpdate", `{"taskId":"1","status":"completed","result":"done"}`)
	if len(bob.prompts) > 0 || !strings.Contains(p.Text, "small") {
		t.Error("bob has a turn beside ann")
	}
	ann.updates <- agent.TurnEnded{Text: "done"}
	bob.told(t, "look again")
}

// TestPools checks what members share: the agent, the endpoint, the source of the credentials and
// the model. No pool has a secret.
func TestPools(t *testing.T) {
	for _, name := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL",
		"CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR", "OPENAI_API_KEY", "OPENAI_BASE_URL", "CODEX_API_KEY",
		"CODEX_HOME"} {
		t.Setenv(name, "")
	}
	t.Setenv("OPENAI_API_KEY", "sk-of-the-host")
	member := func(name, agent, model string, env ...string) *team.SpawnMember {
		return &team.SpawnMember{Name: name, Agent: agent, Model: model, Env: env}
	}
	s := newStage(t, member("a", team.Claude, ""), member("b", team.Claude, "opus"),
		member("c", team.Claude, "", "ANTHROPIC_API_KEY=sk-secret",
			"ANTHROPIC_BASE_URL=https://me:pass@proxy:4000/v1?k=x"),
		member("d", team.Claude, "", "ANTHROPIC_API_KEY=sk-secret", "ANTHROPIC_BASE_URL=https://you:other@proxy:4000"),
		member("e", team.Claude, "", "ANTHROPIC_API_KEY=sk-another"), member("f", team.ClaudeTmux, ""),
		member("g", team.Codex, ""), member("h", team.Codex, "", "CODEX_HOME=/there"), member("i", team.Shell, ""))
	s.start("h1", model(func(m *session) error {
		<-m.stop
		return nil
	}), func(o *host.Options) {
		a := o.Agent("scripted")
		o.Agent = func(string) agent.Agent { return a }
	})
	s.until("all have a host", func(st *team.State) bool {
		for _, m := range st.Members() {
			if m.Host == "" && m.Agent != team.External {
				return false
			}
		}
		return true
	})
	for name, want := range map[string]string{"a": "claude, login", "b": "claude, model opus, login",
		"c": "claude, at proxy:4000, ANTHROPIC_API_KEY of c", "d": "claude, at proxy:4000, ANTHROPIC_API_KEY of c",
		"e": "claude, ANTHROPIC_API_KEY of e", "f": "claude, login", "g": "codex, OPENAI_API_KEY",
		"h": "codex, OPENAI_API_KEY", "i": ""} {
		if got := s.member(name).Pool; got != want {
			t.Errorf("the pool of %s is %q, not %q", name, got, want)
		}
	}
}

// TestTurnsOfTheMachine checks that the teams of a machine share its turns, and that a turn is free
// again when it ends.
func TestTurnsOfTheMachine(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "turns")
	one := func(o *host.Options) { o.Turns = host.Turns{Dir: dir, Most: 1} }
	first := newStage(t, spawn("ann"), &team.CreateTask{Subject: "Look", Owner: "ann"})
	ann := next(t, modelled(first, one))
	ann.started <- agent.Started{}
	ann.given(t)
	ann.updates <- agent.TurnStarted{}
	second := newStage(t, spawn("bob"), &team.CreateTask{Subject: "Look", Owner: "bob"})
	waits := make(chan string, 1)
	sessions := modelled(second, one, func(o *host.Options) {
		o.Log = func(text string) {
			if strings.Contains(text, "bob waits for a free turn") {
				waits <- text
			}
		}
	})
	select {
	case <-waits:
	case bob := <-sessions:
		t.Fatalf("%s starts beside ann", bob.Member)
	case <-time.After(20 * time.Second):
		t.Fatal("bob does not wait")
	}
	ann.call(t, "TaskUpdate", `{"taskId":"1","status":"completed","result":"done"}`)
	ann.updates <- agent.TurnEnded{Text: "done"}
	bob := next(t, sessions)
	bob.started <- agent.Started{}
	bob.turn(t, "done", func() {
		bob.call(t, "TaskUpdate", `{"taskId":"1","status":"completed","result":"done"}`)
	})
	second.untilStatus("bob", team.Idle)
	first.do("lead", &team.SendMessage{To: "ann", Body: "once more"})
	ann.told(t, "once more")
}
