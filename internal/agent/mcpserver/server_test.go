package mcpserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"cadre/internal/agent"
	"cadre/internal/agent/mcpserver"
	"cadre/internal/agent/tools"
	"cadre/internal/journal/memjournal"
	"cadre/internal/replica"
	"cadre/internal/team"
)

const asServer = "CADRE_TEST_AS_MCP_SERVER"

// TestMain makes the test binary a server on standard input and output if a test starts it as one.
func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		if err := mcpserver.Stdio(context.Background(), &offered{}, os.Stdin, os.Stdout,
			mcpserver.Options{Version: "1"}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// offered are the tools of the tested servers: echo, a tool that waits until it is cancelled, and
// one that panics. A call of more makes the list longer.
type offered struct {
	more    atomic.Bool
	started chan struct{} // when wait was called
	ended   chan error    // why it ended
}

func (t *offered) List() []agent.Tool {
	all := []agent.Tool{
		{Name: "echo", Description: "Echoes.", Schema: json.RawMessage(
			`{"type":"object","properties":{"text":{"type":"string","description":"what"}}}`)},
		{Name: "wait", Description: "Waits.", Schema: json.RawMessage(`{"type":"object"}`)},
	}
	if t.more.Load() {
		all = append(all, agent.Tool{Name: "another", Schema: json.RawMessage(`{"type":"object"}`)})
	}
	return all
}

func (t *offered) Call(ctx context.Context, name string, input json.RawMessage) (string, bool) {
	switch name {
	case "echo":
		return string(input), false
	case "more":
		t.more.Store(true)
		return "more", false
	case "panic":
		panic("on purpose")
	case "wait":
		if t.started != nil {
			t.started <- struct{}{}
		}
		<-ctx.Done()
		if t.ended != nil {
			t.ended <- ctx.Err()
		}
		return "cancelled", true
	}
	return "there is no tool " + name, true
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// connect starts a server on one end of two pipes, and returns the SDK's client on the other.
func connect(t *testing.T, version string, has agent.Tools, o mcpserver.Options) *mcp.ClientSession {
	t.Helper()
	ctx, stop := context.WithCancel(within(t))
	ours, requests := io.Pipe()
	answers, out := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- mcpserver.Stdio(ctx, has, ours, out, o) }()
	client, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx,
		&mcp.IOTransport{Reader: answers, Writer: requests}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		if err := <-done; err != nil {
			t.Errorf("the server ended with %v", err)
		}
		stop()
	})
	return client
}

func said(t *testing.T, r *mcp.CallToolResult, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Content) != 1 {
		t.Fatalf("%d contents", len(r.Content))
	}
	text := r.Content[0].(*mcp.TextContent).Text
	if r.IsError {
		return "FAILED " + text
	}
	return text
}

func call(t *testing.T, c *mcp.ClientSession, name string, input any) string {
	t.Helper()
	r, err := c.CallTool(within(t), &mcp.CallToolParams{Name: name, Arguments: input})
	return said(t, r, err)
}

func listed(t *testing.T, c *mcp.ClientSession) (names string) {
	t.Helper()
	r, err := c.ListTools(within(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range r.Tools {
		names += " " + tool.Name
	}
	return names
}

// TestServer runs the official client with each version of the protocol that it supports.
func TestServer(t *testing.T) {
	versions := mcp.SupportedProtocolVersions()
	if len(versions) < 5 {
		t.Errorf("the client has the versions %q alone", versions)
	}
	for _, version := range versions {
		t.Run(version, func(t *testing.T) { serve(t, version) })
	}
}

func serve(t *testing.T, version string) {
	var beside atomic.Value
	c := connect(t, version, &offered{}, mcpserver.Options{Version: "7", Greet: func(client string) string {
		return "Be nice, " + client + "."
	}, Called: func(said map[string]any) { beside.Store(said) }})
	if is := c.InitializeResult(); is.ProtocolVersion != version {
		t.Errorf("they speak %s", is.ProtocolVersion)
	}
	if is := c.InitializeResult(); is.ServerInfo.Name != agent.ToolServerName || is.ServerInfo.Version != "7" ||
		is.Instructions != "Be nice, test." || is.Capabilities.Tools == nil {
		t.Errorf("it says of itself %+v", is)
	}
	if got := listed(t, c); got != " echo wait" {
		t.Error(got)
	}
	for name, want := range map[string]string{"echo": `{"text":"ü\u2028"}`, "panic": "FAILED panic broke, which is a " +
		"mistake in cadre and not in the call: on purpose", "unknown": "FAILED there is no tool unknown"} {
		if got := call(t, c, name, map[string]string{"text": "ü\u2028"}); !strings.HasPrefix(got, want) &&
			name != "echo" || name == "echo" && !strings.Contains(got, "ü") {
			t.Errorf("%s: %s", name, got)
		}
	}
	r, err := c.CallTool(within(t), &mcp.CallToolParams{Meta: mcp.Meta{"threadId": "x"}, Name: "echo"})
	said(t, r, err)
	if meta, _ := beside.Load().(map[string]any); meta["threadId"] != "x" {
		t.Errorf("beside the call it was told %v", meta)
	}
	call(t, c, "more", nil)
	if got := listed(t, c); got != " echo wait another" {
		t.Errorf("the new list is %s", got)
	}
	large := strings.Repeat("x", 3<<20)
	if got := call(t, c, "echo", map[string]string{"text": large}); len(got) < len(large) {
		t.Errorf("%d bytes came back", len(got))
	}
}

func TestCancelledCall(t *testing.T) {
	has := &offered{started: make(chan struct{}, 1), ended: make(chan error, 1)}
	c := connect(t, "", has, mcpserver.Options{})
	ctx, cancel := context.WithCancel(within(t))
	go func() {
		<-has.started
		cancel()
	}()
	if _, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "wait"}); !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v", err)
	}
	if err := <-has.ended; err == nil {
		t.Error("the tool was not cancelled")
	}
	if got := call(t, c, "echo", nil); strings.HasPrefix(got, "FAILED") {
		t.Errorf("after it: %s", got)
	}
}

// TestClientGone checks that running calls end with the connection.
func TestClientGone(t *testing.T) {
	has := &offered{started: make(chan struct{}, 1), ended: make(chan error, 1)}
	ours, theirs := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- mcpserver.Stdio(within(t), has, ours, io.Discard, mcpserver.Options{}) }()
	for _, line := range []string{hello, ready,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait"}}`} {
		fmt.Fprintln(theirs, line)
	}
	<-has.started
	theirs.Close()
	if err := <-has.ended; err == nil {
		t.Error("the tool was not cancelled")
	}
	if err := <-done; err != nil {
		t.Errorf("the server ended with %v", err)
	}
}

func TestStopped(t *testing.T) {
	has := &offered{started: make(chan struct{}, 1), ended: make(chan error, 1)}
	ours, theirs := io.Pipe()
	ctx, stop := context.WithCancel(within(t))
	done := make(chan error, 1)
	go func() { done <- mcpserver.Stdio(ctx, has, ours, io.Discard, mcpserver.Options{}) }()
	for _, line := range []string{hello, ready,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait"}}`} {
		fmt.Fprintln(theirs, line)
	}
	<-has.started
	stop()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the server ended with %v", err)
	}
	if err := <-has.ended; err == nil {
		t.Error("the tool was not cancelled")
	}
}

// TestClientReadsNoMore checks that a server ends if its answers cannot be written, although its
// input stays open.
func TestClientReadsNoMore(t *testing.T) {
	ours, theirs := io.Pipe()
	answers, out := io.Pipe()
	answers.Close()
	done := make(chan error, 1)
	go func() { done <- mcpserver.Stdio(within(t), &offered{}, ours, out, mcpserver.Options{}) }()
	fmt.Fprintln(theirs, hello)
	if err := <-done; !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the server ended with %v", err)
	}
	if _, err := fmt.Fprintln(theirs, hello); err == nil {
		t.Error("its input is still read")
	}
}

const (
	hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	ready = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

// modern returns a request that names the version of the protocol.
func modern(id int, version, capabilities string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list","params":{"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":%s}}}`,
		id, version, capabilities)
}

// TestLines checks that a line that is not a message is answered and skipped.
func TestLines(t *testing.T) {
	ours, theirs := io.Pipe()
	answers, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- mcpserver.Stdio(within(t), &offered{}, ours, out, mcpserver.Options{})
		out.Close()
	}()
	scan := bufio.NewScanner(answers)
	scan.Buffer(nil, 1<<20)
	for _, step := range []struct{ line, want string }{
		{hello, `"id":1,"result"`},
		{ready, ""},
		{"this is no JSON", `"id":null,"error":{"code":-32700`},
		{"", ""},
		{"\x00\xff\xfe", `"id":null`},
		{`[{"jsonrpc":"2.0","id":3,"method":"ping"}]`, `"id":null,"error":{"code":-32600`},
		{`{"jsonrpc":"1.0","id":3,"method":"ping"}`, `"id":3,"error":{"code":-32600`},
		{`{"jsonrpc":"2.0","id":8,"method":5}`, `"id":8,"error":{"code":-32600`},
		{strings.Repeat("x", mcpserver.MaxLine+1), "the line is too long"},
		{`{"jsonrpc":"2.0","id":99,"result":{}}`, ""},
		{`{"jsonrpc":"2.0","id":4,"method":"tools/none"}`, `"id":4,"error"`},
		{`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":7}}`, `"id":5,"error"`},
		{`{"jsonrpc":"2.0","id":6,"method":"tools/call"}`, `"id":6,"error":{"code":-32602`},
		{`{"jsonrpc":"2.0","id":6,"method":"tools/call","params":[]}`, `"id":6,"error":{"code":-32602`},
		{`{"jsonrpc":"2.0","id":{},"method":"ping"}`, `"id":null,"error":{"code":-32600`},
		{`{"jsonrpc":"2.0","id":true,"method":"ping"}`, `"id":null,"error":{"code":-32600`},
		{`{"jsonrpc":"2.0","id":6}`, `"id":6,"error":{"code":-32600`},
		{`{"jsonrpc":"2.0","id":null,"method":"ping"}`, `"id":null,"error":{"code":-32600`},
		{modern(6, "2027-01-01", "{}"), `"id":6,"error":{"code":-32022,"message":"unsupported protocol version","data":{"requested":"2027-01-01"`},
		{modern(6, "2026-07-28", "7"), `"id":6,"error":{"code":-32602`},
		{modern(6, "2026-07-28", "{}"), `"resultType":"complete"`},
		{`{"jsonrpc":"2.0","id":"seven","method":"tools/call","params":{"name":"echo","arguments":{"a":1}}}` + "\r",
			`"id":"seven","result"`},
		{`{"jsonrpc":"2.0","id":8,"method":"ping"}`, `"id":8,"result"`},
	} {
		if _, err := fmt.Fprintln(theirs, step.line); err != nil {
			t.Fatal(err)
		}
		if step.want == "" {
			continue
		}
		if !scan.Scan() || !strings.Contains(scan.Text(), step.want) {
			t.Errorf("%.80q is answered with %s, not %s", step.line, scan.Text(), step.want)
		}
	}
	fmt.Fprint(theirs, `{"jsonrpc":"2.0","id":9,"method":"ping"}`) // the last line has no end
	theirs.Close()
	for scan.Scan() {
		if !strings.Contains(scan.Text(), `"id":9`) {
			t.Errorf("and then %s", scan.Text())
		}
	}
	if err := <-done; err != nil {
		t.Errorf("the server ended with %v", err)
	}
}

// TestProgram checks a server in a process of its own, as agents start it.
func TestProgram(t *testing.T) {
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), asServer+"=1")
	var trouble strings.Builder
	command.Stderr = &trouble
	c, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(within(t),
		&mcp.CommandTransport{Command: command}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := listed(t, c); got != " echo wait" {
		t.Error(got)
	}
	if got := call(t, c, "echo", map[string]int{"n": 1}); got != `{"n":1}` {
		t.Error(got)
	}
	if got := call(t, c, "panic", nil); !strings.HasPrefix(got, "FAILED") {
		t.Error(got)
	}
	if err := c.Close(); err != nil {
		t.Errorf("the program ended with %v", err)
	}
	if trouble.Len() > 0 {
		t.Errorf("it says %s", trouble.String())
	}
}

func TestPipe(t *testing.T) {
	has := &offered{started: make(chan struct{}, 9), ended: make(chan error, 9)}
	p := mcpserver.NewPipe(has, mcpserver.Options{Version: "1"})
	defer p.Close()
	handle := func(message string) string {
		t.Helper()
		answer, err := p.Handle(within(t), json.RawMessage(message))
		if err != nil {
			t.Fatal(err)
		}
		return string(answer)
	}
	for _, step := range []struct{ message, want string }{
		{hello, `"id":1,"result":{`},
		{ready, ""},
		{`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, `"name":"echo"`},
		{`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, `"ttlMs":0,"cacheScope":"private"`},
		{`{"jsonrpc":"2.0","id":"2","method":"tools/call","params":{"name":"echo","arguments":{"a":1}}}`, `{\"a\":1}`},
		{`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"panic"}}`, `"isError":true`},
		{`garbage`, `"code":-32700`},
		{`{"jsonrpc":"2.0","id":99,"result":{}}`, ""},
		{`{"jsonrpc":"2.0","id":4,"method":"ping"}`, `"id":4`},
	} {
		if got := handle(step.message); !strings.Contains(got, step.want) || step.want == "" && got != "" {
			t.Errorf("%s is answered with %s", step.message, got)
		}
	}

	// Many concurrent requests, each with its own answer.
	var all sync.WaitGroup
	for id := range 50 {
		all.Go(func() {
			message := fmt.Sprintf(
				`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"n":%d}}}`,
				1000+id, id)
			answer, err := p.Handle(within(t), json.RawMessage(message))
			if err != nil || !strings.Contains(string(answer), fmt.Sprintf(`"id":%d,`, 1000+id)) ||
				!strings.Contains(string(answer), fmt.Sprintf(`{\"n\":%d}`, id)) {
				t.Errorf("%s: %v", answer, err)
			}
		})
	}
	all.Wait()

	// Calls are cancelled by the caller, by a message, and by Close.
	wait := func(ctx context.Context, id int) chan error {
		done := make(chan error, 1)
		go func() {
			_, err := p.Handle(ctx, json.RawMessage(
				fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"wait"}}`, id)))
			done <- err
		}()
		<-has.started
		return done
	}
	ctx, cancel := context.WithCancel(within(t))
	first := wait(ctx, 10)
	if got := handle(`{"jsonrpc":"2.0","id":10,"method":"ping"}`); !strings.Contains(got, "under way") {
		t.Errorf("an id used twice: %s", got)
	}
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	<-has.ended
	second := wait(within(t), 11)
	handle(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":11}}`)
	if err := <-second; err != nil {
		t.Error(err)
	}
	<-has.ended
	third := wait(within(t), 12)
	p.Close()
	if err := <-third; err != nil && !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
	if _, err := p.Handle(within(t), json.RawMessage(hello)); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("after the end: %v", err)
	}
}

// TestToolbox checks the team's tools as an agent gets them.
func TestToolbox(t *testing.T) {
	rep, err := replica.Open(within(t), memjournal.New("demo").Open(), replica.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rep.Close() })
	for _, body := range []team.Body{&team.CreateTeam{TeamID: "demo-1", Name: "demo", Dir: "/w"},
		&team.SpawnMember{Name: "ann", Agent: "claude"}} {
		if _, err := rep.Do(within(t), team.Command{Actor: team.User, Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	c := connect(t, "", tools.New(tools.Options{Team: as{rep, "ann"}, Member: "ann", Now: replica.Now}),
		mcpserver.Options{})
	if got := listed(t, c); got != " TaskCreate TaskUpdate TaskList TaskGet TaskClaim PathClaim PathRelease SendMessage Broadcast "+
		"NoteWrite NoteRead NoteList ReadMessages RespondToShutdown SubmitPlan TeamStatus" {
		t.Error(got)
	}
	if got := call(t, c, "TaskCreate", map[string]any{"subject": "Build",
		"description": "all of it"}); got != "Task #1 created: Build" {
		t.Error(got)
	}
	if got := call(t, c, "TaskClaim", map[string]any{"taskId": 7}); !strings.HasPrefix(got,
		"FAILED Not done: no task") {
		t.Error(got)
	}
	if got := call(t, c, "CleanupTeam", nil); got != "FAILED CleanupTeam is for the lead alone. Ask lead for it with "+
		"SendMessage." {
		t.Error(got)
	}
}

// as the replica of a member is.
type as struct {
	*replica.Replica
	name string
}

func (d as) Do(ctx context.Context, body team.Body) (*team.Record, error) {
	r, err := d.Replica.Do(ctx, team.Command{Actor: d.name, Body: body})
	return r.Record, err
}

func FuzzPipe(f *testing.F) {
	f.Add([]byte(hello))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, message []byte) {
		// these are to wait
		if strings.Contains(string(message), "wait") || strings.Contains(string(message), `\u`) {
			return
		}
		p := mcpserver.NewPipe(&offered{}, mcpserver.Options{})
		defer p.Close()
		for _, one := range []string{hello, ready, string(message)} {
			if answer, err := p.Handle(within(t), json.RawMessage(one)); err != nil || answer != nil &&
				!json.Valid(answer) {
				t.Errorf("%q is answered with %q: %v", one, answer, err)
			}
		}
	})
}

// TestClientThatDoesNotRead checks that a client that sends requests, reads no answer and stays
// connected does not keep the server alive.
func TestClientThatDoesNotRead(t *testing.T) {
	ours, theirs := io.Pipe()
	answers, out := io.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mcpserver.Stdio(ctx, &offered{}, ours, out, mcpserver.Options{}) }()
	fmt.Fprintln(theirs, hello)
	stop()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	case <-within(t).Done():
		t.Error("the server waits for a client that does not read")
	}
	answers.Close() // so that the write ends
}

// unsteady panics when a server asks for its list of tools.
type unsteady struct{ offered }

func (*unsteady) List() []agent.Tool { panic("on purpose") }

// TestBrokenList checks that a panic in a request ends only that request.
func TestBrokenList(t *testing.T) {
	p := mcpserver.NewPipe(&unsteady{}, mcpserver.Options{})
	defer p.Close()
	for line, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`: `"id":1,"error":{"code":-32603`,
		`{"jsonrpc":"2.0","id":2,"method":"ping"}`:       `"id":2,"result"`,
	} {
		if got, err := p.Handle(t.Context(), json.RawMessage(line)); err != nil ||
			!strings.Contains(string(got), want) {
			t.Errorf("%s is answered with %s, %v", line, got, err)
		}
	}
}

// TestIntroducedTooLate cancels the wait for a client while it writes. The race detector finds what
// they share.
func TestIntroducedTooLate(t *testing.T) {
	t.Parallel()
	for range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		in, client := io.Pipe()
		over := make(chan error)
		go func() {
			_, _, err := mcpserver.Introduced(ctx, in)
			over <- err
		}()
		cancel()
		client.Close()
		if err := <-over; err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
}
