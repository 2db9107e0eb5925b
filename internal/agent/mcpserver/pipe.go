package mcpserver

import (
	"context"
	"encoding/json"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cadre/internal/agent"
)

// Pipe serves tools to a client whose messages come one by one, each with a place for its answer.
// It may be used from any goroutine.
type Pipe struct {
	incoming chan jsonrpc.Message
	ended    chan struct{} // closed with the connection
	once     sync.Once
	stop     context.CancelFunc
	served   chan struct{} // closed when nothing of it runs any more

	mu      sync.Mutex
	waiting map[jsonrpc.ID]chan json.RawMessage // by request: where its answer goes
}

// NewPipe starts a server. It has to be closed.
func NewPipe(tools agent.Tools, o Options) *Pipe {
	ctx, stop := context.WithCancel(context.Background())
	p := &Pipe{incoming: make(chan jsonrpc.Message), ended: make(chan struct{}), stop: stop,
		served: make(chan struct{}), waiting: map[jsonrpc.ID]chan json.RawMessage{}}
	go func() {
		defer close(p.served)
		defer p.end()
		Serve(ctx, tools, piped{p}, o) // it ends with Close alone, and says no more than that
	}()
	return p
}

// Handle takes one message of the client and returns the answer to it: nil for a notification,
// which has none. What is no message is answered too. When ctx ends first, the request is
// cancelled. After Close the error is [io.ErrClosedPipe].
func (p *Pipe) Handle(ctx context.Context, message json.RawMessage) (json.RawMessage, error) {
	decoded, broken := decoded(message)
	if broken != nil {
		return broken, nil
	}
	request, ok := decoded.(*jsonrpc.Request)
	if !ok || !request.IsCall() {
		return nil, p.put(ctx, decoded)
	}
	answer := make(chan json.RawMessage, 1)
	if !p.await(request.ID, answer) {
		return refusal(jsonrpc.CodeInvalidRequest, "a request with this id is under way"), nil
	}
	defer p.forget(request.ID)
	if err := p.put(ctx, decoded); err != nil {
		return nil, err
	}
	select {
	case text := <-answer:
		return text, nil
	case <-p.ended:
		return nil, io.ErrClosedPipe
	case <-ctx.Done():
		p.cancel(request.ID)
		return nil, ctx.Err()
	}
}

// cancel tells the server that nobody waits for the answer.
func (p *Pipe) cancel(id jsonrpc.ID) {
	params, err := json.Marshal(mcp.CancelledParams{RequestID: id.Raw()})
	if err == nil {
		// the server takes messages as long as it runs
		p.put(context.Background(), &jsonrpc.Request{Method: "notifications/cancelled", Params: params})
	}
}

func (p *Pipe) await(id jsonrpc.ID, answer chan json.RawMessage) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting[id] != nil {
		return false
	}
	p.waiting[id] = answer
	return true
}

func (p *Pipe) forget(id jsonrpc.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiting, id)
}

func (p *Pipe) put(ctx context.Context, message jsonrpc.Message) error {
	select {
	case p.incoming <- message:
		return nil
	case <-p.ended:
		return io.ErrClosedPipe
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *Pipe) end() { p.once.Do(func() { close(p.ended) }) }

// Close cancels what is under way and returns when it is over.
func (p *Pipe) Close() error {
	p.stop()
	<-p.served
	return nil
}

// piped is the server's side of a pipe.
type piped struct{ *Pipe }

func (p piped) Connect(context.Context) (mcp.Connection, error) { return p, nil }

func (p piped) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case message := <-p.incoming:
		return message, nil
	case <-p.ended:
		return nil, errGone
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write passes an answer to whoever waits for it. Nothing else has a way out, and nothing else is
// sent.
func (p piped) Write(_ context.Context, message jsonrpc.Message) error {
	response, ok := message.(*jsonrpc.Response)
	if !ok {
		return nil
	}
	text, err := jsonrpc.EncodeMessage(message)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if answer := p.waiting[response.ID]; answer != nil {
		answer <- text
		delete(p.waiting, response.ID)
	}
	return nil
}

func (p piped) Close() error {
	p.end()
	return nil
}

func (p piped) SessionID() string { return "" }

// refusal is the answer to what is no message, or none that can be told apart.
func refusal(code int64, text string) json.RawMessage {
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": code,
		"message": text}})
	if err != nil {
		panic(err) // strings and numbers
	}
	return line
}
