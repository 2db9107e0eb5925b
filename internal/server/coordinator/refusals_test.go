package coordinator_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"

	"cadre/internal/server/coordinator"
)

// TestCodes: each refusal has the code of the protocol.
func TestCodes(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	c := l.dial()
	id := c.create("work")
	spawn := func(name string) fields {
		return fields{"teamId": id, "name": name, "role": "r", "prompt": "p", "agentType": "external"}
	}
	c.must("spawn_teammate", spawn("ann"))
	c.must("spawn_teammate", spawn("bob"))
	c.must("team_create_task", fields{"teamId": id, "createdBy": "lead", "title": "one", "description": ""})
	c.must("team_claim_task", fields{"teamId": id, "taskId": "1", "teammateId": "ann"})
	small := read[coordinator.TeamPayload](t, c.must("create_team", fields{"leadSessionId": "s", "name": "small",
		"maxTeammates": 1})).Team
	if small.MaxTeammates != 1 {
		t.Errorf("created %+v", small)
	}
	in := spawn("ann")
	in["teamId"] = "small"
	c.must("spawn_teammate", in)
	in2 := spawn("bob")
	in2["teamId"] = small.ID
	shell := spawn("sue")
	shell["agentType"] = "shell" // this server has no program that hosts sessions
	odd := spawn("odd")
	odd["agentType"] = "researcher"
	for _, test := range []struct {
		code, kind string
		payload    fields
	}{
		{"TEAM_NOT_FOUND", "team_status", fields{"teamId": "nowhere"}},
		{"TEAM_NOT_FOUND", "team_status", fields{"teamId": "../../etc/passwd"}},
		{"TEAM_NOT_FOUND", "subscribe", fields{"teamId": ""}},
		{"TEAM_NOT_FOUND", "cleanup_team", fields{"teamId": "nowhere"}},
		{"TEAM_ALREADY_EXISTS", "create_team", fields{"leadSessionId": "s-2", "name": "work"}},
		{"ONE_TEAM_PER_SESSION", "create_team", fields{"leadSessionId": "session-work", "name": "other"}},
		{"TEAM_HAS_ACTIVE_MEMBERS", "cleanup_team", fields{"teamId": id}},
		{"MEMBER_NOT_FOUND", "team_send_message", fields{"teamId": id, "fromId": "ann", "toId": "nobody",
			"content": "x"}},
		{"MEMBER_NOT_FOUND", "team_send_message", fields{"teamId": id, "fromId": "nobody", "toId": "ann",
			"content": "x"}},
		{"MEMBER_NOT_FOUND", "shutdown_teammate", fields{"teamId": id, "memberId": "nobody"}},
		{"MEMBER_NOT_FOUND", "team_claim_task", fields{"teamId": id, "taskId": "1", "teammateId": "nobody"}},
		{"MEMBER_NOT_FOUND", "team_create_task", fields{"teamId": id, "createdBy": "lead", "title": "x",
			"description": "", "assigneeId": "nobody"}},
		{"MAX_TEAMMATES_REACHED", "spawn_teammate", in2},
		{"SESSION_SPAWN_FAILED", "spawn_teammate", shell},
		{"CLAIM_CONFLICT", "team_claim_task", fields{"teamId": id, "taskId": "1", "teammateId": "bob"}},
		{"CLAIM_CONFLICT", "team_complete_task", fields{"teamId": id, "taskId": "1", "teammateId": "bob"}},
		{"not_found", "team_claim_task", fields{"teamId": id, "taskId": "9", "teammateId": "bob"}},
		{"not_found", "team_create_task", fields{"teamId": id, "createdBy": "lead", "title": "x", "description": "",
			"dependencies": []string{"9"}}},
		{"taken", "spawn_teammate", spawn("ann")},
		{"invalid", "spawn_teammate", odd},
		{"invalid", "create_team", fields{"leadSessionId": "s-3", "name": "Code Review"}},
		{"usage", "create_team", fields{"leadSessionId": "", "name": "other"}},
		{"usage", "create_team", fields{"leadSessionId": "s-3", "name": "other", "maxTeammates": 0}},
		{"usage", "create_team", fields{"leadSessionId": "s-3", "name": "other", "metadata": fields{"websocket": 1}}},
		{"usage", "team_update_task", fields{"teamId": id, "taskId": "1", "status": "blocked"}},
	} {
		c.refused(test.code, test.kind, test.payload)
	}
	c.must("team_send_message", fields{"teamId": id, "fromId": "@user", "toId": "lead", "content": "from the user"})
}

// TestEnded: a team that has ended is not active.
func TestEnded(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	c := l.dial()
	id := c.working("work")
	for _, status := range []string{"wind-down", "abort"} {
		if err := l.post("/v1/teams/"+id+"/"+status, "{}"); err != nil {
			t.Fatal(err)
		}
		f := c.must("team_status", fields{"teamId": id})
		if is := read[coordinator.TeamPayload](t, f).Team; is.Status != "shutting-down" {
			t.Errorf("after %s the team is %s", status, is.Status)
		}
		c.refused("TEAM_NOT_ACTIVE", "team_claim_task", fields{"teamId": id, "taskId": "2", "teammateId": "ann"})
	}
	c.refused("TEAM_NOT_ACTIVE", "team_create_task", fields{"teamId": id, "createdBy": "@user", "title": "x",
		"description": ""})
	c.refused("TEAM_NOT_ACTIVE", "spawn_teammate", fields{"teamId": id, "name": "eve", "role": "r", "prompt": "p",
		"agentType": "external"})
}

// TestClaimedAtOnce: of two clients that claim a task, one gets it.
func TestClaimedAtOnce(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	first := l.dial()
	id := first.working("work")
	second := l.dial()
	for task := 2; task <= 4; task++ {
		answers := make([]frame, 2)
		var both sync.WaitGroup
		for i, c := range []*client{first, second} {
			both.Go(func() {
				answers[i] = c.ask("team_claim_task", fields{"teamId": id, "taskId": fmt.Sprint(task),
					"teammateId": []string{"ann", "bob"}[i]})
			})
		}
		both.Wait()
		if answers[0].Type == "error" {
			answers[0], answers[1] = answers[1], answers[0]
		}
		if answers[0].Type != "reply" || answers[1].failure().Code != "CLAIM_CONFLICT" {
			t.Errorf("the answers are %v", answers)
		}
	}
}

// TestHostileFrames: a frame that is not a request gets an error, and the connection stays.
func TestHostileFrames(t *testing.T) {
	t.Parallel()
	c := newLab(t).dial()
	for name, data := range map[string]string{
		"nothing": "", "no JSON": "{", "a list": "[]", "a number": "7", "null": "null",
		"two values": `{"type":"ping"} {}`, "no type": `{"payload":{}}`, "an unknown type": `{"type":"drop_tables"}`,
		"a type that is a number": `{"type":7}`, "a long type": `{"type":"` + strings.Repeat("x", 1000) + `"}`,
		"an unknown field": `{"type":"ping","extra":1}`, "an id that is an object": `{"type":"ping","id":{"a":1}}`,
		"a long id":                `{"type":"ping","id":"` + strings.Repeat("x", 1000) + `"}`,
		"a long key":               `{"type":"ping","key":"` + strings.Repeat("x", 1000) + `"}`,
		"a payload that is one":    `{"type":"team_status","payload":1}`,
		"a payload that is a list": `{"type":"team_status","payload":[]}`,
		"no payload":               `{"type":"team_status"}`,
		"a missing field":          `{"type":"team_send_message","payload":{"teamId":"x"}}`,
		"a null field":             `{"type":"team_status","payload":{"teamId":null}}`,
		"a field of a type":        `{"type":"team_status","payload":{"teamId":{"$ne":1}}}`,
		"an unknown parameter":     `{"type":"team_status","payload":{"teamId":"x","path":"/etc"}}`,
		"deep JSON": `{"type":"ping","payload":` + strings.Repeat(`{"a":`, 20000) + "1" +
			strings.Repeat("}", 20001), "deep lists": strings.Repeat("[", 1<<20),
		"not UTF-8": "{\"type\":\"\xff\xfe\"}", "control characters": "{\"type\":\"a\x00b\"}",
		"a proto":     `{"__proto__":{"type":"ping"}}`,
		"an enum":     `{"type":"create_team","payload":{"leadSessionId":"s","name":"n","teammateMode":"iterm2"}}`,
		"an overflow": `{"type":"subscribe","payload":{"teamId":"x","after":99999999999999999999}}`,
	} {
		c.write(websocket.MessageText, []byte(data))
		f := c.next()
		if is := f.failure(); f.Type != "error" || is.Code != "usage" || is.Message == "" || len(is.Message) > 600 {
			t.Errorf("%s is answered by %s", name, f)
		}
	}
	c.write(websocket.MessageBinary, []byte(`{"type":"ping"}`))
	if f := c.next(); f.failure().Code != "usage" || !strings.Contains(f.failure().Message, "binary") {
		t.Errorf("a binary frame is answered by %s", f)
	}
	c.write(websocket.MessageText, []byte(`{"type":"ping","payload":{"a":"`+strings.Repeat("x", 9<<20)+`"}}`))
	if f := c.next(); f.failure().Code != "too_large" {
		t.Errorf("a huge frame is answered by %s", f)
	}
	c.write(websocket.MessageText, []byte(`{"type":"ping"}`))
	if f := c.next(); f.Type != "pong" {
		t.Errorf("afterwards a ping is answered by %s", f)
	}
	c.asked["7"] = "ping"
	c.write(websocket.MessageText, []byte(`{"type":"ping","id":7}`))
	if f := c.next(); f.Type != "reply" || f.ID != 7.0 {
		t.Errorf("a ping with a number is answered by %s", f)
	}
}
