package coordinator_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"cadre/internal/engine"
	"cadre/internal/layout"
	"cadre/internal/server"
	"cadre/internal/server/auth"
	"cadre/internal/server/coordinator"
	"cadre/internal/server/supervisor"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

// TestKeys: a request with a key that is sent again changes nothing and gets the same answer.
func TestKeys(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	c := l.dial()
	id := ""
	steps := []struct {
		kind    string
		payload fields
	}{
		{"create_team", fields{"leadSessionId": "s", "name": "work"}},
		{"spawn_teammate", fields{"name": "ann", "role": "r", "prompt": "p", "agentType": "external"}},
		{"team_create_task", fields{"createdBy": "lead", "title": "one", "description": ""}},
		{"team_update_task", fields{"taskId": "1", "title": "first", "assigneeId": "ann", "status": "in_progress"}},
		{"team_complete_task", fields{"taskId": "1", "teammateId": "ann"}},
		{"team_send_message", fields{"fromId": "lead", "toId": "ann", "content": "x"}},
		{"team_broadcast", fields{"fromId": "lead", "content": "y"}},
		{"team_append_note", fields{"updatedBy": "ann", "key": "plan", "text": "first"}},
	}
	for _, step := range steps {
		if id != "" {
			step.payload["teamId"] = id
		}
		first := c.must(step.kind, step.payload, "key of "+step.kind)
		id = first.TeamID
		again := c.must(step.kind, step.payload, "key of "+step.kind)
		other := l.dial().must(step.kind, step.payload, "key of "+step.kind)
		if again.Seq != first.Seq || string(again.Payload) != string(first.Payload) ||
			string(other.Payload) != string(first.Payload) {
			t.Errorf("first came\n%s\nthen\n%s\nand\n%s", first, again, other)
		}
	}
	if f := c.ask("team_broadcast", fields{"teamId": id, "fromId": "lead", "content": "z"},
		"key of team_create_task"); f.failure().Code != "usage" {
		t.Errorf("the key of another request is answered by %s", f)
	}
	types := map[string]int{}
	for _, f := range c.events {
		types[f.Type]++
	}
	if types["team_created"] != 1 || types["teammate_spawned"] != 1 {
		t.Errorf("there came %v", types)
	}
}

// TestAnswers: without a subscription the event itself is the answer, and so it is if nothing
// changes.
func TestAnswers(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	owner := l.dial()
	id := owner.working("work")
	c := l.dial()
	c.send("team_update_task", fields{"teamId": id, "taskId": "2", "title": "other", "priority": "critical",
		"metadata": fields{"a": 1}})
	if f := c.event("team_task_update"); f.Seq == 0 || f.TeamID != id {
		t.Errorf("got %s", f)
	} else if task := read[coordinator.TaskPayload](t, f).Task; task.Title != "other" || task.Priority != "critical" ||
		len(task.Metadata) != 1 {
		t.Errorf("updated %+v", task)
	}
	c.must("subscribe", fields{"teamId": id})
	c.event("team_status_update")
	c.send("team_update_task", fields{"teamId": id, "taskId": "2", "title": "other"}) // nothing changes
	c.event("team_task_update")
	c.send("team_update_task", fields{"teamId": id, "taskId": "2", "status": "in_progress"})
	if f := c.event("error"); f.failure().Code != "usage" {
		t.Errorf("a task without an assignee is started: %s", f)
	}
	for _, change := range []struct{ set, is string }{{"in_progress", "in_progress"}, {"pending", "pending"},
		{"completed", "completed"}} {
		f := c.must("team_update_task", fields{"teamId": id, "taskId": "2", "status": change.set, "assigneeId": "ann"})
		if change.set == "in_progress" {
			c.must("ping", nil)
		}
		if task := read[coordinator.TaskPayload](t, f).Task; task.Status != change.is {
			t.Errorf("set to %s, the task is %+v", change.set, task)
		}
		if change.set == "pending" {
			break // its assignee is final once it is completed
		}
	}
	if task := read[coordinator.TaskPayload](t, c.must("team_update_task", fields{"teamId": id, "taskId": "2",
		"status": "completed"})).Task; task.Status != "completed" {
		t.Errorf("completed %+v", task)
	}
	c.events = nil
	c.send("team_list_tasks", fields{"teamId": id})
	for i := range 4 {
		if task := read[coordinator.TaskPayload](t, c.event("team_task_update")).Task; task.ID != string(rune('1'+i)) {
			t.Errorf("task %d of the list is %+v", i, task)
		}
	}
	if all := read[coordinator.TasksPayload](t, c.must("team_list_tasks", fields{"teamId": id})); len(all.Tasks) != 4 ||
		all.TeamID != id {
		t.Errorf("the list is %+v", all)
	}
	for kind, answer := range map[string]string{"ping": "pong", "health_check": "health_check_response",
		"daemon_status": "daemon_status"} {
		c.send(kind, nil)
		c.event(answer)
		c.must(kind, nil)
	}
	c.send("unsubscribe", fields{"teamId": id})
	c.event("unsubscribed")
	c.send("subscribe", fields{"teamId": id})
	c.event("subscribed")
}

// TestMode: the mode of a team and its agent go together, and delegate mode is on from the start.
func TestMode(t *testing.T) {
	t.Parallel()
	c := newLab(t).dial()
	made := read[coordinator.TeamPayload](t, c.must("create_team", fields{"leadSessionId": "s", "name": "work",
		"teammateMode": "tmux", "delegateMode": true})).Team
	if made.TeammateMode != "tmux" || made.ResolvedBackend != "tmux" || !made.DelegateMode {
		t.Errorf("created %+v", made)
	}
	c.must("spawn_teammate", fields{"teamId": "work", "name": "ann", "role": "r", "prompt": "p",
		"planApprovalRequired": true})
	is := read[coordinator.TeamPayload](t, c.must("team_status", fields{"teamId": "work"})).Team
	if m := is.Members[1]; m.AgentType != "external" || !m.PlanApprovalRequired { // no coding agent is installed
		t.Errorf("spawned %+v", m)
	}
}

// TestRefusedShutdown: a teammate that refuses to end continues.
func TestRefusedShutdown(t *testing.T) {
	t.Parallel()
	l := newLabWith(t, func(o *server.Options) { o.Shutdown = time.Minute })
	c := l.dial()
	id := c.working("work")
	c.events = nil
	answers := make(chan frame)
	asker := l.dial()
	go func() { answers <- asker.ask("shutdown_teammate", fields{"teamId": id, "memberId": "ann"}) }()
	c.until("team_status_update")
	if m := l.member(id, "ann"); m.Shutdown.Request == "" {
		t.Fatalf("ann was not asked: %+v", m)
	}
	if err := l.engine.AnswerShutdown(context.Background(), id, "ann", false, "not yet",
		func(*engineTeam, *team.ShutdownAnswered) error { return nil }); err != nil {
		t.Fatal(err)
	}
	f := <-answers
	if is := read[coordinator.Departure](t, f); is.Accepted || is.Reason != "not yet" || is.MemberID != "ann" {
		t.Errorf("got %s", f)
	}
	if m := l.member(id, "ann"); m.Shutdown.Request != "" || !m.Status.Running() {
		t.Errorf("ann does not continue: %+v", m)
	}
	go func() { answers <- asker.ask("shutdown_teammate", fields{"teamId": id, "memberId": "ann"}) }()
	for l.member(id, "ann").Shutdown.Request == "" {
		c.until("team_status_update")
	}
	if err := l.engine.AnswerShutdown(context.Background(), id, "ann", true, "",
		func(*engineTeam, *team.ShutdownAnswered) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if is := read[coordinator.Departure](t, <-answers); !is.Accepted {
		t.Errorf("got %+v", is)
	}
	f = c.ask("shutdown_teammate", fields{"teamId": id, "memberId": "ann"})
	if !read[coordinator.Departure](t, f).Accepted {
		t.Errorf("once it has ended, the answer is %s", f)
	}
}

// TestDaemonStatus: the state of the server counts what was found.
func TestDaemonStatus(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	c := l.dial()
	c.working("work")
	var is coordinator.DaemonStatus
	eventually(t, func() bool {
		is = read[coordinator.DaemonStatus](t, c.must("daemon_status", nil))
		return is.Status == "running" && is.ActiveTeams == 1 && is.QueuedTasks == 3
	}, func() { t.Errorf("the state is %+v", is) })
	if is.Subsystems["teams"].Status != "running" || is.Subsystems["teams"].LastCheck == nil || is.Uptime < 0 {
		t.Errorf("the state is %+v", is)
	}
	if !read[coordinator.Health](t, c.must("health_check", nil)).Healthy {
		t.Error("it is not healthy")
	}
}

// TestDescriptionIsServed: the description is at its address.
func TestDescriptionIsServed(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	r, err := (&http.Client{Transport: l.transport()}).Get("http://cadre/v1/asyncapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if data, err := io.ReadAll(r.Body); err != nil || string(data) != string(coordinator.Description) ||
		r.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%s, %d bytes, %v", r.Status, len(data), err)
	}
}

// TestBeat: a connection that does not answer a ping is closed.
func TestBeat(t *testing.T) {
	t.Parallel()
	l := newLabWith(t, func(o *server.Options) { o.Heartbeat = 50 * time.Millisecond })
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := l.transport().DialContext(ctx, "", "")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	silent(t, conn)
}

// TestSocketsAreBounded: one connection more than allowed is refused.
func TestSocketsAreBounded(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(coordinator.New(coordinator.Options{MaxSockets: 1}))
	defer s.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	first, _, err := websocket.Dial(ctx, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, answer, err := websocket.Dial(ctx, s.URL, nil)
	if err == nil || answer == nil || answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a second connection: %v", err)
	}
	first.CloseNow()
	eventually(t, func() bool {
		again, _, err := websocket.Dial(ctx, s.URL, nil)
		if err == nil {
			again.CloseNow()
		}
		return err == nil
	}, func() { t.Error("the first connection still counts") })
}

// TestSlowReader: a client that does not read is disconnected, holds up no other, and continues
// from its cursor.
func TestSlowReader(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newLab(t)
	writer := l.dial()
	id := writer.create("work")
	writer.must("spawn_teammate", fields{"teamId": id, "name": "ann", "role": "r", "prompt": "p",
		"agentType": "external"})
	slow := l.dial()
	slow.must("subscribe", fields{"teamId": id, "after": 0})
	text := strings.Repeat("x", 20_000)
	const messages = 60 // more than the system keeps for a reader
	for range messages {
		writer.must("team_send_message", fields{"teamId": id, "fromId": "lead", "toId": "ann", "content": text})
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for slow.ws.Write(ctx, websocket.MessageText, []byte(`{"type":"ping"}`)) == nil {
	}
	if ctx.Err() != nil {
		t.Fatal("the slow client was not disconnected")
	}
	back, got := l.dial(), 0
	back.must("subscribe", fields{"teamId": id, "after": 0})
	for back.must("team_status", fields{"teamId": id}); len(back.events) > 0; back.events = back.events[1:] {
		if back.events[0].Type == "team_message" {
			got++
		}
	}
	if got != messages {
		t.Errorf("then it got %d messages of %d", got, messages)
	}
}

// TestRoles: a token allows the requests of its role, and none of a higher one.
func TestRoles(t *testing.T) {
	t.Parallel()
	l := newLabWith(t, func(o *server.Options) { o.Listen = "127.0.0.1:0" })
	address := l.server.Address()
	tokens := server.TokensOf(l.engine.Home, func(text string) { t.Log(text) })
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, name := range auth.Roles() {
		role, err := auth.ParseRole(name)
		if err != nil {
			t.Fatal(err)
		}
		token, err := tokens.Create("of-"+name, role)
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(token.File)
		if err != nil {
			t.Fatal(err)
		}
		_, value, _ := strings.Cut(strings.TrimSpace(string(data)), " ")
		ws, _, err := websocket.Dial(ctx, "ws://"+address+"/ws", &websocket.DialOptions{HTTPHeader: http.Header{
			"Authorization": {"Bearer " + value}}})
		if err != nil {
			t.Fatal(err)
		}
		defer ws.CloseNow()
		c := &client{t: t, ws: ws, asked: map[string]string{}}
		for kind, needs := range coordinator.RolesOfRequests() {
			// a request that is allowed fails later: the team does not exist
			f := c.ask(kind, coordinator.SamplePayload(kind, "no where"))
			denied := f.Type == "error" && f.failure().Code == "denied"
			if denied != (role < needs) {
				t.Errorf("a token with the role %s asks %s, which needs %s: %s", name, kind, needs, f)
			}
		}
	}
	_, answer, err := websocket.Dial(ctx, "ws://"+address+"/ws", nil)
	if err == nil || answer == nil || answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a token: %v", err)
	}
	_, answer, err = websocket.Dial(ctx, "ws://"+address+"/ws", &websocket.DialOptions{Host: "evil.example"})
	if err == nil || answer == nil || answer.StatusCode != http.StatusForbidden {
		t.Errorf("with another host: %v", err)
	}
}

// silent opens a WebSocket by hand, answers nothing, and waits until the server closes it.
func silent(t *testing.T, conn net.Conn) {
	t.Helper()
	conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, "GET /ws HTTP/1.1\r\nHost: cadre\r\nUpgrade: websocket\r\nConnection: "+
		"Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(data), "HTTP/1.1 101") {
		t.Errorf("%v after %q", err, data)
	}
}

// statusOf returns the state of a server, as a client on its own connection gets it.
func statusOf(t *testing.T, s *coordinator.Server) coordinator.DaemonStatus {
	t.Helper()
	handler := func(w http.ResponseWriter, r *http.Request) {
		s.ServeHTTP(w, r.WithContext(auth.With(r.Context(), auth.Principal{Role: auth.Observe})))
	}
	listening := httptest.NewServer(http.HandlerFunc(handler))
	defer listening.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ws, _, err := websocket.Dial(ctx, listening.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.CloseNow()
	c := &client{t: t, ws: ws, asked: map[string]string{}}
	return read[coordinator.DaemonStatus](t, c.must("daemon_status", nil))
}

// TestPhases: the state of the server says when it has not looked at its teams yet, and when it
// stops.
func TestPhases(t *testing.T) {
	t.Parallel()
	e := &engine.Engine{Home: layout.Home{Root: t.TempDir()}}
	keeps, err := supervisor.Open(supervisor.Options{Engine: e, File: filepath.Join(t.TempDir(), "teams.json"),
		Log: func(text string) { t.Log(text) }})
	if err != nil {
		t.Fatal(err)
	}
	s := coordinator.New(coordinator.Options{Engine: e, Keeps: keeps})
	is := statusOf(t, s)
	if is.Status != "initializing" || is.Subsystems["teams"].Status != "initializing" {
		t.Errorf("at first it is %+v", is)
	}
	keeps.See(nil, time.Now())
	if is = statusOf(t, s); is.Status != "running" || is.Subsystems["supervisor"].Status != "running" {
		t.Errorf("then it is %+v", is)
	}
	if err := keeps.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	if is = statusOf(t, s); is.Status != "stopped" || is.Subsystems["supervisor"].Status != "stopped" {
		t.Errorf("while it stops it is %+v", is)
	}
}

// last reads a connection to its end, and returns the last frame and how the server closed it.
func (c *client) last() (f frame, closed websocket.CloseError) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		_, data, err := c.ws.Read(ctx)
		if err != nil {
			if !errors.As(err, &closed) {
				c.t.Errorf("the connection is not closed: %v", err)
			}
			return f, closed
		}
		f = frame{}
		if err := errors.Join(json.Unmarshal(data, &f), coordinator.ValidFrame(data, "")); err != nil {
			c.t.Fatalf("%v: %s", err, data)
		}
	}
}

// TestStop: a server that stops says so last, and closes its connections.
func TestStop(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	c := l.dial()
	id := c.working("work")
	last := c.events[len(c.events)-1]
	l.stop()
	f, closed := c.last()
	is := read[coordinator.DaemonStatus](t, f)
	if f.Type != "daemon_status" || is.Status != "stopped" || closed.Code != websocket.StatusGoingAway {
		t.Errorf("the last frame is %s, and the connection is closed by %v", f, closed)
	}
	if err := <-l.ended; err != nil {
		t.Error(err)
	}
	l.start()
	back := l.dial()
	back.must("subscribe", fields{"teamId": id, "after": last.Seq})
	back.must("team_broadcast", fields{"teamId": id, "fromId": "lead", "content": "back"})
	if f := back.event("team_message"); f.Seq <= last.Seq {
		t.Errorf("after %s came %s", last, f)
	}
}

// TestRemovedToken: a connection is closed when the token is removed with which it was opened.
func TestRemovedToken(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newLabWith(t, func(o *server.Options) { o.Listen = "127.0.0.1:0" })
	c := l.dialAs(auth.Observe)
	if err := server.TokensOf(l.engine.Home, func(string) {}).Remove("observes"); err != nil {
		t.Fatal(err)
	}
	if _, closed := c.last(); closed.Code != websocket.StatusPolicyViolation ||
		!strings.Contains(closed.Reason, "token") {
		t.Errorf("it is closed by %v", closed)
	}
}

// TestNoWebSocket: a request that is no handshake is refused.
func TestNoWebSocket(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	r, err := (&http.Client{Transport: l.transport()}).Get("http://cadre/ws")
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusUpgradeRequired {
		t.Errorf("it is answered by %s", r.Status)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, answer, err := websocket.Dial(ctx, "ws://cadre/ws",
		&websocket.DialOptions{HTTPClient: &http.Client{Transport: l.transport()},
			HTTPHeader: http.Header{"Origin": {"http://evil.example"}}})
	if err == nil || answer == nil || answer.StatusCode != http.StatusForbidden {
		t.Errorf("a page of another origin connects: %v", err)
	}
}
