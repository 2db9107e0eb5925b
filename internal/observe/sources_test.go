package observe

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"cadre/internal/observe/present"
	"cadre/internal/observe/protocol"
	"cadre/internal/team"
)

// Tests of behaviour that needs several sources together, or lines with times.

// TestRequestsAreSaidOnce checks that requests, which are seen in calls, in messages and in the
// calls of the answers, are reported once.
func TestRequestsAreSaidOnce(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}} {
		said := map[string]int{}
		o := New(Options{})
		for _, i := range order {
			in := recordings["2.1.329 team in tmux"][i]
			for n, line := range recorded(t, in.file) {
				for _, notice := range o.Line(in.source, line, epochMillis+team.Time(n)).Notices {
					if notice.RequestID != "" && notice.RequestID != "none" {
						said[fmt.Sprint(notice.Type, notice.RequestID, notice.Approved != nil && *notice.Approved)]++
					}
				}
			}
		}
		answers := 0
		for what, n := range said {
			if n != 1 {
				t.Errorf("read in the order %v, %s is said %d times", order, what, n)
			}
			if strings.HasPrefix(what, present.ShutdownResponse) {
				answers++
			}
		}
		if answers != 5 { // alice rejects first
			t.Errorf("read in the order %v, there are %d answers: %v", order, answers, said)
		}
	}
}

// TestEndOnTheLeadsStream checks that the lead's stream shows the end of an in-process teammate, as
// in 2.1.177.
func TestEndOnTheLeadsStream(t *testing.T) {
	o := New(Options{})
	for i, line := range clip(recorded(t, "2.1.177/stream.jsonl"), `"text":"lead noted 57"`) {
		o.Line("lead", line, epochMillis+team.Time(i))
	}
	for _, m := range o.Team().Members()[1:] {
		if m.Status != team.Stopped {
			t.Errorf("%s is %s", m.Name, m.Status)
		}
	}
	if n := len(o.Team().Members()); n != 5 {
		t.Errorf("%d members", n)
	}
}

// stamped plays a line with its own time.
func (s *script) stamped(at team.Time, v obj) {
	s.Helper()
	v["timestamp"] = time.UnixMilli(int64(at)).UTC().Format(time.RFC3339Nano)
	s.line(v)
}

func (s *script) as(source, session, teamName, member string) {
	s.source, s.session = source, session
	s.Introduce(source, teamName, member)
}

// TestTimesOfLinesAreTheirOwn reads a stream an hour after it was written. Its calls have no times
// and its results have; a teammate's transcript has times. Only the times show which change is
// newer.
func TestTimesOfLinesAreTheirOwn(t *testing.T) {
	s := play(t)
	const t0 = team.Time(epochMillis)
	s.now = t0 + 3_600_000
	answer := func(id string, at team.Time, structured obj) {
		s.stamped(at, obj{"type": "user", "session_id": s.session, "tool_use_result": structured,
			"message": obj{"content": []any{obj{"type": "tool_result", "tool_use_id": id, "content": "x"}}}})
	}
	s.use("c", "TeamCreate", obj{"team_name": "fx"})
	answer("c", t0, obj{"team_name": "fx"})
	s.use("t", "TaskCreate", obj{"subject": "A"})
	answer("t", t0+10, obj{"task": obj{"id": "1", "subject": "A"}})
	s.use("l", "TaskList", obj{})
	answer("l", t0+20, obj{"tasks": []any{obj{"id": "1", "subject": "A", "status": "pending", "blockedBy": []any{}}}})
	s.want("fx/lead #1:pending")
	s.as("alice", "a", "fx", "alice")
	s.use("u", "TaskUpdate", obj{"taskId": "1", "status": "completed", "owner": "alice"})
	answer("u", t0+30, obj{"success": true})
	s.want("fx/lead alice:active #1:completed(alice)")
	s.use("v", "TaskUpdate", obj{"taskId": "1", "status": "in_progress"})
	answer("v", t0+25, obj{"success": true}) // it cannot be older than the line before it
	s.want("fx/lead alice:active #1:in_progress(alice)")
	s.as("bob", "b", "fx", "bob")
	s.use("w", "TaskUpdate", obj{"taskId": "1", "status": "pending", "owner": "bob", "description": "bob's"})
	answer("w", t0+15, obj{"success": true}) // read last, but the oldest
	s.want("fx/lead alice:active bob:active #1:in_progress(alice)")
	if got := s.State().Tasks[0].Description; got != "bob's" { // unchanged since then
		t.Error(got)
	}
}

// TestStoppedTeammateIsResumed checks that a teammate that gets a message after its shutdown is
// active again, like in-process teammates of 2.1.329.
func TestStoppedTeammateIsResumed(t *testing.T) {
	s := play(t)
	s.createTeam("fx")
	s.spawn("alice")
	s.send(obj{"type": "shutdown_response", "request_id": "shutdown-1@alice", "approve": true}, nil)
	s.want("fx/lead alice:shutdown")
	s.as("alice", "a", "fx", "alice")
	s.line(obj{"type": "user", "session_id": "a", "uuid": "u1", "parentUuid": "u0", "message": obj{"role": "user",
		"content": "<teammate-message teammate_id=\"team-lead\">\none more thing\n</teammate-message>"}})
	s.want("fx/lead alice:active")
	s.line(obj{"type": "system", "subtype": "turn_duration", "session_id": "a"})
	s.want("fx/lead alice:idle")
	s.wantNames("created member:joined shutdown:response member:shutdown message:received member:joined member:idle")
}

// TestAnswersAreBoundToTheirRequests checks that a teammate cannot answer a request to another one.
func TestAnswersAreBoundToTheirRequests(t *testing.T) {
	s := play(t)
	s.createTeam("fx")
	s.spawn("alice")
	s.spawn("bob")
	s.send(obj{"type": "shutdown_request", "recipient": "bob"}, obj{"request_id": "shutdown-1@bob", "target": "bob"})
	s.as("alice", "a", "fx", "alice")
	s.send(obj{"type": "shutdown_response", "request_id": "shutdown-1@bob", "approve": true}, nil)
	s.want("fx/lead alice:active bob:active")
	if len(s.last.Warnings) != 1 {
		t.Errorf("%v", s.last.Warnings)
	}
	s.as("bob", "b", "fx", "bob")
	s.send(obj{"type": "shutdown_response", "request_id": "shutdown-1@bob", "approve": true}, nil)
	s.want("fx/lead alice:active bob:shutdown")
}

// TestOwnerFromTheResult checks that a member that starts a task without an owner becomes its
// owner, which only the result says.
func TestOwnerFromTheResult(t *testing.T) {
	s := play(t)
	s.createTeam("fx")
	s.spawn("alice")
	s.task("1", "A")
	s.as("alice", "a", "fx", "alice")
	s.do("TaskUpdate", obj{"taskId": "1", "status": "in_progress"}, obj{"success": true, "taskId": "1",
		"updatedFields": []any{"owner", "status"}})
	s.want("fx/lead alice:active #1:in_progress(alice)")
}

// TestTeamAfterTeam checks that facts of an ended team do not affect the next one.
func TestTeamAfterTeam(t *testing.T) {
	s := play(t)
	s.createTeam("fx")
	s.task("1", "old")
	s.line(obj{"type": "result", "session_id": s.session, "uuid": "r1", "total_cost_usd": 1.0})
	first := s.Team().Team().ID
	s.do("TeamDelete", obj{}, obj{"success": true, "team_name": "fx"})
	gone := s.now
	s.task("1", "of no team")
	s.as("late", "z", "fx", "zoe")
	s.use("x", "TaskUpdate", obj{"taskId": "1", "status": "completed"})
	s.stamped(gone-15, obj{"type": "user", "session_id": "z", "tool_use_result": obj{"success": true},
		"message": obj{"content": []any{obj{"type": "tool_result", "tool_use_id": "x", "content": "x"}}}})
	s.want("null") // a late transcript of a teammate does not bring a team back
	s.source, s.session = "lead", "11112222-3333"
	s.createTeam("fx")
	s.want("fx/lead")
	if id := s.Team().Team().ID; id == first || s.Team().Seq() != 1 {
		t.Errorf("the second team is %s at %d", id, s.Team().Seq())
	}
	s.task("1", "new")
	s.line(obj{"type": "result", "session_id": s.session, "uuid": "r2", "total_cost_usd": 1.5})
	if got := s.Team().Team().Usage.CostMicroUSD; got != 500_000 {
		t.Errorf("the second team used %d", got)
	}
	s.want("fx/lead #1:pending")
}

// TestNameOfTheRecords checks that a team may have another name in its records than among its
// agents.
func TestNameOfTheRecords(t *testing.T) {
	s := play(t)
	s.Observer = New(Options{Name: "watched", ID: "w1"})
	s.line(obj{"type": "system", "subtype": "init", "session_id": s.session, "cwd": "/repo"})
	s.createTeam("fx")
	s.spawn("alice")
	s.as("bob", "b", "fx", "bob")
	s.do("TaskList", obj{}, obj{"tasks": []any{}})
	s.as("zoe", "z", "another", "zoe")
	s.do("TaskCreate", obj{"subject": "A"}, obj{"task": obj{"id": "1", "subject": "A"}})
	s.want("watched/lead alice:active bob:active")
	if t := s.Team().Team(); t.Dir != "/repo" || t.ID != "w1" {
		s.Errorf("%+v", t)
	}
	journal := s.Team() // all that is left after a crash
	o, err := Restore(Options{Name: "watched", ID: "w1"}, nil, journal)
	if err != nil {
		t.Fatal(err)
	}
	s.Observer = o
	s.as("bob", "b", "fx", "bob")
	s.do("TaskCreate", obj{"subject": "A"}, obj{"task": obj{"id": "1", "subject": "A"}})
	s.as("zoe", "z", "another", "zoe")
	s.do("TaskCreate", obj{"subject": "A"}, obj{"task": obj{"id": "2", "subject": "A"}})
	s.want("watched/lead alice:active bob:active #1:pending")
}

// TestUsageOfAResumedSession checks that a restarted program counts from zero again.
func TestUsageOfAResumedSession(t *testing.T) {
	s := play(t)
	s.createTeam("fx")
	total := func(uuid string, cost float64) {
		s.line(obj{"type": "result", "session_id": s.session, "uuid": uuid, "total_cost_usd": cost,
			"modelUsage": obj{"m": obj{"inputTokens": int(cost * 100), "outputTokens": 1}}})
	}
	total("r1", 0.5)
	total("r2", 2)
	total("r1", 0.5) // repeated
	total("r3", 0.25)
	if got := s.Team().Team().Usage; got.CostMicroUSD != 2_250_000 || got.InputTokens != 225 {
		t.Errorf("%+v", got)
	}
}

// TestBadLines checks that unreadable lines are counted and reported, and that nothing else is
// lost.
func TestBadLines(t *testing.T) {
	o := New(Options{MaxLine: 1 << 20})
	s := &script{T: t, Observer: o, source: "lead", session: "11112222-3333", now: epochMillis}
	s.createTeam("fx")
	big := strings.Repeat("x", 1<<20)
	for _, c := range []struct {
		name, line string
		gap        bool
		count      func(Counts) int64
	}{
		{"no JSON", "Error: something", false, func(c Counts) int64 { return c.Garbage }},
		{"an array", `[{"type":"assistant"}]`, false, func(c Counts) int64 { return c.Garbage }},
		{"a team's call that lacks its beginning",
			`ent":[{"type":"tool_use","id":"q","name":"TaskCreate","input":{"subject":"A"}}]}}`, true,
			func(c Counts) int64 { return c.Garbage }},
		{"a result that lacks its beginning",
			`ntent":[{"type":"tool_result","tool_use_id":"q","content":"Task #1 created successfully"}]}}`, true,
			func(c Counts) int64 { return c.Garbage }},
		{"another tool's call that lacks its beginning",
			`ent":[{"type":"tool_use","id":"q2","name":"Bash","input":{}}]}}`, false,
			func(c Counts) int64 { return c.Garbage }},
		{"cut off", `{"type":"stream_event","event":{"ty`, false, func(c Counts) int64 { return c.Truncated }},
		{"a team's call that is cut off",
			`{"type":"assistant","message":{"content":[{"type":"tool_use","id":"q","name":"TaskCreate","input":{"sub`,
			true, func(c Counts) int64 { return c.Truncated }},
		{"a team's call that is broken",
			`{"type":"assistant","message":{"content":[{"type":"tool_use","id":"q","name":"TaskCreate","input":{"sub}}]}}`, true, func(c Counts) int64 { return c.Garbage }},
		{"huge", `{"type":"assistant","message":{"content":[{"type":"text","text":"` + big + `"}]}}`, false,
			func(c Counts) int64 { return c.Huge }},
		{"a team's call that is huge",
			`{"type":"assistant","message":{"content":[{"type":"tool_use","id":"q","name":"TaskCreate","input":{"subject":"` + big + `"}}]}}`, true, func(c Counts) int64 { return c.Huge }},
		{"no UTF-8",
			"{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"tool_use\",\"id\":\"utf\",\"name\":\"TaskCreate\",\"input\":{\"subject\":\"a\xffb\"}}]}}", false, func(c Counts) int64 { return c.InvalidUTF }},
	} {
		before := c.count(o.Counts())
		seen := o.Line("lead", []byte(c.line), s.now)
		if c.count(o.Counts()) != before+1 || len(seen.Warnings) != 1 {
			t.Errorf("%s: %+v %v", c.name, o.Counts(), seen.Warnings)
		}
		if gap := len(seen.Notices) == 1 && seen.Notices[0].Type == present.Gap; gap != c.gap {
			t.Errorf("%s: gap %v", c.name, gap)
		}
	}
	for _, nothing := range []string{"", "\n", "  \r\n", "{}", `{"type":"keep_alive"}`, `{"type":7}`} {
		if seen := o.Line("lead", []byte(nothing), s.now); len(seen.Warnings)+len(seen.Records) > 0 {
			t.Errorf("%q: %+v", nothing, seen)
		}
	}
	s.answer("utf", obj{"task": obj{"id": "1", "subject": "a\ufffdb"}}, "")
	s.want("fx/lead #1:pending")
}

// TestAroundALine checks that space around a line is ignored.
func TestAroundALine(t *testing.T) {
	for _, with := range [][2]string{{"", ""}, {"\uFEFF", ""}, {"  ", "  "}, {"\t", "\r\n"}, {"\uFEFF ", "\n"}} {
		s := play(t)
		s.createTeam("fx")
		line := with[0] +
			`{"type":"assistant","session_id":"11112222-3333","message":{"content":[{"type":"tool_use","id":"q","name":"TaskCreate","input":{"subject":"A"}}]}}` + with[1]
		if seen := s.Line("lead", []byte(line), s.now); !seen.TeamToolUse || len(seen.Warnings) > 0 {
			t.Errorf("%q: %+v", line, seen)
		}
	}
}

// TestFramesOfSDKURL checks that the frames of --sdk-url are lines of stream-json, and that the
// server's lines and other frames are ignored.
func TestFramesOfSDKURL(t *testing.T) {
	o := New(Options{})
	frames := 0
	for i, line := range recorded(t, "2.1.47/sdk-url.jsonl") {
		_, frame, ok := strings.Cut(string(line), `"frame":`)
		if !ok {
			continue
		}
		frames++
		if seen := o.Line("socket", []byte(strings.TrimSuffix(frame, "}")), epochMillis+team.Time(i)); len(
			seen.Records)+len(seen.Warnings) > 0 {
			t.Errorf("frame %d: %+v", frames, seen)
		}
	}
	if c := o.Counts(); frames < 10 || c.Garbage+c.Truncated+c.Orphaned > 0 || o.State() != nil {
		t.Errorf("%d frames, %+v", frames, c)
	}
}

// TestHugeLineIsCut checks that an endless line is cut and counts as huge.
func TestHugeLineIsCut(t *testing.T) {
	s, o := protocol.Splitter{Max: 1 << 16}, New(Options{MaxLine: 1 << 16})
	var lines []int
	each := func(line []byte) {
		lines = append(lines, len(line))
		o.Line("lead", line, 1)
	}
	s.Write([]byte(`{"type":"user","text":"`), each)
	for range 1000 {
		s.Write(bytes.Repeat([]byte("x"), 1<<12), each)
	}
	s.Write([]byte("\"}\n{\"type\":\"keep_alive\"}\nlast"), each)
	s.End(each)
	if c := o.Counts(); fmt.Sprint(lines) != fmt.Sprint([]int{1 << 16, 21, 4}) || c.Huge != 1 || c.Garbage != 1 {
		t.Errorf("%v %+v", lines, c)
	}
}
