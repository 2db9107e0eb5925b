package observe

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"cadre/internal/observe/present"
	"cadre/internal/team"
)

type obj = map[string]any

// script is a session that is played line by line.
type script struct {
	*testing.T
	*Observer
	source, session string
	now             team.Time
	n               int
	message         int // number of the model's message
	all             []present.Notice
	last            Seen
	records         []*team.Record // all records since they were last taken
}

func play(t *testing.T) *script {
	return &script{T: t, Observer: New(Options{}), source: "lead", session: "11112222-3333", now: epochMillis}
}

func (s *script) line(v obj) Seen {
	s.Helper()
	line, err := json.Marshal(v)
	if err != nil {
		s.Fatal(err)
	}
	s.now += 10
	s.last = s.Line(s.source, line, s.now)
	s.all = append(s.all, s.last.Notices...)
	s.records = append(s.records, s.last.Records...)
	return s.last
}

// resume saves and restores the observer.
func (s *script) resume() {
	s.Helper()
	saved, err := s.Save()
	if err != nil {
		s.Fatal(err)
	}
	if s.Observer, err = Restore(Options{}, saved, nil); err != nil {
		s.Fatal(err)
	}
}

// use plays a line with one tool use, which begins a new message of the model.
func (s *script) use(id, tool string, input obj) Seen {
	s.Helper()
	s.message++
	return s.useIn(fmt.Sprint("msg_", s.message), id, tool, input)
}

func (s *script) useIn(message, id, tool string, input obj) Seen {
	s.Helper()
	return s.line(obj{"type": "assistant", "session_id": s.session, "uuid": "use-" + id + message,
		"parent_tool_use_id": nil,
		"message": obj{"id": message, "role": "assistant",
			"content": []any{obj{"type": "tool_use", "id": id, "name": tool, "input": input}}}})
}

// answer plays a line with the result of a tool use: the structured one, unless it is nil, and the
// text.
func (s *script) answer(id string, structured any, text string) Seen {
	s.Helper()
	v := obj{"type": "user", "session_id": s.session, "uuid": "answer-" + id, "parent_tool_use_id": nil,
		"message": obj{"role": "user", "content": []any{obj{"type": "tool_result", "tool_use_id": id,
			"content": text}}}}
	if structured != nil {
		v["tool_use_result"] = structured
	}
	return s.line(v)
}

func (s *script) fails(id, text string) Seen {
	s.Helper()
	return s.line(obj{"type": "user", "session_id": s.session, "parent_tool_use_id": nil,
		"tool_use_result": "Error: " + text,
		"message": obj{"role": "user", "content": []any{obj{"type": "tool_result", "tool_use_id": id, "is_error": true,
			"content": text}}}})
}

// do plays a successful call.
func (s *script) do(tool string, input obj, structured any) Seen {
	s.Helper()
	s.n++
	id := fmt.Sprint("toolu_", s.n)
	s.use(id, tool, input)
	return s.answer(id, structured, "")
}

func (s *script) createTeam(name string) {
	s.Helper()
	s.do("TeamCreate", obj{"team_name": name}, obj{"team_name": name, "team_file_path": "/x",
		"lead_agent_id": "team-lead@" + name})
}

func (s *script) spawn(name string) {
	s.Helper()
	s.do("Task", obj{"name": name, "team_name": "fx", "description": "d", "prompt": "you are " + name,
		"subagent_type": "worker"},
		obj{"status": "teammate_spawned", "name": name, "agent_id": name + "@fx", "agent_type": "worker", "model": "m",
			"color": "blue", "team_name": "fx"})
}

func (s *script) task(id, subject string) {
	s.Helper()
	s.do("TaskCreate", obj{"subject": subject, "description": "about " + subject},
		obj{"task": obj{"id": id, "subject": subject}})
}

func (s *script) update(id string, change obj) Seen {
	s.Helper()
	change["taskId"] = id
	return s.do("TaskUpdate", change, obj{"success": true, "taskId": id})
}

func (s *script) send(input, result obj) Seen {
	s.Helper()
	if result == nil {
		result = obj{}
	}
	result["success"] = true
	return s.do("SendMessage", input, result)
}

// names returns the types of all notices so far, in order.
func (s *script) names() string {
	var names []string
	for _, n := range s.all {
		names = append(names, strings.TrimPrefix(n.Type, "team:"))
	}
	return strings.Join(names, " ")
}

// state returns the team as one line of text: members with their status, tasks with status, owner
// and blockers.
func (s *script) state() string {
	st := s.State()
	if st == nil {
		return "null"
	}
	parts := []string{st.Name + "/" + st.Role}
	for _, m := range st.Members {
		parts = append(parts, m.Name+":"+m.Status)
	}
	for _, t := range st.Tasks {
		text := "#" + t.ID + ":" + t.Status
		if t.Owner != "" {
			text += "(" + t.Owner + ")"
		}
		if len(t.BlockedBy) > 0 {
			text += "<" + strings.Join(t.BlockedBy, ",")
		}
		if len(t.Blocks) > 0 {
			text += ">" + strings.Join(t.Blocks, ",")
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " ")
}

func (s *script) want(state string) {
	s.Helper()
	if got := s.state(); got != state {
		s.Errorf("the team is\n%s\nnot\n%s", got, state)
	}
}

func (s *script) wantNames(names string) {
	s.Helper()
	if got := s.names(); got != names {
		s.Errorf("the events were\n%s\nnot\n%s", got, names)
	}
}
