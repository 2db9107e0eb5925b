package mcpserver

import (
	"context"
	"encoding/json"
	"io"

	"cadre/internal/agent"
)

// Pipe serves tools to a client whose messages arrive one by one, each with its own answer. It may
// be used from any goroutine.
type Pipe struct{ server *server }

// NewPipe starts a server. It has to be closed.
func NewPipe(tools agent.Tools, o Options) *Pipe {
	return &Pipe{newServer(context.Background(), tools, o)}
}

// Handle handles one message of the client and returns the answer; nil for a notification. It
// answers text that is not a message with an error. If ctx ends first, the request is cancelled.
// After Close the error is [io.ErrClosedPipe].
func (p *Pipe) Handle(ctx context.Context, text json.RawMessage) (json.RawMessage, error) {
	m, broken := decoded(text)
	if broken != nil {
		return broken, nil
	}
	answer := make(chan json.RawMessage, 1)
	cancel := p.server.take(m, func(text json.RawMessage) { answer <- text })
	if !m.isRequest() {
		return nil, nil
	}
	select {
	case text := <-answer:
		return text, nil
	case <-p.server.ctx.Done():
		return nil, io.ErrClosedPipe
	case <-ctx.Done():
		cancel()
		return nil, ctx.Err()
	}
}

// Close cancels the requests in progress, and returns when they have ended.
func (p *Pipe) Close() error {
	p.server.end()
	return nil
}
