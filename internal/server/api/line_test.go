package api

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
)

// pipes is a listener whose connections are in memory, so that a test has its own time.
type pipes struct {
	next   chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.next:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "unix"} }

// dialLine connects to a line whose streams the handler answers. What the server logs goes to said.
func dialLine(t *testing.T, streams http.HandlerFunc, said *bytes.Buffer) *websocket.Conn {
	t.Helper()
	at := &pipes{next: make(chan net.Conn), closed: make(chan struct{})}
	served := make(chan struct{})
	s := &http.Server{ErrorLog: log.New(said, "", 0), Handler: http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request) {
		defer close(served)
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer ws.CloseNow()
		if status, why := socketLine(ws, r, streams).serve(ws); why != "" {
			ws.Close(status, why)
		}
	})}
	go s.Serve(at)
	to := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		here, there := net.Pipe()
		select {
		case at.next <- there:
			return here, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
	ws, _, err := websocket.Dial(t.Context(), "ws://cadre/",
		&websocket.DialOptions{HTTPClient: &http.Client{Transport: to}})
	if err != nil {
		t.Fatal(err)
	}
	ws.SetReadLimit(-1)
	t.Cleanup(func() {
		ws.CloseNow()
		<-served
		s.Close()
		to.CloseIdleConnections()
	})
	return ws
}

// TestLineBound: a client that opens and closes streams without end and reads nothing has at most
// 16 handlers, however long they take to end.
func TestLineBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int64
		ws := dialLine(t, func(w http.ResponseWriter, r *http.Request) {
			n := running.Add(1)
			defer running.Add(-1)
			for is := most.Load(); n > is && !most.CompareAndSwap(is, n); is = most.Load() {
			}
			w.Write([]byte("event: a\ndata: b\n\n")) // which nobody reads
			<-r.Context().Done()
		}, &bytes.Buffer{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		sent := 0
		for n := 1; n <= 200; n++ {
			if ws.Write(ctx, websocket.MessageText, fmt.Appendf(nil, `{"open": %d, "at": "/"}`, n)) != nil {
				break
			}
			sent++
			if ws.Write(ctx, websocket.MessageText, fmt.Appendf(nil, `{"close": %d}`, n)) != nil {
				break
			}
		}
		if most.Load() > mostStreams || sent == 200 {
			t.Errorf("%d streams were taken, and %d handlers ran at a time", sent, most.Load())
		}
	})
}

// TestLineNumber: the number of a closed stream carries the next one only when the old handler has
// ended.
func TestLineNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ws := dialLine(t, func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "event: %s\ndata: first\n\n", r.URL.Path)
			<-r.Context().Done()
			time.Sleep(leaving / 2) // the handler takes a while to notice
			fmt.Fprintf(w, "event: %s\ndata: last\n\n", r.URL.Path)
		}, &bytes.Buffer{})
		for _, is := range []string{`{"open": 1, "at": "/old"}`, `{"close": 1}`, `{"open": 1, "at": "/new"}`} {
			if err := ws.Write(t.Context(), websocket.MessageText, []byte(is)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		var all []string
		for range 3 {
			_, data, err := ws.Read(t.Context())
			if err != nil {
				t.Fatal(all, err)
			}
			all = append(all, strings.NewReplacer("1 events\nevent: ", "", "\ndata: ", " ", "\n",
				"").Replace(string(data)))
		}
		if got, want := strings.Join(all, ", "), "/old first, /old last, /new first"; got != want {
			t.Errorf("the parts are %s, want %s", got, want)
		}
	})
}

// TestLinePanic: a panic ends the stream alone, and is logged.
func TestLinePanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		ws := dialLine(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/late" {
				w.Write([]byte("event: a\ndata: b\n\n"))
			}
			if r.URL.Path != "/well" {
				panic("broken")
			}
			w.WriteHeader(http.StatusOK)
		}, &said)
		for n, one := range []struct{ at, want string }{{"/at-once", "1 refused\n{"}, {"/late", "2 events\n"},
			{"", "2 end\n"},
			{"/well", "4 end\n"}} {
			if one.at != "" {
				ask := fmt.Appendf(nil, `{"open": %d, "at": %q}`, n+1, one.at)
				if err := ws.Write(t.Context(), websocket.MessageText, ask); err != nil {
					t.Fatal(err)
				}
			}
			_, data, err := ws.Read(t.Context())
			if err != nil || !strings.HasPrefix(string(data), one.want) {
				t.Fatalf("%s answers %q, %v; want %q", one.at, data, err, one.want)
			}
		}
		synctest.Wait()
		if n := strings.Count(said.String(), "http: panic serving"); n != 2 ||
			!strings.Contains(said.String(), "line_test.go") {
			t.Errorf("the log has %d panics:\n%s", n, said.String())
		}
	})
}

// TestLineParts: events that are sent together come in parts of at most 64 KiB, which end at ends
// of events; an event that is longer comes whole.
func TestLineParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		short := "event: a\ndata: " + strings.Repeat("x", 1000) + "\n\n"
		long := "event: a\ndata: " + strings.Repeat("y", 100_000) + "\n\n"
		want := strings.Repeat(short, 200) + long + short
		ws := dialLine(t, func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(want)) }, &bytes.Buffer{})
		if err := ws.Write(t.Context(), websocket.MessageText, []byte(`{"open": 1, "at": "/"}`)); err != nil {
			t.Fatal(err)
		}
		got := ""
		for {
			_, data, err := ws.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			head, events, _ := strings.Cut(string(data), "\n")
			if head == "1 end" {
				break
			}
			if !strings.HasSuffix(events, "\n\n") || len(events) > maxPart && events != long {
				t.Errorf("a part has %d bytes", len(events))
			}
			got += events
		}
		if got != want {
			t.Errorf("%d bytes came of %d", len(got), len(want))
		}
	})
}

// TestLineUnused: a connection without streams ends after two minutes, and one with a stream stays
// as long as the client answers pings.
func TestLineUnused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ws := dialLine(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, &bytes.Buffer{})
		if err := ws.Write(t.Context(), websocket.MessageText, []byte(`{"open": 1, "at": "/"}`)); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		time.AfterFunc(10*time.Minute, func() {
			ws.Write(context.Background(), websocket.MessageText, []byte(`{"close": 1}`))
		})
		_, _, err := ws.Read(t.Context())
		if is := websocket.CloseStatus(err); is != websocket.StatusNormalClosure {
			t.Errorf("the connection ends with %v", err)
		}
		if took := time.Since(begun); took < 12*time.Minute || took > 13*time.Minute {
			t.Errorf("the connection ends after %s", took)
		}
	})
}
