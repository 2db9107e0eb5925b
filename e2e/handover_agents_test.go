package e2e

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"cadre/internal/agent/agenttest"
)

// fresh reports whether the session continues for an earlier one.
func fresh(r *agenttest.Request) bool { return r.Has("You continue for an earlier session") }

// TestHandover checks a fresh session that a person starts for a member in the middle of a tool
// call. It knows the task and what the earlier session said and changed. It gets the mail that was
// on its way. It has nothing of the history, and does the task once.
func TestHandover(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"claude", "codex", "gemini", "opencode"} {
		t.Run(name, func(t *testing.T) {
			sampled(t, name)
			t.Parallel()
			s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
				id, calls := task(r)
				if id == "" || fresh(r) || len(calls) > 0 {
					return complete(r)
				}
				turn := shells[name]("echo x > draft; touch began; sleep 1000")
				turn.Text = "The port is 4711."
				return turn
			}, name)
			file := s.file("name: astray\npermissions: {mode: bypassPermissions}\nmembers: [{name: ann, agent: " +
				name + "}, {name: eve, agent: external}]\ntasks: [{id: one, owner: ann}]\n")
			p := s.start("run", file)
			s.waitFor("it has begun", func() bool { return has(s.dir, "began") })
			s.must("send", "astray", "--to", "ann", "--as", "eve", "the port has moved")
			s.must("handover", "astray", "ann", "--reason", "it went astray")
			if code := p.wait(); code != 0 {
				t.Fatalf("exit status %d\n%s\n%s", code, p.said(), s.model.Story())
			}
			requests := s.of("ann")
			i := slices.IndexFunc(requests, fresh)
			if i < 0 {
				t.Fatalf("no fresh session was told of the earlier one:\n%s", s.model.Story())
			}
			first := requests[i]
			for _, part := range []string{"earlier session of ann, and do not have",
				"Why it was ended:\n> it went astray", "It was at task one.", "> The port is 4711.",
				"not committed: began, draft",
				"Task one is yours now"} {
				if !first.Has(part) {
					t.Errorf("its first request lacks %q:\n%s", part, first.LastUser())
				}
			}
			last := requests[len(requests)-1]
			if n := last.Count("the port has moved"); n != 1 || strings.Contains(string(last.Raw), "sleep 1000") {
				t.Errorf("the fresh session has the mail %d times, and of the history:\n%s", n, s.model.Story())
			}
			done := read[struct{ Status, CompletedBy string }](s.world, "task", "show", "astray", "1")
			if n := s.count("astray", "task_completed")["1"]; n != 1 || done.CompletedBy != "ann" {
				t.Errorf("the task was completed %d times and is %+v", n, done)
			}
			if used := read[struct{ Usage struct{ InputTokens int } }](s.world, "status",
				"astray").Usage.InputTokens; used < 300 && name == "claude" {
				// The other agents have no figures for the interrupted request.
				t.Errorf("%d tokens are counted, want 100 for each of 3 requests", used)
			}
		})
	}
}

// TestPromptTooLong checks that a fresh session replaces an agent whose model says that the prompt
// is too long. It also gets the mail of that prompt. The lead is told in the agent's words.
func TestPromptTooLong(t *testing.T) {
	t.Parallel()
	said := map[string]string{"claude": "Prompt is too long", "codex": "Codex ran out of room in the model's " +
		"context window.", "gemini": "API error 400: The input token count"}
	for name, words := range map[string]string{"claude": "prompt is too long: 210000 tokens > 200000 maximum",
		"codex":  "Your input exceeds the context window of this model.",
		"gemini": "The input token count (1050000) exceeds the maximum number of tokens allowed (1048576)."} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var full atomic.Bool
			s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
				id, calls := task(r)
				switch {
				case fresh(r):
					return complete(r)
				case full.Load(): // also for the summary that Claude Code tries to make of it
					return agenttest.Fail(400, words)
				case id != "" && len(calls) == 0:
					turn := shells[name]("echo x > draft; touch began; until test -e go; do sleep 0.05; done")
					turn.Text = "The port is 4711."
					return turn
				}
				return agenttest.Say("I have no task yet.")
			}, name)
			file := s.file("name: full\npermissions: {mode: bypassPermissions}\nmembers: [{name: ann, agent: " + name +
				"}, {name: eve, agent: external}]\ntasks: [{id: one, owner: ann}]\n")
			p := s.start("run", file)
			s.waitFor("it has begun", func() bool { return has(s.dir, "began") })
			s.must("send", "full", "--to", "ann", "--as", "eve", "the port has moved")
			full.Store(true)
			s.write("go", "")
			if code := p.wait(); code != 0 {
				t.Fatalf("exit status %d\n%s\n%s", code, p.said(), s.model.Story())
			}
			requests := s.of("ann")
			i := slices.IndexFunc(requests, fresh)
			if i < 0 {
				t.Fatalf("no fresh session was told of the earlier one:\n%s", s.model.Story())
			}
			for _, part := range []string{"It was at task one.", "> The port is 4711.", "draft",
				"Task one is yours now"} {
				if !requests[i].Has(part) {
					t.Errorf("its first request lacks %q:\n%s", part, requests[i].LastUser())
				}
			}
			if n := requests[len(requests)-1].Count("the port has moved"); n != 1 {
				t.Errorf("the fresh session has the mail %d times:\n%s", n, s.model.Story())
			}
			told := ""
			for _, e := range s.history("full") {
				if body, _ := e["body"].(string); e.is("message_sent") && e["to"] == "lead" {
					told += body + "\n"
				}
			}
			if want := "ann could not continue:\n> " + said[name]; strings.Count(told, want) != 1 ||
				!strings.Contains(told, "A fresh session continues for it.") {
				t.Errorf("the lead was told:\n%s", told)
			}
		})
	}
}

// TestHandoverByFigures checks that a session is replaced if its own figure for its context is
// above the team's share at the end of a turn. A session below it stays. The fresh session obeys a
// shutdown as usual.
func TestHandoverByFigures(t *testing.T) {
	t.Parallel()
	for name, window := range map[string]int{"claude": 1_000_000, "codex": 258_400} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
				id, calls := task(r)
				turn := complete(r)
				switch {
				case r.Has("RespondToShutdown with requestId") && called(all(r), "RespondToShutdown") == 0:
					return use(r, "RespondToShutdown", map[string]any{"approve": true})
				case fresh(r):
				case id == "one":
					turn.In = window * 15 / 100
				case id == "two" && len(calls) == 0:
					turn = shells[name]("echo x > draft")
				case id == "two":
					turn = agenttest.Turn{Text: "Half of it is in the draft.", In: window * 25 / 100}
				}
				return turn
			}, name)
			file := s.file("name: share\nhandover: 20\npermissions: {mode: bypassPermissions}\nmembers: [{name: " +
				"ann, agent: " + name + "}, {name: eve, agent: external}]\n" +
				"tasks: [{id: one, owner: ann}, {id: two, owner: ann, blockedBy: [one]}, {id: three, owner: eve}]\n")
			p := s.start("run", file)
			s.there("share")
			s.must("task", "claim", "share", "3", "--as", "eve") // so that the team waits for eve
			s.waitFor("ann has done both", func() bool {
				return read[struct{ Status string }](s.world, "task", "show", "share", "2").Status == "completed"
			})
			s.must("shutdown", "share", "ann", "--deadline", "30s")
			s.must("task", "done", "share", "3", "--as", "eve")
			if code := p.wait(); code != 0 {
				t.Fatalf("exit status %d\n%s\n%s", code, p.said(), s.model.Story())
			}
			requests := s.of("ann")
			i := slices.IndexFunc(requests, fresh)
			if i < 0 {
				t.Fatalf("no fresh session was told of the earlier one:\n%s", s.model.Story())
			}
			for _, part := range []string{"Why it was ended:\n> its context is nearly full", "It was at task two.",
				"> Half of it is in the draft.", "draft", "Task two is yours now", "> result of task one"} {
				if !requests[i].Has(part) {
					t.Errorf("its first request lacks %q:\n%s", part, requests[i].LastUser())
				}
			}
			handovers, stopped := 0, ""
			for _, e := range s.history("share") {
				if e.is("handover_requested") {
					handovers++
				}
				if e.is("member_stopped") && e["member"] == "ann" {
					stopped, _ = e["reason"].(string)
				}
			}
			if handovers != 1 || stopped != "shut down as asked" {
				t.Errorf("%d handovers; stopped: %s", handovers, stopped)
			}
		})
	}
}

// TestAlwaysTooLong checks a member whose fresh session is too full as well. The handover is not
// repeated without end, and the member can be shut down meanwhile.
func TestAlwaysTooLong(t *testing.T) {
	t.Parallel()
	s := newStudio(t, func(*agenttest.Request) agenttest.Turn {
		return agenttest.Fail(400, "prompt is too long: 210000 tokens > 200000 maximum")
	}, "claude")
	s.must("create", "long", "--permission-mode", "bypassPermissions")
	s.must("spawn", "long", "ann", "--agent", "claude", "--prompt", "begin")
	s.waitFor("the fresh session is too full as well", func() bool {
		return slices.ContainsFunc(s.history("long"), func(e event) bool {
			body, _ := e["body"].(string)
			return e["to"] == "lead" && strings.Contains(body, "ann could not continue:\n> Prompt is too long") &&
				strings.Contains(body, "A fresh session continues for it in 8 s.")
		})
	})
	s.must("shutdown", "long", "ann", "--deadline", "0s")
	sessions := 0
	for _, e := range s.history("long") {
		if e.is("member_started") {
			sessions++
		}
	}
	if sessions != 2 {
		t.Errorf("%d sessions were started:\n%s", sessions, s.model.Story())
	}
	s.waitFor("nothing is left", func() bool { return len(s.processes()) == 0 })
}
