package acp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"

	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"cadre/internal/agent"
	"cadre/internal/proc"
)

// startTimeout bounds the time until the session is there; an agent that has to be waited for before it may resume has up to a minute for that.
const startTimeout = 3 * time.Minute

// session is one agent with one session of its protocol.
type session struct {
	agent    Agent
	spec     agent.Spec
	child    *proc.Child
	stderr   proc.Capture
	conn     *sdk.ClientSideConnection
	id       sdk.SessionId
	modes    *sdk.SessionModeState
	hook     net.Listener
	updates  chan agent.Update
	ctx      context.Context // ends with the program
	end      context.CancelFunc
	asking   sync.WaitGroup // calls of the protocol that wait for their answers
	replayed []string       // while a session is loaded: what was told to the agent
	loading  bool

	saying sync.Mutex // held while an update is said, so that none comes after the last one
	over   bool

	mu       sync.Mutex
	access   agent.Access
	stopping bool
	preface  string         // what stands before the next prompt
	running  int            // prompts whose answers are awaited
	failure  *agent.Problem // of the turn that runs
	cancel   bool           // the turn that runs was cancelled
	sent     []string       // ids of prompts that the agent has and did not show to have taken
	waiting  []agent.Prompt // for the end of the turn
	pending  []agent.Prompt // for the hook
	injected []agent.Prompt // that the hook gave to this turn, and has to give again with each call of the model
	text     strings.Builder
	last     string // the last whole text of the turn
	tools    map[sdk.ToolCallId]*tool
}

func newSession(a Agent, spec agent.Spec) *session {
	s := &session{agent: a, spec: spec, updates: make(chan agent.Update, 64), access: spec.Access, tools: map[sdk.ToolCallId]*tool{}}
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
			listener, socket, err := listen(s.forHook)
			if err != nil {
				return err
			}
			s.hook, hook = listener, append(hook, socket)
		}
		more, variables, err := f.prepare(s.spec.Scratch, hook)
		if err != nil {
			s.close()
			return err
		}
		args, env = append(args, more...), variables
	}
	child, err := s.spec.Procs.Start(proc.Cmd{Args: append(args, s.spec.Args...), Dir: s.spec.Dir, Env: environment(s.spec, env), StdinPipe: true, StdoutPipe: true,
		Stderr: &s.stderr, Member: s.spec.Member})
	if err != nil {
		s.close()
		s.end()
		return &agent.Problem{Kind: agent.ProblemMissing, Text: err.Error()}
	}
	s.child = child
	s.conn = sdk.NewClientSideConnection(client{s}, child.Stdin, child.Stdout)
	s.conn.SetLogger(slog.New(slog.DiscardHandler))
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

// begin makes or loads the session.
func (s *session) begin(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	hello, err := s.conn.Initialize(ctx, sdk.InitializeRequest{ProtocolVersion: sdk.ProtocolVersionNumber,
		ClientInfo: &sdk.Implementation{Name: "cadre", Version: "1"}})
	if err != nil {
		return err
	}
	servers := []sdk.McpServer{}
	if line := s.spec.ToolServer; len(line) > 0 {
		servers = append(servers, sdk.McpServer{Stdio: &sdk.McpServerStdio{Name: agent.ToolServerName, Command: line[0], Args: line[1:], Env: []sdk.EnvVariable{}}})
	}
	started := agent.Started{}
	if s.spec.Resume != "" && hello.AgentCapabilities.LoadSession {
		id, wait := s.agent.facts.load(s.spec.Resume)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
		s.mu.Lock()
		s.loading = true
		s.mu.Unlock()
		loaded, err := s.conn.LoadSession(ctx, sdk.LoadSessionRequest{Cwd: s.spec.Dir, McpServers: servers, SessionId: sdk.SessionId(id)})
		s.settle(ctx)
		s.mu.Lock()
		s.loading = false
		replayed := s.replayed
		s.replayed = nil
		s.mu.Unlock()
		if err == nil && len(replayed) > 0 { // else it is another one that has its name
			s.id, s.modes = sdk.SessionId(id), loaded.Modes
			started.Resumed, started.Session = true, s.spec.Resume
			if s.spec.Carries != nil {
				for _, text := range replayed {
					started.Seen = append(started.Seen, s.spec.Carries(text)...)
				}
			}
		}
	}
	if !started.Resumed {
		fresh, err := s.conn.NewSession(ctx, sdk.NewSessionRequest{Cwd: s.spec.Dir, McpServers: servers})
		if err != nil {
			return err
		}
		s.id, s.modes = fresh.SessionId, fresh.Modes
		started.Session = s.agent.facts.name(string(fresh.SessionId))
		if s.spec.Instructions != "" {
			s.preface = "<instructions>\n" + s.spec.Instructions + "\n</instructions>\n\n"
		}
	}
	if s.spec.Model != "" && s.agent.facts.model == nil {
		if _, err := s.conn.UnstableSetSessionModel(ctx, sdk.UnstableSetSessionModelRequest{SessionId: s.id, ModelId: sdk.UnstableModelId(s.spec.Model)}); err != nil {
			return fmt.Errorf("the model %s is not to be had: %w", s.spec.Model, err)
		}
	}
	if err := s.SetAccess(ctx, s.spec.Access); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	s.say(started)
	go s.watch()
	return nil
}

// settle lets the updates in that were sent before the answer: they are handled one after the other, and the answer overtakes them.
func (s *session) settle(ctx context.Context) {
	quiet := time.NewTimer(200 * time.Millisecond)
	defer quiet.Stop()
	select {
	case <-quiet.C:
	case <-ctx.Done():
	}
}

// fail ends a session that did not begin, and says why in the program's own words.
func (s *session) fail(err error) error {
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	cut := strings.Contains(err.Error(), "pipe") // what was written to it went nowhere
	select {
	case <-s.conn.Done():
		cut = true
	default:
	}
	if cut { // the program's end may be a moment behind that of its input and its output
		select {
		case <-s.ctx.Done():
		case <-time.After(time.Second):
		}
	}
	gone := s.ctx.Err() != nil
	s.child.Kill()
	s.child.Stdout.Close()
	s.close()
	words := wordsOf(err)
	if gone {
		words = "it ended at its start"
		if exit, wait := s.child.Wait(context.Background()); wait == nil {
			words += ": " + exit.String()
		}
		if text := strings.TrimSpace(s.stderr.String()); text != "" {
			words = tail(text)
		}
	}
	kind := kindOf(words)
	if kind == agent.ProblemModel && gone {
		kind = agent.ProblemMissing
	}
	return &agent.Problem{Kind: kind, Text: words}
}

// watch sees the program to its end.
func (s *session) watch() {
	exit, err := s.child.Wait(context.Background())
	<-s.conn.Done()
	s.asking.Wait()
	s.child.Stdout.Close()
	s.close()
	s.mu.Lock()
	stopping := s.stopping
	s.mu.Unlock()
	if stopping {
		err = nil
	} else if err == nil {
		words := exit.String()
		if more := strings.TrimSpace(s.stderr.String()); more != "" {
			words += ": " + tail(more)
		}
		err = errors.New(s.agent.facts.command[0] + " ended: " + words)
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

func tail(s string) string {
	const most = 2000
	if len(s) > most {
		return "… " + strings.ToValidUTF8(s[len(s)-most:], "")
	}
	return s
}

// SetAccess sets the agent's mode, where it has one for what the session may do.
func (s *session) SetAccess(ctx context.Context, a agent.Access) error {
	s.mu.Lock()
	s.access = a
	s.mu.Unlock()
	wanted := a.Mode
	switch {
	case !a.Writes:
		wanted = unapproved
	case s.spec.Gate != nil && s.spec.Gate("Bash", "{}") != nil: // what the team forbids has to be asked about
		wanted = "default"
	}
	mode, ok := s.agent.facts.modes[wanted]
	if !ok || s.modes == nil || !slices.ContainsFunc(s.modes.AvailableModes, func(m sdk.SessionMode) bool { return string(m.Id) == mode }) {
		return errors.ErrUnsupported
	}
	_, err := s.conn.SetSessionMode(ctx, sdk.SetSessionModeRequest{SessionId: s.id, ModeId: sdk.SessionModeId(mode)})
	if err != nil {
		return errors.New(wordsOf(err))
	}
	return nil
}

func (s *session) Interrupt(ctx context.Context) error {
	s.mu.Lock()
	working := s.running > 0
	s.cancel = working
	s.mu.Unlock()
	if !working {
		return nil
	}
	return s.conn.Cancel(ctx, sdk.CancelNotification{SessionId: s.id})
}

func (s *session) Stop(ctx context.Context) error {
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	s.Interrupt(ctx)
	return s.child.Stop(ctx, proc.Ladder{Stdin: 500 * time.Millisecond, Term: time.Second})
}
