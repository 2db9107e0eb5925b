package acp

import (
	"context"
	"encoding/json"
	"io"
	"sync"

	sdk "github.com/coder/acp-go-sdk"
)

// pen writes the connection's messages to the agent, and keeps prompts and cancellations in the
// order in which they were queued. The connection's call of a prompt returns only with the answer,
// so each prompt has a goroutine of its own, and goroutines write in any order.
type pen struct {
	to io.Writer

	mu   sync.Mutex
	last <-chan struct{} // closed when the last queued message is written
	now  func()          // called when the next prompt is written; nil for none
}

func newPen(to io.Writer) *pen {
	free := make(chan struct{})
	close(free)
	return &pen{to: to, last: free}
}

// queue takes the next place in the order. wait returns when everything before it is written. done
// leaves the place; it has to be called, and may be called again. Writing a prompt leaves the place
// too.
func (p *pen) queue() (wait func(context.Context), done func()) {
	written := make(chan struct{})
	done = sync.OnceFunc(func() { close(written) })
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.last
	p.last = written
	wait = func(ctx context.Context) {
		select {
		case <-before:
		case <-ctx.Done():
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.now = done
	}
	return wait, done
}

// Write writes one message. The connection writes each message with one call.
func (p *pen) Write(message []byte) (int, error) {
	n, err := p.to.Write(message)
	if isPrompt(message) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.now != nil {
			p.now()
			p.now = nil
		}
	}
	return n, err
}

func isPrompt(message []byte) bool {
	var m struct{ Method string }
	return json.Unmarshal(message, &m) == nil && m.Method == sdk.AgentMethodSessionPrompt
}
