package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"cadre/internal/engine"
	"cadre/internal/layout"
	"cadre/internal/server/api"
	"cadre/internal/server/coordinator"
	"cadre/internal/sys/unixsocket"
	"cadre/internal/team"
)

// whole is a server as cadre serve runs it, in a home of its own.
type whole struct {
	t      *testing.T
	engine *engine.Engine // of another process
	server *Server
	http   *http.Client // on the socket
}

// running runs a server until the test ends.
func running(t *testing.T, set func(*Options)) *whole {
	t.Helper()
	home := layout.Home{Root: filepath.Join(t.TempDir(), "cadre"), Claude: filepath.Join(t.TempDir(), "claude")}
	w := &whole{t: t, engine: &engine.Engine{Home: home}}
	o := Options{Engine: &engine.Engine{Home: home}, Dir: t.TempDir(), Heartbeat: time.Minute, Shutdown: time.Second,
		Resume: func(string) []string { return []string{"false"} }, Log: func(text string) { t.Log(text) }}
	set(&o)
	ctx, stop := context.WithCancel(context.Background())
	ready, ended := make(chan *Server, 1), make(chan error, 1)
	go func() { ended <- Run(ctx, o, func(s *Server) { ready <- s }) }()
	select {
	case w.server = <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return unixsocket.Dial(ctx, Socket(home))
	}}
	w.http = &http.Client{Transport: transport}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return w
}

// send sends a request on the socket, and returns the answer with its body.
func (w *whole) send(method, path string, body any) (*http.Response, string) {
	w.t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		w.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(w.t.Context(), method, "http://cadre"+path, bytes.NewReader(data))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	is, err := w.http.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer is.Body.Close()
	text, err := io.ReadAll(is.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return is, string(text)
}

// post sends a change that is not refused.
func (w *whole) post(path string, body any) {
	w.t.Helper()
	if is, text := w.send("POST", path, body); is.StatusCode >= 300 {
		w.t.Fatalf("POST %s: %s %s", path, is.Status, text)
	}
}

// ask sends a request over the WebSocket, and returns the payload of its answer.
func (w *whole) ask(kind string, payload any) (kindOf string, answer json.RawMessage) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	ws, _, err := websocket.Dial(ctx, "ws://cadre/ws", &websocket.DialOptions{HTTPClient: w.http})
	if err != nil {
		w.t.Fatal(err)
	}
	defer ws.Close(websocket.StatusNormalClosure, "")
	frame, err := json.Marshal(map[string]any{"type": kind, "id": 1, "payload": payload})
	if err == nil {
		err = ws.Write(ctx, websocket.MessageText, frame)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	var is struct {
		Type    string
		Payload json.RawMessage
	}
	_, data, err := ws.Read(ctx)
	if err == nil {
		err = json.Unmarshal(data, &is)
	}
	if err != nil {
		w.t.Fatalf("%v: %s", err, data)
	}
	return is.Type, is.Payload
}

// metric returns the value of a metric.
func (w *whole) metric(name string) string {
	w.t.Helper()
	is, text := w.send("GET", "/metrics", nil)
	if is.StatusCode != http.StatusOK {
		w.t.Fatalf("GET /metrics: %s %s", is.Status, text)
	}
	for line := range strings.Lines(text) {
		if key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " "); key == name {
			return value
		}
	}
	return "missing"
}

// eventually waits until see returns "", which else says what is wrong.
func eventually(t *testing.T, see func() string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		wrong := see()
		if wrong == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatal(wrong)
		}
	}
}

// session is how long the one session of [whole.work] takes, in milliseconds.
const session = 90_000

// work creates the team work, in which ann completes a task, fails one and has one, and cy runs a
// session. It returns the number of messages.
func (w *whole) work() (messages int64) {
	w.t.Helper()
	w.post("/v1/teams", api.TeamSpec{Name: "port"})
	for _, name := range []string{"ann", "bob"} {
		w.post("/v1/teams/port/members", api.MemberSpec{Name: name, Agent: team.External})
	}
	for task, end := range []string{"complete", "fail", ""} {
		w.post("/v1/teams/port/tasks", api.TaskSpec{Subject: "look at it"})
		at := fmt.Sprintf("/v1/teams/port/tasks/%d/", task+1)
		if w.post(at+"claim?as=ann", nil); end != "" {
			w.post(at+end+"?as=ann", struct{}{})
		}
	}
	w.post("/v1/teams/port/messages?as=ann", api.MessageSpec{To: "bob", Body: "hello"})
	of, err := w.engine.Open(w.t.Context(), "port")
	if err != nil {
		w.t.Fatal(err)
	}
	defer of.Close()
	host, began := team.Host("h"), engine.Now() // what follows is what only hosts report
	for _, c := range []team.Command{
		{Actor: team.User, Body: &team.SpawnMember{Name: "cy", Agent: team.Claude, Prompt: "work"}},
		{Actor: host, Body: &team.AttachMember{Member: "cy"}},
		{Actor: host, Body: &team.ReportStarted{Member: "cy", Session: "s"}, At: began},
		{Actor: host, Body: &team.ReportUsage{Member: "cy", Usage: team.Usage{InputTokens: 900, OutputTokens: 120}}},
		{Actor: host, Body: &team.ReportStopped{Member: "cy", Reason: "asked"}, At: began + session},
	} {
		if _, err := of.Do(w.t.Context(), c); err != nil {
			w.t.Fatalf("%T: %v", c.Body, err)
		}
	}
	of.View(func(s *team.State) { messages = s.MessageCount() })
	return messages
}

// TestTotals checks that the status of the server has the totals of the teams.
func TestTotals(t *testing.T) {
	w := running(t, func(*Options) {})
	messages := w.work()
	var is coordinator.DaemonStatus
	eventually(t, func() string {
		_, answer := w.ask("daemon_status", nil)
		if err := json.Unmarshal(answer, &is); err != nil {
			t.Fatalf("%v: %s", err, answer)
		}
		if is.Metrics.TotalTokensUsed > 0 { // the team was found, and its last records were read
			return ""
		}
		return fmt.Sprintf("the status is %s", answer)
	})
	if want := (coordinator.Metrics{TotalSessionsSpawned: 1, TotalTasksProcessed: 2, TotalTokensUsed: 1020,
		AverageSessionDuration: session, SuccessRate: 0.5}); is.Metrics != want {
		t.Errorf("the metrics are %+v, want %+v", is.Metrics, want)
	}
	if want := (coordinator.TeamMetrics{TotalTeamsCreated: 1, TotalTeammatesSpawned: 3, TotalTeamTasksCompleted: 1,
		TotalTeamMessages: messages}); is.TeamMetrics != want {
		t.Errorf("the metrics of teams are %+v, want %+v", is.TeamMetrics, want)
	}
}

// TestMetrics checks that Prometheus gets the figures of the teams, of claims over each protocol,
// and of the journals, and that a team that is removed leaves the gauges alone.
func TestMetrics(t *testing.T) {
	w := running(t, func(*Options) {})
	messages := w.work()
	if is, text := w.send("POST", "/v1/teams/port/tasks/3/claim?as=bob", nil); is.StatusCode != http.StatusConflict {
		t.Errorf("a claim of a task of another: %s %s", is.Status, text)
	}
	claim := coordinator.TeamTask{TeamID: "port", TaskID: "3", TeammateID: "bob"}
	if kind, answer := w.ask("team_claim_task", claim); kind != "error" {
		t.Errorf("a claim of a task of another: %s %s", kind, answer)
	}
	want := func(all map[string]string) func() string {
		return func() string {
			for name, value := range all {
				if got := w.metric(name); got != value {
					return fmt.Sprintf("%s is %s, want %s", name, got, value)
				}
			}
			return ""
		}
	}
	eventually(t, want(map[string]string{
		`cadre_tasks{state="completed"}`:                   "1",
		`cadre_tasks{state="failed"}`:                      "1",
		`cadre_tasks{state="in_progress"}`:                 "1",
		`cadre_tokens_total{kind="input",model="default"}`: "900",
		`cadre_attention{kind="task_failed"}`:              "1",
		"cadre_claim_conflicts_total":                      "2",
		"cadre_messages_total":                             strconv.FormatInt(messages, 10),
	}))
	for _, name := range []string{"cadre_journal_append_seconds_count", "cadre_journal_bytes"} {
		if n, err := strconv.ParseFloat(w.metric(name), 64); err != nil || n <= 0 {
			t.Errorf("%s is %s", name, w.metric(name))
		}
	}
	w.post("/v1/teams/port/cleanup", api.Removal{Force: true})
	eventually(t, want(map[string]string{`cadre_tasks{state="completed"}`: "0", `cadre_members{state="active"}`: "0"}))
	if got := w.metric("cadre_messages_total"); got == "0" || got == "missing" {
		t.Errorf("the counters do not keep what the team added: %s", got)
	}
}

// TestMethods checks that a wrong method is answered alike on all paths.
func TestMethods(t *testing.T) {
	nothing := http.NotFoundHandler()
	w := running(t, func(o *Options) { o.Page, o.Data = nothing, nothing })
	for path, allow := range map[string]string{"/": "GET, HEAD", "/assets/x.js": "GET, HEAD", "/metrics": "GET, HEAD",
		"/ws": "GET, HEAD", "/login": "GET, HEAD", "/v1/asyncapi.json": "GET, HEAD", "/v1/teams": "GET, HEAD, POST",
		"/nowhere": "", "/v1/nowhere": ""} {
		is, text := w.send("PUT", path, nil)
		want := http.StatusMethodNotAllowed
		if allow == "" {
			want = http.StatusNotFound
		}
		var p api.Problem
		if err := json.Unmarshal([]byte(text), &p); err != nil || p.Status != want || is.StatusCode != want {
			t.Errorf("PUT %s is answered by %s %s", path, is.Status, text)
		}
		if got := is.Header.Get("Allow"); got != allow {
			t.Errorf("PUT %s: Allow is %q, want %q", path, got, allow)
		}
	}
}

// TestStreamLag: the metric says how far the client that is furthest behind is, and 0 once it has
// read.
func TestStreamLag(t *testing.T) {
	w := running(t, func(*Options) {})
	w.post("/v1/teams", api.TeamSpec{Name: "port"})
	w.post("/v1/teams/port/members", api.MemberSpec{Name: "ann", Agent: team.External})
	if lag := w.metric("cadre_stream_lag_records"); lag != "0" {
		t.Errorf("without a client the lag is %s", lag)
	}
	ctx, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	r, err := http.NewRequestWithContext(ctx, "GET", "http://cadre/v1/teams/port/events?after=0", nil)
	if err != nil {
		t.Fatal(err)
	}
	is, err := w.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer is.Body.Close()
	const messages = 6
	for range messages { // more than the buffers of the connection take
		w.post("/v1/teams/port/messages", api.MessageSpec{To: "ann", Body: strings.Repeat("long ", 150_000)})
	}
	eventually(t, func() string {
		if lag, err := strconv.Atoi(w.metric("cadre_stream_lag_records")); err != nil || lag < 1 || lag > messages {
			return fmt.Sprintf("of %d records that the client does not read, it lacks %d: %v", messages, lag, err)
		}
		return ""
	})
	go io.Copy(io.Discard, is.Body)
	eventually(t, func() string {
		if lag := w.metric("cadre_stream_lag_records"); lag != "0" {
			return "the client has read, and lacks " + lag
		}
		return ""
	})
}
