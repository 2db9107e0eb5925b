// Package mcpserver serves the tools of a member as an MCP server, with the official SDK.
//
// # Authority
//
// What the tools are and do is their own affair: the server asks for the list whenever a client
// does, and passes on what a call says. It adds the protocol, and that nothing a client sends, and
// nothing a tool does, ends the server before its time.
//
// # Ways in
//
//	Stdio   a program that an agent starts: a message a line on standard input and output
//	Pipe    a driver with a channel of its own to its agent: one message in, one answer out
//	Serve   any other transport of the SDK
//
// # Guarantees
//
//   - A call has no deadline here. Its context ends when the client cancels it, and with the
//     connection.
//   - A line that is no message is answered with an error and passed over, and so is one of more
//     than [MaxLine] bytes.
//   - A tool that panics has failed; the server goes on.
//   - When Serve, Stdio or Close have returned, nothing of them runs but a read of standard input
//     that the system does not let go of.
package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/modelcontextprotocol/go-sdk/mcp"

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

// Serve serves the tools until the client has gone, which is no error, or ctx ends, whose error it
// returns then.
func Serve(ctx context.Context, tools agent.Tools, transport mcp.Transport, o Options) error {
	if o.Name == "" {
		o.Name = agent.ToolServerName
	}
	if o.Version == "" {
		o.Version = "0"
	}
	// Without the option for tools the SDK would announce them only if it kept the list, which is
	// not its to keep: it can change.
	server := mcp.NewServer(&mcp.Implementation{Name: o.Name, Version: o.Version}, &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}})
	server.AddReceivingMiddleware(func(rest mcp.MethodHandler) mcp.MethodHandler {
		return func(asked context.Context, method string, request mcp.Request) (mcp.Result, error) {
			switch r := request.(type) {
			case *mcp.ListToolsRequest:
				return list(tools), nil
			case *mcp.CallToolRequest:
				if o.Called != nil {
					o.Called(r.Params.Meta)
				}
				calling, cancel := context.WithCancel(asked)
				defer cancel()
				// the SDK waits for the calls under way before it ends, and does not end them
				defer context.AfterFunc(ctx, cancel)()
				return call(calling, tools, r.Params.Name, r.Params.Arguments), nil
			}
			result, err := rest(asked, method, request)
			if err == nil && o.Greet != nil {
				greet(o.Greet, request, result)
			}
			return result, err
		}
	})
	err := server.Run(ctx, transport)
	if errors.Is(err, io.EOF) || errors.Is(err, errGone) {
		return nil
	}
	return err
}

// greet puts the instructions into the answer to a client that introduces itself, in one of the two
// ways that the versions of the protocol have for it.
func greet(instructions func(client string) string, request mcp.Request, result mcp.Result) {
	name := func(client *mcp.Implementation) string {
		if client == nil {
			return ""
		}
		return client.Name
	}
	switch r := result.(type) {
	case *mcp.InitializeResult:
		if asked, ok := request.GetParams().(*mcp.InitializeParams); ok {
			r.Instructions = instructions(name(asked.ClientInfo))
		}
	case *mcp.DiscoverResult:
		if asked, ok := request.(*mcp.ServerRequest[*mcp.DiscoverParams]); ok {
			r.Instructions = instructions(name(asked.ClientInfo()))
		}
	}
}

func list(tools agent.Tools) *mcp.ListToolsResult {
	// The list is one member's, and stale at once. Claude Code refuses a list that does not say
	// whose it is.
	result := &mcp.ListToolsResult{Tools: []*mcp.Tool{}, Cacheable: mcp.Cacheable{CacheScope: "private"}}
	for _, t := range tools.List() {
		// Claude Code hides the tools of a server from its model until that searches for them,
		// unless they say this.
		result.Tools = append(result.Tools, &mcp.Tool{Name: t.Name, Description: t.Description, InputSchema: t.Schema,
			Meta: mcp.Meta{"anthropic/alwaysLoad": true}})
	}
	return result
}

func call(ctx context.Context, tools agent.Tools, name string, input json.RawMessage) *mcp.CallToolResult {
	text, failed := guarded(ctx, tools, name, input)
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, IsError: failed}
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

// Stdio serves the tools to whoever writes to in and reads from out, a message a line, until in
// ends or ctx does. It closes in.
func Stdio(ctx context.Context, tools agent.Tools, in io.ReadCloser, out io.Writer, o Options) error {
	return Serve(ctx, tools, &lines{in: in, out: out}, o)
}
