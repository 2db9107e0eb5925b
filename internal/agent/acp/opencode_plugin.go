package acp

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"cadre/internal/agent"
)

// openCodePlugin reports errors and retries. The protocol has neither: opencode sends nothing for a
// minute while it tries again, and then answers without the status.
//
//go:embed opencode.js
var openCodePlugin []byte

// writeOpenCodePlugin writes the plugin into dir. It returns the name under which the configuration
// loads it.
func writeOpenCodePlugin(dir string) (string, error) {
	path, err := filepath.Abs(filepath.Join(dir, "cadre-trouble.js"))
	if err != nil {
		return "", err
	}
	return "file://" + path, os.WriteFile(path, openCodePlugin, 0o600)
}

// trouble is an agent's report of an error outside the protocol.
type trouble struct {
	Session sdk.SessionId `json:"session"`
	Retry   int           `json:"retry"` // number of the retry of a call of the model; 0 if the turn ended
	Status  int           `json:"status"`
	Text    string        `json:"text"`
}

func (t trouble) problem() agent.Problem {
	p := agent.Problem{Kind: agent.KindOf(t.Status, t.Text), Text: t.Text}
	switch {
	case t.Retry > 0:
		p.Text = fmt.Sprintf("%s; it tries again (%d)", agent.Tail(t.Text), t.Retry)
	case t.Status != 0:
		p.Text = fmt.Sprintf("API error %d: %s", t.Status, agent.Tail(t.Text))
	}
	return p
}

// asideMark begins a line of standard error that has a trouble.
const asideMark = "@cadre-trouble "

// maxAside bounds the length of such a line, in bytes.
const maxAside = 64 << 10

// aside reads the standard error of an agent. It reports troubles, and keeps the rest in case the
// program dies. One goroutine writes to it.
type aside struct {
	keep io.Writer
	tell func(trouble)
	line []byte // that may become a trouble
	part bool   // a part of the line is kept already, so it is not a trouble
}

func (a *aside) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		end := bytes.IndexByte(rest, '\n') + 1
		whole := end > 0
		if !whole {
			end = len(rest)
		}
		a.line, rest = append(a.line, rest[:end]...), rest[end:]
		a.take(whole)
	}
	return len(p), nil
}

// take handles the line so far. It keeps a line that cannot become a trouble.
func (a *aside) take(whole bool) {
	mark := min(len(a.line), len(asideMark))
	may := !a.part && string(a.line[:mark]) == asideMark[:mark] && len(a.line) <= maxAside
	switch {
	case may && !whole:
		return
	case may && mark == len(asideMark):
		var t trouble
		if json.Unmarshal(a.line[mark:], &t) == nil {
			a.tell(t)
		}
	default:
		a.keep.Write(a.line)
	}
	a.line, a.part = nil, !whole
}

// troubled handles a trouble of this session. Troubles of other sessions, such as those of
// subagents, are part of their answers.
func (s *session) troubled(t trouble) {
	s.mu.Lock()
	if s.queue.running == 0 || t.Session != s.id {
		s.mu.Unlock()
		return
	}
	if t.Retry == 0 {
		select {
		case s.reasons <- t:
		default: // the first one is the cause
		}
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	s.say(agent.Retrying{Problem: t.problem()})
}

// reasonTimeout bounds the wait for the agent's report of an error, after it has answered with the
// error.
const reasonTimeout = time.Second

// reason returns why a prompt was answered with an error: the words of the answer, with the agent's
// report outside the protocol.
func (s *session) reason(err error) *agent.Problem {
	p := problemOf(err)
	s.mu.Lock()
	cancelled := s.queue.cancelled
	s.mu.Unlock()
	if !s.agent.facts.aside || p.Kind != agent.ProblemModel || cancelled {
		return p
	}
	select {
	case t := <-s.reasons:
		told := t.problem()
		return &told
	case <-time.After(reasonTimeout):
	case <-s.ctx.Done():
	}
	return p
}
