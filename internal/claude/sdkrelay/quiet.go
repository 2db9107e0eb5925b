package sdkrelay

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"time"
)

// head is the part of a line that the relay reads; it only forwards the rest.
type head struct {
	Type    string `json:"type"`
	Subtype string `json:"subtype"`
	UUID    string `json:"uuid"`
}

func headOf(line []byte) (h head) {
	json.Unmarshal(line, &h)
	return h
}

// forwardOutput forwards a message of the program. ctx is the relay's context: a message that was
// read must not be lost when its connection ends.
func (r *Relay) forwardOutput(ctx context.Context, m message) {
	for _, out := range r.outs {
		out.put(ctx, m)
	}
	for line := range bytes.Lines(m.data) {
		h := headOf(line)
		if h.UUID != "" {
			r.last = h.UUID
		}
		r.quiet.programSent(h)
		r.o.See(line)
	}
}

// forwardInput forwards a message of a consumer.
func (r *Relay) forwardInput(ctx context.Context, m message) error {
	for line := range bytes.Lines(m.data) {
		r.quiet.consumerSent(headOf(line))
	}
	return r.program.out.put(ctx, m)
}

// quietTimer detects that the program has nothing more to send. Its protocol has no message for the
// end of the input. So the end is the last turn, followed by a while without any message.
type quietTimer struct {
	quiet time.Duration
	timer *time.Timer

	mu         sync.Mutex
	busy       bool // a turn was requested or is running
	inputEnded bool // the input has ended
}

func newQuietTimer(quiet time.Duration) *quietTimer {
	t := &quietTimer{quiet: quiet, timer: time.NewTimer(time.Hour)}
	t.timer.Stop()
	return t
}

// consumerSent records a message of a consumer.
func (t *quietTimer) consumerSent(h head) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.busy = t.busy || h.Type == "user"
	t.set()
}

// programSent records a message of the program.
func (t *quietTimer) programSent(h head) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case h.Type == "result":
		t.busy = false
	case h.Type == "assistant", h.Type == "user", h.Type == "system" && h.Subtype == "init":
		t.busy = true
	}
	t.set()
}

// end records the end of the input.
func (t *quietTimer) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inputEnded = true
	t.set()
}

func (t *quietTimer) set() {
	t.timer.Stop()
	if t.inputEnded && !t.busy {
		t.timer.Reset(t.quiet)
	}
}
