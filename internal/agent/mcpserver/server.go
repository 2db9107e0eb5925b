// Package mcpserver serves the tools of a member as an MCP server.
//
// # Authority
//
// What the tools are and do is their own affair: the server asks for the list whenever a client
// does, and passes on what a call says. It adds the protocol, and that nothing a client sends, and
// nothing a tool does, ends the server before its time.
//
// # Ways in
//
//	Stdio    a program that an agent starts: a message a line on standard input and output
//	Listener the same on a unix socket, for programs that connect the two
//	Pipe     a driver with a channel of its own to its agent: one message in, one answer out
//
// # The protocol
//
// A server of tools needs five requests and one notification of MCP, so they are written out here.
// The official SDK takes longer to initialise than most commands of cadre run, and is the client in
// the tests. A client begins with initialize, up to version 2025-11-25, or names the version with
// each request, since 2026-07-28. A batch, which version 2025-03-26 alone had, is refused: no agent
// sends one. The server keeps nothing of what a client says of itself, and
// answers a request also before the client has introduced itself.
//
// # Guarantees
//
//   - A call has no deadline here. Its context ends when the client cancels it, and with the
//     connection.
//   - Each request is answered once, a cancelled one too. Requests are served at the same time.
//   - A line that is no message is answered with an error and passed over, and so is one of more
//     than [MaxLine] bytes.
//   - A tool that panics has failed; the server continues.
//   - When Stdio or Close have returned, nothing of them runs but a read of standard input that the
//     system does not let go of.
package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"cadre/internal/agent"
)

// Options say what the server tells a client of itself. All may be zero.
type Options struct {
	Name    string // "" for [agent.ToolServerName]
	Version string
	// Greet is told the name of a client that introduces itself, and returns the instructions for
	// its model.
	Greet func(client string) (instructions string)
	// Called is told what a client says beside each call of a tool. It is called before the tool
	// is, from any goroutine.
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
	calls map[string]context.CancelFunc // requests under way, by id
	under sync.WaitGroup                // of them
}

func newServer(ctx context.Context, tools agent.Tools, o Options) *server {
	o.Name, o.Version = cmp.Or(o.Name, agent.ToolServerName), cmp.Or(o.Version, "0")
	s := &server{tools: tools, o: o, calls: map[string]context.CancelFunc{}}
	s.ctx, s.stop = context.WithCancel(ctx)
	return s
}

// take takes one message. The answer to a request goes to reply, from any goroutine; a notification
// has none. A server that has ended answers nothing. The function that take returns cancels the
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
		delete(s.calls, id) // before whoever asked can use the id again
		s.mu.Unlock()
		reply(answer)
	}()
	return cancel
}

// notified takes a notification, or an answer, though the server asks nothing. What it does not know
// is of no concern to it.
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

// end cancels what is under way and returns when it is over.
func (s *server) end() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.stop()
	s.under.Wait()
}

// served is [server.serve], where a panic ends the request and nothing else.
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
	return nil, &refused{Code: methodNotFound, Message: fmt.Sprintf("there is no method %q", m.Method)}
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
		// Claude Code hides the tools of a server from its model until that searches for them,
		// unless they say this.
		all = append(all, tool{t.Name, t.Description, t.Schema, map[string]any{"anthropic/alwaysLoad": true}})
	}
	return all
}

// guarded calls the tool and makes of a panic what it is for the caller: a call that failed.
func guarded(ctx context.Context, tools agent.Tools, name string, input json.RawMessage) (text string, failed bool) {
	defer func() {
		if why := recover(); why != nil {
			text, failed = fmt.Sprintf("%s broke, which is a mistake in cadre and not in the call: %v\nIt may have "+
				"been done in part: look before you call it again.", name, why), true
		}
	}()
	return tools.Call(ctx, name, input)
}
