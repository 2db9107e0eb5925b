package observe

import (
	"slices"
	"strings"
	"testing"

	"cadre/internal/observe/protocol"
)

// TestTeammateAlone checks that the lines of a single teammate, which do not name its team, show
// its role and its view of the team.
func TestTeammateAlone(t *testing.T) {
	for name, want := range map[string]string{
		"2.1.47 teammate alone": "team/teammate alice:shutdown #1:completed(alice)>2 #2:pending<1>4 #3:pending>4 " +
			"#4:pending<2,3",
		"2.1.329 teammate alone": "session-b1a8c647/teammate bob:idle #1:completed(alice)>2 #2:pending<1>4 " +
			"#3:pending>4 #4:pending<2,3",
	} {
		t.Run(name, func(t *testing.T) {
			s := play(t)
			for _, in := range recordings[name] {
				for _, line := range recorded(t, in.file) {
					s.now++
					s.Line(in.source, line, s.now)
				}
			}
			s.want(want)
		})
	}
}

// TestStreamOfATeammate checks that a stream with only calls and results is recognised as a
// teammate's by its signed messages, and that its earlier actions count. The name of the team is
// learnt later, possibly from its lead.
func TestStreamOfATeammate(t *testing.T) {
	mate := func(t *testing.T) *script {
		s := play(t)
		s.source, s.session = "mate", "alices-session"
		s.do("TaskList", obj{}, obj{"tasks": []any{obj{"id": "1", "subject": "A", "status": "pending",
			"blockedBy": []any{}}}})
		s.want("null")
		return s
	}
	says := func(s *script) {
		s.send(obj{"type": "message", "recipient": "team-lead", "content": "x"},
			obj{"routing": obj{"sender": "alice", "target": "@team-lead"}})
	}
	t.Run("by a message", func(t *testing.T) {
		s := mate(t)
		says(s)
		s.want("team/teammate alice:active #1:pending")
		s.update("1", obj{"status": "in_progress", "owner": "alice"})
		s.want("team/teammate alice:active #1:in_progress(alice)")
		s.wantNames("created member:joined message:received task:created task:claimed")
		s.resume()
		s.source, s.session = "lead", "leads-session"
		s.createTeam("fx")
		s.want("fx/lead alice:active #1:in_progress(alice)")
	})
	t.Run("by a plan", func(t *testing.T) {
		s := mate(t)
		s.do("ExitPlanMode", obj{"plan": "p"}, obj{"plan": "p", "isAgent": true, "awaitingLeaderApproval": true,
			"requestId": "plan_approval-1@alice@fx"})
		s.want("fx/teammate alice:active #1:pending")
	})
	t.Run("a lead's message does not count", func(t *testing.T) {
		s := play(t)
		s.send(obj{"type": "message", "recipient": "alice", "content": "x"},
			obj{"routing": obj{"sender": "team-lead", "target": "@alice"}})
		s.want("null")
		s.createTeam("fx")
		s.send(obj{"type": "message", "recipient": "alice", "content": "x"},
			obj{"routing": obj{"sender": "alice", "target": "@alice"}})
		s.want("fx/lead")
	})
}

// TestTeammatesOfAnotherLead checks that teammates who do not name their team belong to the team of
// their lead's session. The team of another session is a different one, in whatever order they are
// read.
func TestTeammatesOfAnotherLead(t *testing.T) {
	side := func(s *script) {
		s.source, s.session = "side", "first-session"
		line := func(uuid, parent, kind string, block, result obj) {
			s.line(obj{"type": kind, "isSidechain": true, "sessionId": s.session, "agentId": "a1", "uuid": uuid,
				"parentUuid": parent, "message": obj{"id": uuid, "content": []any{block}},
				"toolUseResult": result})
		}
		line("u1", "", "assistant", obj{"type": "tool_use", "id": "s1", "name": "SendMessage",
			"input": obj{"type": "message", "recipient": "team-lead", "content": "x"}}, nil)
		line("u2", "u1", "user", obj{"type": "tool_result", "tool_use_id": "s1"},
			obj{"success": true, "routing": obj{"sender": "alice", "target": "@team-lead"}})
	}
	lead := func(s *script, session, name string) {
		s.source, s.session = session, session
		s.createTeam(name)
	}
	s := play(t)
	side(s)
	s.want("team/teammate alice:active")
	lead(s, "other-session", "gx") // after it
	s.want("gx/lead")
	s = play(t)
	side(s)
	s.now -= 100
	lead(s, "other-session", "gx") // before it
	s.want("team/teammate alice:active")
	lead(s, "first-session", "fx")
	s.want("fx/lead alice:active")
}

// TestEnvironmentOfATeammate checks that a session with a teammate's environment is a teammate's,
// and that its first line shows that.
func TestEnvironmentOfATeammate(t *testing.T) {
	for _, c := range []struct{ environ, want string }{
		{"", ""}, {"CLAUDE_CODE_AGENT_NAME=alice", ""}, {"CLAUDE_CODE_TEAM_NAME=fx", "fx/teammate"},
		{"CLAUDE_CODE_TEAM_NAME=fx CLAUDE_CODE_AGENT_NAME=alice", "fx/alice"},
		{"CLAUDE_CODE_AGENT_ID=alice@fx", "fx/alice"},
		{"CLAUDE_CODE_TEAM_NAME=fx CLAUDE_CODE_AGENT_NAME=team-lead", ""},
	} {
		ofTeam, member := protocol.TeammateOf(func(name string) string {
			for _, one := range strings.Fields(c.environ) {
				if value, ok := strings.CutPrefix(one, name+"="); ok {
					return value
				}
			}
			return ""
		})
		got := ofTeam + "/" + member
		if got == "/" {
			got = ""
		}
		if got != c.want {
			t.Errorf("%q is that of %q, not %q", c.environ, got, c.want)
		}
	}
	s := play(t)
	s.Introduce(s.source, "fx", "alice")
	s.line(obj{"type": "system", "subtype": "init", "session_id": s.session, "agents": []any{"Explore"}})
	s.want("fx/teammate alice:active")
	if agents := s.Agents(); !slices.Equal(agents, []string{"alice"}) {
		t.Error(agents)
	}
}
