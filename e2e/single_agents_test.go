package e2e

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"cadre/internal/agent/agenttest"
)

// spoken is how a client makes an agent without teams work in a session of its own. In the texts,
// $DIR is the project's folder and $SESSION the session's id.
type spoken struct {
	agent string
	args  []string
	// begin lists the requests from the start of the program to the start of its session. Each is
	// sent when the one before was answered.
	begin []string
	named *regexp.Regexp // matches the session id in the output
	ask   string         // the request for work
	told  int            // for how many of the two model requests it reports the cost
}

var acpSpoken = spoken{
	begin: []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}`,
		`{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"$DIR","mcpServers":[]}}`,
	},
	named: regexp.MustCompile(`"id":2,"result":\{.*?"sessionId":"([^"]+)"`),
	ask:   `{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"$SESSION","prompt":[{"type":"text","text":"what is the sum?"}]}}`,
}

var spokens = []spoken{
	{"codex", []string{"app-server"}, []string{
		`{"id":1,"method":"initialize","params":{"clientInfo":{"name":"somebody","title":"Somebody","version":"1"}}}`,
		`{"id":2,"method":"thread/start","params":{"cwd":"$DIR","approvalPolicy":"never","sandbox":"danger-full-access"}}`,
	}, regexp.MustCompile(`"id":2,"result":\{.*?"thread":\{.*?"id":"([^"]+)"`),
		`{"id":3,"method":"turn/start","params":{"threadId":"$SESSION","input":[{"type":"text","text":"what is the sum?"}]}}`, 2},
	{"gemini", []string{"--acp", "--yolo"}, acpSpoken.begin, acpSpoken.named, acpSpoken.ask, 2},
	{"opencode", []string{"acp"}, acpSpoken.begin, acpSpoken.named, acpSpoken.ask, 1}, // the last one
}

// TestObservedSession checks a session of a real agent without teams that another client drives. It
// is observed live: the observers show the agent's actions before the model may finish. It is kept
// as a team of one, and the agent's next session belongs to the same member.
func TestObservedSession(t *testing.T) {
	t.Parallel()
	for _, a := range spokens {
		t.Run(a.agent, func(t *testing.T) {
			sampled(t, a.agent)
			s := newStudio(t, nil, a.agent)
			first, second := s.observeSession(a, "All is well."), s.observeSession(a, "It is still so.")
			if first == second {
				t.Errorf("want two sessions, got %s", first)
			}
			kept := read[struct {
				Observed string
				Members  []struct {
					Name, Status, Summary, Session string
					Incarnation                    int
					Usage                          struct{ InputTokens, OutputTokens int }
				}
			}](s.world, "status", "watched")
			if m := kept.Members[len(kept.Members)-1]; kept.Observed != a.agent || len(kept.Members) != 2 ||
				m.Name != a.agent || m.Status != "idle" || m.Summary != "It is still so." ||
				m.Session != second || m.Incarnation != 1 || m.Usage.InputTokens != 2*a.told*100 ||
				m.Usage.OutputTokens != 2*a.told*10 {
				t.Errorf("kept %+v, but the second session was %s", kept, second)
			}
			if out := s.must("ls"); !strings.Contains(out, "watched") || !strings.Contains(out, "observed") {
				t.Errorf("the teams are\n%s", out)
			}
			if r := s.cadre("task", "add", "watched", "one more"); r.code != 2 {
				t.Errorf("the team accepts a task: %+v", r)
			}
		})
	}
}

// observeSession makes the agent use its shell, and end with these words. It returns the id of its
// session.
func (s *studio) observeSession(a spoken, words string) (session string) {
	s.t.Helper()
	watch := func(args ...string) *watcher { return s.watch(append([]string{"-", "--agent", a.agent}, args...)...) }
	people, programs, state := watch("--as-team", "watched"), watch("--json", "--pass"), watch("--state")
	asked := len(s.model.Requests())
	s.model.Answer(func(r *agenttest.Request) agenttest.Turn {
		if !strings.Contains(r.Results(), "the sum is 42") {
			return shells[a.agent]("printf 'the %s is 42' sum")
		}
		return people.after(fmt.Sprintf("%s is active: Bash: ", a.agent), agenttest.Say("%s", words))
	})
	program := s.program(a.agent, a.args...)
	in, err := program.StdinPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	client := s.show(program, people, programs, state)
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	for n, line := range a.begin {
		fmt.Fprintln(in, strings.ReplaceAll(line, "$DIR", s.dir))
		if !client.said.has(ctx, fmt.Sprintf(`"id":%d,"result"`, n+1)) {
			s.t.Fatalf("%s does not answer %s:\n%s", a.agent, line, client.said)
		}
	}
	named := a.named.FindStringSubmatch(client.said.String())
	if named == nil {
		s.t.Fatalf("no session starts:\n%s", client.said)
	}
	fmt.Fprintln(in, strings.ReplaceAll(a.ask, "$SESSION", named[1]))
	if !people.out.has(ctx, fmt.Sprintf("%s is idle: %s", a.agent, words)) {
		s.t.Fatalf("the session does not end:\n%s", client.said)
	}
	in.Close()
	client.Process.Kill() // not all of them end when their client leaves
	client.end()
	for _, w := range []*watcher{people, programs, state} {
		w.end()
	}
	if n := len(s.model.Requests()) - asked; n != 2 {
		s.t.Errorf("the model got %d requests, want 2", n)
	}
	if notices := programs.passed(client.said); strings.Join(notices, " ") != "team:created team:member:joined "+
		"team:member:idle" {
		s.t.Errorf("the notices are %v", notices)
	}
	seen := observedTeam[struct {
		Name, Role string
		Members    []struct{ Name, AgentID, Status string }
		Tasks      []any
	}](s.t, state.out.String())
	if seen.Name != a.agent || seen.Role != "teammate" || len(seen.Members) != 1 ||
		seen.Members[0].AgentID != named[1] || seen.Members[0].Status != "idle" {
		s.t.Errorf("in the end the member is %+v", seen)
	}
	if log := s.must("log", "watched"); !strings.HasSuffix(log, people.out.String()) {
		s.t.Errorf("the log is\n%s\nbut the output was\n%s", log, people.out)
	}
	return named[1]
}
