package coordinator

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"cadre/internal/access"
	"cadre/internal/agent"
	"cadre/internal/layout"
	"cadre/internal/server/auth"
)

// stopped returns the frames that a client gets of a server that stops after the first one.
func stopped(t *testing.T, who auth.Principal) (frames []string) {
	t.Helper()
	s := New(Options{})
	handler := func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		ctx, end := context.WithCancel(context.Background())
		c := &conn{server: s, who: who, ws: ws, ctx: ctx, end: end}
		c.send(answerFrame{Type: "pong", Payload: Empty{}})
		s.stopped = true
		c.finish()
		c.send(answerFrame{Type: "pong", Payload: Empty{}}) // an event of a subscription that has not ended yet
		c.leave()
	}
	listening := httptest.NewServer(http.HandlerFunc(handler))
	defer listening.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ws, _, err := websocket.Dial(ctx, listening.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.CloseNow()
	for {
		_, data, err := ws.Read(ctx)
		if websocket.CloseStatus(err) == websocket.StatusGoingAway {
			return frames
		}
		if err != nil {
			t.Fatal(err)
		}
		frames = append(frames, string(data))
	}
}

// TestLastFrame: nothing is sent after the frame that says that the server has stopped.
func TestLastFrame(t *testing.T) {
	frames := stopped(t, auth.Principal{Role: auth.Observe})
	if len(frames) != 2 || !strings.Contains(frames[1], `"status":"stopped"`) {
		t.Errorf("there came %q", frames)
	}
}

// TestLastFrameOfAMember: a member is not told the state of the server, which is about all teams.
func TestLastFrameOfAMember(t *testing.T) {
	t.Setenv(agent.TeamVariable, "demo")
	t.Setenv(agent.MemberVariable, "ann")
	member, err := access.Who(layout.Home{Root: t.TempDir()})
	if err != nil || member.IsUser() {
		t.Fatalf("%s, %v", member, err)
	}
	if frames := stopped(t, auth.Principal{Caller: member, Role: auth.Admin}); len(frames) != 1 {
		t.Errorf("there came %q", frames)
	}
}
