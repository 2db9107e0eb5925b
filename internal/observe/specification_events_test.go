package observe

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"cadre/internal/observe/model"
	"cadre/internal/observe/present"
	"cadre/internal/observe/protocol"
	"cadre/internal/team"
)

func TestPhase55Supplements(t *testing.T) {
	s := play(t)
	line := obj{"type": "assistant", "session_id": s.session, "message": obj{"id": "m", "content": []any{
		obj{"type": "tool_use", "id": "t1", "name": "SendMessage", "input": obj{"type": "message", "recipient": "alice",
			"content": "hi", "summary": "s"}}}}}
	seen := s.line(line)
	want := []present.Supplement{{Type: protocol.Message, Role: "system",
		Metadata: present.SupplementMetadata{TeamToolUseID: "t1", ToolName: "SendMessage",
			Input: json.RawMessage(`{"content":"hi","recipient":"alice","summary":"s","type":"message"}`)}}}
	if !seen.TeamToolUse || !reflect.DeepEqual(seen.Supplements, want) {
		t.Errorf("%v %+v", seen.TeamToolUse, seen.Supplements)
	}
	t.Run("the result of a team's tool", func(t *testing.T) {
		seen := s.answer("t1", obj{"success": true}, "")
		if len(seen.Supplements) != 1 || seen.Supplements[0].Metadata.TeamToolUseID != "t1" ||
			string(seen.Supplements[0].Metadata.Result) != `{"success":true}` || !seen.TeamToolUse {
			t.Errorf("%+v", seen)
		}
	})
	t.Run("of a line that is no valid UTF-8", func(t *testing.T) {
		s := play(t)
		use := s.Line("lead",
			[]byte(
				"{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"tool_use\",\"id\":\"u\",\"name\":\"TaskCreate\",\"input\":{\"subject\":\"a\xffb\"}}]}}"), s.now)
		result := s.Line("lead",
			[]byte(
				"{\"type\":\"user\",\"tool_use_result\":{\"task\":{\"id\":\"1\",\"subject\":\"a\xffb\"}},\"message\":{\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"u\"}]}}"), s.now)
		for _, one := range append(use.Supplements, result.Supplements...) {
			if data, err := json.Marshal(one); err != nil || !utf8.Valid(data) ||
				!strings.Contains(string(data), "a\uFFFDb") {
				t.Errorf("%q, %v", data, err)
			}
		}
		if len(use.Supplements)+len(result.Supplements) != 2 {
			t.Errorf("%+v %+v", use, result)
		}
	})
	t.Run("other messages", func(t *testing.T) {
		for _, v := range []obj{
			{"type": "assistant", "session_id": s.session,
				"message": obj{"id": "m2", "content": []any{obj{"type": "text", "text": "TaskCreate SendMessage"}}}},
			{"type": "assistant", "session_id": s.session,
				"message": obj{"id": "m3", "content": []any{obj{"type": "tool_use", "id": "b", "name": "Bash",
					"input": obj{}}}}},
			{"type": "user", "session_id": s.session,
				"message": obj{"content": []any{obj{"type": "tool_result", "tool_use_id": "b", "content": "ok"}}}},
		} {
			if seen := s.line(v); seen.TeamToolUse || seen.Supplements != nil || seen.Records != nil {
				t.Errorf("%v: %+v", v, seen)
			}
		}
	})
	t.Run("the line itself is left alone", func(t *testing.T) {
		for _, line := range recorded(t, "2.1.47/stream.jsonl") {
			before := string(line)
			o := New(Options{})
			o.Line("lead", line, 1)
			if string(line) != before {
				t.Fatal("changed")
			}
		}
	})
	t.Run("the Agent SDK's objects, as Python writes them", func(t *testing.T) {
		stream, sdk := New(Options{}), New(Options{})
		for i, line := range clip(recorded(t, "2.1.177/stream.jsonl"), `"text":"ops done"`) {
			var v any
			if err := json.Unmarshal(line, &v); err != nil {
				t.Fatal(err)
			}
			a := stream.Line("lead", line, epochMillis+team.Time(i))
			b := sdk.Line("lead", spaced(v), epochMillis+team.Time(i))
			if len(a.Supplements) != len(b.Supplements) || a.TeamToolUse != b.TeamToolUse {
				t.Fatalf("line %d has %d supplements, and %d as an object", i+1, len(a.Supplements), len(b.Supplements))
			}
		}
		if !reflect.DeepEqual(stream.State(), sdk.State()) || sdk.State() == nil {
			t.Error("the states differ")
		}
	})
}

// spaced encodes JSON like some other writers: with a space after every colon and comma, and with
// sorted keys.
func spaced(v any) []byte {
	switch v := v.(type) {
	case map[string]any:
		var parts []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, fmt.Sprintf("%q: %s", key, spaced(v[key])))
		}
		return []byte("{" + strings.Join(parts, ", ") + "}")
	case []any:
		var parts []string
		for _, one := range v {
			parts = append(parts, string(spaced(one)))
		}
		return []byte("[" + strings.Join(parts, ", ") + "]")
	}
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

func TestPhase56Integration(t *testing.T) {
	t.Run("the state after each message", func(t *testing.T) {
		s := play(t)
		s.want("null")
		s.use("c", "TeamCreate", obj{"team_name": "fx"})
		s.want("null") // a request alone creates nothing
		s.answer("c", obj{"team_name": "fx"}, "")
		s.want("fx/lead")
		s.use("d", "TeamDelete", obj{})
		s.want("fx/lead")
		s.answer("d", obj{"success": false, "message": "Cannot cleanup team with 1 active member(s)",
			"team_name": "fx"}, "")
		s.want("fx/lead")
	})
	t.Run("agents before, during and after a team", func(t *testing.T) {
		s := play(t)
		s.line(obj{"type": "system", "subtype": "init", "session_id": s.session,
			"agents": []any{"general-purpose", "Plan"}})
		if got := s.Agents(); !slices.Equal(got, []string{"general-purpose", "Plan"}) {
			t.Error(got)
		}
		s.createTeam("fx")
		if got := s.Agents(); len(got) != 0 {
			t.Error(got)
		}
		s.spawn("alice")
		s.spawn("bob")
		if got := s.Agents(); !slices.Equal(got, []string{"alice", "bob"}) {
			t.Error(got)
		}
		s.do("TeamDelete", obj{}, obj{"success": true})
		if got := s.Agents(); got == nil || len(got) != 0 {
			t.Error(got)
		}
	})
	t.Run("hydration from a persisted state", func(t *testing.T) {
		s := play(t)
		s.createTeam("fx")
		s.spawn("alice")
		s.task("1", "A")
		s.task("2", "B")
		s.update("2", obj{"addBlockedBy": []any{"1"}, "owner": "alice"})
		data, _ := json.Marshal(s.State())
		state, err := present.ReadTeamState(data)
		if err != nil {
			t.Fatal(err)
		}
		o, seen := FromTeamState(Options{}, state, s.now)
		if again, _ := json.Marshal(o.State()); string(again) != string(data) || len(seen.Records) == 0 {
			t.Errorf("%s became\n%s", data, again)
		}
		s.Observer = o
		s.update("1", obj{"status": "completed"})
		s.want("fx/lead alice:active #1:completed>2 #2:pending(alice)<1")
		s.spawn("bob")
		s.want("fx/lead alice:active bob:active #1:completed>2 #2:pending(alice)<1")
	})
	t.Run("a call that a person held for minutes is answered", func(t *testing.T) {
		s := play(t)
		s.createTeam("fx")
		s.use("x", "TaskCreate", obj{"subject": "A"})
		s.now += 20 * 60_000
		s.line(obj{"type": "system", "subtype": "status"})
		s.answer("x", obj{"task": obj{"id": "1", "subject": "A"}}, "")
		s.want("fx/lead #1:pending")
	})
	t.Run("stale calls and results expire", func(t *testing.T) {
		s := play(t)
		s.use("x", "TaskList", obj{})
		s.now += model.CallTTL + 1
		seen := s.line(obj{"type": "system", "subtype": "status"})
		if c := s.Counts(); c.Pending != 0 || c.Discarded != 1 || len(seen.Warnings) != 1 {
			t.Errorf("%+v %v", c, seen.Warnings)
		}
	})
}

func TestPhase57Events(t *testing.T) {
	t.Run("at the right moments", func(t *testing.T) {
		s := play(t)
		s.createTeam("fx")
		s.wantNames("created")
		s.spawn("alice")
		s.wantNames("created member:joined")
		s.task("1", "A")
		s.update("1", obj{"status": "in_progress", "owner": "alice"})
		s.wantNames("created member:joined task:created task:claimed")
		s.update("1", obj{"status": "completed"})
		s.wantNames("created member:joined task:created task:claimed task:completed")
		s.all = nil
		s.send(obj{"type": "message", "recipient": "alice", "content": "x", "summary": "s"}, nil)
		s.line(obj{"type": "result", "session_id": s.session})
		s.wantNames("message:received member:idle")
		s.all = nil
		s.send(obj{"type": "plan_approval_request", "request_id": "plan_approval-1@alice@fx", "content": "p"}, nil)
		s.send(obj{"type": "plan_approval_response", "recipient": "alice", "request_id": "plan_approval-1@alice@fx",
			"approve": true}, nil)
		s.send(obj{"type": "shutdown_request", "recipient": "alice"}, obj{"request_id": "shutdown-1@alice",
			"target": "alice"})
		s.send(obj{"type": "shutdown_response", "request_id": "shutdown-1@alice", "approve": true}, nil)
		s.do("TeamDelete", obj{}, obj{"success": true})
		s.wantNames("plan:requested plan:resolved shutdown:requested shutdown:response member:shutdown deleted")
	})
	t.Run("payloads", func(t *testing.T) {
		s := play(t)
		s.createTeam("fx")
		s.spawn("alice")
		s.task("1", "A")
		s.update("1", obj{"status": "in_progress", "owner": "alice"})
		s.send(obj{"type": "message", "recipient": "alice", "content": "hi", "summary": "s"}, nil)
		s.send(obj{"type": "broadcast", "content": "all", "summary": "b"}, obj{"recipients": []any{"alice"}})
		s.send(obj{"type": "plan_approval_response", "recipient": "alice", "request_id": "p1", "approve": false,
			"content": "more tests"}, nil)
		s.send(obj{"type": "shutdown_response", "request_id": "shutdown-1@alice", "approve": false,
			"content": "busy"}, nil)
		var got []string
		for _, n := range s.all {
			data, _ := json.Marshal(n)
			got = append(got, string(data))
		}
		member := `"member":{"name":"alice","agentId":"alice@fx","agentType":"worker","status":"active","model":"m","color":"blue"}`
		task := func(rest string) string {
			return `"task":{"id":"1","subject":"A","description":"about A",` + rest + `"blockedBy":[],"blocks":[]}`
		}
		const session = `"sessionId":"11112222-3333"`
		want := []string{
			`{"type":"team:created",` + session + `,"teamName":"fx"}`,
			`{"type":"team:member:joined",` + session + `,` + member + `}`,
			`{"type":"team:task:created",` + session + `,` + task(`"status":"pending",`) + `}`,
			`{"type":"team:task:claimed",` + session + `,` + task(`"status":"in_progress","owner":"alice",`) + `}`,
			`{"type":"team:message:received",` + session +
				`,"from":"team-lead","to":"alice","content":"hi","summary":"s"}`,
			`{"type":"team:message:received",` + session + `,"from":"team-lead","content":"all","summary":"b"}`,
			`{"type":"team:plan:resolved",` + session +
				`,"from":"alice","approved":false,"reason":"more tests","requestId":"p1"}`,
			`{"type":"team:shutdown:response",` + session +
				`,"approved":false,"reason":"busy","member":"alice","requestId":"shutdown-1@alice"}`,
		}
		if !slices.Equal(got, want) {
			t.Errorf("the events are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
	t.Run("none for a session without a team", func(t *testing.T) {
		s := play(t)
		s.task("1", "a todo")
		s.update("1", obj{"status": "completed"})
		s.do("TaskList", obj{}, obj{"tasks": []any{}})
		s.do("Task", obj{"description": "d", "prompt": "p"}, obj{"status": "completed", "agentId": "a1"})
		s.do("Agent", obj{"name": "helper", "prompt": "p"}, obj{"status": "async_launched", "agentId": "a2"})
		s.wantNames("")
		s.want("null")
	})
	t.Run("idle after a task without another", func(t *testing.T) {
		s := play(t)
		s.createTeam("fx")
		s.spawn("alice")
		s.task("1", "A")
		s.task("2", "B")
		s.update("1", obj{"status": "in_progress", "owner": "alice"})
		s.all = nil
		s.update("1", obj{"status": "completed"})
		s.update("2", obj{"status": "in_progress", "owner": "alice"}) // the next message starts another one
		s.line(obj{"type": "result", "session_id": s.session})
		s.wantNames("task:completed task:claimed")
		s.all = nil
		s.update("2", obj{"status": "completed"})
		s.message++
		text := func(words string) {
			s.line(obj{"type": "assistant", "session_id": s.session, "message": obj{"id": fmt.Sprint("msg_", s.message),
				"content": []any{obj{"type": "text", "text": words}}}})
		}
		text("the next message, which takes none")
		text("is not over")
		s.wantNames("task:completed")
		s.message++
		text("now it is")
		s.wantNames("task:completed member:idle")
		s.want("fx/lead alice:idle #1:completed(alice) #2:completed(alice)")
		s.message++
		text("and it is said once")
		s.wantNames("task:completed member:idle")
	})
	t.Run("both in one message", func(t *testing.T) {
		s := play(t)
		s.createTeam("fx")
		s.spawn("alice")
		s.task("1", "A")
		s.task("2", "B")
		s.useIn("one", "x", "TaskUpdate", obj{"taskId": "1", "status": "completed", "owner": "alice"})
		s.useIn("one", "y", "TaskUpdate", obj{"taskId": "2", "status": "in_progress", "owner": "alice"})
		s.answer("y", obj{"success": true}, "")
		s.answer("x", obj{"success": true}, "")
		for _, id := range []string{"two", "three", "four"} {
			s.line(obj{"type": "assistant", "session_id": s.session,
				"message": obj{"id": id, "content": []any{obj{"type": "text", "text": "well"}}}})
		}
		s.line(obj{"type": "result", "session_id": s.session})
		s.want("fx/lead alice:active #1:completed(alice) #2:in_progress(alice)")
	})
	t.Run("a repeated line starts no task", func(t *testing.T) {
		s := play(t)
		s.createTeam("fx")
		s.spawn("alice")
		s.task("1", "A")
		again := func() {
			s.useIn("one", "begun", "TaskUpdate", obj{"taskId": "1", "status": "in_progress", "owner": "alice"})
			s.answer("begun", obj{"success": true}, "")
		}
		again()
		s.update("1", obj{"status": "completed"})
		again()
		s.line(obj{"type": "result", "session_id": s.session})
		s.want("fx/lead alice:idle #1:completed(alice)")
	})
	t.Run("a gap, a failed member, one that comes back", func(t *testing.T) {
		s := play(t)
		s.createTeam("fx")
		s.spawn("alice")
		s.all = s.Gap("lead", "the connection was lost", s.now).Notices
		s.line(obj{"type": "system", "subtype": "task_notification", "tool_use_id": "toolu_2", "status": "failed",
			"summary": "out of memory", "session_id": s.session})
		s.want("fx/lead alice:shutdown")
		s.spawn("alice")
		s.want("fx/lead alice:active")
		s.wantNames("gap member:failed member:joined")
	})
	t.Run("names", func(t *testing.T) {
		for _, name := range []string{present.Created, present.Deleted, present.MemberJoined, present.MemberIdle,
			present.MemberShutdown, present.MemberFailed,
			present.TaskCreated, present.TaskClaimed, present.TaskCompleted, present.MessageReceived,
			present.ShutdownRequested, present.ShutdownResponse, present.PlanRequested, present.PlanResolved,
			present.Gap} {
			if !eventName.MatchString(name) {
				t.Error(name)
			}
		}
	})
}

func TestPhase58Capabilities(t *testing.T) {
	for adapter, teams := range map[string]bool{"sdk-url": true, "agent-sdk": true, "stream": true, "transcript": true,
		"acp": false, "codex": false} {
		c, ok := present.Adapters[adapter]
		if !ok || c.Teams != teams || !slices.Contains([]string{"local", "remote", "both"}, c.Availability) {
			t.Errorf("%s: %+v", adapter, c)
		}
	}
}
