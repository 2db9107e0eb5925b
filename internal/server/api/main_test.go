package api_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cadre/internal/consolidate"
	"cadre/internal/engine"
	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/server/api"
	"cadre/internal/server/auth"
	"cadre/internal/server/supervisor"
	"cadre/internal/team"
	"cadre/internal/testkit/hosttest"
	"cadre/internal/testkit/soak"
)

func TestMain(m *testing.M) {
	// The person's git settings must not affect a test.
	os.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	os.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		os.Setenv("GIT_"+who+"_NAME", "Ann")
		os.Setenv("GIT_"+who+"_EMAIL", "ann@example.org")
	}
	hosttest.Main()
	if len(os.Args) == 5 && os.Args[1] == appendWord {
		appendHere(layout.Home{Root: os.Args[2], Claude: os.Args[3]}, os.Args[4])
		return
	}
	soak.InMemory()
	goleak.VerifyTestMain(m)
}

// lab is a home, a project that is a git repository, and a server of the API on a unix socket, to
// which the user connects.
type lab struct {
	*engine.Engine
	*client
	project string
	socket  string
	keeps   *supervisor.Supervisor
	api     *api.Server
	tokens  auth.Tokens
	checker *checker
	most    int // teammates that the server runs
}

// client sends requests, and checks that each answer is as the description says.
type client struct {
	t       testing.TB
	http    *http.Client
	checker *checker
}

func newLab(t testing.TB) *lab { return newLabOf(t, 0) }

// newLabOf returns a lab whose server runs at most that many teammates; 0 for any number.
func newLabOf(t testing.TB, most int) *lab {
	t.Helper()
	l := &lab{Engine: &engine.Engine{Home: layout.Home{Root: filepath.Join(t.TempDir(), "cadre"),
		Claude: filepath.Join(t.TempDir(), "claude")}, Log: func(text string) { t.Log(text) },
		Shared: &engine.Shared{}},
		project: t.TempDir(), checker: newChecker(t), most: most}
	t.Cleanup(func() { hosttest.Await(t, l.Home.Root) })
	l.HostCommand = hosttest.Command(l.Home)
	l.client = &client{t: t}
	l.git("init", "-q", "-b", "main")
	l.git("commit", "-q", "--allow-empty", "-m", "first")
	l.serve()
	return l
}

// serve starts the server.
func (l *lab) serve() {
	l.t.Helper()
	dir, err := os.MkdirTemp("", "api") // a socket's path is short
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { os.RemoveAll(dir) })
	l.socket = filepath.Join(dir, "s")
	if l.keeps, err = supervisor.Open(supervisor.Options{Engine: l.Engine, File: filepath.Join(dir, "teams"),
		MaxSessions: l.most, Resume: func(string) []string { return []string{"false"} }, Log: l.Log}); err != nil {
		l.t.Fatal(err)
	}
	l.tokens = auth.Tokens{Dir: filepath.Join(dir, "tokens")}
	codes := &auth.Codes{Tokens: l.tokens}
	l.api = api.New(api.Options{Engine: l.Engine, Dir: l.project, Keeps: l.keeps, Tokens: l.tokens, Codes: codes,
		Version: "test"})
	guard := &auth.Guard{Home: l.Home, Tokens: l.tokens, Codes: codes, Origins: func() []string { return nil },
		Refuse: refuse}
	l.http = l.listen(l.socket, guard.Handler)
	l.client = &client{l.t, l.http, l.checker}
}

func refuse(w http.ResponseWriter, r *http.Request, status int, err error) {
	api.Refuse(w, r, api.ProblemOf(err).With(status))
}

// listen serves the API on a unix socket, and returns an HTTP client for it.
func (l *lab) listen(path string, identified func(http.Handler) http.Handler) *http.Client {
	l.t.Helper()
	listener, err := net.Listen("unix", path)
	if err != nil {
		l.t.Fatal(err)
	}
	l.serveOn(listener, identified)
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}}
	l.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// serveOn serves the API on the listener until the test ends.
func (l *lab) serveOn(listener net.Listener, identified func(http.Handler) http.Handler) {
	mux := http.NewServeMux()
	l.api.Register(mux, identified)
	mux.Handle("GET /board/streams", identified(l.api.Streams()))
	mux.Handle("GET /board/events", identified(l.api.Events()))
	server := &http.Server{Handler: mux, ConnContext: auth.Accepted}
	done := make(chan struct{})
	go func() {
		defer close(done)
		server.Serve(listener)
	}()
	l.t.Cleanup(func() {
		server.Close()
		<-done
	})
}

// as returns a client whose requests come from the principal.
func (l *lab) as(p auth.Principal) *client {
	l.t.Helper()
	dir, err := os.MkdirTemp("", "api")
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { os.RemoveAll(dir) })
	return &client{l.t, l.listen(filepath.Join(dir, "s"), as(p)), l.checker}
}

// as passes each request on as one of the principal.
func as(p auth.Principal) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r.WithContext(auth.With(r.Context(), p)))
		})
	}
}

func (l *lab) git(args ...string) string {
	l.t.Helper()
	out, err := exec.Command("git", append([]string{"-C", l.project}, args...)...).CombinedOutput()
	if err != nil {
		l.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// write writes a file of the project.
func (l *lab) write(name, text string) {
	l.t.Helper()
	path := filepath.Join(l.project, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
}

// create makes the team demo, with those commands of the user.
func (l *lab) create(more ...team.Body) *engine.Team {
	l.t.Helper()
	return l.createOf(&team.CreateTeam{}, more...)
}

// createOf makes the team demo of that body.
func (l *lab) createOf(body *team.CreateTeam, more ...team.Body) *engine.Team {
	l.t.Helper()
	body.Name, body.Dir = "demo", l.project
	body.TeamID, body.Base = "demo-"+strings.ToLower(replica.NewID()), consolidate.Look(l.t.Context(), l.project)
	var commands []team.Command
	for _, body := range append([]team.Body{body}, more...) {
		commands = append(commands, engine.Command(team.User, body))
	}
	if err := l.Create("demo", commands); err != nil {
		l.t.Fatal(err)
	}
	t, err := l.Engine.Open(within(l.t), "demo")
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { t.Close() })
	return t
}

// members returns commands that add external members.
func members(names ...string) (all []team.Body) {
	for _, name := range names {
		all = append(all, &team.SpawnMember{Name: name, Agent: team.External})
	}
	return all
}

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(context.Background(), time.Minute, errors.New("the test takes too long"))
	t.Cleanup(cancel)
	return ctx
}

// act does the command, as a process beside the server.
func act(t testing.TB, of *engine.Team, actor string, body team.Body) *team.Record {
	t.Helper()
	receipt, err := of.Do(within(t), team.Command{Actor: actor, Body: body})
	if err != nil {
		t.Fatal(err)
	}
	return receipt.Record
}

// until waits until see reports true for the team.
func until(t testing.TB, of *engine.Team, see func(*team.State) bool) {
	t.Helper()
	ctx := within(t)
	for {
		if err := of.Refresh(ctx); err != nil {
			t.Fatal(err)
		}
		var seq int64
		var done bool
		of.View(func(s *team.State) { seq, done = s.Seq(), see(s) })
		if done {
			return
		}
		if err := of.Wait(ctx, seq); err != nil {
			var last []byte
			of.View(func(s *team.State) { last, _ = json.Marshal([]any{s.Members(), collect(s)}) })
			t.Fatalf("%v, %v; the team is %s", context.Cause(ctx), err, last)
		}
	}
}

// answer is the answer to a request.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// route returns the route of a request.
func route(method, path string) (found api.Route) {
	path, _, _ = strings.Cut(path, "?")
	is := strings.Split(path, "/")
	literal := -1
	for _, r := range api.Routes() {
		parts := strings.Split(r.Path, "/")
		n := 0
		for i := range parts {
			if len(parts) != len(is) || !strings.HasPrefix(parts[i], "{") && parts[i] != is[i] {
				n = -1
				break
			}
			if !strings.HasPrefix(parts[i], "{") {
				n++
			}
		}
		if r.Method == method && n > literal {
			literal, found = n, r
		}
	}
	return found
}

// send sends a request, and checks its answer. header has names and values in turn.
func (c *client) send(method, path string, body any, header ...string) answer {
	c.t.Helper()
	var in io.Reader
	if text, is := body.(string); is {
		in = strings.NewReader(text)
	} else if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			c.t.Fatal(err)
		}
		in = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(within(c.t), method, "http://cadre"+path, in)
	if err != nil {
		c.t.Fatal(err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	described := map[string]bool{"If-Match": route(method, path).Matched, "If-None-Match": route(method, path).Tagged}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
		if is, known := described[header[i]]; known && !is {
			c.t.Errorf("the description of %s %s has no %s", method, path, header[i])
		}
	}
	is, err := c.http.Do(r)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer is.Body.Close()
	data, err := io.ReadAll(is.Body)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	switch {
	case is.StatusCode >= 400:
		if kind := is.Header.Get("Content-Type"); kind != "application/problem+json" {
			c.t.Errorf("%s %s is refused with a %s: %.300s", method, path, kind, data)
			break
		}
		c.checker.check(c.t, "problem", data)
	case is.StatusCode == http.StatusOK:
		c.checker.check(c.t, route(method, path).ID, data)
	case is.StatusCode == http.StatusNoContent && route(method, path).Answer != nil:
		c.t.Errorf("%s %s answers with nothing", method, path)
	case is.StatusCode == http.StatusNoContent:
		c.checker.uses(route(method, path).ID)
	}
	return answer{is.StatusCode, is.Header, data}
}

// ask sends a request that succeeds, and reads its answer into a value.
func ask[T any](c *client, method, path string, body any, header ...string) (v T) {
	c.t.Helper()
	is := c.send(method, path, body, header...)
	if is.status >= 300 {
		c.t.Fatalf("%s %s is refused: %d %s", method, path, is.status, is.body)
	}
	if err := json.Unmarshal(is.body, &v); err != nil {
		c.t.Fatalf("%s %s: %v: %s", method, path, err, is.body)
	}
	return v
}

// do sends a request that succeeds.
func (c *client) do(method, path string, body any, header ...string) {
	c.t.Helper()
	if is := c.send(method, path, body, header...); is.status >= 300 {
		c.t.Fatalf("%s %s is refused: %d %s", method, path, is.status, is.body)
	}
}

// refused sends a request that is refused with the status and the code, and returns the problem.
func (c *client) refused(status int, code, method, path string, body any, header ...string) (p api.Problem) {
	c.t.Helper()
	is := c.send(method, path, body, header...)
	if err := json.Unmarshal(is.body, &p); err != nil || is.status != status || p.Code != code || p.Status != status {
		c.t.Errorf("%s %s answers %d %.500s; want %d %s", method, path, is.status, is.body, status, code)
	}
	return p
}

// sse is an event of a stream.
type sse struct{ id, kind, data string }

// stream is a stream of server-sent events.
type stream struct {
	t       testing.TB
	lines   *bufio.Reader
	close   func()
	id      string   // of the route
	checker *checker // nil to check no event
}

// stream follows a stream until the test ends, or close is called.
func (c *client) stream(path string, header ...string) *stream {
	c.t.Helper()
	ctx, cancel := context.WithCancel(within(c.t))
	r, err := http.NewRequestWithContext(ctx, "GET", "http://cadre"+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	is, err := c.http.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	if is.StatusCode != http.StatusOK || is.Header.Get("Content-Type") != "text/event-stream" {
		data, _ := io.ReadAll(is.Body)
		c.t.Fatalf("%s answers %d %s", path, is.StatusCode, data)
	}
	s := &stream{c.t, bufio.NewReader(is.Body), func() { cancel(); is.Body.Close() }, route("GET", path).ID, c.checker}
	c.t.Cleanup(s.close)
	return s
}

// next returns the next event.
func (s *stream) next() (e sse) {
	s.t.Helper()
	e, err := s.read()
	if err != nil {
		s.t.Fatalf("the stream ended: %v", err)
	}
	return e
}

func (s *stream) read() (e sse, err error) {
	for {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			return e, err
		}
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch key {
		case "id":
			e.id = value
		case "event":
			e.kind = value
		case "data":
			e.data = value
		case "":
			if e.kind == "" { // after a comment
				continue
			}
			switch {
			case s.checker == nil || e.kind == "end":
			case e.kind == "problem":
				s.checker.check(s.t, "problem", []byte(e.data))
			default:
				s.checker.check(s.t, s.id, []byte(e.data))
			}
			return e, nil
		}
	}
}
