package teams_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cadre/pkg/teams"
)

func TestMain(m *testing.M) {
	helper = teams.Helper()
	goleak.VerifyTestMain(m)
}

// helper is this test as its own helper.
var helper []string

// limited is a context that ends before a test that hangs does.
func limited(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
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
		_, err := m.SpawnTeammate(limited(t), teams.Spawn{Name: name, Agent: teams.External})
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

func add(t testing.TB, l *teams.TaskList, subject string, blockedBy ...string) teams.Task {
	t.Helper()
	task, err := l.Create(limited(t), teams.NewTask{Subject: subject, BlockedBy: blockedBy})
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
		t.Fatalf("the error is %v, not one with the code %s", err, code)
	}
}

func equal[T comparable](t testing.TB, what string, is, should T) {
	t.Helper()
	if is != should {
		t.Fatalf("%s: %v, not %v", what, is, should)
	}
}

// first returns the first fact of its kind, of those that happen and happened.
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
func await(t testing.TB, box *teams.Mailbox, kind string) teams.Message {
	t.Helper()
	for m, err := range box.All(limited(t)) {
		ok(t, err)
		if m.Type == kind {
			return m
		}
	}
	panic("the mail ended")
}

// listener is an agent whose sessions hand on what they are given.
type listener struct {
	seats chan *teams.Seat
	mail  chan teams.Message
	woken chan string // names of members

	mu       sync.Mutex
	sessions map[string]*listening // by member
}

func newListener() *listener {
	return &listener{seats: make(chan *teams.Seat, 16), mail: make(chan teams.Message, 16),
		woken: make(chan string, 16), sessions: map[string]*listening{}}
}

func (l *listener) Start(_ context.Context, seat *teams.Seat) (teams.Session, error) {
	s := &listening{listener: l, seat: seat, over: make(chan struct{})}
	l.mu.Lock()
	l.sessions[seat.Name()] = s
	l.mu.Unlock()
	seat.Started("session-of-" + seat.Name())
	l.seats <- seat
	return s, nil
}

// crash ends the member's session as if by itself.
func (l *listener) crash(member string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sessions[member].end(err)
}

type listening struct {
	*listener
	seat *teams.Seat
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

func (s *listening) Wake(context.Context) error { s.woken <- s.seat.Name(); return nil }
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
