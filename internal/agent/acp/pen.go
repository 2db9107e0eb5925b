package acp

import (
	"context"
	"encoding/json"
	"io"
	"sync"

	sdk "github.com/coder/acp-go-sdk"
)

// pen writes what the connection says to the agent, and keeps prompts and cancellations in the
// order in which they were queued. The connection returns from a prompt when that is answered, so
// each prompt has a goroutine of its own, and goroutines write in any order.
type pen struct {
	to io.Writer

	mu   sync.Mutex
	last <-chan struct{} // closed when what was queued last is written
	now  func()          // called when the next prompt is written; nil for none
}

func newPen(to io.Writer) *pen {
	free := make(chan struct{})
	close(free)
	return &pen{to: to, last: free}
}

// queue takes the next place in the order. wait returns when all before it is written. done gives
// the place up; it has to be called, and may be called again. The writing of a prompt gives it up
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

// Write writes one message: the connection writes each by one call.
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
