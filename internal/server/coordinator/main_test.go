package coordinator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"cadre/internal/engine"
	"cadre/internal/layout"
	"cadre/internal/server"
	"cadre/internal/server/coordinator"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

func TestMain(m *testing.M) {
	os.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	os.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	os.Setenv("PATH", noAgents(os.Getenv("PATH"))) // so that the default agent is the same everywhere
	for _, name := range []string{"CADRE_TEAM", "CADRE_MEMBER_NAME", "CADRE_SESSION_HOME"} {
		os.Unsetenv(name)
	}
	coordinator.TakeSlowReader(3 * time.Second)
	soak.InMemory()
	code := m.Run()
	whole := flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.fuzz").Value.String() == ""
	if unseen := coordinator.Unseen(); code == 0 && whole && len(unseen) > 0 {
		fmt.Printf("no test saw the messages %v\n", unseen)
		code = 1
	}
	os.Exit(code)
}

// noAgents removes from a PATH the folders that have a coding agent.
func noAgents(path string) string {
	var kept []string
	for _, dir := range filepath.SplitList(path) {
		has := false
		for _, name := range []string{"claude", "codex", "gemini", "opencode"} {
			_, err := os.Stat(filepath.Join(dir, name))
			has = has || err == nil
		}
		if !has {
			kept = append(kept, dir)
		}
	}
	return strings.Join(kept, string(filepath.ListSeparator))
}

// patience bounds each wait for something that should happen soon.
const patience = time.Minute

// lab is a running server.
type lab struct {
	t      *testing.T
	engine *engine.Engine
	server *server.Server
	set    func(*server.Options)
	dir    string
	stop   context.CancelFunc
	ended  chan error
}

func newLab(t *testing.T) *lab {
	t.Helper()
	return newLabWith(t, func(*server.Options) {})
}

// newLabWith returns a lab whose server has other options.
func newLabWith(t *testing.T, set func(*server.Options)) *lab {
	t.Helper()
	l := &lab{t: t, set: set, dir: t.TempDir(),
		engine: &engine.Engine{Home: layout.Home{Root: filepath.Join(t.TempDir(), "cadre"),
			Claude: filepath.Join(t.TempDir(), "claude")}}}
	l.start()
	t.Cleanup(func() {
		l.stop()
		if err := <-l.ended; err != nil {
			t.Error(err)
		}
	})
	return l
}

func (l *lab) start() {
	l.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	l.stop, l.ended = stop, make(chan error, 1)
	ready := make(chan struct{})
	go func() {
		o := server.Options{Engine: l.engine, Dir: l.dir, Shutdown: 100 * time.Millisecond, Heartbeat: time.Minute,
			Resume: func(string) []string { return []string{"false"} }, Log: func(string) {}}
		l.set(&o)
		l.ended <- server.Run(ctx, o, func(is *server.Server) { l.server = is; close(ready) })
	}()
	select {
	case <-ready:
	case err := <-l.ended:
		l.t.Fatal(err)
	}
}

// transport connects to the server's socket.
func (l *lab) transport() *http.Transport {
	return &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		dir, err := os.MkdirTemp("", "")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		if err := os.Symlink(filepath.Dir(server.Socket(l.engine.Home)), filepath.Join(dir, "s")); err != nil {
			return nil, err
		}
		var d net.Dialer
		return d.DialContext(ctx, "unix", filepath.Join(dir, "s", filepath.Base(server.Socket(l.engine.Home))))
	}}
}

// client is a connection to the server.
type client struct {
	t      *testing.T
	ws     *websocket.Conn
	asked  map[string]string // types of requests by their ids
	events []frame           // that came while an answer was awaited
	n      int
}

// frame is a frame of the server.
type frame struct {
	Type    string
	ID      any
	TeamID  string
	Seq     int64
	Part    int64
	Payload json.RawMessage
}

func (f frame) String() string {
	return fmt.Sprintf("%s seq %d part %d id %v: %.600s", f.Type, f.Seq, f.Part, f.ID, f.Payload)
}

type failure struct {
	Code, Message, Request string
	Seq                    int64
	Note                   *coordinator.TeamNote
}

func (f frame) failure() (is failure) {
	json.Unmarshal(f.Payload, &is)
	return is
}

func (l *lab) dial() *client {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ws, _, err := websocket.Dial(ctx, "ws://cadre/ws",
		&websocket.DialOptions{HTTPClient: &http.Client{Transport: l.transport()}})
	if err != nil {
		l.t.Fatal(err)
	}
	ws.SetReadLimit(-1)
	l.t.Cleanup(func() { ws.CloseNow() })
	return &client{t: l.t, ws: ws, asked: map[string]string{}}
}

func (c *client) write(kind websocket.MessageType, data []byte) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := c.ws.Write(ctx, kind, data); err != nil {
		c.t.Fatal(err)
	}
}

// send sends a request without an id.
func (c *client) send(kind string, payload any) {
	c.t.Helper()
	data, err := json.Marshal(map[string]any{"type": kind, "payload": payload})
	if err != nil {
		c.t.Fatal(err)
	}
	c.write(websocket.MessageText, data)
}

// next returns the next frame, which must be described.
func (c *client) next() frame {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, data, err := c.ws.Read(ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	var f frame
	d := json.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&f); err != nil {
		c.t.Fatalf("%v: %s", err, data)
	}
	if err := coordinator.ValidFrame(data, c.asked[fmt.Sprint(f.ID)]); err != nil {
		c.t.Errorf("%v\n%s", err, data)
	}
	return f
}

// event returns the next event, which must be of that type.
func (c *client) event(kind string) frame {
	c.t.Helper()
	f := frame{}
	if len(c.events) > 0 {
		f, c.events = c.events[0], c.events[1:]
	} else {
		f = c.next()
	}
	if f.Type != kind {
		c.t.Fatalf("got %s, want %s", f, kind)
	}
	return f
}

// until returns the events up to the first of that type.
func (c *client) until(kind string) (all []frame) {
	c.t.Helper()
	for {
		f := frame{}
		if len(c.events) > 0 {
			f, c.events = c.events[0], c.events[1:]
		} else {
			f = c.next()
		}
		if all = append(all, f); f.Type == kind {
			return all
		}
		if f.Type == "error" {
			c.t.Fatalf("got %s, want %s", f, kind)
		}
	}
}

// ask sends a request with an id and returns its answer. Events that come before it are kept.
func (c *client) ask(kind string, payload any, key ...string) frame {
	c.t.Helper()
	c.n++
	id := fmt.Sprint("r", c.n)
	c.asked[id] = kind
	request := map[string]any{"type": kind, "id": id, "payload": payload}
	if len(key) > 0 {
		request["key"] = key[0]
	}
	data, err := json.Marshal(request)
	if err != nil {
		c.t.Fatal(err)
	}
	c.write(websocket.MessageText, data)
	for {
		f := c.next()
		if f.ID == id {
			return f
		}
		c.events = append(c.events, f)
	}
}

// must is ask for a request that is not refused.
func (c *client) must(kind string, payload any, key ...string) frame {
	c.t.Helper()
	f := c.ask(kind, payload, key...)
	if f.Type != "reply" {
		c.t.Fatalf("%s is answered by %s", kind, f)
	}
	return f
}

// refused is ask for a request that is refused with that code.
func (c *client) refused(code, kind string, payload any) failure {
	c.t.Helper()
	f := c.ask(kind, payload)
	if is := f.failure(); f.Type != "error" || is.Code != code || is.Message == "" || is.Request != kind {
		c.t.Errorf("%s is answered by %s, want the code %s", kind, f, code)
	}
	return f.failure()
}

// read decodes a payload.
func read[T any](t *testing.T, f frame) (value T) {
	t.Helper()
	if err := json.Unmarshal(f.Payload, &value); err != nil {
		t.Fatalf("%v: %s", err, f)
	}
	return value
}

type fields = map[string]any

// create creates a team, and returns its id.
func (c *client) create(name string) string {
	c.t.Helper()
	f := c.must("create_team", fields{"leadSessionId": "session-" + name, "name": name})
	return read[coordinator.TeamPayload](c.t, f).Team.ID
}

// post sends a request over HTTP.
func (l *lab) post(path, body string) error {
	r, err := (&http.Client{Transport: l.transport()}).Post("http://cadre"+path, "application/json",
		strings.NewReader(body))
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if r.StatusCode >= 300 {
		return fmt.Errorf("POST %s: %s", path, r.Status)
	}
	return nil
}

type engineTeam = engine.Team

// member returns a member of the team.
func (l *lab) member(id, name string) (m team.Member) {
	l.t.Helper()
	of, err := l.engine.Look(context.Background(), id)
	if err != nil {
		l.t.Fatal(err)
	}
	defer of.Close()
	of.View(func(s *team.State) { m, _ = s.Member(name) })
	return m
}

// eventually asks until is returns true, for as long as the patience lasts. Then it calls late.
func eventually(t *testing.T, is func() bool, late func()) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); {
		if time.Now().After(end) {
			late()
			return
		}
	}
}
