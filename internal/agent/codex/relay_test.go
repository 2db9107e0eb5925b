package codex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"cadre/internal/agent/agenttest"
)

// relay is between the driver and the real app-server, message by message. It breaks connections at
// the worst moments, delays the next one, and adds messages that no app-server sends.
type relay struct {
	t    testing.TB
	near string // its socket, which the driver takes for the app-server's
	far  string // the app-server's
	// at decides what becomes of a message; nil passes all. It is called for one message after the
	// other.
	at func(toProgram bool, m rpc) fate
	// noise is what the driver hears before each message of the app-server.
	noise []string

	mu     sync.Mutex
	said   [][]byte      // by the app-server
	made   int           // connections of the driver
	more   chan struct{} // closed and made again with each of them
	closed chan struct{} // while new connections are held back
	cutoff func()        // breaks the connection that there is
}

// fate says what happens to a message.
type fate int

const (
	passes    fate = iota
	cutBefore      // the connection breaks, and it is lost
	cutBehind      // it arrives, and the connection breaks
)

// throughRelay makes the sessions of a bench connect through a relay.
func throughRelay(b *agenttest.Bench, p agenttest.Program) *relay {
	t := b.T
	t.Helper()
	dir, err := os.MkdirTemp("", "cadre-test-") // the path of a socket has 104 bytes at most on macOS
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{t: t, near: filepath.Join(dir, "near"), far: filepath.Join(dir, "far"), more: make(chan struct{}),
		cutoff: func() {}}
	listener, err := net.Listen("unix", r.near)
	if err != nil {
		t.Fatal(err)
	}
	// This runs in place of the program: the program's socket becomes the relay's, and the program
	// listens on another one.
	program := filepath.Join(dir, "codex")
	script := fmt.Sprintf("#!/bin/sh\nln -s %s \"${3#unix://}\"\nexec %s \"$1\" \"$2\" unix://%s\n", r.near,
		p.Path, r.far)
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	b.Spec.Program = program
	var serving sync.WaitGroup
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		serving.Add(1)
		defer serving.Done()
		r.serve(w, q)
	})}
	serving.Go(func() { server.Serve(listener) })
	t.Cleanup(func() {
		r.release()
		r.cut()
		server.Close()
		serving.Wait()
		os.RemoveAll(dir)
	})
	return r
}

// serve serves one connection.
func (r *relay) serve(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	held := r.closed
	r.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-q.Context().Done():
			return
		}
	}
	far, err := r.dial(q.Context())
	if err != nil {
		return
	}
	defer far.CloseNow()
	near, err := websocket.Accept(w, q, nil)
	if err != nil {
		return
	}
	defer near.CloseNow()
	near.SetReadLimit(maxMessage)
	r.mu.Lock()
	r.cutoff = func() { near.CloseNow() }
	r.made++
	close(r.more)
	r.more = make(chan struct{})
	r.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { r.pass(true, near, far) })
	both.Go(func() { r.pass(false, far, near) })
	both.Wait()
}

// dial connects to the program, which may not listen yet, until the driver stops waiting.
func (r *relay) dial(ctx context.Context) (*websocket.Conn, error) {
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _,
		_ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", r.far)
	}}}
	for {
		conn, _, err := websocket.Dial(ctx, "ws://codex/", &websocket.DialOptions{HTTPClient: client})
		if err == nil {
			conn.SetReadLimit(maxMessage)
			return conn, nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// pass forwards one direction until the connection ends, and then ends both sides.
func (r *relay) pass(toProgram bool, from, to *websocket.Conn) {
	defer from.CloseNow()
	defer to.CloseNow()
	for {
		kind, data, err := from.Read(context.Background())
		if err != nil {
			return
		}
		what := passes
		r.mu.Lock()
		if !toProgram {
			r.said = append(r.said, data)
		}
		var m rpc
		if json.Unmarshal(data, &m) == nil && r.at != nil {
			what = r.at(toProgram, m)
		}
		r.mu.Unlock()
		if what == cutBefore {
			return
		}
		if !toProgram {
			for _, words := range r.noise {
				to.Write(context.Background(), websocket.MessageText, []byte(words))
			}
		}
		if to.Write(context.Background(), kind, data) != nil || what == cutBehind {
			return
		}
	}
}

// cut breaks the connection.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cutoff()
}

// hold delays new connections until release.
func (r *relay) hold() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = make(chan struct{})
}

func (r *relay) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed != nil {
		close(r.closed)
		r.closed = nil
	}
}

// connections waits until the driver has made that many connections.
func (r *relay) connections(n int) {
	r.t.Helper()
	deadline := time.NewTimer(callTimeout)
	defer deadline.Stop()
	for {
		r.mu.Lock()
		made, more := r.made, r.more
		r.mu.Unlock()
		if made >= n {
			return
		}
		select {
		case <-more:
		case <-deadline.C:
			r.t.Fatalf("the driver has made %d connections, not %d", made, n)
		}
	}
}

// beside opens another connection to the program besides the driver's.
func (r *relay) beside() *wire {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	w, err := connect(ctx, r.far)
	if err != nil {
		r.t.Fatal(err)
	}
	go w.read(func(*wire, rpc) {})
	r.t.Cleanup(func() {
		w.conn.CloseNow()
		<-w.broken
	})
	if err := w.call(ctx, "initialize", object{"clientInfo": object{"name": "test", "version": "1"},
		"capabilities": object{"experimentalApi": true}}, nil); err != nil {
		r.t.Fatal(err)
	}
	return w
}

// keep keeps the program from unloading a thread without clients, which would end a turn that has
// just begun.
func (r *relay) keep(thread string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	if err := r.beside().call(ctx, "thread/resume", object{"threadId": thread}, nil); err != nil {
		r.t.Fatal(err)
	}
}

// idle waits until no turn runs in the thread.
func (r *relay) idle(thread string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	w := r.beside()
	for {
		var got struct {
			Thread struct {
				Status struct {
					Type string `json:"type"`
				} `json:"status"`
			} `json:"thread"`
		}
		if err := w.call(ctx, "thread/read", object{"threadId": thread}, &got); err != nil {
			r.t.Fatalf("the turn does not end: %v", err)
		}
		if got.Thread.Status.Type != "active" {
			return
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			r.t.Fatal("the turn does not end")
		}
	}
}
