package client

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cadre/internal/engine"
	"cadre/internal/layout"
	"cadre/internal/server"
	"cadre/internal/server/api"
	"cadre/internal/testkit/hosttest"
	"cadre/internal/testkit/soak"
	"cadre/pkg/teams"
)

func TestMain(m *testing.M) {
	// The person's settings must not affect a test.
	os.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	os.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		os.Setenv("GIT_"+who+"_NAME", "Ann")
		os.Setenv("GIT_"+who+"_EMAIL", "ann@example.org")
	}
	hosttest.Main()
	soak.InMemory()
	goleak.VerifyTestMain(m)
}

// lab is a home with a server, and a project that is a git repository.
type lab struct {
	t       testing.TB
	home    layout.Home
	project string
	listen  string // TCP address besides the socket; "" for none
	address string
	// files for TLS on that address; "" for none
	certificate, key string

	stop  func() // the server
	asked requests
}

func newLab(t testing.TB) *lab {
	t.Helper()
	home := layout.Home{Root: filepath.Join(t.TempDir(), "cadre"), Claude: filepath.Join(t.TempDir(), "claude")}
	l := &lab{t: t, home: home, project: t.TempDir()}
	t.Cleanup(func() { hosttest.Await(t, home.Root) })
	l.git("init", "-q", "-b", "main")
	l.git("commit", "-q", "--allow-empty", "-m", "first")
	return l
}

// serve starts a server, which stops with the test, or when l.stop is called.
func (l *lab) serve() {
	l.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan string, 1), make(chan error, 1)
	e := &engine.Engine{Home: l.home, Log: func(text string) { l.t.Log(text) },
		HostCommand: hosttest.Command(l.home)}
	go func() {
		done <- server.Run(ctx, server.Options{Engine: e, Resume: func(string) []string { return []string{"false"} },
			Dir: l.project, MaxSessions: 10, Heartbeat: 50 * time.Millisecond, Shutdown: 10 * time.Second,
			Version: "test", Log: e.Log, Listen: l.listen, Certificate: l.certificate, Key: l.key},
			func(s *server.Server) { ready <- s.Address() })
	}()
	select {
	case l.address = <-ready:
	case err := <-done:
		l.t.Fatal(err)
	}
	l.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			l.t.Error(err)
		}
	})
	l.t.Cleanup(l.stop)
}

func (l *lab) git(args ...string) {
	l.t.Helper()
	if out, err := exec.Command("git", append([]string{"-C", l.project}, args...)...).CombinedOutput(); err != nil {
		l.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// write writes a file of the project.
func (l *lab) write(name string) {
	l.t.Helper()
	ok(l.t, os.WriteFile(filepath.Join(l.project, name), nil, 0o600))
}

// open returns a client of the lab's server, whose requests the lab counts.
func (l *lab) open(o Options) *Client {
	l.t.Helper()
	if o.Address == "" {
		o.Home = l.home.Root
	}
	c, err := Open(o)
	ok(l.t, err)
	l.t.Cleanup(func() { ok(l.t, c.Close()) })
	c.http.Transport = &counting{c.http.Transport, &l.asked}
	return c
}

// requests are the routes that were asked, with the names of their queries.
type requests struct {
	mu  sync.Mutex
	all map[string]map[string]bool // by the ids of the routes
}

func (r *requests) add(h *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := routeOf(h)
	if r.all == nil {
		r.all = map[string]map[string]bool{}
	}
	if r.all[id] == nil {
		r.all[id] = map[string]bool{}
	}
	for name := range h.URL.Query() {
		r.all[id][name] = true
	}
}

// during returns the ids of the routes that were asked while do ran, sorted.
func (r *requests) during(do func()) (ids []string) {
	r.mu.Lock()
	before := r.all
	r.all = nil
	r.mu.Unlock()
	do()
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, names := range r.all {
		ids = append(ids, id)
		if before == nil {
			before = map[string]map[string]bool{}
		}
		if before[id] == nil {
			before[id] = map[string]bool{}
		}
		for name := range names {
			before[id][name] = true
		}
	}
	r.all = before
	slices.Sort(ids)
	return ids
}

// counting notes the requests that a client sends.
type counting struct {
	http.RoundTripper
	asked *requests
}

func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.asked.add(r)
	return c.RoundTripper.RoundTrip(r)
}

func (c *counting) CloseIdleConnections() { c.RoundTripper.(*http.Transport).CloseIdleConnections() }

// routeOf returns the id of the route that answers a request.
func routeOf(r *http.Request) string {
	mux := http.NewServeMux()
	ids := map[string]string{}
	for _, route := range api.Routes() {
		pattern := route.Method + " " + route.Path
		mux.Handle(pattern, http.NotFoundHandler())
		ids[pattern] = route.ID
	}
	_, pattern := mux.Handler(r)
	return ids[pattern]
}

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(context.Background(), time.Minute, errors.New("the test takes too long"))
	t.Cleanup(cancel)
	return ctx
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

// first returns the first value of a sequence that fits.
func first[T any](t testing.TB, all iter.Seq2[T, error], fits func(T) bool) (v T) {
	t.Helper()
	for v, err := range all {
		ok(t, err)
		if fits(v) {
			return v
		}
	}
	t.Fatal("the sequence ended")
	return v
}

// collected returns the values of a sequence that ends by itself.
func collected[T any](t testing.TB, all iter.Seq2[T, error]) (found []T) {
	t.Helper()
	for v, err := range all {
		ok(t, err)
		found = append(found, v)
	}
	return found
}

func names(all []teams.Member) string {
	var names []string
	for _, m := range all {
		names = append(names, m.Name)
	}
	return strings.Join(names, " ")
}
