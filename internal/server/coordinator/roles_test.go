package coordinator_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"cadre/internal/server"
	"cadre/internal/server/auth"
)

// dialAs connects over TCP with a new token of that role.
func (l *lab) dialAs(role auth.Role) *client {
	l.t.Helper()
	tokens := server.TokensOf(l.engine.Home, func(string) {})
	if _, err := tokens.Create(role.String()+"s", role); err != nil {
		l.t.Fatal(err)
	}
	value, err := tokens.Value(role.String() + "s")
	if err != nil {
		l.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ws, _, err := websocket.Dial(ctx, "ws://"+l.server.Address()+"/ws",
		&websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + value}}})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { ws.CloseNow() })
	return &client{t: l.t, ws: ws, asked: map[string]string{}}
}

// TestModeOfTheLead: a token that may not run commands adds no teammate that asks nobody because
// its lead asks nobody.
func TestModeOfTheLead(t *testing.T) {
	t.Parallel()
	l := newLabWith(t, func(o *server.Options) { o.Listen = "127.0.0.1:0" })
	for _, name := range []string{"careful", "free"} {
		mode := map[string]string{"careful": "default", "free": "bypassPermissions"}[name]
		r, err := (&http.Client{Transport: l.transport()}).Post("http://cadre/v1/teams", "application/json",
			strings.NewReader(`{"name":"`+name+`","permissionMode":"`+mode+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if r.StatusCode != http.StatusOK {
			t.Fatalf("team %s: %s", name, r.Status)
		}
	}
	c := l.dialAs(auth.Steer)
	spawn := func(team string) fields {
		return fields{"teamId": team, "name": "ann", "role": "r", "prompt": "p", "agentType": "external"}
	}
	c.refused("denied", "spawn_teammate", spawn("free"))
	c.must("spawn_teammate", spawn("careful"))
}
