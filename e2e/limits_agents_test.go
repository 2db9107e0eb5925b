package e2e

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"cadre/internal/agent/agenttest"
)

// limitRecord is the part of a record that matters for rate limits.
type limitRecord struct {
	At     int64
	Events []struct {
		Kind, Pool, By string
		Until          int64
		Ended          bool
	}
}

// TestRateLimitOfRealAgents checks that two members of Claude Code wait together for the rate limit
// of their account, while a member of Codex works on, and that nobody loses a task over it.
func TestRateLimitOfRealAgents(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	refused := map[string]int{}
	s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
		name := who(r)
		mu.Lock()
		defer mu.Unlock()
		if r.Protocol == "anthropic" && refused[name] < 2 { // the retry of the agent is refused too
			refused[name]++
			turn := agenttest.Fail(429, "slow down a little")
			turn.RetryAfter = "2"
			return turn
		}
		return complete(r)
	}, "claude", "codex")
	s.env = append(s.env, "CLAUDE_CODE_MAX_RETRIES=1")
	file := s.file("name: limits\npermissions: {mode: bypassPermissions}\nmembers: [{name: ann, agent: claude}, " +
		"{name: bob, agent: claude}, {name: cy, agent: codex}]\n" +
		"tasks: [{id: one, owner: ann}, {id: two, owner: bob}, {id: three, owner: cy}]\n")
	r := s.run(file)
	s.ended(r, 0)
	pools, ended, lifted := map[string]bool{}, 0, false
	var until int64
	for _, record := range read[[]limitRecord](s.world, "log", "limits") {
		for _, e := range record.Events {
			switch e.Kind {
			case "rate_limited":
				pools[e.Pool] = true
				until = max(until, e.Until)
				if e.Ended {
					ended++
				}
			case "rate_limit_lifted":
				if lifted = true; record.At < until {
					t.Errorf("the limit was lifted %d ms before its end", until-record.At)
				}
			case "task_released", "task_failed", "member_troubled", "member_failed":
				t.Errorf("a rate limit led to %+v", e)
			}
		}
	}
	if len(pools) != 1 || ended == 0 || !lifted {
		t.Errorf("%d turns ended in the pools %v; lifted: %v", ended, pools, lifted)
	}
	for pool := range pools {
		if !strings.Contains(pool, "claude") || !strings.Contains(pool, "ANTHROPIC_API_KEY") ||
			strings.Contains(pool, "dummy") {
			t.Errorf("the pool is %q", pool)
		}
	}
	if !strings.Contains(r.out+r.err, "waits for a rate limit") {
		t.Errorf("the run does not say that members wait:\n%s\n%s", r.out, r.err)
	}
}

// TestRateLimitOutlivesItsHost kills the host of a team that waits for a rate limit of an hour.
// The team waits on when it is resumed, and does not ask the model again. When a person lifts the
// limit, the member continues at once.
func TestRateLimitOutlivesItsHost(t *testing.T) {
	t.Parallel()
	var answers atomic.Bool
	s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
		if answers.Load() {
			return complete(r)
		}
		turn := agenttest.Fail(429, "slow down for an hour")
		turn.RetryAfter = "3600"
		return turn
	}, "claude")
	s.env = append(s.env, "CLAUDE_CODE_MAX_RETRIES=0")
	type limits []struct {
		Pool    string
		EndsAt  int64
		Members []string
	}
	listed := func() limits {
		return read[struct{ RateLimits limits }](s.world, "status", "demo").RateLimits
	}
	attached := func() (n int) {
		for _, e := range s.history("demo") {
			if e.is("member_attached") {
				n++
			}
		}
		return n
	}
	s.start("run", s.file("name: demo\npermissions: {mode: bypassPermissions}\n"+
		"members: [{name: ann, agent: claude}]\ntasks: [{id: one, owner: ann}]\n"), "--plain")
	s.waitFor("ann waits for the rate limit", func() bool { return has(s.home, "teams", "demo") && len(listed()) == 1 })
	before := listed()[0]
	s.goesDown()
	asked := len(s.model.Requests())
	p := s.start("resume", "demo", "--plain")
	s.waitFor("a host has ann again", func() bool { return attached() == 2 })
	if is := listed(); len(is) != 1 || is[0].EndsAt != before.EndsAt || is[0].Members[0] != "ann" {
		t.Errorf("after the kill the rate limits are %+v, and before it they were %+v", is, before)
	}
	order(t, s.must("status", "demo"), "rate limit of "+before.Pool, "waits for it: ann", "cadre lift demo ann")
	if n := len(s.model.Requests()); n != asked {
		t.Errorf("the model was asked %d more times before the end of the limit:\n%s", n-asked, s.model.Story())
	}
	answers.Store(true)
	order(t, s.must("lift", "demo", "ann"), "is tried again now by ann")
	if code := p.wait(); code != 0 {
		t.Errorf("resume ended with %d:\n%s\n%s", code, p.said(), s.model.Story())
	}
	if done := s.task("1"); done.CompletedBy != "ann" || done.Failures != 0 {
		t.Errorf("task one is %+v", done)
	}
	s.refused(s.cadre("lift", "demo", "ann"), 2, "")
}
