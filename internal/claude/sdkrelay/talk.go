package sdkrelay

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"time"
)

// head is what the relay reads of a line; everything else it only carries.
type head struct {
	Type    string `json:"type"`
	Subtype string `json:"subtype"`
	UUID    string `json:"uuid"`
}

func headOf(line []byte) (h head) {
	json.Unmarshal(line, &h)
	return h
}

// said passes on what the program said. ctx is that of the relay: what was read is not to be lost
// with its connection.
func (r *Relay) said(ctx context.Context, m message) {
	for _, out := range r.outs {
		out.put(ctx, m)
	}
	for line := range bytes.Lines(m.data) {
		h := headOf(line)
		if h.UUID != "" {
			r.last = h.UUID
		}
		r.talk.heard(h)
		r.o.See(line)
	}
}

// asked passes on what a consumer said.
func (r *Relay) asked(ctx context.Context, m message) error {
	for line := range bytes.Lines(m.data) {
		r.talk.spoke(headOf(line))
	}
	return r.program.out.put(ctx, m)
}

// talk knows whether the program has something to say yet. There is no word for the end of the
// input in its protocol; so that is the end of the last turn with nothing said for a while after
// it.
type talk struct {
	quiet time.Duration
	timer *time.Timer

	mu   sync.Mutex
	busy bool // a turn was asked for, or goes on
	over bool // nothing more is asked
}

func newTalk(quiet time.Duration) *talk {
	t := &talk{quiet: quiet, timer: time.NewTimer(time.Hour)}
	t.timer.Stop()
	return t
}

// spoke says that a consumer said something.
func (t *talk) spoke(h head) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.busy = t.busy || h.Type == "user"
	t.set()
}

// heard says that the program said something.
func (t *talk) heard(h head) {
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

// end says that nothing more is asked.
func (t *talk) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	t.set()
}

func (t *talk) set() {
	t.timer.Stop()
	if t.over && !t.busy {
		t.timer.Reset(t.quiet)
	}
}
