package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"cadre/internal/server/auth"
	"cadre/internal/team"
)

// line is a connection for several streams.
type line struct {
	t   testing.TB
	ctx context.Context
	ws  *websocket.Conn
	got map[string]string // what came of each stream, by the first lines of the parts
}

func (c *client) line() *line {
	c.t.Helper()
	ctx := within(c.t)
	ws, _, err := websocket.Dial(ctx, "ws://cadre/board/streams", &websocket.DialOptions{HTTPClient: c.http})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { ws.CloseNow() })
	return &line{c.t, ctx, ws, map[string]string{}}
}

func (l *line) send(format string, args ...any) {
	l.t.Helper()
	if err := l.ws.Write(l.ctx, websocket.MessageText, fmt.Appendf(nil, format, args...)); err != nil {
		l.t.Fatal(err)
	}
}

// until reads until the parts of a stream have the text, and forgets them.
func (l *line) until(head, text string) {
	l.t.Helper()
	for !strings.Contains(l.got[head], text) {
		_, data, err := l.ws.Read(l.ctx)
		if err != nil {
			l.t.Fatalf("%s with %q does not come: %v", head, text, err)
		}
		is, rest, _ := strings.Cut(string(data), "\n")
		l.got[is] += rest
	}
	delete(l.got, head)
}

// TestStreams follows several streams over one connection, each from its own cursor.
func TestStreams(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	of := l.create(members("ann")...)
	s := l.line()
	s.send(`{"open": 1, "at": "%s/events?after=0"}`, demo)
	s.send(`{"open": 2, "at": "%s/events?after=%d"}`, demo, of.Seq())
	s.until("1 events", "\nid: 2\nevent: record\n")
	r := act(t, of, team.User, &team.CreateTask{Subject: "one"})
	for _, head := range []string{"1 events", "2 events"} {
		s.until(head, fmt.Sprintf("id: %d\n", r.Seq))
	}
	s.send(`{"close": 1}`)
	s.send(`{"open": 1, "at": "%s/events?after=%d"}`, demo, r.Seq)
	r = act(t, of, team.User, &team.CreateTask{Subject: "two"})
	for _, head := range []string{"1 events", "2 events"} {
		s.until(head, fmt.Sprintf("id: %d\n", r.Seq))
	}
	for at, code := range map[string]string{
		demo + "/events?after=1000":      `"code":"ahead"`,
		"/v1/teams/other/events":         `"code":"not_found"`,
		demo + "/members/nobody/session": `"code":"not_found"`,
		demo:                             `"code":"not_found"`, // a route, and no stream
		"/v1/teams/..%2F..%2Fetc/events": `"code":"not_found"`,
		"http://[::1":                    `"code":"usage"`,
	} {
		s.send(`{"open": 3, "at": %q}`, at)
		s.until("3 refused", code)
	}
}

// TestStreamsRefused: a client that does not keep to the form, or opens too much, loses the
// connection; a sender without rights gets the refusal of the route.
func TestStreamsRefused(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.create()
	many := []string{}
	for i := range 17 {
		many = append(many, fmt.Sprintf(`{"open": %d, "at": "/v1/watch"}`, i+1))
	}
	for name, asks := range map[string][]string{"text": {"hello"}, "both": {`{"open": 1, "close": 1}`}, "none": {`{}`},
		"twice": {many[0], many[0]}, "many": many, "long": {`{"at": "` + strings.Repeat("x", 9<<10) + `"}`}} {
		s := l.line()
		for _, ask := range asks {
			if s.ws.Write(s.ctx, websocket.MessageText, []byte(ask)) != nil {
				break
			}
		}
		var err error
		for err == nil {
			_, _, err = s.ws.Read(s.ctx)
		}
		want := websocket.StatusPolicyViolation
		if name == "long" {
			want = websocket.StatusMessageTooBig
		}
		if is := websocket.CloseStatus(err); is != want {
			t.Errorf("%s: the connection ends with %d: %v", name, is, err)
		}
	}
	s := l.as(auth.Principal{Token: "none"}).line()
	s.send(`{"open": 1, "at": "%s/events?after=0"}`, demo)
	s.until("1 refused", `"status":4`)
	r, err := l.http.Get("http://cadre/board/streams")
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusUpgradeRequired {
		t.Errorf("without a WebSocket it answers %d", r.StatusCode)
	}
}

// TestStreamsAsEvents follows several streams over one answer of server-sent events, each from its
// own cursor, as over a WebSocket.
func TestStreamsAsEvents(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	of := l.create(members("ann")...)
	follow := func(addresses ...string) (next func(head, text string)) {
		s, got := l.stream("/board/events?"+url.Values{"at": addresses}.Encode()), map[string]string{}
		s.checker = nil // it is for routes of the API
		return func(head, text string) {
			t.Helper()
			for !strings.Contains(got[head], text) {
				var part string
				if err := json.Unmarshal([]byte(s.next().data), &part); err != nil {
					t.Fatal(err)
				}
				is, rest, _ := strings.Cut(part, "\n")
				got[is] += rest
			}
			if n := strings.Count(got[head], text); n != 1 {
				t.Errorf("%s has %d times %q", head, n, text)
			}
			delete(got, head)
		}
	}
	next := follow(demo+"/events?after=0", demo+fmt.Sprint("/events?after=", of.Seq()), demo+"/events?after=1000",
		"/v1/teams/other/events", demo, "http://[::1")
	next("1 events", "\nid: 2\nevent: record\n")
	for head, code := range map[string]string{"3 refused": `"code":"ahead"`, "4 refused": `"code":"not_found"`,
		"5 refused": `"code":"not_found"`, "6 refused": `"code":"usage"`} {
		next(head, code)
	}
	r := act(t, of, team.User, &team.CreateTask{Subject: "one"})
	for _, head := range []string{"1 events", "2 events"} {
		next(head, fmt.Sprintf("id: %d\n", r.Seq))
	}
	act(t, of, team.User, &team.CreateTask{Subject: "two"})
	next = follow(demo + fmt.Sprint("/events?after=", r.Seq)) // after what was read
	next("1 events", fmt.Sprintf("id: %d\n", r.Seq+1))

	// all streams have ended, and so does the answer
	if is := l.text("/board/events?at=" + demo + "&at=/v1/teams/other/events"); strings.Count(is, "data: ") != 2 {
		t.Errorf("streams that are refused answer %s", is)
	}
	for query, want := range map[string]string{"": "names 0", "?" + strings.Repeat("at=/v1/watch&", 17): "names 17"} {
		if is := l.send("GET", "/board/events"+query, nil); is.status != 400 ||
			!strings.Contains(string(is.body), want) {
			t.Errorf("%q answers %d %s", query, is.status, is.body)
		}
	}
	is := l.as(auth.Principal{Token: "none"}).text("/board/events?at=" + demo + "/events")
	if !strings.Contains(is, "1 refused") || strings.Contains(is, "1 events") {
		t.Errorf("a sender without rights reads %s", is)
	}
}

// text returns an answer that ends.
func (c *client) text(path string) string {
	c.t.Helper()
	r, err := c.http.Get("http://cadre" + path)
	if err != nil {
		c.t.Fatal(err)
	}
	defer r.Body.Close()
	data, err := io.ReadAll(r.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(data)
}
