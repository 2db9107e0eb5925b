// Package mcpserver serves the tools of a member as an MCP server.
//
// # Authority
//
// The tools decide what they are and do: the server asks for the list whenever a client does, and
// forwards calls. It adds the protocol. Nothing that a client sends or a tool does can end the
// server early.
//
// # Ways in
//
//	Stdio    a program that an agent starts: a message a line on standard input and output
//	Listener the same on a unix socket, for programs that connect the two
//	Pipe     a driver with a channel of its own to its agent: one message in, one answer out
//
// # The protocol
//
// A server of tools needs five requests and one notification of MCP, so they are implemented here.
// The official SDK takes longer to initialise than most commands of cadre run; it is the client in
// the tests. A client starts with initialize, up to version 2025-11-25, or names the version in
// each request, since 2026-07-28. A batch, which only version 2025-03-26 had, is refused: no agent
// sends one. The server keeps nothing that a client says about itself, and answers requests even
// before the client has introduced itself.
//
// # Guarantees
//
//   - A call has no deadline here. Its context ends when the client cancels it, and with the
//     connection.
//   - Each request is answered once, even a cancelled one. Requests are served concurrently.
//   - A line that is not a message, or has more than [MaxLine] bytes, is answered with an error and
//     skipped.
//   - If a tool panics, its call fails and the server continues.
//   - When Stdio or Close have returned, nothing of them is running, except a read of standard
//     input that the system does not interrupt.
package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"cadre/internal/agent"
)

// Options say what the server tells a client about itself. All may be zero.
type Options struct {
	Name    string // "" for [agent.ToolServerName]
	Version string
	// Greet receives the name of a client that introduces itself, and returns the instructions for
	// its model.
	Greet func(client string) (instructions string)
	// Called receives the metadata that a client sends with each call of a tool. It is called
	// before the tool, from any goroutine.
	Called func(beside map[string]any)
}

// server answers the requests of one client.
type server struct {
	tools agent.Tools
	o     Options

	ctx  context.Context // of all requests
	stop context.CancelFunc

	mu    sync.Mutex
	ended bool
	calls map[string]context.CancelFunc // requests in progress, by id
	under sync.WaitGroup                // counts them
}

func newServer(ctx context.Context, tools agent.Tools, o Options) *server {
	o.Name, o.Version = cmp.Or(o.Name, agent.ToolServerName), cmp.Or(o.Version, "0")
	s := &server{tools: tools, o: o, calls: map[string]context.CancelFunc{}}
	s.ctx, s.stop = context.WithCancel(ctx)
	return s
}

// take handles one message. The answer to a request goes to reply, from any goroutine; a
// notification has none. A server that has ended answers nothing. The returned function cancels the
// request.
func (s *server) take(m message, reply func(json.RawMessage)) (cancel context.CancelFunc) {
	if !m.isRequest() {
		s.notified(m)
		return func() {}
	}
	id := string(m.ID)
	ctx, cancel := context.WithCancel(s.ctx)
	s.mu.Lock()
	taken, ended := s.calls[id] != nil, s.ended
	if !taken && !ended {
		s.calls[id] = cancel
		s.under.Add(1)
	}
	s.mu.Unlock()
	if taken {
		reply(refusal(nil, invalidRequest, "a request with this id is under way"))
	}
	if taken || ended {
		cancel()
		return cancel
	}
	go func() {
		defer s.under.Done()
		defer cancel()
		answer := m.answer(s.served(ctx, m))
		s.mu.Lock()
		delete(s.calls, id) // before the client can use the id again
		s.mu.Unlock()
		reply(answer)
	}()
	return cancel
}

// notified handles a notification. It ignores unknown ones, and answers, because the server sends
// no requests.
func (s *server) notified(m message) {
	var cancelled struct {
		ID json.RawMessage `json:"requestId"`
	}
	if m.Method != "notifications/cancelled" || json.Unmarshal(m.Params, &cancelled) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.calls[string(cancelled.ID)]; cancel != nil {
		cancel()
	}
}

// end cancels the requests in progress, and returns when they have ended.
func (s *server) end() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.stop()
	s.under.Wait()
}

// served calls [server.serve]; a panic ends only the request.
func (s *server) served(ctx context.Context, m message) (result any, no *refused) {
	defer func() {
		if why := recover(); why != nil {
			result, no = nil, &refused{Code: internalError, Message: fmt.Sprintf("%s broke, which is a mistake in "+
				"cadre: %v", m.Method, why)}
		}
	}()
	return s.serve(ctx, m)
}

// serve returns the result of a request, or why it has none.
func (s *server) serve(ctx context.Context, m message) (any, *refused) {
	p, err := readParams(m.Params)
	if err != nil {
		return nil, &refused{Code: invalidParams, Message: err.Error()}
	}
	if no := p.beside.check(); no != nil {
		return nil, no
	}
	us := implementation{s.o.Name, s.o.Version}
	also := p.beside.result(us)
	switch m.Method {
	case "initialize":
		return initialized{Version: negotiated(p.Version), Capabilities: toolsAlone, Server: us,
			Instructions: s.greet(p.Client.Name)}, nil
	case "server/discover":
		return discovered{result: also, cacheable: oneMembers, Versions: versions, Capabilities: toolsAlone,
			Instructions: s.greet(p.beside.Client.Name)}, nil
	case "ping":
		return also, nil
	case "tools/list":
		return listed{result: also, cacheable: oneMembers, Tools: list(s.tools)}, nil
	case "tools/call":
		if p.Name == "" {
			return nil, &refused{Code: invalidParams, Message: "params.name is missing: the name of a tool"}
		}
		if s.o.Called != nil {
			s.o.Called(p.said)
		}
		text, failed := guarded(ctx, s.tools, p.Name, p.Arguments)
		return called{result: also, Content: []content{{"text", text}}, IsError: failed}, nil
	}
	return nil, &refused{Code: methodNotFound, Message: fmt.Sprintf("unknown method %q", m.Method)}
}

func (s *server) greet(client string) (instructions string) {
	if s.o.Greet == nil {
		return ""
	}
	return s.o.Greet(client)
}

// list returns the tools as a client gets them.
func list(tools agent.Tools) []tool {
	all := []tool{}
	for _, t := range tools.List() {
		// Claude Code hides a server's tools from its model until the model searches for them,
		// unless they have this.
		all = append(all, tool{t.Name, t.Description, t.Schema, map[string]any{"anthropic/alwaysLoad": true}})
	}
	return all
}

// guarded calls the tool, and turns a panic into a failed call.
func guarded(ctx context.Context, tools agent.Tools, name string, input json.RawMessage) (text string, failed bool) {
	defer func() {
		if why := recover(); why != nil {
			text, failed = fmt.Sprintf("%s broke, which is a mistake in cadre and not in the call: %v\nIt may have "+
				"been done in part: look before you call it again.", name, why), true
		}
	}()
	return tools.Call(ctx, name, input)
}
