package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cadre/internal/server"
	"cadre/internal/server/auth"
	"cadre/internal/sys/unixsocket"
	"cadre/internal/testkit/soak"
	"cadre/pkg/teams"
)

// cutter stands between clients and a server, and cuts connections after some bytes.
type cutter struct {
	t      testing.TB
	socket string
	most   int // bytes of the server that a connection carries, chosen at random up to this; 0 for all

	mu   sync.Mutex
	cuts int
}

// cut returns a socket whose connections to the lab's server are cut.
func (l *lab) cut(most int) *cutter {
	l.t.Helper()
	dir, err := os.MkdirTemp("", "cut")
	ok(l.t, err)
	c := &cutter{t: l.t, socket: filepath.Join(dir, "s"), most: most}
	listener, err := unixsocket.Listen(c.socket)
	ok(l.t, err)
	var serving sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	serving.Go(func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { c.carry(ctx, from, filepath.Join(l.home.Root, "server", "socket")) })
		}
	})
	l.t.Cleanup(func() {
		cancel()
		listener.Close()
		serving.Wait()
		os.RemoveAll(dir)
	})
	return c
}

// carry carries one connection, and cuts it after some bytes of the answers.
func (c *cutter) carry(ctx context.Context, from net.Conn, socket string) {
	defer from.Close()
	to, err := unixsocket.Dial(ctx, socket)
	if err != nil { // the server is not there, which is one more way to break
		return
	}
	defer to.Close()
	stop := context.AfterFunc(ctx, func() { from.Close(); to.Close() })
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { // requests arrive whole
		io.Copy(to, from)
		to.Close()
	})
	if c.most == 0 {
		io.Copy(from, to)
	} else {
		io.CopyN(from, to, rand.Int64N(int64(c.most)))
		c.mu.Lock()
		c.cuts++
		c.mu.Unlock()
	}
	from.Close()
	both.Wait()
}

// made returns how many connections were cut.
func (c *cutter) made() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cuts
}

// TestCutConnections checks that each change happens once, and each event comes once and in order,
// while connections are cut at any byte of an answer, and the server is stopped and started.
func TestCutConnections(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.serve()
	ctx := within(t)
	_, err := l.open(Options{}).CreateTeam(ctx, TeamSpec{Name: "demo"})
	ok(t, err)

	const tasks = 40
	seen := make(chan []string, 1)
	stream := l.cut(3000)
	go func() {
		c, err := Open(Options{Socket: stream.socket})
		if err != nil {
			t.Error(err)
		}
		defer c.Close()
		var subjects []string
		last := int64(0)
		for e, err := range c.Events(ctx, "demo", 0) {
			if err != nil {
				t.Error(err)
				break
			}
			if e.Seq < last {
				t.Errorf("record %d comes after %d", e.Seq, last)
			}
			last = e.Seq
			if made, is := e.Fact.(teams.TaskCreated); is {
				subjects = append(subjects, made.Task.Subject)
			}
			if _, is := e.Fact.(teams.DelegateChanged); is {
				break
			}
		}
		seen <- subjects
	}()
	calls := l.cut(2000)
	c := l.open(Options{Socket: calls.socket})
	var want []string
	for i := range tasks {
		subject := fmt.Sprint("task ", i)
		want = append(want, subject)
		if i%10 == 5 {
			l.stop()
			restarted := make(chan struct{})
			go func() { // while the call tries again
				defer close(restarted)
				l.serve()
			}()
			defer func() { <-restarted }()
		}
		made, err := c.AddTask(ctx, "demo", TaskSpec{Subject: subject})
		ok(t, err)
		if made.Subject != subject || made.ID != fmt.Sprint(i+1) {
			t.Fatalf("call %d made task %s, %s", i, made.ID, made.Subject)
		}
	}
	_, err = c.SetDelegate(ctx, "demo", Delegation{On: true})
	ok(t, err)
	if got := <-seen; !slices.Equal(got, want) {
		t.Errorf("the events have the tasks\n%v\nnot\n%v", got, want)
	}
	all, err := l.open(Options{}).Tasks(ctx, "demo", TaskFilter{})
	if err != nil || len(all) != tasks {
		t.Errorf("there are %d tasks after %d calls, %v", len(all), tasks, err)
	}
	if calls, streams := calls.made(), stream.made(); calls < tasks/4 || streams < 2 {
		t.Errorf("%d calls and %d streams were cut, too few for a test", calls, streams)
	}
	// A team that is removed is removed, although the answer is lost.
	c = l.open(Options{Socket: l.cut(20_000).socket}) // the status of a team is longer
	ok(t, c.CleanUpTeam(ctx, "demo", teams.RemoveOptions{Force: true, Branches: true}))
}

// TestEventsEnd checks how a sequence ends: with the team, not with a later team of its name.
func TestEventsEnd(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.serve()
	c := l.open(Options{})
	ctx := within(t)
	for _, err := range c.Events(ctx, "demo", 0) {
		want(t, err, teams.ErrNotFound)
	}
	_, err := c.CreateTeam(ctx, TeamSpec{Name: "demo", Goal: "first"})
	ok(t, err)
	for _, err := range c.Events(ctx, "demo", 7) {
		var p *ProblemError
		if !errors.As(err, &p) || p.Code != "ahead" || p.Seq != 1 || p.Status != http.StatusConflict {
			t.Errorf("a cursor that is ahead: %v", err)
		}
	}
	began, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		once := sync.OnceFunc(func() { close(began) })
		for e, err := range c.Events(ctx, "demo", 0) {
			if made, is := e.Fact.(teams.TeamCreated); err != nil || is && made.Team.Goal != "first" {
				ended <- fmt.Errorf("%+v, %w", e, err)
				return
			}
			once()
		}
		ended <- nil
	}()
	<-began
	ok(t, c.CleanUpTeam(ctx, "demo", teams.RemoveOptions{}))
	_, err = c.CreateTeam(ctx, TeamSpec{Name: "demo", Goal: "second"})
	ok(t, err)
	ok(t, <-ended)

	stopped, cancel := context.WithCancel(ctx)
	for _, err := range c.Events(stopped, "demo", 0) {
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the error of the context is %v", err)
		}
		cancel()
	}
	cancel()
	closed := l.open(Options{})
	for _, err := range closed.Events(ctx, "demo", 0) {
		if err != nil {
			want(t, err, teams.ErrFinished)
			break
		}
		closed.Close()
	}
	_, err = closed.Health(ctx)
	want(t, err, teams.ErrFinished)
}

// TestSilentStream checks that a client leaves a connection that brings nothing, and goes on.
func TestSilentStream(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newLab(t)
	l.serve()
	ctx := within(t)
	_, err := l.open(Options{}).CreateTeam(ctx, TeamSpec{Name: "demo"})
	ok(t, err)
	silent := make(chan struct{}, 1)
	silent <- struct{}{}
	c := l.open(Options{Silence: 2 * time.Second})
	c.http.Transport = &mute{c.http.Transport, silent}
	e := first(t, c.Events(ctx, "demo", 0), func(teams.Event) bool { return true })
	if e.Seq != 1 || len(silent) > 0 {
		t.Errorf("got %+v, and %d connections that were not used", e, len(silent))
	}
}

// mute lets the first streams bring nothing.
type mute struct {
	http.RoundTripper
	streams chan struct{}
}

func (m *mute) RoundTrip(r *http.Request) (*http.Response, error) {
	is, err := m.RoundTripper.RoundTrip(r)
	if err != nil || is.Header.Get("Content-Type") != "text/event-stream" {
		return is, err
	}
	select {
	case <-m.streams:
		body := is.Body
		is.Body = struct {
			io.Reader
			io.Closer
		}{until(r.Context().Done()), body}
	default:
	}
	return is, nil
}

func (m *mute) CloseIdleConnections() { m.RoundTripper.(*counting).CloseIdleConnections() }

// until reads nothing until a channel is closed.
type until <-chan struct{}

func (u until) Read([]byte) (int, error) {
	<-u
	return 0, io.ErrUnexpectedEOF
}

// TestAddress checks a client over TCP: its token, and what it refuses to do with one.
func TestAddress(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.listen = "127.0.0.1:0"
	l.serve()
	ctx := within(t)
	tokens := server.TokensOf(l.home, nil)
	made, err := tokens.Create("phone", auth.Observe)
	ok(t, err)
	c := l.open(Options{Address: l.address, TokenFile: made.File})
	is, err := c.Caller(ctx)
	if err != nil || is != (Caller{User: true, Role: RoleObserve, Token: "phone"}) {
		t.Errorf("the caller is %+v, %v", is, err)
	}
	_, err = c.CreateTeam(ctx, TeamSpec{Name: "demo"})
	want(t, err, teams.ErrDenied)
	text, err := os.ReadFile(made.File)
	ok(t, err)
	_, value, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	is, err = l.open(Options{Address: "http://" + l.address + "/", Token: value}).Caller(ctx)
	if err != nil || is.Token != "phone" {
		t.Errorf("the caller is %+v, %v", is, err)
	}
	ok(t, tokens.Remove("phone"))
	_, err = tokens.Create("phone", auth.Admin)
	ok(t, err)
	if _, err = c.CreateTeam(ctx, TeamSpec{Name: "demo"}); err != nil {
		t.Errorf("with the token that replaced it: %v", err)
	}
	_, err = l.open(Options{Address: l.address, Token: "wrong"}).Health(ctx)
	want(t, err, teams.ErrDenied)

	for _, o := range []Options{{Address: l.address}, {Address: "http://example.org", Token: "x"},
		{Address: "ftp://127.0.0.1", Token: "x"}, {Address: "https://u:p@example.org", Token: "x"},
		{Address: "127.0.0.1:1/path", Token: "x"}, {Home: l.home.Root, Token: "x"}} {
		_, err := Open(o)
		want(t, err, teams.ErrInvalid)
	}
	_, err = Open(Options{Home: t.TempDir()})
	want(t, err, teams.ErrNotReady)
}

// TestUnreachable checks how long a call tries again without a server: to its deadline, or to the
// end of the client's patience.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.serve()
	c := l.open(Options{Patience: 100 * time.Millisecond})
	l.stop()
	_, err := c.Health(context.Background())
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("without patience: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = c.CreateTeam(ctx, TeamSpec{Name: "demo"})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("at its deadline: %v", err)
	}
	for _, name := range []string{"", ".", ".."} {
		_, err := c.Members(t.Context(), name)
		want(t, err, teams.ErrInvalid)
	}
}

// TestNeverAnswered checks that a call without a deadline ends although the server is reached, and
// breaks every connection: at once, or after longer than the client's patience.
func TestNeverAnswered(t *testing.T) {
	soak.Long(t)
	for name, lasts := range map[string]time.Duration{"at once": 0, "late": 150 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				asked.Add(1)
				time.Sleep(lasts)
				panic(http.ErrAbortHandler)
			}))
			defer s.Close()
			c, err := Open(Options{Address: s.URL, Token: "x", Patience: 100 * time.Millisecond})
			ok(t, err)
			defer c.Close()
			ended := make(chan error, 1)
			go func() {
				_, err := c.Health(context.Background())
				ended <- err
			}()
			select {
			case err := <-ended:
				if !errors.Is(err, context.DeadlineExceeded) ||
					!strings.Contains(err.Error(), "does not answer to the end") {
					t.Errorf("%v", err)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("the call does not end")
			}
			if n := asked.Load(); n < 2 || lasts > 0 && n > 3*mostLong {
				t.Errorf("%d attempts", n)
			}
		})
	}
}

// TestKeys checks that the same call with the same key happens once, and that another call with it
// is refused.
func TestKeys(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.serve()
	c := l.open(Options{})
	ctx := within(t)
	_, err := c.CreateTeam(ctx, TeamSpec{Name: "demo"})
	ok(t, err)
	key := WithKey(ctx, "once")
	for range 3 {
		made, err := c.AddTask(key, "demo", TaskSpec{Subject: "it"})
		if err != nil || made.ID != "1" {
			t.Fatalf("got task %s, %v", made.ID, err)
		}
	}
	_, err = c.AddTask(key, "demo", TaskSpec{Subject: "other"})
	var p *ProblemError
	if !errors.As(err, &p) || p.Code != "usage" || p.Status != http.StatusBadRequest {
		t.Errorf("another call with the key: %v", err)
	}
}

// TestTriedOnce checks that a hook that is tried runs once, when the connection breaks.
func TestTriedOnce(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.serve()
	ctx := within(t)
	_, err := l.open(Options{}).CreateTeam(ctx, TeamSpec{Name: "demo"})
	ok(t, err)
	c := l.open(Options{Socket: l.cut(1).socket}) // not one byte of an answer
	ids := l.asked.during(func() {
		_, err := c.TryHook(ctx, "demo", "TaskCreated", nil)
		want(t, err, teams.ErrUncertain)
	})
	if !slices.Equal(ids, []string{"tryHook"}) {
		t.Errorf("the client asked %v", ids)
	}
}

// TestLostAnswers checks that a call whose answer is lost returns what it did.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.serve()
	c := l.open(Options{})
	c.http.Transport = &losing{RoundTripper: c.http.Transport, lost: map[string]bool{}}
	ctx := within(t)
	if is, err := c.CreateTeam(ctx, TeamSpec{Name: "demo"}); err != nil || is.Name != "demo" {
		t.Errorf("got %+v, %v", is, err)
	}
	if is, err := c.Spawn(ctx, "demo", MemberSpec{Name: "ann", Agent: teams.External}); err != nil || is.Name != "ann" {
		t.Errorf("got %+v, %v", is, err)
	}
	if is, err := c.AddTask(ctx, "demo", TaskSpec{Subject: "it"}); err != nil || is.ID != "1" {
		t.Errorf("got %+v, %v", is, err)
	}
	if is, err := c.As("ann").WaitNext(ctx, "demo"); err != nil || is.ID != "1" || is.Fence != 1 {
		t.Errorf("got %+v, %v", is, err)
	}
	if is, err := c.Receive(ctx, "demo", "ann", InboxFilter{}); err != nil {
		t.Errorf("got %+v, %v", is, err)
	}
	ok(t, c.CleanUpTeam(ctx, "demo", teams.RemoveOptions{Force: true}))
}

// losing loses the first answer to each request that changes something.
type losing struct {
	http.RoundTripper
	lost map[string]bool
}

func (l *losing) RoundTrip(r *http.Request) (*http.Response, error) {
	is, err := l.RoundTripper.RoundTrip(r)
	if err != nil || r.Method == http.MethodGet || l.lost[r.URL.Path] {
		return is, err
	}
	l.lost[r.URL.Path] = true
	is.Body.Close()
	return nil, io.ErrUnexpectedEOF
}

func (l *losing) CloseIdleConnections() { l.RoundTripper.(*counting).CloseIdleConnections() }

// TestSessionGoesOn checks that what a session shows comes once and in order over connections that
// are cut, up to the end of the member.
func TestSessionGoesOn(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.serve()
	ctx := within(t)
	direct := l.open(Options{})
	_, err := direct.CreateTeam(ctx, TeamSpec{Name: "demo"})
	ok(t, err)
	_, err = direct.Spawn(ctx, "demo", MemberSpec{Name: "sue", Agent: teams.Shell})
	ok(t, err)
	const tasks = 5
	for i := range tasks {
		_, err := direct.AddTask(ctx, "demo",
			TaskSpec{Subject: "Say it", Owner: "sue", Run: fmt.Sprintf("echo said %d", i)})
		ok(t, err)
	}
	cut := l.cut(4000)
	c := l.open(Options{Socket: cut.socket})
	var said []string
	last := int64(0)
	for s, err := range c.Session(ctx, "demo", "sue") {
		ok(t, err)
		if s.Kind != teams.ShownOutput {
			if s.Seq <= last {
				t.Errorf("entry %d comes after %d", s.Seq, last)
			}
			last = s.Seq
		}
		if s.Kind == teams.ShownResult {
			if said = append(said, strings.TrimSpace(s.Text)); len(said) == tasks {
				_, err := direct.Shutdown(ctx, "demo", "sue", ShutdownSpec{})
				ok(t, err)
			}
		}
	}
	if want := []string{"said 0", "said 1", "said 2", "said 3", "said 4"}; !slices.Equal(said, want) {
		t.Errorf("the session showed %q", said)
	}
	if cut.made() == 0 {
		t.Error("no connection was cut")
	}
}

// TestWatchGoesOn checks that a client that watches sees what changes after the server was
// restarted.
func TestWatchGoesOn(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.serve()
	c := l.open(Options{})
	ctx := within(t)
	_, err := c.CreateTeam(ctx, TeamSpec{Name: "first"})
	ok(t, err)
	restarted := false
	for all, err := range c.Watch(ctx) {
		ok(t, err)
		switch {
		case len(all.Teams) == 1 && !restarted:
			restarted = true
			l.stop()
			l.serve()
			_, err := c.CreateTeam(ctx, TeamSpec{Name: "second"})
			ok(t, err)
		case len(all.Teams) == 2:
			return
		}
	}
	t.Error("the sequence ended")
}
