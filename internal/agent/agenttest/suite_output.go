package agenttest

import (
	"strings"
	"testing"

	"cadre/internal/agent"
)

// testWhileAToolRuns checks a message that arrives while a slow tool runs. The very next request
// contains it once, and the tool continues. Exactly one request has it as its newest message,
// however many requests follow in the turn.
func testWhileAToolRuns(t *testing.T, d Driver, r *Run, s *Server) {
	s.Answer(byPrompt(map[string][]Turn{
		"slow": {d.Shell("touch began; until test -e go; do sleep 0.05; done; echo finished"), d.Shell("echo second"),
			d.Shell("echo third"), Say("Done.")}}))
	before := len(s.Requests())
	r.Tell("slow", "do slow")
	Next[agent.ToolStarted](r)
	r.WaitFile("began")
	r.Prompt(Mail("mail", 7, "the port is 4711"))
	r.quiet(agent.Received{ID: "mail"})
	r.Touch("go")
	done := Next[agent.ToolFinished](r)
	if done.Failed || !strings.Contains(done.Output, "finished") && !d.Silent {
		t.Errorf("got tool result %+v", done)
	}
	if d.MidTurn {
		req := s.WaitFor(t, "the result of the tool", func(r *Request) bool {
			return strings.Contains(r.Results(),
				"finished")
		})
		if req.Count("the port is 4711") != 1 {
			t.Errorf("the next request has the message %d times:\n%s", req.Count("the port is 4711"), s.Story())
		}
	}
	s.WaitFor(t, "the message", func(r *Request) bool { return r.Has("the port is 4711") })
	r.Got("mail")
	Next[agent.TurnEnded](r)
	newest := 0
	for _, req := range s.Requests()[before:] {
		if n := req.Count("the port is 4711"); n > 1 {
			t.Errorf("request %d has the message %d times", req.N, n)
		}
		if strings.Contains(req.SinceAnswer(), "the port is 4711") {
			newest++
		}
	}
	if newest != 1 {
		t.Errorf("the message is the newest one in %d requests:\n%s", newest, s.Story())
	}
}

// testOutput checks that the output of a command comes while the command runs, if the program shows
// it. A program need not show what a command prints at its start.
func testOutput(t *testing.T, d Driver, r *Run, s *Server) {
	if !d.Streams {
		return
	}
	s.Answer(byPrompt(map[string][]Turn{
		"print": {d.Shell("until test -e printed; do echo it prints; sleep 0.1; done; echo finished"), Say("Done.")}}))
	r.Tell("print", "do print")
	use := Next[agent.ToolStarted](r)
	if got := Next[agent.ToolOutput](r); got.ID != use.ID || !strings.Contains(got.Text, "it prints") {
		t.Errorf("while the command runs, it has shown %+v", got)
	}
	r.Touch("printed")
	if done := Next[agent.ToolFinished](r); done.Failed || done.ID != use.ID ||
		!strings.Contains(done.Output, "finished") {
		t.Errorf("got tool result %+v", done)
	}
	Next[agent.TurnEnded](r)
}
