package codex

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"cadre/internal/agent"
	"cadre/internal/sys/proc"
)

const (
	// startTimeout bounds the wait for the thread.
	startTimeout = time.Minute
	// callTimeout bounds every other request to the program.
	callTimeout = 30 * time.Second
)

var errEnded = errors.New("the session has ended")

// session is one app-server with one thread. The reader of the connection sends updates; there is
// one reader at a time. The last update is sent by run, which keeps the connection and outlives
// every reader.
type session struct {
	spec    agent.Spec
	child   *proc.Child
	stderr  proc.Capture
	socket  string
	updates chan agent.Update

	ctx     context.Context // done when the program has ended
	end     context.CancelFunc
	serving sync.WaitGroup // requests of the program in progress

	giveMu sync.Mutex // held while a prompt is given, so that prompts stay in order

	decoder decoder // the thread's contents; owned by the reader

	mu        sync.Mutex
	wire      *wire
	ready     chan struct{} // closed while there is a connection with the thread on it
	thread    string
	model     string
	turn      string           // id of the running turn; "" while no turn runs
	ended     chan struct{}    // closed when that turn has ended
	given     map[string]given // prompts that are not received yet, by the client's id
	lastEnded string           // the turn that ended last
	// prompts that the running turn may have taken: the connection broke before the answer
	maybeTaken   []agent.Prompt
	open         map[string]*openRequest // requests of the program without an answer, by id
	plan         string                  // the turn's plan
	access       agent.Access
	readOnlyTurn bool // the turn was started without the right to write
	stopping     bool
	refusals     int // of one prompt, in a row
	reasons      int // counts reasons of denials that were sent to the model

	commands    map[string]bool // the commands of the running turn that have not ended, by their items
	interrupted bool            // the running turn was asked to end
	continues   bool            // another turn follows it
}

// given is a prompt that is being delivered.
type given struct {
	id   string
	turn string // the turn that it was sent to; "" while that is unknown
}

func newSession(spec agent.Spec) *session {
	s := &session{spec: spec, updates: make(chan agent.Update, 64), ready: make(chan struct{}),
		given: map[string]given{}, commands: map[string]bool{}, open: map[string]*openRequest{}, access: spec.Access}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

func (s *session) Updates() <-chan agent.Update { return s.updates }

func (s *session) launch() error {
	var err error
	if s.socket, err = s.spec.Procs.Socket(); err != nil {
		return err
	}
	args := append([]string{s.spec.Program, "app-server", "--listen", "unix://" + s.socket}, s.spec.Args...)
	s.child, err = s.spec.Procs.Start(proc.Cmd{Args: args, Dir: s.spec.Dir, Env: environment(s.spec), Stdout: &s.stderr,
		Stderr: &s.stderr, Member: s.spec.Member})
	if err != nil {
		s.end()
		return &agent.Problem{Kind: agent.ProblemMissing, Text: err.Error()}
	}
	go func() {
		<-s.child.Done()
		s.end()
	}()
	return nil
}

// begin connects, starts or resumes the thread, and starts the session's goroutines.
func (s *session) begin(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	w, err := s.connect(ctx)
	if err != nil {
		return err
	}
	started := agent.Started{}
	var got struct {
		Thread thread `json:"thread"`
		Model  string `json:"model"`
	}
	if s.spec.Resume != "" {
		params := s.threadParams()
		params["threadId"] = s.spec.Resume
		err = w.ask(ctx, "thread/resume", params, &got, func(result json.RawMessage) {
			var got struct {
				Thread thread `json:"thread"`
			}
			agent.Parse(result, &got)
			s.decoder.resume(&got.Thread)
		})
		if refused := (*rpcError)(nil); errors.As(err, &refused) {
			err = nil // the thread is lost, or was empty
		} else if err == nil {
			started.Resumed = true
			if s.spec.Carries != nil {
				for _, text := range got.Thread.contextTexts() {
					started.Seen = append(started.Seen, s.spec.Carries(text)...)
				}
			}
		}
	}
	if err == nil && !started.Resumed {
		params := s.threadParams()
		params["dynamicTools"] = s.tools()
		err = w.call(ctx, "thread/start", params, &got)
		// a thread without a name is not saved before its first turn, so another connection could
		// not continue it
		if err == nil {
			err = w.call(ctx, "thread/name/set", object{"threadId": got.Thread.ID,
				"name": s.spec.Member + " of " + s.spec.Team}, nil)
		}
	}
	if err != nil {
		w.conn.CloseNow()
		return err
	}
	started.Session = got.Thread.ID
	s.mu.Lock()
	s.thread, s.model, s.wire = got.Thread.ID, got.Model, w
	close(s.ready)
	s.mu.Unlock()
	s.updates <- started
	go s.run(w)
	return nil
}

// connect makes a connection and introduces the driver.
func (s *session) connect(ctx context.Context) (*wire, error) {
	w, err := connect(ctx, s.socket)
	if err != nil {
		return nil, err
	}
	go w.read(s.handle)
	err = w.call(ctx, "initialize", object{"clientInfo": object{"name": "cadre", "title": "cadre", "version": "1"},
		"capabilities": object{"experimentalApi": true, "requestAttestation": false}}, nil)
	if err == nil {
		err = w.send(ctx, object{"method": "initialized"})
	}
	if err != nil {
		w.conn.CloseNow()
	}
	return w, err
}

func (s *session) threadParams() object {
	s.mu.Lock()
	access := s.access
	s.mu.Unlock()
	approval, sandbox := policy(access, s.spec.Gate)
	p := object{"cwd": s.spec.Dir, "approvalPolicy": approval, "developerInstructions": s.spec.Instructions,
		"config": object{"features": object{"multi_agent": false, "goals": false}}}
	if mode := sandboxMode(sandbox); mode != "" {
		p["sandbox"] = mode
	} else {
		p["sandbox"] = "workspace-write"
	}
	if s.spec.Model != "" {
		p["model"] = s.spec.Model
	}
	return p
}

func (s *session) tools() []object {
	all := []object{}
	if s.spec.Tools != nil {
		for _, t := range s.spec.Tools.List() {
			all = append(all, object{"type": "function", "name": t.Name, "description": t.Description,
				"inputSchema": t.Schema})
		}
	}
	return all
}

// fail ends a session that did not start, and returns the reason in the program's own words.
func (s *session) fail(err error) error {
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	gone := s.ctx.Err() != nil
	s.child.Kill()
	exit, wait := s.child.Wait(context.Background())
	if gone && wait == nil {
		err = errors.New("codex ended at its start: " + exit.String())
		if exit.Signal != 0 { // it was killed
			return err
		}
	}
	words := strings.TrimSpace(s.stderr.String())
	if words == "" || !gone {
		words = strings.TrimSpace(err.Error() + "\n" + words)
	}
	kind := agent.KindOf(0, words)
	if kind == agent.ProblemModel && gone {
		kind = agent.ProblemMissing
	}
	return &agent.Problem{Kind: kind, Text: agent.Tail(words)}
}

// run keeps the connection until the program ends.
func (s *session) run(w *wire) {
	lost := ""
	for {
		select {
		case <-w.broken:
		case <-s.ctx.Done():
			w.conn.CloseNow()
			<-w.broken
		}
		s.mu.Lock()
		s.ready = make(chan struct{})
		s.mu.Unlock()
		if s.ctx.Err() != nil {
			break
		}
		var err error
		if w, err = s.reconnect(); err != nil {
			if s.ctx.Err() == nil { // it is running and does not answer
				lost = "it stopped answering, " + err.Error() + "; "
				s.child.Kill()
			}
			break
		}
	}
	exit, err := s.child.Wait(context.Background())
	s.serving.Wait()
	s.mu.Lock()
	stopping := s.stopping
	s.mu.Unlock()
	if stopping {
		err = nil
	} else if err == nil {
		err = agent.Died("codex", lost, exit, s.stderr.String())
	}
	s.updates <- agent.Ended{Err: err}
	close(s.updates)
}

// reconnect continues the thread on a new connection.
func (s *session) reconnect() (*wire, error) {
	ctx, cancel := context.WithTimeout(s.ctx, callTimeout)
	defer cancel()
	params := s.threadParams()
	params["threadId"] = s.thread
	for {
		w, err := s.connect(ctx)
		if err == nil {
			err = w.ask(ctx, "thread/resume", params, nil, func(result json.RawMessage) { s.resumed(w, result) })
		}
		switch {
		case err == nil:
			return w, nil
		case w != nil:
			w.conn.CloseNow()
			<-w.broken
		}
		if !errors.Is(err, errBroken) {
			return nil, err
		}
	}
}

// resumed catches up with what happened without a connection. It runs on the connection's reader,
// before the reader reads later messages.
func (s *session) resumed(w *wire, result json.RawMessage) {
	var got struct {
		Thread thread `json:"thread"`
	}
	agent.Parse(result, &got)
	for _, said := range s.decoder.missed(&got.Thread) {
		s.take(said)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wire = w
	close(s.ready)
}

// connected returns the connection, once there is one.
func (s *session) connected(ctx context.Context) (*wire, error) {
	for {
		s.mu.Lock()
		ready, w := s.ready, s.wire
		s.mu.Unlock()
		select {
		case <-ready:
			return w, nil
		case <-s.ctx.Done():
			return nil, errEnded
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
