package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"cadre/internal/agent/agenttest"
)

// age is a version of Claude Code that leads teams without a terminal, with the texts in which it
// differs from others.
type age struct {
	version string
	spawn   string // the tool
	send    func(to, text string) map[string]any
	askEnd  func(of string) map[string]any // a shutdown request
	end     func(request string) map[string]any
	ended   string // what an observer of the lead's stream prints when she has stopped
}

var ages = []age{
	{"2.1.47", "Task",
		func(to, text string) map[string]any {
			return map[string]any{"type": "message", "recipient": to, "content": text, "summary": text}
		},
		func(of string) map[string]any {
			return map[string]any{"type": "shutdown_request", "recipient": of, "content": "All is done."}
		},
		func(request string) map[string]any {
			return map[string]any{"type": "shutdown_response", "request_id": request, "approve": true}
		}, ""},
	{"2.1.177", "Agent",
		func(to, text string) map[string]any {
			return map[string]any{"to": to, "summary": text, "message": text}
		},
		func(of string) map[string]any {
			return map[string]any{"to": of, "message": map[string]any{"type": "shutdown_request",
				"reason": "All is done."}}
		},
		func(request string) map[string]any {
			return map[string]any{"to": "team-lead", "message": map[string]any{"type": "shutdown_response",
				"request_id": request, "approve": true}}
		}, `{"type":"team:member:shutdown"`},
}

// step is what a model does next, once its observers have shown the step before.
type step struct {
	agenttest.Turn
	line   string // of the observer for people
	notice string // of the observer for programs
}

// ownTask is a task as in Claude Code's own file, and as cadre shows it.
type ownTask struct {
	ID, Subject, Description, ActiveForm, Status, Owner string
	Blocks, BlockedBy                                   []string
	Metadata                                            map[string]any
}

// tidy sorts tasks by their ids. It drops tasks that Claude Code hides, and makes nil and empty
// lists equal.
func tidy(tasks []ownTask) []ownTask {
	tasks = slices.DeleteFunc(tasks, func(t ownTask) bool { return t.Metadata["_internal"] == true })
	slices.SortFunc(tasks, func(a, b ownTask) int { return strings.Compare(a.ID, b.ID) })
	for i := range tasks {
		tasks[i].Blocks, tasks[i].BlockedBy, tasks[i].Metadata = append([]string{}, tasks[i].Blocks...),
			append([]string{}, tasks[i].BlockedBy...), nil
	}
	return tasks
}

// listed returns the output of Claude Code's TaskList for the tasks.
func listed(tasks []ownTask) string {
	open := map[string]bool{}
	for _, t := range tasks {
		open[t.ID] = t.Status != "completed"
	}
	var lines []string
	for _, t := range tasks {
		line := fmt.Sprintf("#%s [%s] %s", t.ID, t.Status, t.Subject)
		if t.Owner != "" {
			line += " (" + t.Owner + ")"
		}
		var waits []string
		for _, id := range t.BlockedBy {
			if open[id] {
				waits = append(waits, "#"+id)
			}
		}
		if waits != nil {
			line += " [blocked by " + strings.Join(waits, ", ") + "]"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// ownTasks returns the tasks of the only team, from Claude Code's own files.
func (s *studio) ownTasks() (tasks []ownTask, err error) {
	files, err := filepath.Glob(filepath.Join(s.root, ".claude", "tasks", "*", "*.json"))
	for _, file := range files {
		task, readErr := own[ownTask](file)
		tasks, err = append(tasks, task), errors.Join(err, readErr)
	}
	return tidy(tasks), err
}

// own reads one of Claude Code's own files.
func own[T any](path string) (value T, err error) {
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &value)
	}
	return value, err
}

// TestObservedClaude observes a team of Claude Code without a terminal live, for each version. The
// model continues only after the observers have shown what happened. In the end they have the
// content of the lead's last TaskList and of its own files.
func TestObservedClaude(t *testing.T) {
	t.Parallel()
	for _, a := range ages {
		t.Run(a.version, func(t *testing.T) { observeClaude(t, a) })
	}
}

func observeClaude(t *testing.T, a age) {
	s := newStudio(t, nil, "claude@"+a.version)
	s.env = append(s.env, "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS=1", "CLAUDE_CODE_ENABLE_TASKS=1")
	people, programs, state := s.watch("-", "--as-team", "watched"), s.watch("-", "--json", "--pass"),
		s.watch("-", "--state")
	live := s.watch("-", "--json", "--messages", "--live-state")

	type team struct {
		Name, Role string
		Members    []struct{ Name, AgentID, AgentType, Model, Color string }
		Tasks      []ownTask
	}
	// theirs is the team before she was asked to shut down, when the stream had all of it.
	var theirs team
	worked, heard := make(chan struct{}), make(chan struct{}) // closed by alice: what she was told
	until := func(c chan struct{}) func(context.Context) {
		return func(ctx context.Context) {
			select {
			case <-c:
			case <-ctx.Done():
				t.Error("alice does not answer the lead")
			}
		}
	}
	task := func(subject string) agenttest.Call {
		return agenttest.Call{Name: "TaskCreate", Input: map[string]any{"subject": subject,
			"description": subject + ", all of it.", "activeForm": "On it"}}
	}
	update := func(id string, more map[string]any) agenttest.Turn {
		more["taskId"] = id
		return agenttest.Use("TaskUpdate", more)
	}
	steps := []step{
		{agenttest.Use("TeamCreate", map[string]any{"team_name": "fx", "description": "a team"}), "team watched (fx-",
			`{"type":"team:created"`},
		{agenttest.Turn{Calls: []agenttest.Call{task("Plan"), task("Build"), task("Test"), task("Celebrate")}},
			"task 4: ", `"description":"Celebrate, all of it.","status":"pending"`},
		{update("2", map[string]any{"addBlockedBy": []string{"1"}}), "task 2 changed", ""},
		{update("3", map[string]any{"addBlockedBy": []string{"2", "4"}}), "task 3 changed", ""},
		{agenttest.Use(a.spawn, map[string]any{"description": "alice works", "prompt": "ROLE=alice Work.",
			"subagent_type": "general-purpose", "team_name": "fx", "name": "alice"}),
			"alice joined", `{"type":"team:member:joined"`},
		// Her actions are in the lead's process, but not in its stream. The next list shows them.
		{agenttest.Turn{Calls: []agenttest.Call{{Name: "TaskList"}}, Wait: until(worked)}, "alice completed task 1, " +
			"which frees task 2", `{"type":"team:task:completed"`},
		{update("2", map[string]any{"owner": "alice", "status": "in_progress"}), "alice took task 2",
			`{"type":"team:task:claimed"`},
		{update("4", map[string]any{"status": "deleted"}), "task 4 deleted", ""},
		{agenttest.Use("SendMessage", a.send("alice", "Well done.")), "team-lead → alice: Well done.",
			`{"type":"team:message:received"`},
		{agenttest.Turn{Calls: []agenttest.Call{{Name: "TaskList"}}, Wait: until(heard)}, "", ""},
		{agenttest.Turn{Calls: []agenttest.Call{{Name: "SendMessage", Input: a.askEnd("alice")}},
			Wait: func(context.Context) {
				var err, more error
				theirs, err = own[team](filepath.Join(s.root, ".claude", "teams", "fx", "config.json"))
				if theirs.Tasks, more = s.ownTasks(); err != nil || more != nil {
					t.Error(err, more)
				}
			}}, "alice was asked to shut down", `{"type":"team:shutdown:requested"`},
		{agenttest.Say("All is done."), "", ""},
	}
	lead := func(n int) agenttest.Turn {
		n = min(n, len(steps)-1)
		if n == 0 {
			return steps[n].Turn
		}
		return people.after(steps[n-1].line, programs.after(steps[n-1].notice, steps[n].Turn))
	}
	request := regexp.MustCompile(`shutdown-\d+@alice`)
	var works, hears sync.Once
	alice := func(r *agenttest.Request) agenttest.Turn {
		if r.Has("Well done.") {
			hears.Do(func() { close(heard) })
		}
		switch n := calls(r); {
		case n == 0:
			return update("1", map[string]any{"owner": "alice", "status": "in_progress"})
		case n == 1:
			return update("1", map[string]any{"status": "completed"})
		case n == 2:
			return agenttest.Use("SendMessage", a.send("team-lead", "It is planned."))
		case n == 3 && request.MatchString(r.LastUser()):
			return agenttest.Use("SendMessage", a.end(request.FindString(r.LastUser())))
		}
		works.Do(func() { close(worked) })
		return agenttest.Say("I am at work.")
	}
	s.model.Answer(func(r *agenttest.Request) agenttest.Turn {
		if r.Has("ROLE=alice") && !r.Has("ROLE=lead") {
			return alice(r)
		}
		said := 0
		for _, m := range r.Messages {
			if len(m.Calls) > 0 {
				said++
			}
		}
		return lead(said)
	})
	claude := s.show(s.program("claude", "-p", "ROLE=lead Lead.", "--output-format", "stream-json", "--verbose",
		"--dangerously-skip-permissions"), people, programs, state, live)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if !claude.said.has(ctx, `"result":"All is done."`) || !programs.out.has(ctx, a.ended) {
		t.Fatal("the lead does not end")
	}
	claude.Process.Kill() // it waits for more from its team
	claude.end()
	for _, w := range []*watcher{people, programs, state, live} {
		w.end()
	}

	var last any
	if err := json.Unmarshal([]byte(state.out.String()), &last); err != nil {
		t.Fatal(err)
	}
	if kept := keptBy(t, contract(s.world, ""), live.out.String()); !reflect.DeepEqual(kept, last) {
		t.Errorf("a program that applied the patches has\n%v\nbut the state is\n%v", kept, last)
	}
	notices := programs.passed(claude.said)
	want := []string{"team:created", "team:task:created", "team:task:created", "team:task:created", "team:task:created",
		"team:member:joined", "team:task:completed", "team:task:claimed",
		"team:message:received", "team:shutdown:requested"}
	at := 0
	for _, one := range notices {
		if at < len(want) && one == want[at] {
			at++
		}
	}
	if at < len(want) {
		t.Errorf("shown in order: %v; missing: %v", notices, want[at])
	}

	seen := observedTeam[team](t, state.out.String())
	if seen.Name != "fx" || seen.Role != "lead" || len(theirs.Tasks) != 3 || !reflect.DeepEqual(tidy(seen.Tasks),
		theirs.Tasks) {
		t.Errorf("shown %+v, but Claude Code's own tasks are %+v", seen, theirs.Tasks)
	}
	if len(theirs.Members) != 2 || !reflect.DeepEqual(seen.Members, theirs.Members[1:]) {
		t.Errorf("shown %+v, but Claude Code's own members are %+v", seen.Members, theirs.Members)
	}
	list := s.model.WaitFor(t, "the last list", func(r *agenttest.Request) bool {
		return r.Calls("TaskList") == 2
	}).Results()
	if listed(seen.Tasks) != list {
		t.Errorf("shown\n%s\nbut Claude Code lists\n%s", listed(seen.Tasks), list)
	}
	if kept := listed(tidy(read[[]ownTask](s.world, "task", "list", "watched"))); kept != list {
		t.Errorf("kept\n%s\nbut Claude Code lists\n%s", kept, list)
	}
	if got := s.must("log", "watched"); got != people.out.String() {
		t.Errorf("the log is\n%s\nbut the output was\n%s", got, people.out)
	}
	if r := s.cadre("task", "add", "watched", "one more"); r.code != 2 {
		t.Errorf("the team accepts a task: %+v", r)
	}
}

// calls returns how many tools the model has called.
func calls(r *agenttest.Request) (n int) {
	for _, m := range r.Messages {
		n += len(m.Calls)
	}
	return n
}

// TestObservedClaudeWithoutATeam checks Claude Code 2.1.329, which has tasks without a terminal,
// but no team. Its output is passed on, and the observer makes nothing of it.
func TestObservedClaudeWithoutATeam(t *testing.T) {
	t.Parallel()
	steps := []agenttest.Turn{
		agenttest.Use("TaskCreate", map[string]any{"subject": "Build it", "description": "All of it."}),
		agenttest.Use("TaskUpdate", map[string]any{"taskId": "1", "status": "in_progress"}),
		agenttest.Use("TaskList", map[string]any{}),
		agenttest.Say("All is done."),
	}
	s := newStudio(t, func(r *agenttest.Request) agenttest.Turn { return steps[min(calls(r), len(steps)-1)] }, "claude")
	s.env = append(s.env, "CLAUDE_CODE_ENABLE_TODO_TOOLS=1")
	w := s.watch("-", "--json", "--pass", "--as-team", "watched")
	claude := s.show(s.program("claude", "-p", "ROLE=lead Lead.", "--output-format", "stream-json", "--verbose",
		"--dangerously-skip-permissions"), w)
	claude.end()
	w.end()
	if notices := w.passed(claude.said); len(notices) > 0 {
		t.Errorf("there is no team, but the notices are %v", notices)
	}
	if said := claude.said.String(); !strings.Contains(said, `"TaskCreate"`) ||
		!strings.Contains(said, "All is done.") {
		t.Errorf("Claude Code created no task:\n%s", said)
	}
	if r := s.cadre("status", "watched"); r.code != 2 {
		t.Errorf("a team is kept: %s", r.out)
	}
}

// TestObservedTranscripts checks a person's interactive Claude Code that leads its own team. The
// teammate is in its process or in a pane beside it. The transcripts alone show live what both do:
// no model continues before its last step was shown.
func TestObservedTranscripts(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"in-process", "tmux"} {
		t.Run(mode, func(t *testing.T) {
			s := newStudio(t, nil, "claude")
			s.env = append(s.env, "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS=1", "CLAUDE_CODE_ENABLE_TODO_TOOLS=1")
			for name, text := range map[string]string{
				".claude.json": fmt.Sprintf(`{"hasCompletedOnboarding":true,"theme":"dark","bypassPermissionsModeAccepted":true,"customApiKeyResponses":{"approved":["dummy"],"rejected":[]},
"projects":{%q:{"hasTrustDialogAccepted":true,"hasCompletedProjectOnboarding":true}}}`, s.dir),
				".claude/settings.json": `{"env":{"CLAUDE_CODE_ENABLE_TODO_TOOLS":"1"},"skipDangerousModePermissionPrompt":true}`,
			} {
				path := filepath.Join(s.root, name)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text),
					0o600)); err != nil {
					t.Fatal(err)
				}
			}
			w := s.watch("--transcripts", filepath.Join(s.root, ".claude"), "--follow", "--json", "--messages",
				"--as-team", "watched")
			update := func(more map[string]any) agenttest.Turn {
				more["taskId"] = "1"
				return agenttest.Use("TaskUpdate", more)
			}
			lead := []agenttest.Turn{
				agenttest.Use("TaskCreate", map[string]any{"subject": "Build it", "description": "All of it."}),
				update(map[string]any{"owner": "alice"}), // there is no team yet
				agenttest.Use("Agent", map[string]any{"description": "alice works", "prompt": "ROLE=alice Work.",
					"subagent_type": "general-purpose", "name": "alice"}),
				w.after(`"team:member:joined"`, agenttest.Use("TaskCreate", map[string]any{"subject": "Ship it",
					"description": "To all."})),
				w.after(`"task":{"id":"2","subject":"Ship it","description":"To all.","status":"pending"`,
					agenttest.Use("TaskUpdate", map[string]any{"taskId": "2", "addBlockedBy": []string{"1"}})),
				w.after(`"updatedFields":["blockedBy"]`, agenttest.Say("I wait for her.")),
			}
			alice := []agenttest.Turn{
				w.after(`"team:member:joined"`, update(map[string]any{"status": "in_progress"})),
				w.after(`"team:task:claimed"`, update(map[string]any{"status": "completed"})),
				w.after(`"team:task:completed"`, agenttest.Use("SendMessage", map[string]any{"to": "team-lead",
					"summary": "it is done", "message": "All of it is built."})),
				w.after(`"type":"team:message:received"`, agenttest.Say("That is all.")),
			}
			s.model.Answer(func(r *agenttest.Request) agenttest.Turn {
				switch n := calls(r); {
				case r.Has("ROLE=lead"):
					return lead[min(n, len(lead)-1)]
				case r.Has("ROLE=alice"):
					return alice[min(n, len(alice)-1)]
				}
				return agenttest.Say("Well.")
			})
			screen := s.terminal(lookIn(t, s.env, "claude"), "--teammate-mode", mode, "--dangerously-skip-permissions")
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("%s\n%s", screen.screen(), s.model.Story())
				}
				screen.close()
				s.waitFor("nothing is left", func() bool { return len(s.processes()) == 0 })
			})
			screen.shows("❯")
			screen.enter("ROLE=lead Lead.")
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			for _, last := range []string{`"updatedFields":["blockedBy"]`, `"team:member:idle"`} {
				if !w.out.has(ctx, last) {
					t.Fatalf("the sessions do not come to %s", last)
				}
			}
			w.Process.Signal(os.Interrupt)
			w.end()
			for event, times := range map[string]int{"team:created": 1, "team:task:created": 2, "team:member:joined": 1,
				"team:task:claimed": 1, "team:task:completed": 1, "team:message:received": 1} {
				if n := strings.Count(w.out.String(), `"type":"`+event+`"`); n != times {
					t.Errorf("%s was printed %d times, want %d", event, n, times)
				}
			}
			if theirs, err := s.ownTasks(); err != nil || len(theirs) != 2 ||
				listed(tidy(read[[]ownTask](s.world, "task", "list", "watched"))) != listed(theirs) {
				t.Errorf("kept\n%s\nbut Claude Code's own tasks are %+v: %v",
					s.must("task", "list", "watched"), theirs, err)
			}
			if !strings.Contains(w.out.String(), `"content":"All of it is built."`) {
				t.Error("the output lacks her text: All of it is built.")
			}
			done := read[struct{ Status, Owner, CompletedBy string }](s.world, "task", "show", "watched", "1")
			if done.Status != "completed" || done.Owner != "alice" || done.CompletedBy != "alice" {
				t.Errorf("the task is %+v", done)
			}
		})
	}
}
