package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// answers answers each request for a stream with the bytes. It calls enough before the third one.
type answers struct {
	sent    []byte
	streams int // requests for streams
	enough  func()
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	body := a.sent
	if strings.HasSuffix(r.URL.Path, "/status") {
		body = []byte(`{"id":"demo-1","name":"demo"}`)
	} else if a.streams++; a.streams > 2 {
		a.enough()
		return nil, r.Context().Err()
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: r,
		Body: io.NopCloser(bytes.NewReader(body))}, nil
}

// FuzzStream: whatever a server sends as a stream, the client takes the whole events of it, each
// once and in order, or says what is wrong. It does not end otherwise, and its call ends.
func FuzzStream(f *testing.F) {
	const record = `{"seq":1,"id":"c","actor":"@user","at":5,"events":[{"kind":"task_created","task":{"id":"1","subject":"a"}}]}`
	for _, text := range []string{"", ":\n\n", "id: 1\nevent: record\ndata: " + record + "\n\n",
		"event: problem\ndata: {\"code\":\"gone\",\"seq\":7}\n\n", "event: end\ndata: {}\n\n",
		"event: record\ndata: {\n\n",
		"id: x\nevent: entry\ndata: {\"seq\":1}\n\n", "data: " + record + "\r\n\r\n", "event\n\n\n",
		"id: 1\nevent: record\n",
		"event: record\ndata: " + strings.Replace(record, `"seq":1`, `"seq":9`, 1) + "\n\n",
		"event: teams\ndata: {\"teams\":[null]}\n\n", "event: record\ndata: null\n\n", strings.Repeat("x", 70_000)} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		synctest.Test(t, func(t *testing.T) { takes(t, sent) }) // its own time, for the waits between connections
	})
}

// takes checks what a client makes of a stream that a server sends over each of two connections.
func takes(t *testing.T, sent []byte) {
	// ended says that a stream ended by what it brought; otherwise it broke, and was opened again
	over := func(name string, read func(ctx context.Context, c *Client, server *answers) (ended bool)) {
		ctx, enough := context.WithCancel(t.Context())
		defer enough()
		server := &answers{sent: sent, enough: enough}
		o := Options{Silence: time.Minute, Patience: time.Minute}
		c := &Client{connection: &connection{options: o, base: "http://cadre", http: &http.Client{Transport: server}}}
		c.done, c.end = context.WithCancelCause(t.Context())
		defer c.end(nil)
		if ended := read(ctx, c, server); !ended && server.streams < 3 {
			t.Errorf("%s of %q ends after %d connections", name, sent, server.streams)
		}
	}
	over("listen", func(ctx context.Context, c *Client, _ *answers) bool {
		n := 0
		err := c.listen(ctx, get("watch"), func(event) error {
			n++
			return nil
		})
		if _, broken := errors.AsType[*brokenError](err); !broken {
			t.Fatalf("%q ends with %v", sent, err)
		}
		if whole := strings.Count(string(sent), "\n"); n > whole {
			t.Errorf("%q has %d events", sent, n)
		}
		return true
	})
	// a stream that breaks is opened again until its context ends, and each event comes once
	over("Events", func(ctx context.Context, c *Client, server *answers) bool {
		var last int64
		from := 0 // the connection that brought the record
		for e, err := range c.Events(ctx, "demo", 0) {
			if err != nil {
				return !errors.Is(err, context.Canceled)
			}
			if e.Seq < last || e.Seq > last+1 {
				t.Fatalf("%q gives event %d after %d", sent, e.Seq, last)
			}
			if last != e.Seq {
				from = server.streams
			}
			if server.streams != from {
				t.Fatalf("%q gives event %d again over connection %d", sent, e.Seq, server.streams)
			}
			last = e.Seq
		}
		return true
	})
	over("Watch", func(ctx context.Context, c *Client, _ *answers) bool {
		for _, err := range c.Watch(ctx) {
			if err != nil {
				return !errors.Is(err, context.Canceled)
			}
		}
		return true
	})
	over("Session", func(ctx context.Context, c *Client, _ *answers) bool {
		for _, err := range c.Session(ctx, "demo", "ann") {
			if err != nil {
				return !errors.Is(err, context.Canceled)
			}
		}
		return true
	})
}
