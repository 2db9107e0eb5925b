package acp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"cadre/internal/agent"
	"cadre/internal/sys/proc"
	"cadre/internal/sys/sleep"
)

// startTimeout bounds the start of a session. An agent that has to wait before it resumes gets up
// to a minute for that.
const startTimeout = 3 * time.Minute

// These bound the wait for a program's end, to have its own words about it.
const (
	endTimeout   = time.Second     // when it does not answer as it should
	breakTimeout = 5 * time.Second // when its connection broke, and it has nothing else to do
)

// admits keeps processes of other sessions away from the session's mail.
func (s *session) admits(c syscall.Conn) error { return s.spec.Procs.Admits(c, s.spec.Member) }

// session is one agent with one session of its protocol.
type session struct {
	agent    Agent
	spec     agent.Spec
	child    *proc.Child
	stderr   proc.Capture
	lines    *lines // the agent's messages
	pen      *pen   // writes the messages to the agent
	conn     *sdk.ClientSideConnection
	id       sdk.SessionId
	modes    *sdk.SessionModeState
	usual    string // the session's initial mode
	hook     net.Listener
	updates  chan agent.Update
	ctx      context.Context // done when the program has ended
	end      context.CancelFunc
	asking   sync.WaitGroup // calls of the protocol without an answer
	greeted  bool           // it works here: it has answered
	replayed []string       // while a session is loaded: its earlier prompts
	loading  bool

	saying sync.Mutex // held while an update is sent, so that none follows the last one
	over   bool

	mu        sync.Mutex
	access    agent.Access
	stopping  bool
	queue     queue
	decoder   *decoder
	failure   *agent.Problem // of the running turn
	reasons   chan trouble   // why its last prompt failed, reported outside the protocol
	cancelled chan struct{}  // closed when the running turn is cancelled
	began     string         // digest of the history's beginning at the last call of the model, from the hook
	whole     string         // the same at the end of the last complete turn
}

func newSession(a Agent, spec agent.Spec) *session {
	s := &session{agent: a, spec: spec, updates: make(chan agent.Update, 64), reasons: make(chan trouble, 1),
		access: spec.Access, decoder: newDecoder(a.facts),
		queue: queue{midTurn: a.facts.midTurn, memory: a.facts.memory}}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

func (s *session) Updates() <-chan agent.Update { return s.updates }

func (s *session) launch() error {
	f := s.agent.facts
	args, env := slices.Clone(f.command), []string(nil)
	if s.spec.Program != "" {
		args[0] = s.spec.Program
	}
	if s.spec.Model != "" && f.model != nil {
		args = append(args, f.model(s.spec.Model)...)
	}
	if f.prepare != nil {
		if err := os.MkdirAll(s.spec.Scratch, 0o700); err != nil {
			return err
		}
		hook := slices.Clone(s.agent.hook)
		if f.midTurn == byHook && len(hook) > 0 {
			socket, err := s.spec.Procs.Socket()
			if err != nil {
				return err
			}
			listener, err := listen(socket, s.admits, s.forHook)
			if err != nil {
				return err
			}
			s.hook, hook = listener, append(hook, socket)
		} else if f.midTurn == byHook {
			s.queue.midTurn = atTheEnd
		}
		more, variables, err := f.prepare(s.spec.Scratch, hook, environment(s.spec, nil))
		if err != nil {
			s.close()
			return err
		}
		args, env = append(args, more...), variables
	}
	child, err := s.spec.Procs.Start(proc.Cmd{Args: append(args, s.spec.Args...), Dir: s.spec.Dir,
		Env: environment(s.spec, env), StdinPipe: true, StdoutPipe: true,
		Stderr: &aside{keep: &s.stderr, tell: s.troubled}, Member: s.spec.Member})
	if err != nil {
		s.close()
		s.end()
		return &agent.Problem{Kind: agent.ProblemMissing, Text: err.Error()}
	}
	s.child = child
	s.lines = newLines(child.Stdout)
	s.pen = newPen(child.Stdin)
	s.conn = sdk.NewClientSideConnection(client{s}, s.pen, s.lines)
	s.conn.SetLogger(slog.New(slog.DiscardHandler))
	close(s.lines.ready)
	go func() {
		<-child.Done()
		s.end()
	}()
	return nil
}

func (s *session) close() {
	if s.hook != nil {
		s.hook.Close()
	}
}

// is records which session of the program this is; the hook needs it.
func (s *session) is(id sdk.SessionId) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.id = id
}

// begin creates or loads the session.
func (s *session) begin(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	hello, err := s.conn.Initialize(ctx, sdk.InitializeRequest{ProtocolVersion: sdk.ProtocolVersionNumber,
		ClientInfo: &sdk.Implementation{Name: "cadre", Version: "1"}})
	if err != nil {
		return err
	}
	s.greeted = true
	servers := []sdk.McpServer{}
	if line := s.spec.ToolServer; len(line) > 0 {
		servers = append(servers, sdk.McpServer{Stdio: &sdk.McpServerStdio{Name: agent.ToolServerName, Command: line[0],
			Args: line[1:], Env: []sdk.EnvVariable{}}})
	}
	started := agent.Started{}
	if s.spec.Resume != "" && hello.AgentCapabilities.LoadSession {
		if started, err = s.load(ctx, servers); err != nil {
			return err
		}
	}
	if !started.Resumed {
		fresh, err := s.conn.NewSession(ctx, sdk.NewSessionRequest{Cwd: s.spec.Dir, McpServers: servers})
		if err != nil {
			return err
		}
		s.is(fresh.SessionId)
		s.modes, s.usual = fresh.Modes, usual(fresh.Modes, fresh.ConfigOptions)
		started.Session = s.agent.facts.name(string(fresh.SessionId))
		if s.spec.Instructions != "" {
			s.queue.note("<instructions>\n" + s.spec.Instructions + "\n</instructions>")
		}
	}
	if s.spec.Model != "" && s.agent.facts.model == nil {
		if _, err := s.conn.UnstableSetSessionModel(ctx, sdk.UnstableSetSessionModelRequest{SessionId: s.id,
			ModelId: sdk.UnstableModelId(s.spec.Model)}); err != nil {
			return fmt.Errorf("the model %s is not available: %w", s.spec.Model, err)
		}
	}
	if err := s.SetAccess(ctx, s.spec.Access); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	s.say(started)
	go s.watch()
	return nil
}

// load continues the session of the specification. Resumed is false if that is not possible.
func (s *session) load(ctx context.Context, servers []sdk.McpServer) (started agent.Started, err error) {
	id, wait := s.agent.facts.load(s.spec.Resume, environment(s.spec, nil))
	if err := sleep.For(ctx, wait); err != nil {
		return started, err
	}
	s.mu.Lock()
	s.loading = true
	s.mu.Unlock()
	loaded, err := s.conn.LoadSession(ctx, sdk.LoadSessionRequest{Cwd: s.spec.Dir, McpServers: servers,
		SessionId: sdk.SessionId(id)})
	s.settle(ctx)
	s.mu.Lock()
	s.loading = false
	replayed := s.replayed
	s.replayed = nil
	s.mu.Unlock()
	if err != nil || len(replayed) == 0 { // another session has its name
		return started, nil
	}
	s.is(sdk.SessionId(id))
	s.modes, s.usual = loaded.Modes, usual(loaded.Modes, loaded.ConfigOptions)
	started.Resumed, started.Session = true, s.spec.Resume
	s.decoder.cost = s.spec.Spent
	if s.spec.Carries != nil {
		for _, text := range replayed {
			started.Seen = append(started.Seen, s.spec.Carries(text)...)
		}
	}
	return started, nil
}

// settle lets earlier updates in: they are handled one after the other, and the answer overtakes
// them.
func (s *session) settle(ctx context.Context) { sleep.For(ctx, 200*time.Millisecond) }

// fail ends a session that did not start, and returns the reason in the program's own words. A
// program that ends before it has answered anything does not work here. If it was killed, or ended
// later, that is unknown.
func (s *session) fail(err error) error {
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	if answer := (*sdk.RequestError)(nil); !errors.As(err, &answer) || answer.Code == internalError {
		// An ending program breaks the connection first, and its words about that come a moment
		// later.
		patience := endTimeout
		if broken(err) {
			patience = breakTimeout
		}
		sleep.For(s.ctx, patience)
	}
	gone := s.ctx.Err() != nil
	s.child.Kill()
	go s.watch()
	for range s.updates { // they are not needed any more
	}
	words := wordsOf(err)
	if gone {
		words = "it ended at its start"
		exit, wait := s.child.Wait(context.Background())
		if wait == nil {
			words += ": " + exit.String()
		}
		if exit.Signal != 0 {
			return errors.New(words)
		}
		if text := strings.TrimSpace(s.stderr.String()); text != "" {
			words = agent.Tail(text)
		}
	}
	kind := agent.KindOf(0, words)
	if answer := (*sdk.RequestError)(nil); !s.greeted && errors.As(err, &answer) &&
		(answer.Code == methodNotFound || answer.Code == invalidRequest) {
		return &agent.Problem{Kind: agent.ProblemMissing, Text: fmt.Sprintf("%s does not answer as an agent of the "+
			"Agent Client Protocol (initialize: %s)", cmp.Or(s.spec.Program, s.agent.facts.command[0]), words)}
	}
	if kind == agent.ProblemModel && gone {
		if s.greeted {
			return errors.New(words)
		}
		kind = agent.ProblemMissing
	}
	return &agent.Problem{Kind: kind, Text: words}
}

// watch waits for the program's end.
func (s *session) watch() {
	lost := ""
	select {
	case <-s.child.Done():
	case <-s.conn.Done():
		lost = agent.AwaitEnd(s.child, func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.stopping
		})
	}
	exit, err := s.child.Wait(context.Background())
	<-s.conn.Done()
	s.end()
	s.mu.Lock() // later prompts are refused
	stopping := s.stopping
	s.mu.Unlock()
	s.asking.Wait()
	s.child.Stdout.Close()
	s.close()
	if stopping {
		err = nil
	} else if err == nil {
		err = agent.Died(s.agent.facts.command[0], lost, exit, s.stderr.String())
	}
	s.saying.Lock()
	defer s.saying.Unlock()
	s.over = true
	s.updates <- agent.Ended{Err: err}
	close(s.updates)
}

func (s *session) say(u agent.Update) {
	s.saying.Lock()
	defer s.saying.Unlock()
	if !s.over {
		s.updates <- u
	}
}

// SetAccess sets the agent's mode, if it has one for that access. It returns an error if the gate
// has to apply and cannot.
func (s *session) SetAccess(ctx context.Context, a agent.Access) error {
	s.mu.Lock()
	s.access = a
	s.mu.Unlock()
	gated := a.Gated || !a.Writes
	mode := s.agent.facts.mode(a, s.spec.Member == s.spec.Lead)
	if mode == "" {
		mode = s.usual
	}
	has := func(m sdk.SessionMode) bool { return string(m.Id) == mode }
	switch {
	case s.agent.facts.modeless:
		return errors.ErrUnsupported // its questions cannot be changed
	case gated && s.agent.facts.ungated() != "":
		return &agent.Problem{Kind: agent.ProblemMissing, Text: s.agent.facts.ungated()}
	case gated && s.modes != nil && !slices.ContainsFunc(s.modes.AvailableModes, has):
		return &agent.Problem{Kind: agent.ProblemMissing, Text: fmt.Sprintf("%s has no mode %s here, in which it "+
			"asks before it changes anything: its settings or those of its project forbid it",
			s.agent.facts.command[0], mode)}
	case mode == "" || s.modes != nil && !slices.ContainsFunc(s.modes.AvailableModes, has):
		return errors.ErrUnsupported
	}
	if _, err := s.conn.SetSessionMode(ctx, sdk.SetSessionModeRequest{SessionId: s.id,
		ModeId: sdk.SessionModeId(mode)}); err != nil {
		return errors.New(wordsOf(err))
	}
	return nil
}

// usual returns the initial mode of a session. Some agents have modes, others an option of that
// name.
func usual(modes *sdk.SessionModeState, options []sdk.SessionConfigOption) string {
	if modes != nil {
		return string(modes.CurrentModeId)
	}
	for _, o := range options {
		if o.Select != nil && o.Select.Id == "mode" {
			return string(o.Select.CurrentValue)
		}
	}
	return ""
}

func (s *session) Stop(ctx context.Context) error {
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	s.Interrupt(ctx)
	return s.child.Stop(ctx, proc.Ladder{Stdin: 500 * time.Millisecond, Term: time.Second})
}
