package observe

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"cadre/internal/observe/present"
	"cadre/internal/observe/protocol"
)

// The tests that the specification of team observation requires, by phase.

func TestPhase51Types(t *testing.T) {
	t.Run("type guards of the new message types", func(t *testing.T) {
		for kind, want := range map[string][3]bool{"team_message": {true, false, false},
			"team_task_update":  {false, true, false},
			"team_state_change": {false, false, true}, "assistant": {}, "": {}} {
			data := []byte(`{"type":"` + kind +
				`","role":"system","metadata":{"teamToolUseId":"toolu_1","toolName":"Any"}}`)
			if got := [3]bool{present.IsTeamMessage(data), present.IsTeamTaskUpdate(data),
				present.IsTeamStateChange(data)}; got != want {
				t.Errorf("%q: %v", kind, got)
			}
		}
	})
	t.Run("type guards of TeamMember, TeamTask, TeamState", func(t *testing.T) {
		member := `{"name":"alice","agentId":"a","agentType":"t","status":"idle"}`
		task := `{"id":"1","subject":"A","status":"pending","blockedBy":[],"blocks":[]}`
		for data, want := range map[string][3]bool{
			member: {true, false, false},
			task:   {false, true, false},
			`{"name":"t","role":"lead","members":[` + member + `],"tasks":[` + task + `]}`:     {false, false, true},
			`{"name":"t","role":"lead","members":[],"tasks":[]}`:                               {false, false, true},
			`{"name":"t","role":"boss","members":[],"tasks":[]}`:                               {},
			`{"name":"t","role":"lead","members":[]}`:                                          {},
			`{"name":"t","role":"lead","members":[{"name":"x","status":"asleep"}],"tasks":[]}`: {},
			`{"name":"t","role":"lead","members":[],"tasks":[{"id":"x","status":"pending"}]}`:  {},
			`{"id":"1","status":"done","blockedBy":[],"blocks":[]}`:                            {},
			`{"id":"1","status":"pending","blockedBy":[],"blocks":[]}`:                         {},
			`{"name":"alice","agentId":"a","agentType":null,"status":"idle"}`:                  {},
			`{"NAME":"alice","agentId":"a","agentType":"t","status":"idle"}`:                   {},
			`null`: {}, `[]`: {}, `"x"`: {}, `{`: {}, ``: {},
		} {
			if got := [3]bool{present.IsTeamMember([]byte(data)), present.IsTeamTask([]byte(data)),
				present.IsTeamState([]byte(data))}; got != want {
				t.Errorf("%s: %v, not %v", data, got, want)
			}
		}
	})
	t.Run("a TeamState as it is written is one", func(t *testing.T) {
		s := play(t)
		s.createTeam("fx")
		s.spawn("alice")
		s.task("1", "A")
		data, _ := json.Marshal(s.State())
		if !present.IsTeamState(data) {
			t.Errorf("%s", data)
		}
		empty := play(t)
		empty.createTeam("fx")
		if data, _ := json.Marshal(empty.State()); string(
			data) != `{"name":"fx","role":"lead","members":[],"tasks":[]}` {
			t.Errorf("%s", data)
		}
	})
	t.Run("agents are there and are the members", func(t *testing.T) {
		s := play(t)
		s.createTeam("fx")
		s.spawn("alice")
		if got := s.Agents(); !slices.Equal(got, []string{"alice"}) {
			t.Error(got)
		}
	})
}

func TestPhase52Recognizer(t *testing.T) {
	for _, c := range []struct {
		name, tool, input string
		team              bool // a team exists
		is                bool
		category          protocol.Category
		warns             bool
	}{
		{"TeamCreate", "TeamCreate", `{"team_name":"fx"}`, false, true, protocol.StateChange, false},
		{"TeamDelete", "TeamDelete", `{}`, true, true, protocol.StateChange, false},
		{"TeamDelete without any input", "TeamDelete", ``, true, true, protocol.StateChange, false},
		{"Task with team_name and name", "Task", `{"team_name":"fx","name":"alice"}`, true, true,
			protocol.StateChange, false},
		{"Agent with a name", "Agent", `{"name":"alice"}`, false, true, protocol.StateChange, false},
		{"TaskCreate", "TaskCreate", `{"subject":"A"}`, true, true, protocol.TaskUpdate, false},
		{"TaskUpdate", "TaskUpdate", `{"taskId":"1"}`, true, true, protocol.TaskUpdate, false},
		{"TaskList", "TaskList", `{}`, true, true, protocol.TaskUpdate, false},
		{"TaskGet", "TaskGet", `{"taskId":"1"}`, true, true, protocol.TaskUpdate, false},
		{"SendMessage of the first age", "SendMessage", `{"type":"message","recipient":"a","content":"x"}`, true, true,
			protocol.Message, false},
		{"SendMessage of the second age", "SendMessage", `{"to":"a","message":"x","summary":"s"}`, true, true,
			protocol.Message, false},
		{"a structured SendMessage", "SendMessage", `{"to":"a","message":{"type":"shutdown_request"}}`, true, true,
			protocol.Message, false},
		{"Task with only a description is a subagent", "Task", `{"description":"d"}`, true, false, "", false},
		{"Task with team_name and no name is a subagent", "Task", `{"description":"d","team_name":"fx"}`, true,
			false, "", false},
		{"Agent without a name is a subagent", "Agent", `{"description":"d","prompt":"p"}`, true, false, "", false},
		{"Task with a name and no team to join is a subagent", "Task", `{"name":"alice"}`, false, false, "", false},
		{"Task with a name joins the team that is there, as recorded", "Task", `{"name":"dave"}`, true, true,
			protocol.StateChange, false},
		{"Read", "Read", `{"file_path":"x"}`, true, false, "", false},
		{"Bash", "Bash", `{"command":"x"}`, true, false, "", false},
		{"TaskOutput and TaskStop are known and none", "TaskOutput", `{"task_id":"x"}`, true, false, "", false},
		{"an unknown Team tool", "TeamMerge", `{}`, true, false, "", true},
		{"an unknown Task tool", "TaskArchive", `{}`, true, false, "", true},
		{"TeamCreate without team_name", "TeamCreate", `{}`, true, false, "", true},
		{"TaskCreate without subject", "TaskCreate", `{"description":"x"}`, true, false, "", true},
		{"TaskUpdate without taskId", "TaskUpdate", `{"status":"completed"}`, true, false, "", true},
		{"TaskGet without taskId", "TaskGet", `{}`, true, false, "", true},
		{"SendMessage without type", "SendMessage", `{"content":"x"}`, true, false, "", true},
		{"an input of another type", "TaskUpdate", `{"taskId":{"id":1}}`, true, false, "", true},
		{"an input that is no object", "TaskCreate", `["x"]`, true, false, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			is, why := protocol.Recognise(protocol.Use{ID: "toolu_1", Name: c.tool,
				Input: json.RawMessage(c.input)}, c.team)
			if is != c.is || (why != "") != c.warns {
				t.Errorf("recognised: %v, warning %q", is, why)
			}
			if is && protocol.CategoryOf(c.tool) != c.category {
				t.Errorf("category %s", protocol.CategoryOf(c.tool))
			}
			// The filter must not skip it, nor anything that is worth a warning.
			line := fmt.Sprintf(
				`{"type":"assistant","message":{"content":[{"type":"tool_use","id":"toolu_1","name":%q,"input":%s}]}}`,
				c.tool, cmp.Or(c.input, "{}"))
			f := protocol.NewFilter(func(string) bool { return false })
			if (is || c.warns) && !f.Worth([]byte(line), false) {
				t.Error("the line is skipped")
			}
		})
	}
	t.Run("several tool uses in one message", func(t *testing.T) {
		s := play(t)
		blocks := []any{obj{"type": "text", "text": "now"}}
		for i, tool := range []string{"Bash", "TaskList", "TaskCreate", "Read"} {
			blocks = append(blocks, obj{"type": "tool_use", "id": fmt.Sprint("t", i), "name": tool,
				"input": obj{"subject": "A", "command": "x"}})
		}
		seen := s.line(obj{"type": "assistant", "session_id": s.session, "message": obj{"id": "m", "content": blocks}})
		var ids []string
		for _, one := range seen.Supplements {
			ids = append(ids, one.Metadata.TeamToolUseID)
		}
		if !slices.Equal(ids, []string{"t1", "t2"}) {
			t.Error(ids)
		}
	})
	t.Run("a subagent's calls are not the lead's", func(t *testing.T) {
		s := play(t)
		s.createTeam("fx")
		s.line(obj{"type": "assistant", "session_id": s.session, "parent_tool_use_id": "toolu_9",
			"message": obj{"content": []any{
				obj{"type": "tool_use", "id": "sub1", "name": "TaskCreate", "input": obj{"subject": "mine"}}}}})
		s.line(obj{"type": "user", "session_id": s.session, "parent_tool_use_id": "toolu_9",
			"message": obj{"content": []any{
				obj{"type": "tool_result", "tool_use_id": "sub1", "content": "Task #1 created successfully: mine"}}}})
		s.want("fx/lead")
		if c := s.Counts(); c.Pending != 0 {
			t.Errorf("%+v", c)
		}
	})
}

func TestPhase53Correlation(t *testing.T) {
	t.Run("an error result ends the call and changes nothing", func(t *testing.T) {
		s := play(t)
		s.createTeam("fx")
		s.use("x", "TaskCreate", obj{"subject": "A"})
		s.fails("x", "no")
		s.want("fx/lead")
		if c := s.Counts(); c.Pending != 0 || c.Failed != 1 {
			t.Errorf("%+v", c)
		}
	})
	t.Run("a result without a call", func(t *testing.T) {
		s := play(t)
		s.answer("nobody", obj{"task": obj{"id": "1"}}, "")
		s.want("null")
	})
	t.Run("pending is counted", func(t *testing.T) {
		s := play(t)
		s.use("a", "TaskList", obj{})
		s.use("b", "TaskList", obj{})
		if n := s.Counts().Pending; n != 2 {
			t.Error(n)
		}
		s.answer("a", obj{"tasks": []any{}}, "")
		if n := s.Counts().Pending; n != 1 {
			t.Error(n)
		}
	})
}

func TestPhase54Reducer(t *testing.T) {
	t.Run("full lifecycle", func(t *testing.T) {
		s := play(t)
		s.want("null")
		s.createTeam("fx")
		s.want("fx/lead")
		s.spawn("alice")
		s.spawn("bob")
		s.task("1", "A")
		s.task("2", "B")
		s.want("fx/lead alice:active bob:active #1:pending #2:pending")
		s.update("1", obj{"status": "in_progress", "owner": "alice"})
		s.want("fx/lead alice:active bob:active #1:in_progress(alice) #2:pending")
		s.update("1", obj{"status": "completed"})
		s.want("fx/lead alice:active bob:active #1:completed(alice) #2:pending")
		s.send(obj{"type": "shutdown_request", "recipient": "alice"}, obj{"request_id": "shutdown-1@alice",
			"target": "alice"})
		s.send(obj{"type": "shutdown_response", "request_id": "shutdown-1@alice", "approve": true},
			obj{"request_id": "shutdown-1@alice"})
		s.want("fx/lead alice:shutdown bob:active #1:completed(alice) #2:pending")
		s.do("TeamDelete", obj{}, obj{"success": true, "message": "Cleaned up", "team_name": "fx"})
		s.want("null")
	})
	t.Run("idempotency", func(t *testing.T) {
		s := play(t)
		s.createTeam("fx")
		s.spawn("alice")
		s.task("1", "A")
		s.update("1", obj{"status": "in_progress", "owner": "alice"})
		before := s.state()
		s.createTeam("fx") // other tool uses that say the same
		s.spawn("alice")
		s.task("1", "A")
		s.want(before)
	})
	t.Run("TaskUpdate of an unknown task", func(t *testing.T) {
		s := play(t)
		s.createTeam("fx")
		s.update("7", obj{"status": "completed"})
		s.want("fx/lead")
	})
	t.Run("shutdown of an unknown member", func(t *testing.T) {
		s := play(t)
		s.createTeam("fx")
		s.send(obj{"type": "shutdown_response", "request_id": "shutdown-1@zoe", "approve": true}, nil)
		s.want("fx/lead")
	})
	t.Run("messages and broadcasts change no state", func(t *testing.T) {
		s := play(t)
		s.createTeam("fx")
		s.spawn("alice")
		s.send(obj{"type": "message", "recipient": "alice", "content": "x", "summary": "s"}, nil)
		s.send(obj{"type": "broadcast", "content": "y", "summary": "s"}, obj{"recipients": []any{"alice"}})
		s.want("fx/lead alice:active")
	})
	t.Run("a rejected shutdown changes no state", func(t *testing.T) {
		s := play(t)
		s.createTeam("fx")
		s.spawn("alice")
		s.send(obj{"type": "shutdown_request", "recipient": "alice"}, obj{"request_id": "shutdown-1@alice",
			"target": "alice"})
		s.send(obj{"type": "shutdown_response", "request_id": "shutdown-1@alice", "approve": false,
			"content": "busy"}, nil)
		s.want("fx/lead alice:active")
	})
	t.Run("plan requests change no state", func(t *testing.T) {
		s := play(t)
		s.createTeam("fx")
		s.spawn("alice")
		s.send(obj{"type": "plan_approval_request", "recipient": "team-lead", "content": "plan",
			"request_id": "plan_approval-1@alice@fx"}, nil)
		s.send(obj{"type": "plan_approval_response", "recipient": "alice", "request_id": "plan_approval-1@alice@fx",
			"approve": true}, nil)
		s.want("fx/lead alice:active")
	})
	t.Run("dependencies", func(t *testing.T) {
		s := play(t)
		s.createTeam("fx")
		for i := range 4 {
			s.task(fmt.Sprint(i+1), "T")
		}
		s.update("2", obj{"addBlockedBy": []any{"1"}})
		s.update("3", obj{"addBlocks": []any{"4"}})
		s.want("fx/lead #1:pending>2 #2:pending<1 #3:pending>4 #4:pending<3")
		s.update("1", obj{"addBlockedBy": []any{"2"}})
		s.want("fx/lead #1:pending<2>2 #2:pending<1>1 #3:pending>4 #4:pending<3")
	})
	t.Run("deleted is removed", func(t *testing.T) {
		s := play(t)
		s.createTeam("fx")
		s.task("1", "A")
		s.task("2", "B")
		s.update("2", obj{"addBlockedBy": []any{"1"}})
		s.update("1", obj{"status": "deleted"})
		s.want("fx/lead #2:pending")
	})
	t.Run("the last write wins", func(t *testing.T) {
		s := play(t)
		s.createTeam("fx")
		s.task("1", "A")
		s.use("x", "TaskUpdate", obj{"taskId": "1", "owner": "alice"})
		s.use("y", "TaskUpdate", obj{"taskId": "1", "owner": "bob"})
		s.answer("y", obj{"success": true}, "")
		s.answer("x", obj{"success": true}, "")
		s.want("fx/lead #1:pending(alice)")
	})
	t.Run("role", func(t *testing.T) {
		s := play(t)
		s.createTeam("fx")
		s.want("fx/lead")
		mate := play(t)
		mate.Introduce("lead", "fx", "alice")
		mate.do("TaskList", obj{}, obj{"tasks": []any{obj{"id": "1", "subject": "A", "status": "pending",
			"blockedBy": []any{}}}})
		mate.want("fx/teammate alice:active #1:pending")
	})
	t.Run("TaskList and TaskGet reconcile", func(t *testing.T) {
		s := play(t)
		s.createTeam("fx")
		s.task("1", "A")
		s.task("2", "B")
		s.do("TaskList", obj{}, obj{"tasks": []any{obj{"id": "2", "subject": "B", "status": "completed",
			"owner": "alice", "blockedBy": []any{}},
			obj{"id": "5", "subject": "E", "status": "pending", "blockedBy": []any{"2"}}}})
		s.want("fx/lead #2:completed(alice)>5 #5:pending<2")
		s.do("TaskGet", obj{"taskId": "5"}, obj{"task": obj{"id": "5", "subject": "E2", "description": "d",
			"status": "in_progress", "blocks": []any{}, "blockedBy": []any{}}})
		s.want("fx/lead #2:completed(alice) #5:in_progress")
		s.use("g", "TaskGet", obj{"taskId": "5"})
		s.answer("g", obj{"task": nil}, "Task not found")
		s.want("fx/lead #2:completed(alice)")
	})
	t.Run("an unknown format removes nothing", func(t *testing.T) {
		s := play(t)
		s.createTeam("fx")
		s.task("1", "A")
		s.task("2", "B")
		for _, list := range []any{obj{}, obj{"todos": []any{}}, obj{"tasks": nil}, obj{"tasks": "none"},
			obj{"tasks": obj{}}, obj{"tasks": []any{obj{"id": 1, "status": "pending"}}},
			obj{"tasks": []any{"1"}}, obj{"tasks": []any{obj{"id": "2", "subject": "B", "status": "pending"},
				obj{"key": "1"}}}, obj{"success": true}} {
			if seen := s.do("TaskList", obj{}, list); len(seen.Warnings) != 1 {
				t.Errorf("%v: %q", list, seen.Warnings)
			}
			s.want("fx/lead #1:pending #2:pending")
		}
		for _, got := range []any{obj{}, obj{"task": "A"}, obj{"task": []any{}}, obj{"task": obj{}}, obj{"item": nil}} {
			s.do("TaskGet", obj{"taskId": "1"}, got)
			s.want("fx/lead #1:pending #2:pending")
		}
		s.do("TaskList", obj{}, obj{"tasks": []any{}})
		s.want("fx/lead")
	})
	t.Run("a list that is older than later results", func(t *testing.T) {
		s := play(t)
		s.createTeam("fx")
		s.task("1", "A")
		s.use("l", "TaskList", obj{})
		s.task("2", "B")
		s.update("1", obj{"status": "completed", "owner": "alice"})
		s.answer("l", obj{"tasks": []any{obj{"id": "1", "subject": "A", "status": "pending", "blockedBy": []any{}}}},
			"")
		s.want("fx/lead #1:completed(alice) #2:pending")
	})
	t.Run("hidden tasks stay hidden", func(t *testing.T) {
		s := play(t)
		s.createTeam("fx")
		s.spawn("alice")
		s.do("TaskCreate", obj{"subject": "alice", "metadata": obj{"_internal": true}},
			obj{"task": obj{"id": "1", "subject": "alice"}})
		s.do("TaskGet", obj{"taskId": "2"}, obj{"task": obj{"id": "2", "subject": "alice",
			"description": "you are alice", "status": "in_progress", "blocks": []any{}, "blockedBy": []any{}}})
		s.want("fx/lead alice:active")
	})
	t.Run("ids and outcomes from the text alone", func(t *testing.T) {
		s := play(t)
		s.createTeam("fx")
		text := func(tool string, input obj, text string) {
			s.n++
			id := fmt.Sprint("toolu_", s.n)
			s.use(id, tool, input)
			s.answer(id, nil, text)
		}
		text("Task", obj{"name": "alice", "team_name": "fx"}, "Spawned successfully.\nagent_id: alice@fx\nname: "+
			"alice\nteam_name: fx\nThe agent is now running.")
		text("TaskCreate", obj{"subject": "A"}, "Task #1 created successfully: A")
		text("TaskCreate", obj{"subject": "B"}, "Task #2 created successfully: B")
		text("TaskUpdate", obj{"taskId": "1", "status": "in_progress", "owner": "alice"},
			"Updated task #1 owner, status")
		text("TaskUpdate", obj{"taskId": "9", "status": "completed"}, "Task not found")
		text("TaskCreate", obj{"subject": "C"}, "<tool_use_error>InputValidationError: no</tool_use_error>")
		s.want("fx/lead alice:active #1:in_progress(alice) #2:pending")
		text("TaskList", obj{}, "#1 [completed] A (alice)\n#2 [pending] B (not a name) [blocked by #1, #3]\n#3 "+
			"[pending] C")
		s.want("fx/lead alice:active #1:completed(alice)>2 #2:pending<1,3 #3:pending>2")
		if got := s.State().Tasks[1].Subject; got != "B (not a name)" {
			t.Error(got)
		}
		text("TaskGet", obj{"taskId": "3"}, "Task #3: C\nStatus: pending\nDescription: two\nlines\nBlocked by: "+
			"#1\nBlocks: #2")
		if got := s.State().Tasks[2]; got.Description != "two\nlines" || !slices.Equal(got.BlockedBy, []string{"1"}) {
			t.Errorf("%+v", got)
		}
		text("TaskList", obj{}, "No tasks found")
		s.want("fx/lead alice:active")
		text("SendMessage", obj{"type": "shutdown_request", "recipient": "alice"}, "Shutdown request sent to alice. "+
			"Request ID: shutdown-5@alice")
		if last := s.all[len(s.all)-1]; last.Type != present.ShutdownRequested || last.RequestID != "shutdown-5@alice" {
			t.Errorf("%+v", last)
		}
	})
	t.Run("absurd ids", func(t *testing.T) {
		s := play(t)
		s.createTeam("fx")
		for _, id := range []string{"9999999", "99999999999999999999", "-1", "0", "x", "1.5", "01"} {
			s.task(id, "A")
		}
		s.want("fx/lead")
		s.task("12", "L")
		s.want("fx/lead #12:pending")
	})
}
