package teams_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cadre/internal/testkit/soak"
	"cadre/pkg/teams"
)

// source is the folder of the package. The tests run in another folder: an example without a
// directory works in the current one, and must not leave files in this repository.
var source string

func TestMain(m *testing.M) {
	helper = teams.Helper()
	soak.InMemory()
	elsewhere, err := os.MkdirTemp("", "teams")
	if err == nil {
		source, err = os.Getwd()
	}
	if err == nil {
		err = os.Chdir(elsewhere)
	}
	// The user's settings must not affect a test. They are overridden for all tests at once,
	// because tests run in parallel.
	for name, value := range map[string]string{"GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_NOSYSTEM": "1",
		"CLAUDE_CONFIG_DIR": filepath.Join(elsewhere, "claude")} {
		os.Setenv(name, value)
	}
	if err != nil {
		panic(err)
	}
	soak.Beside(8)
	goleak.VerifyTestMain(m, goleak.Cleanup(func(status int) {
		os.RemoveAll(elsewhere)
		os.Exit(status)
	}))
}

// helper is the command line of this test binary as its own helper.
var helper []string

// limited returns a context that ends before the test's deadline.
func limited(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// manage returns a manager that is closed with the test. Without folders of its own it keeps its
// teams in memory.
func manage(t testing.TB, o teams.Options) *teams.Manager {
	t.Helper()
	if o.Home == "" && o.Memory == nil {
		o.Memory = new(teams.Memory)
	}
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	m, err := teams.New(o)
	ok(t, err)
	t.Cleanup(func() { ok(t, m.Close()) })
	return m
}

// create returns a new team of that name with these external teammates.
func create(t testing.TB, m *teams.Manager, name string, externals ...string) *teams.Team {
	t.Helper()
	team, err := m.CreateTeam(limited(t), teams.TeamConfig{Name: name})
	ok(t, err)
	for _, name := range externals {
		_, err := m.Team().Spawn(limited(t), teams.MemberConfig{Name: name, Agent: teams.External})
		ok(t, err)
	}
	return team
}

func as(t testing.TB, team *teams.Team, name string) *teams.Teammate {
	t.Helper()
	m, err := team.As(name)
	ok(t, err)
	return m
}

// mailbox returns the mailbox of the member from; "" means the manager's own actor.
func mailbox(m *teams.Manager, from string) (*teams.Mailbox, error) {
	switch team := m.Team(); from {
	case "":
		return team.Mail(), nil
	case teams.User:
		return team.UserMail()
	default:
		member, err := team.As(from)
		if err != nil {
			return nil, err
		}
		return member.Mail(), nil
	}
}

func send(ctx context.Context, m *teams.Manager, from, to, text string) error {
	box, err := mailbox(m, from)
	if err == nil {
		_, err = box.Send(ctx, teams.Message{To: to, Body: text})
	}
	return err
}

func broadcast(ctx context.Context, m *teams.Manager, from, text string) error {
	box, err := mailbox(m, from)
	if err == nil {
		_, err = box.Broadcast(ctx, teams.Message{Body: text})
	}
	return err
}

// lines is a log handler that passes each message on as one line.
type lines func(text string)

func (l lines) Enabled(context.Context, slog.Level) bool      { return true }
func (l lines) Handle(_ context.Context, r slog.Record) error { l(r.Message); return nil }
func (l lines) WithAttrs([]slog.Attr) slog.Handler            { return l }
func (l lines) WithGroup(string) slog.Handler                 { return l }

// logger returns a logger that passes each message to write.
func logger(write func(text string)) *slog.Logger { return slog.New(lines(write)) }

// answer answers a question with yes or no.
func answer(t testing.TB, team *teams.Team, q teams.Question, yes bool, words string) {
	t.Helper()
	decide := team.Decline
	if yes {
		decide = team.Approve
	}
	ok(t, decide(limited(t), q, words))
}

func add(t testing.TB, l *teams.TaskList, subject string, blockedBy ...string) teams.Task {
	t.Helper()
	task, err := l.Create(limited(t), teams.TaskConfig{Subject: subject, BlockedBy: blockedBy})
	ok(t, err)
	return task
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func want(t testing.TB, err error, code teams.Code) {
	t.Helper()
	if !errors.Is(err, code) {
		t.Fatalf("the error is %v, want one with the code %s", err, code)
	}
}

func equal[T comparable](t testing.TB, what string, is, should T) {
	t.Helper()
	if is != should {
		t.Fatalf("%s: got %v, want %v", what, is, should)
	}
}

// first returns the first fact of its type that such accepts, in the past or future history.
func first[F teams.Fact](t testing.TB, team *teams.Team, such func(F) bool) F {
	t.Helper()
	for e, err := range team.EventsAfter(limited(t), 0) {
		ok(t, err)
		if f, is := e.Fact.(F); is && such(f) {
			return f
		}
	}
	panic("the history ended")
}

func any1[F teams.Fact](F) bool { return true }

// await takes the lead's mail until there is a message of that type.
func await(t testing.TB, box *teams.Mailbox, kind teams.MessageType) teams.Message {
	t.Helper()
	for m, err := range box.All(limited(t)) {
		ok(t, err)
		if m.Type == kind {
			return m
		}
	}
	panic("the mail ended")
}

// listener is an agent whose sessions pass on what they receive.
type listener struct {
	slots chan *teams.Slot
	mail  chan teams.Message
	woken chan string // names of members

	mu       sync.Mutex
	sessions map[string]*listening // by member
}

func newListener() *listener {
	return &listener{slots: make(chan *teams.Slot, 16), mail: make(chan teams.Message, 16),
		woken: make(chan string, 16), sessions: map[string]*listening{}}
}

func (l *listener) Start(_ context.Context, slot *teams.Slot) (teams.Session, error) {
	s := &listening{listener: l, slot: slot, over: make(chan struct{})}
	l.mu.Lock()
	l.sessions[slot.Name()] = s
	l.mu.Unlock()
	slot.Started("session-of-" + slot.Name())
	l.slots <- slot
	return s, nil
}

// crash ends the member's session as if it had crashed.
func (l *listener) crash(member string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sessions[member].end(err)
}

type listening struct {
	*listener
	slot *teams.Slot
	once sync.Once
	over chan struct{}
	err  error
}

func (s *listening) Deliver(_ context.Context, mail []teams.Message) error {
	for _, m := range mail {
		s.mail <- m
	}
	return nil
}

func (s *listening) Wake(context.Context) error { s.woken <- s.slot.Name(); return nil }
func (s *listening) Stop(context.Context) error { s.end(nil); return nil }
func (s *listening) Wait() error                { <-s.over; return s.err }

func (s *listening) end(err error) {
	s.once.Do(func() {
		s.err = err
		close(s.over)
	})
}

// next receives from a channel of a listener.
func next[T any](t testing.TB, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-limited(t).Done():
		t.Fatal("nothing came")
	}
	return v
}
