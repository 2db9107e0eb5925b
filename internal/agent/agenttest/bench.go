package agenttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cadre/internal/agent"
	"cadre/internal/agent/envelope"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Bench runs sessions of one driver without a team. The test takes the role of the host.
type Bench struct {
	T     testing.TB // fails when a session misbehaves; the T of the case if several cases share a session
	Agent agent.Agent
	World World
	Spec  agent.Spec // the spec of the next session
	Tools *Tools
	Ctx   context.Context
}

// NewBench creates a bench in the world, for a member ann that may write.
func NewBench(t testing.TB, a agent.Agent, w World) *Bench {
	t.Helper()
	// It serves several cases and sessions, each with its own patience.
	ctx, cancel := context.WithTimeout(context.Background(), 10*patience)
	t.Cleanup(cancel)
	procs, err := proc.Open(filepath.Join(t.TempDir(), "host"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := procs.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	// A program may check who else can write to what cadre gives it. A real home below /tmp may be
	// writable for all users, so this one is.
	open := filepath.Join(w.Home, "open")
	if err := errors.Join(os.MkdirAll(open, 0o777), os.Chmod(open, 0o777)); err != nil {
		t.Fatal(err)
	}
	b := &Bench{T: t, Agent: a, World: w, Tools: &Tools{}, Ctx: ctx}
	b.Spec = agent.Spec{TeamID: "demo-1", Team: "demo", Member: "ann", Incarnation: 1, Lead: "lead",
		Instructions: "You are ann, a teammate.", Dir: w.Dir,
		Scratch: filepath.Join(open, "scratch"), Env: w.Env, Access: agent.Access{Mode: "default", Writes: true},
		Tools:   b.Tools,
		Gate:    func(string, string) error { return nil },
		Carries: func(text string) []int64 { return envelope.Carries("demo-1", "ann", text) }, Procs: procs}
	return b
}

// Run is one session under test.
type Run struct {
	*Bench
	agent.Session
	mu   sync.Mutex
	all  []agent.Update
	more chan struct{}
	over chan struct{}
	seen int // updates that Next has returned or skipped
}

// Start starts a session. The session ends with the test.
func (b *Bench) Start() *Run {
	b.T.Helper()
	s, err := b.Agent.Start(b.Ctx, b.Spec, nil)
	if err != nil {
		b.T.Fatalf("the session does not start: %v", err)
	}
	r := &Run{Bench: b, Session: s, more: make(chan struct{}, 1), over: make(chan struct{})}
	go func() {
		defer close(r.over)
		for u := range s.Updates() {
			r.mu.Lock()
			r.all = append(r.all, u)
			r.mu.Unlock()
			select {
			case r.more <- struct{}{}:
			default:
			}
		}
	}()
	b.T.Cleanup(func() { r.End() })
	return r
}

// End stops the session and waits until it is over.
func (r *Run) End() {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	r.Session.Stop(ctx)
	select {
	case <-r.over:
	case <-time.After(30 * time.Second):
		r.T.Errorf("the session does not end:\n%s", r.Story())
	}
}

// Tell gives the session a prompt.
func (r *Run) Tell(id, text string) {
	r.T.Helper()
	r.Prompt(agent.Prompt{ID: id, Text: text})
}

// Prompt gives the session a prompt.
func (r *Run) Prompt(p agent.Prompt) {
	r.T.Helper()
	if err := r.Give(r.Ctx, p); err != nil {
		r.T.Fatalf("prompt %s: %v", p.ID, err)
	}
}

// Mail returns a prompt with messages to ann, numbered from seq.
func Mail(id string, seq int64, bodies ...string) agent.Prompt {
	var mail []team.Message
	for i, body := range bodies {
		mail = append(mail, team.Message{Seq: seq + int64(i), From: "bob", To: "ann", Type: team.TypeMessage,
			Priority: "normal", Body: body})
	}
	return agent.Prompt{ID: id, Text: envelope.Batch("demo-1", "ann", mail), Mail: mail}
}

// Next waits for the next update of a kind. It skips the updates before it.
func Next[U agent.Update](r *Run) (u U) {
	r.T.Helper()
	u, _ = await(r, fmt.Sprintf("%T", u), func(one agent.Update) (U, bool) { u, ok := one.(U); return u, ok })
	return u
}

// Got waits until the session has acknowledged the prompt, anywhere among its updates.
func (r *Run) Got(id string) {
	r.T.Helper()
	r.mu.Lock()
	seen := r.seen
	r.seen = 0
	r.mu.Unlock()
	await(r, "the receipt of "+id, func(one agent.Update) (bool, bool) {
		u, ok := one.(agent.Received)
		return true, ok && u.ID == id
	})
	r.mu.Lock()
	r.seen = max(seen, 0)
	r.mu.Unlock()
}

func await[V any](r *Run, what string, is func(agent.Update) (V, bool)) (V, bool) {
	r.T.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		r.mu.Lock()
		for r.seen < len(r.all) {
			u := r.all[r.seen]
			r.seen++
			if v, ok := is(u); ok {
				r.mu.Unlock()
				return v, true
			}
		}
		r.mu.Unlock()
		select {
		case <-r.more:
		case <-r.over:
			r.mu.Lock()
			left := r.seen < len(r.all)
			r.mu.Unlock()
			if !left {
				r.T.Fatalf("the session ended without %s:\n%s", what, r.Story())
			}
		case <-deadline.C:
			r.T.Fatalf("the session does not send %s:\n%s", what, r.Story())
		}
	}
}

// Story describes all updates of the session.
func (r *Run) Story() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	for _, u := range r.all {
		line := Words(u)
		if len(line) > 400 {
			line = line[:400] + " …"
		}
		b.WriteString("  " + line + "\n")
	}
	return b.String()
}

// Said returns the updates of that kind that the session has sent so far.
func Said[U agent.Update](r *Run) (all []U) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, u := range r.all {
		if u, ok := u.(U); ok {
			all = append(all, u)
		}
	}
	return all
}

// Written returns the parts of texts that the session has shown so far.
func Written(r *Run) (text string) {
	for _, part := range Said[agent.TextPart](r) {
		text += part.Text
	}
	return text
}

// Tools are the team's tools for a bench. The only tool, TeamStatus, returns Status and records
// each call.
type Tools struct {
	mu    sync.Mutex
	Calls []string
}

// Status is the answer of TeamStatus.
const Status = "The team is well."

// List offers TeamStatus.
func (*Tools) List() []agent.Tool {
	return []agent.Tool{{Name: "TeamStatus", Description: "How the team is.",
		Schema: json.RawMessage(`{"type":"object","properties":{"about":{"type":"string"}}}`)}}
}

// Call answers a call of TeamStatus.
func (t *Tools) Call(_ context.Context, name string, input json.RawMessage) (string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Calls = append(t.Calls, name+string(input))
	return Status, name != "TeamStatus"
}

// Called returns the calls so far.
func (t *Tools) Called() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.Calls)
}
