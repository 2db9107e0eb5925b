package observe

import (
	"strings"
	"testing"

	"cadre/internal/observe/present"
)

// kinds returns the types of the supplements, in order.
func kinds(seen Seen) string {
	var all []string
	for _, s := range seen.Supplements {
		all = append(all, string(s.Type)+" "+s.Metadata.ToolName)
	}
	return strings.Join(all, ", ")
}

// TestBackgroundAgents checks that background agents, and messages to them, do not belong to a
// team, in a session with and without a team.
func TestBackgroundAgents(t *testing.T) {
	s := play(t)
	for _, team := range []bool{false, true} {
		if team {
			s.createTeam("fx")
		}
		name := map[bool]string{false: "looker", true: "other"}[team]
		agent := obj{"name": name, "prompt": "look", "description": "d"}
		if !team {
			if seen := s.use("spawn", "Agent", agent); seen.TeamToolUse || seen.Supplements != nil {
				t.Errorf("before it is known what it is: %+v", seen)
			}
			if seen := s.answer("spawn", obj{"isAsync": true, "status": "async_launched", "agentId": "a1"},
				"Async agent launched successfully."); seen.TeamToolUse || seen.Supplements != nil {
				t.Errorf("%+v", seen)
			}
		} else {
			s.do("Agent", agent, obj{"isAsync": true, "status": "async_launched", "agentId": "a1"})
		}
		s.n++
		if seen := s.use("say"+name, "SendMessage", obj{"to": name, "message": "go on",
			"summary": "s"}); seen.TeamToolUse || seen.Supplements != nil || seen.Warnings != nil {
			t.Errorf("%+v", seen)
		}
		if seen := s.answer("say"+name, obj{"success": true, "message": "Agent resumed"}, ""); seen.TeamToolUse ||
			seen.Supplements != nil || seen.Records != nil {
			t.Errorf("%+v", seen)
		}
	}
	if seen := s.use("team", "SendMessage", obj{"to": "alice", "message": "x", "summary": "s"}); kinds(
		seen) != "team_message SendMessage" {
		t.Errorf("%+v", seen)
	}
}

// TestSpawnOfAFirstTeammate checks that the call that spawns a session's first teammate is
// recognised by its result.
func TestSpawnOfAFirstTeammate(t *testing.T) {
	s := play(t)
	s.use("spawn", "Agent", obj{"name": "alice", "prompt": "work", "description": "d"})
	seen := s.answer("spawn", obj{"status": "teammate_spawned", "name": "alice", "agent_id": "alice@session-11112222",
		"agent_type": "worker", "team_name": "session-11112222"}, "")
	if !seen.TeamToolUse || kinds(seen) != "team_state_change Agent, team_state_change Agent" ||
		seen.Supplements[0].Metadata.Input == nil || seen.Supplements[1].Metadata.Result == nil {
		t.Errorf("%s: %+v", kinds(seen), seen)
	}
	s.want("session-11112222/lead alice:active")
}

// TestCallsOfSides checks that the calls of a nameless agent, in a transcript beside its session's,
// do not belong to the team until the agent is known to be a teammate, and never if it is not.
func TestCallsOfSides(t *testing.T) {
	side := func(s *script, agent, uuid, parent, kind string, content []any, more obj) Seen {
		line := obj{"type": kind, "isSidechain": true, "sessionId": s.session, "agentId": agent, "uuid": uuid,
			"parentUuid": parent, "message": obj{"id": uuid, "role": kind, "content": content}}
		for key, v := range more {
			line[key] = v
		}
		return s.line(line)
	}
	play := func() *script {
		s := play(t)
		s.createTeam("fx")
		s.spawn("alice")
		return s
	}
	calls := func(s *script, prompt, sender string) (all []string) {
		add := func(seen Seen) {
			if seen.TeamToolUse != (seen.Supplements != nil) {
				t.Errorf("flag %t beside %s", seen.TeamToolUse, kinds(seen))
			}
			all = append(all, kinds(seen))
		}
		s.source = "side"
		add(side(s, "a1", "u1", "", "user", []any{
			obj{"type": "text", "text": "<teammate-message teammate_id=\"team-lead\">\n" + prompt +
				"\n</teammate-message>"}}, nil))
		add(side(s, "a1", "u2", "u1", "assistant", []any{obj{"type": "tool_use", "id": "s1", "name": "SendMessage",
			"input": obj{"to": "team-lead", "message": "hello", "summary": "s"}}}, nil))
		add(side(s, "a1", "u3", "u2", "user", []any{obj{"type": "tool_result", "tool_use_id": "s1", "content": "ok"}},
			obj{"toolUseResult": obj{"success": true, "routing": obj{"sender": sender, "target": "@team-lead"}}}))
		return all
	}
	for _, c := range []struct{ name, prompt, sender, want string }{
		{"a teammate by its prompt", "you are alice", "alice", "|team_message SendMessage|team_message SendMessage"},
		{"a teammate by its own word", "another prompt", "alice",
			"||team_message SendMessage, team_message SendMessage"},
		{"an agent in the background", "another prompt", "", "||"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := strings.Join(calls(play(), c.prompt, c.sender), "|"); got != c.want {
				t.Errorf("%s, not %s", got, c.want)
			}
		})
	}
}

// TestSessionOfNotices checks that the events name the observed session: the lead's if it is known,
// and otherwise that of the only teammate seen.
func TestSessionOfNotices(t *testing.T) {
	s := play(t)
	s.Introduce("alice", "fx", "alice")
	s.source, s.session = "alice", "alices-session"
	s.send(obj{"type": "message", "recipient": "team-lead", "content": "x"},
		obj{"routing": obj{"sender": "alice", "target": "@team-lead"}})
	if len(s.all) == 0 {
		t.Fatal("nothing was noticed")
	}
	for _, n := range s.all {
		if n.SessionID != "alices-session" {
			t.Errorf("%s in session %q", n.Type, n.SessionID)
		}
	}
	s.resume()
	s.all = nil
	s.do("ExitPlanMode", obj{"plan": "1. Build it."}, obj{"plan": "1. Build it.", "isAgent": true,
		"awaitingLeaderApproval": true, "requestId": "plan_approval-1@alice@fx"})
	if len(s.all) != 1 || s.all[0].SessionID != "alices-session" || s.all[0].Plan == nil ||
		*s.all[0].Plan != "1. Build it." {
		t.Errorf("%+v", s.all)
	}
	s.source, s.session, s.all = "lead", "leads-session", nil
	s.createTeam("fx")
	s.task("1", "A")
	if last := s.all[len(s.all)-1]; last.Type != present.TaskCreated || last.SessionID != "leads-session" {
		t.Errorf("%+v", last)
	}
}
