package render_test

import (
	"testing"

	"cadre/internal/render"
	"cadre/internal/team"
)

// TestHeadline: an event that a watching person wants to know has a line, and one for the log alone
// has none. A request that the rules allow has no line, and one that they deny has.
func TestHeadline(t *testing.T) {
	t.Parallel()
	s := &team.State{}
	for i, body := range []team.Body{&team.CreateTeam{TeamID: "demo-1", Name: "demo", Dir: "/there"},
		&team.SpawnMember{Name: "ann", Agent: team.External}, &team.CreateTask{Subject: "look around"}} {
		d, err := team.Decide(s, team.Command{ID: string(rune('a' + i)), Actor: team.User, At: 1000, Body: body})
		if err != nil {
			t.Fatal(err)
		}
		s.Apply(d.Record)
	}
	asked := &team.PermissionRequested{Permission: team.Permission{Request: "p1", Member: "ann", Tool: "Bash",
		Input: `{"command":"ls"}`}}
	answered := func(outcome string) []team.Event {
		return []team.Event{asked, &team.PermissionAnswered{Request: "p1", Outcome: outcome, Reason: "a rule says so"}}
	}
	asks := func(tool, input string) []team.Event {
		return []team.Event{&team.PermissionRequested{Permission: team.Permission{Request: "p2", Member: "ann",
			Tool: tool, Input: input}}}
	}
	message := func(m team.Message) []team.Event { return []team.Event{&team.MessageSent{Message: m}} }
	for want, events := range map[string][]team.Event{
		"▸ ann  look around":               {&team.TaskClaimed{Task: "1", Member: "ann"}},
		"✗ ann  look around: it rained":    {&team.TaskFailed{Task: "1", By: "ann", Reason: "it rained"}},
		"✓ @user  look around":             {&team.TaskCompleted{Task: "1", By: team.User}},
		"↺ look around: back in the queue": {&team.TaskReleased{Task: "1"}},
		"↺ look around: its host ended":    {&team.TaskReleased{Task: "1", Reason: "its host ended"}},
		"↺ look around: rolled back":       {&team.TaskRolledBack{Task: "1"}},
		"+ bob (shell)": {&team.MemberSpawned{Member: team.Member{Name: "bob",
			Agent: "shell"}}},
		"✉ ann → lead: hello": message(team.Message{From: "ann", To: "lead",
			Type: team.TypeMessage, Body: "hello"}),
		"! ann may not use Bash: ls: a rule says so":    answered("denied"),
		"! ann asks to use Bash (p2): go test ./...↵ls": asks("Bash", `{"command":"go test ./...\nls","timeout":9}`),
		"! ann asks to use Edit (p2): a.go: -one↵-two↵+three": asks("Edit",
			`{"file_path":"a.go","old_string":"one\ntwo\n","new_string":"three","replace_all":false}`),
		"! ann asks to use Write (p2): b.go: +package b":    asks("Write", `{"file_path":"b.go","content":"package b\n"}`),
		"! ann asks to use Read (p2): c.go":                 asks("Read", `{"file_path":"c.go","offset":3}`),
		`! ann asks to use mcp__x__y (p2): {"content":"z"}`: asks("mcp__x__y", `{"content":"z"}`),
		"✓ ann  p1 is allowed by the user": {&team.PermissionAnswered{Request: "p1", Member: "ann", Outcome: "allowed",
			By: team.User}},
		"✗ ann  p1 is denied by lead: not now": {&team.PermissionAnswered{Request: "p1", Member: "ann", Outcome: "denied",
			By: "lead", Reason: "not now"}},
		"✓ ann  p1 is allowed by the rules of the team": {&team.PermissionAnswered{Request: "p1", Member: "ann",
			Outcome: "allowed"}},
		"! ann has trouble: the model is overloaded": {&team.MemberStatusChanged{Member: "ann", Trouble: "model",
			Summary: "the model is overloaded"}},
	} {
		if got := render.Headline(events[0], &team.Record{At: 2000, Events: events}, s); got != want {
			t.Errorf("%s: %q, and not %q", events[0].Kind(), got, want)
		}
	}
	for i, body := range []team.Body{&team.ClaimTask{Task: "1", Member: "ann"}} {
		d, err := team.Decide(s, team.Command{ID: string(rune('k' + i)), Actor: team.User, At: 9000, Body: body})
		if err != nil {
			t.Fatal(err)
		}
		s.Apply(d.Record)
	}
	completed := &team.TaskCompleted{Task: "1", By: "ann"}
	for at, want := range map[team.Time]string{10_000: "✓ ann  look around (1 s)", 2000: "✓ ann  look around"} {
		if got := render.Headline(completed, &team.Record{At: at, Events: []team.Event{completed}}, s); got != want {
			t.Errorf("completed at %d, and claimed again at 9000: %q, and not %q", at, got, want)
		}
	}
	for name, events := range map[string][]team.Event{
		"an allowed request":  answered("allowed"),
		"the answer to it":    {answered("allowed")[1], answered("allowed")[0]},
		"a word of cadre's":   message(team.Message{To: "ann", Type: team.TypeMessage, Body: "x"}),
		"a status":            {&team.MemberStatusChanged{Member: "ann", Status: team.Idle}},
		"a quiet end of turn": message(team.Message{From: "ann", To: "lead", Type: team.TypeIdle, Quiet: true}),
		"use":                 {&team.UsageReported{Member: "ann"}},
	} {
		if got := render.Headline(events[0], &team.Record{At: 2000, Events: events}, s); got != "" {
			t.Errorf("%s has a line: %q", name, got)
		}
	}
}
