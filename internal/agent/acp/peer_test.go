package acp_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cadre/internal/agent"
	"cadre/internal/agent/acp"
	"cadre/internal/agent/agenttest"
	"cadre/internal/testkit/soak"
)

// peer is an agent whose messages the test writes. Its process is the test binary, which forwards
// the messages of both sides.
type peer struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Scanner
	last int // of its own requests
}

// message is a JSON-RPC message of any kind.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

const (
	// lastWords is the standard error of the process when the test has no more messages.
	lastWords = "the disk is full, and so am I"
	// peerPatience bounds every wait for the driver.
	peerPatience = 20 * time.Second
)

// runPeer runs in the process of a peer.
func runPeer(socket string) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		os.Exit(1)
	}
	go func() {
		io.Copy(conn, os.Stdin)
		os.Exit(0) // as agents do whose input ends
	}()
	io.Copy(os.Stdout, conn)
	fmt.Fprintln(os.Stderr, lastWords)
	os.Exit(7)
}

// listenPeer returns a bench whose agent is a peer, and a function that waits for its process.
func listenPeer(t *testing.T) (*agenttest.Bench, func() *peer) {
	t.Helper()
	dir, err := os.MkdirTemp("", "cadre-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	b := agenttest.NewBench(t, acp.Command(fmt.Sprintf("'%s' peer %s", os.Args[0], socket)),
		agenttest.World{Home: dir, Dir: dir})
	b.Spec.Instructions = ""
	return b, func() *peer {
		listener.(*net.UnixListener).SetDeadline(time.Now().Add(peerPatience))
		conn, err := listener.Accept()
		if err != nil {
			panic(err) // nothing of the test continues without it
		}
		t.Cleanup(func() { conn.Close() })
		in := bufio.NewScanner(conn)
		in.Buffer(nil, 64<<20)
		return &peer{t: t, conn: conn, in: in}
	}
}

// startPeer starts a session with a peer.
func startPeer(t *testing.T) (*agenttest.Run, *peer) {
	t.Helper()
	return startPeerWith(t, func(*agent.Spec) {})
}

func startPeerWith(t *testing.T, change func(*agent.Spec)) (*agenttest.Run, *peer) {
	t.Helper()
	b, accept := listenPeer(t)
	change(&b.Spec)
	greeted := make(chan *peer, 1)
	go func() { greeted <- accept().greet() }()
	run := b.Start()
	return run, <-greeted
}

// greet answers the driver's requests until the session exists.
func (p *peer) greet() *peer {
	p.answer(p.expect("initialize"), `{"protocolVersion":1,"agentCapabilities":{}}`)
	p.answer(p.expect("session/new"), `{"sessionId":"s1"}`)
	return p
}

// next returns the next message of the driver.
func (p *peer) next() (m message) {
	p.t.Helper()
	p.conn.SetReadDeadline(time.Now().Add(peerPatience))
	if !p.in.Scan() {
		p.t.Errorf("the driver says nothing more: %v", p.in.Err())
		return m
	}
	if err := json.Unmarshal(p.in.Bytes(), &m); err != nil {
		p.t.Errorf("the driver says %q: %v", p.in.Text(), err)
	}
	return m
}

// expect returns the next message of the driver, which must have that method; "" stands for an
// answer.
func (p *peer) expect(method string) message {
	p.t.Helper()
	m := p.next()
	if m.Method != method {
		p.t.Errorf("the driver says %s %s, not %s", m.Method, m.Params, method)
	}
	return m
}

// prompt expects a prompt with that text.
func (p *peer) prompt(text string) message {
	p.t.Helper()
	m := p.expect("session/prompt")
	var params struct {
		Prompt []struct{ Text string }
	}
	if json.Unmarshal(m.Params, &params); len(params.Prompt) != 1 || params.Prompt[0].Text != text {
		p.t.Errorf("the prompt is %q, not %q", params.Prompt, text)
	}
	return m
}

// raw writes a line.
func (p *peer) raw(line string) {
	p.t.Helper()
	p.conn.SetWriteDeadline(time.Now().Add(peerPatience))
	if _, err := io.WriteString(p.conn, line+"\n"); err != nil {
		p.t.Errorf("the driver does not listen: %v", err)
	}
}

func (p *peer) answer(m message, result string) {
	p.t.Helper()
	p.raw(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result))
}

func (p *peer) refuse(m message, code int, words string) {
	p.t.Helper()
	p.raw(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, m.ID, code, words))
}

// update sends an update of the session.
func (p *peer) update(update string) {
	p.t.Helper()
	p.raw(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":%s}}`, update))
}

func (p *peer) say(text string) {
	p.t.Helper()
	p.update(fmt.Sprintf(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%q}}`, text))
}

// ask sends a request to the driver.
func (p *peer) ask(method, params string) {
	p.t.Helper()
	p.last++
	p.raw(fmt.Sprintf(`{"jsonrpc":"2.0","id":"p%d","method":%q,"params":%s}`, p.last, method, params))
}

// die ends the process after its last words.
func (p *peer) die() { p.conn.Close() }

// story returns the updates of the session as text.
func story(t *testing.T, run *agenttest.Run, want ...string) {
	t.Helper()
	var got []string
	for _, u := range agenttest.Said[agent.Update](run) {
		if _, ok := u.(agent.Started); !ok {
			got = append(got, agenttest.Words(u))
		}
	}
	if a, b := strings.Join(got, "\n  "), strings.Join(want, "\n  "); a != b {
		t.Errorf("the session said\n  %s\nand not\n  %s", a, b)
	}
}

// TestPromptWaitsForTheEndOfATurn checks that prompts for a working agent wait for the end of its
// turn, and are then sent together.
func TestPromptWaitsForTheEndOfATurn(t *testing.T) {
	t.Parallel()
	run, p := startPeer(t)
	run.Tell("one", "do one")
	first := p.prompt("do one")
	p.say("I am ")
	run.Tell("two", "do two")
	run.Tell("three", "do three")
	p.say("at it.")
	p.answer(first, `{"stopReason":"end_turn"}`)
	second := p.prompt("do two\n\ndo three")
	p.say("All done.")
	p.answer(second, `{"stopReason":"end_turn","usage":{"inputTokens":7,"outputTokens":3,"totalTokens":10}}`)
	agenttest.Next[agent.TurnEnded](run)
	agenttest.Next[agent.TurnEnded](run)
	story(t, run, `TurnStarted`, `Received ID="one"`, `TextPart Text="I am "`, `TextPart Text="at it."`,
		`Text Text="I am at it."`,
		`TurnEnded Text="I am at it."`, `TurnStarted`, `Received ID="two"`, `Received ID="three"`,
		`TextPart Text="All done."`, `Used Usage={InputTokens=7 OutputTokens=3}`, `Text Text="All done."`, `TurnEnded Text="All done."`)
}

// TestGarbage checks that lines which are not messages, and unknown messages, are ignored wherever
// they occur.
func TestGarbage(t *testing.T) {
	t.Parallel()
	run, p := startPeer(t)
	noise := func() {
		for _, line := range []string{"", "garbage", "{", "[1,2]", "null", `"text"`, "\x00\xff",
			strings.Repeat("x", 11<<20), `{"jsonrpc":"2.0","method":5}`, `{"jsonrpc":"2.0"}`,
			`{"jsonrpc":"2.0","id":4711,"result":{}}`,
			`{"jsonrpc":"2.0","id":[],"error":{"code":1,"message":"x"}}`,
			`{"jsonrpc":"2.0","method":"no/such/thing","params":[1]}`, `{"jsonrpc":"2.0","method":"session/update"}`,
			`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"later"}}}`,
			`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":7}}}`,
			`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"tool_call","toolCallId":{}}}}`} {
			p.raw(line)
		}
	}
	noise()
	run.Tell("p", "do one")
	prompt := p.prompt("do one")
	noise()
	p.ask("no/such/thing", `{}`)
	if m := p.expect(""); m.Error.Code != -32601 {
		t.Errorf("an unknown request is answered with %s %+v", m.Result, m.Error)
	}
	p.say("Done.")
	noise()
	p.answer(prompt, `{"stopReason":"end_turn"}`)
	agenttest.Next[agent.TurnEnded](run)
	story(t, run, `TurnStarted`, `Received ID="p"`, `TextPart Text="Done."`, `Text Text="Done."`,
		`TurnEnded Text="Done."`)
}

// TestDiesInATurn checks that an agent that dies in the middle of a turn is reported once, with its
// last words.
func TestDiesInATurn(t *testing.T) {
	t.Parallel()
	run, p := startPeer(t)
	run.Tell("p", "do one")
	p.prompt("do one")
	p.say("I am ")
	run.Got("p")
	p.die()
	end := agenttest.Next[agent.Ended](run)
	if end.Err == nil || !strings.Contains(end.Err.Error(), "exit status 7") ||
		!strings.Contains(end.Err.Error(), lastWords) {
		t.Errorf("it ended with %v", end.Err)
	}
	if ends := agenttest.Said[agent.TurnEnded](run); len(ends) > 0 {
		t.Errorf("its turn is said to have ended: %+v", ends)
	}
	if err := run.Give(t.Context(), agent.Prompt{ID: "q", Text: "more"}); err == nil {
		t.Error("it takes another prompt")
	}
}

// TestDiesAtItsStart checks that an agent that dies at its start is reported in its own words. If
// it answered before, it is tried again: it works here, and was perhaps killed.
func TestDiesAtItsStart(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"initialize", "session/new"} {
		t.Run(method, func(t *testing.T) {
			b, accept := listenPeer(t)
			go func() {
				p := accept()
				if method != "initialize" {
					p.answer(p.expect("initialize"), `{"protocolVersion":1,"agentCapabilities":{}}`)
				}
				p.expect(method)
				p.die()
			}()
			_, err := b.Agent.Start(b.Ctx, b.Spec, nil)
			if err == nil || !strings.Contains(err.Error(), lastWords) {
				t.Fatalf("it starts with %v", err)
			}
			problem, hopeless := errors.AsType[*agent.Problem](err)
			if hopeless != (method == "initialize") || hopeless && problem.Kind != agent.ProblemMissing {
				t.Errorf("it starts with %#v", err)
			}
		})
	}
}

// TestSaysNothingAnyMore checks that an agent that closes its output and keeps running counts as
// ended.
func TestSaysNothingAnyMore(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	b, _ := listenPeer(t)
	script := filepath.Join(b.World.Home, "agent")
	text := `#!/bin/sh
read line; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{}}}'
read line; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s1"}}'
read line; echo 'I hang up' >&2; exec >&-; sleep 1000
`
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	b.Spec.Program = script
	run := b.Start()
	run.Tell("p", "do one")
	if end := agenttest.Next[agent.Ended](run); end.Err == nil || !strings.Contains(end.Err.Error(), "I hang up") {
		t.Errorf("it ended with %v", end.Err)
	}
	story(t, run, `TurnStarted`, agenttest.Words(agenttest.Said[agent.Ended](run)[0]))
}

// options are the options of a permission request.
const options = `[{"optionId":"a","name":"Always","kind":"allow_always"},{"optionId":"b","name":"Yes","kind":"allow_once"},{"optionId":"c","name":"No","kind":"reject_once"}]`

// outcome returns the driver's answer to a permission request: the chosen option, or cancelled.
func (p *peer) outcome() string {
	p.t.Helper()
	m := p.expect("")
	var result struct {
		Outcome struct{ Outcome, OptionID string }
	}
	if err := json.Unmarshal(m.Result, &result); err != nil {
		p.t.Errorf("the answer is %s: %v", m.Result, err)
	}
	if result.Outcome.Outcome == "selected" {
		return result.Outcome.OptionID
	}
	return result.Outcome.Outcome
}

// permission asks for permission to run a command.
func (p *peer) permission(command, options string) {
	p.t.Helper()
	p.ask("session/request_permission", fmt.Sprintf(
		`{"sessionId":"s1","toolCall":{"toolCallId":"t1","kind":"execute","title":"run it","rawInput":{"command":%q}},"options":%s}`, command, options))
}

// TestPermission checks that a permission request is answered with the option for the decision. The
// reason of a denial precedes the next prompt.
func TestPermission(t *testing.T) {
	t.Parallel()
	run, p := startPeer(t)
	run.Tell("one", "do one")
	prompt := p.prompt("do one")
	for _, c := range []struct {
		allow   bool
		options string
		want    string
	}{
		{true, options, "b"}, {false, options, "c"},
		{true, `[{"optionId":"a","name":"Always","kind":"allow_always"}]`, "a"},
		{false, `[{"optionId":"a","name":"Always","kind":"allow_always"}]`, "cancelled"},
		{false, `[{"optionId":"d","name":"Never","kind":"reject_always"}]`, "d"},
	} {
		p.permission("make test", c.options)
		asked := agenttest.Next[agent.PermissionAsked](run)
		if asked.Tool != "Bash" || asked.Input != `{"command":"make test"}` {
			t.Errorf("asked for %+v", asked)
		}
		asked.Answer(c.allow, "")
		if got := p.outcome(); got != c.want {
			t.Errorf("allowed %t of %s is answered with %q", c.allow, c.options, got)
		}
	}
	p.permission("rm -r /", options)
	agenttest.Next[agent.PermissionAsked](run).Answer(false, "not today")
	p.outcome()
	p.answer(prompt, `{"stopReason":"end_turn"}`)
	agenttest.Next[agent.TurnEnded](run)
	run.Tell("two", "do two")
	p.prompt("(Bash was denied: not today)\n\ndo two")
}

// TestPermissionByRules checks that requests which the team's rules forbid or allow are answered
// without a question.
func TestPermissionByRules(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		access agent.Access
		gate   error
		kind   string
		title  string
		want   string
	}{
		{"forbidden", agent.Access{Mode: "bypassPermissions", Writes: true}, errors.New("ann may only coordinate"),
			"execute", "run it", "c"},
		{"everything is allowed", agent.Access{Mode: "bypassPermissions", Writes: true}, nil, "execute", "run it", "b"},
		{"a tool of the team", agent.Access{Mode: "default", Writes: true}, errors.New("ann may only coordinate"),
			"other", "cadre_TaskList", "b"},
		{"a command by the name of a tool of the team", agent.Access{Mode: "default", Writes: true},
			errors.New("ann may only coordinate"), "execute", "cadre_TaskList", "c"},
	} {
		t.Run(c.name, func(t *testing.T) {
			run, p := startPeerWith(t, func(s *agent.Spec) {
				s.Access = c.access
				s.Gate = func(string, string) error { return c.gate }
			})
			run.Tell("one", "do one")
			prompt := p.prompt("do one")
			p.ask("session/request_permission", fmt.Sprintf(
				`{"sessionId":"s1","toolCall":{"toolCallId":"t1","kind":%q,"title":%q,"rawInput":{"command":"x"}},"options":%s}`, c.kind, c.title, options))
			if got := p.outcome(); got != c.want {
				t.Errorf("the answer is %q", got)
			}
			p.answer(prompt, `{"stopReason":"end_turn"}`)
			agenttest.Next[agent.TurnEnded](run)
			if asked := agenttest.Said[agent.PermissionAsked](run); len(asked) > 0 {
				t.Errorf("asked for %+v", asked)
			}
		})
	}
}

// TestPermissionForAToolThatWasTold checks an agent that first reports a tool, and then asks for
// permission by the tool's id alone.
func TestPermissionForAToolThatWasTold(t *testing.T) {
	t.Parallel()
	run, p := startPeer(t)
	run.Tell("one", "do one")
	p.prompt("do one")
	for n := range 50 {
		p.say("I look.")
		p.update(
			fmt.Sprintf(
				`{"sessionUpdate":"tool_call","toolCallId":"t%d","kind":"execute","title":"run it","status":"pending","rawInput":{"command":"make %d"}}`, n, n))
		p.ask("session/request_permission", fmt.Sprintf(
			`{"sessionId":"s1","toolCall":{"toolCallId":"t%d"},"options":%s}`, n, options))
		asked := agenttest.Next[agent.PermissionAsked](run)
		if asked.Tool != "Bash" || asked.Input != fmt.Sprintf(`{"command":"make %d"}`, n) {
			t.Fatalf("asked for %s", agenttest.Words(asked))
		}
		asked.Answer(true, "")
		p.outcome()
	}
}

// TestInterrupt checks that an interrupted turn ends, even if it waits for a permission, and that
// prompts given meanwhile come next.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	run, p := startPeer(t)
	run.Tell("one", "do one")
	prompt := p.prompt("do one")
	p.say("I am")
	p.permission("make test", options)
	asked := agenttest.Next[agent.PermissionAsked](run)
	run.Tell("two", "do two")
	if err := run.Interrupt(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.cancelled()
	asked.Answer(true, "") // too late
	p.answer(prompt, `{"stopReason":"cancelled"}`)
	next := p.prompt("do two")
	p.answer(next, `{"stopReason":"end_turn"}`)
	if end := agenttest.Next[agent.TurnEnded](run); !end.Interrupted || end.Problem != nil {
		t.Errorf("the turn ended with %+v", end)
	}
	if end := agenttest.Next[agent.TurnEnded](run); end.Interrupted {
		t.Errorf("the next turn ended with %+v", end)
	}
}

// cancelled expects that the turn and its permission request are cancelled, in either order.
func (p *peer) cancelled() {
	p.t.Helper()
	for range 2 {
		switch m := p.next(); m.Method {
		case "session/cancel":
		case "":
			if !strings.Contains(string(m.Result), `"cancelled"`) {
				p.t.Errorf("the request for permission is answered with %s", m.Result)
			}
		default:
			p.t.Errorf("the driver says %s", m.Method)
		}
	}
}

// TestUrgent checks that an urgent message interrupts the turn, and precedes waiting prompts.
func TestUrgent(t *testing.T) {
	t.Parallel()
	run, p := startPeer(t)
	run.Tell("one", "do one")
	prompt := p.prompt("do one")
	run.Tell("two", "do two")
	run.Prompt(agent.Prompt{ID: "three", Text: "stop that", Urgent: true})
	p.expect("session/cancel")
	p.answer(prompt, `{"stopReason":"cancelled"}`)
	p.answer(p.prompt("stop that\n\ndo two"), `{"stopReason":"end_turn"}`)
	agenttest.Next[agent.TurnEnded](run)
	agenttest.Next[agent.TurnEnded](run)
	story(t, run, `TurnStarted`, `Received ID="one"`, `TurnEnded Interrupted=true Continues=true`, `TurnStarted`,
		`Received ID="three"`, `Received ID="two"`, `TurnEnded`)
}

// TestEnds checks that the end of a turn is reported with its reason, or with the error in the
// agent's own words. A prompt that the agent does not show to have is returned.
func TestEnds(t *testing.T) {
	t.Parallel()
	run, p := startPeer(t)
	end := func(want string) {
		t.Helper()
		if got := agenttest.Words(agenttest.Next[agent.TurnEnded](run)); got != want {
			t.Errorf("the turn ended with %s, not %s", got, want)
		}
	}
	run.Tell("one", "do one")
	p.refuse(p.prompt("do one"), 429, "slow down")
	end(`TurnEnded Problem={Kind="limit" Text="slow down"}`)
	story(t, run, `TurnStarted`, `NotTaken ID="one"`, `TurnEnded Problem={Kind="limit" Text="slow down"}`)
	run.Tell("two", "do two")
	prompt := p.prompt("do two")
	p.say("half of")
	p.refuse(prompt, -32000, "Authentication required")
	end(`TurnEnded Problem={Kind="login" Text="Authentication required"}`)
	for _, c := range []struct{ reason, want string }{
		{"end_turn", `TurnEnded Text="So it is."`}, {"max_turn_requests", `TurnEnded Text="So it is."`},
		{"later", `TurnEnded Text="So it is."`},
		{"refusal", `TurnEnded Problem={Kind="model" Text="the model refused to continue"}`},
		{"max_tokens", `TurnEnded Problem={Kind="context" Text="the model has no tokens left"}`},
		{"cancelled", `TurnEnded Text="So it is." Interrupted=true`},
	} {
		run.Tell(c.reason, "go on")
		prompt := p.prompt("go on")
		p.say("So it is.")
		p.answer(prompt, fmt.Sprintf(`{"stopReason":%q}`, c.reason))
		end(c.want)
	}
}

// TestSaysMuchAtOnce checks that an agent that sends more than is read has to wait, and that
// nothing is lost.
func TestSaysMuchAtOnce(t *testing.T) {
	t.Parallel()
	b, accept := listenPeer(t)
	greeted := make(chan *peer, 1)
	go func() { greeted <- accept().greet() }()
	s, err := b.Agent.Start(b.Ctx, b.Spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := <-greeted
	if err := s.Give(b.Ctx, agent.Prompt{ID: "p", Text: "do one"}); err != nil {
		t.Fatal(err)
	}
	prompt := p.prompt("do one")
	const tools = 3000
	var much strings.Builder
	for n := range tools {
		fmt.Fprintf(&much,
			`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"tool_call","toolCallId":"t%d","kind":"read","title":"%01000d","status":"completed"}}}`+"\n", n, n)
	}
	p.conn.SetWriteDeadline(time.Now().Add(time.Second))
	n, err := io.WriteString(p.conn, much.String())
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("it need not wait: %v", err)
	}
	finished, over := 0, make(chan struct{})
	go func() {
		defer close(over)
		for u := range s.Updates() {
			switch u.(type) {
			case agent.ToolFinished:
				finished++
			case agent.TurnEnded:
				p.die()
			}
		}
	}()
	p.raw(much.String()[n:])
	p.answer(prompt, `{"stopReason":"end_turn"}`)
	select {
	case <-over:
	case <-time.After(peerPatience):
		t.Fatal("the session does not end")
	}
	if finished != tools {
		t.Errorf("%d tools were finished, of %d", finished, tools)
	}
}
