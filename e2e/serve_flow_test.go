package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cadre/internal/team"
	teamclient "cadre/pkg/teams/client"
)

// request is a request of a flow. It is sent again with the same key until it is answered.
type request struct {
	method, path, body string
	events             []string // kinds of events that it records
}

// flow is the life of a team, over HTTP.
var flow = []request{
	{"POST", "/v1/teams", `{"name":"demo","goal":"Ship it."}`, []string{"team_created"}},
	{"POST", "/v1/teams/demo/members", `{"name":"ann","agent":"external","role":"reviewer"}`,
		[]string{"member_spawned"}},
	{"POST", "/v1/teams/demo/members", `{"name":"bob","agent":"external"}`, []string{"member_spawned"}},
	{"POST", "/v1/teams/demo/tasks", `{"name":"look","subject":"Look at it","priority":"high"}`,
		[]string{"task_created"}},
	{"POST", "/v1/teams/demo/tasks", `{"name":"mend","subject":"Mend it","blockedBy":["look"]}`,
		[]string{"task_created"}},
	{"POST", "/v1/teams/demo/tasks/claim?as=ann", ``, []string{"task_claimed"}},
	{"POST", "/v1/teams/demo/messages?as=ann", `{"to":"bob","body":"I look at it."}`, []string{"message_sent"}},
	{"POST", "/v1/teams/demo/tasks/look/complete?as=ann", `{"result":"It is broken."}`, []string{"task_completed"}},
	{"POST", "/v1/teams/demo/tasks/mend/claim?as=bob", ``, []string{"task_claimed"}},
	{"POST", "/v1/teams/demo/tasks/mend/complete?as=bob", `{"result":"Mended."}`, []string{"task_completed"}},
	{"POST", "/v1/teams/demo/broadcasts", `{"body":"All done."}`, []string{"message_sent"}},
	{"POST", "/v1/teams/demo/members/ann/shutdown", `{"reason":"done"}`, []string{"shutdown_requested"}},
	{"POST", "/v1/teams/demo/members/ann/shutdown/answer", `{"approved":true}`, []string{"shutdown_answered"}},
	{"POST", "/v1/teams/demo/members/bob/shutdown", `{"reason":"done"}`, []string{"shutdown_requested"}},
	{"POST", "/v1/teams/demo/members/bob/shutdown/answer", `{"approved":true}`, []string{"shutdown_answered"}},
}

// TestServeFlow: a team's whole life over HTTP, while the server is killed during each request.
// Each request happens once. Clients that follow the events miss none and see none twice. A soak
// kills the server at each moment of each request.
func TestServeFlow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	forMoments(t, func() *process { return w.serve() }, func(m *mortal, round int) { w.lifeOverHTTP(m, round) })
}

// lifeOverHTTP plays the flow.
func (w *world) lifeOverHTTP(m *mortal, round int) {
	t := w.t
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	c, err := teamclient.Open(teamclient.Options{Home: w.home})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var following *followers
	for i, one := range flow {
		key := fmt.Sprintf("round %d, step %d", round, i)
		if err := m.during(func() error { return w.insist(ctx, one, key) }); err != nil {
			t.Fatalf("step %d, %s: %v", i, one.path, err)
		}
		if i == 0 {
			following = w.follow(ctx, c)
		}
	}
	w.happenedOnce(ctx)
	following.check(ctx, c)
	cleanup := request{method: "POST", path: "/v1/teams/demo/cleanup", body: `{}`}
	if err := w.insist(ctx, cleanup, fmt.Sprintf("round %d, cleanup", round)); err != nil {
		t.Error(err)
	}
	if out := w.must("ls"); strings.Contains(out, "demo") {
		t.Errorf("after the cleanup there is\n%s", out)
	}
}

// happenedOnce checks that the requests of the flow happened once, and in their order.
func (w *world) happenedOnce(ctx context.Context) {
	w.t.Helper()
	var want []string
	for _, one := range flow {
		want = append(want, one.events...)
	}
	said := []string{"I look at it.", "All done."}
	var got []string
	rep := w.replica("demo")
	defer rep.Close()
	for r, err := range rep.Read(ctx, 0) {
		if err != nil {
			w.t.Fatal(err)
		}
		for _, e := range r.Events {
			sent, is := e.(*team.MessageSent) // the team also sends notices
			if slices.Contains(want, e.Kind()) && (!is || slices.Contains(said, sent.Message.Body)) {
				got = append(got, e.Kind())
			}
		}
	}
	if !slices.Equal(got, want) {
		w.t.Errorf("the history has\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// insist sends a request until it is answered. A server that was killed answers nothing.
func (w *world) insist(ctx context.Context, s request, key string) error {
	client := w.socket()
	for {
		r, err := http.NewRequestWithContext(ctx, s.method, "http://cadre"+s.path, bytes.NewReader([]byte(s.body)))
		if err != nil {
			return err
		}
		r.Header.Set("Idempotency-Key", key)
		r.Header.Set("Content-Type", "application/json")
		answer, err := client.Do(r)
		if err != nil {
			if ctx.Err() != nil {
				return err
			}
			<-time.After(10 * time.Millisecond)
			continue
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil { // killed while it answered
			continue
		}
		if answer.StatusCode >= 300 {
			return fmt.Errorf("%s: %s", answer.Status, body)
		}
		return nil
	}
}

// followed follows the events of a team over all servers up to a record, and returns their numbers.
func (w *world) followed(ctx context.Context, name string, upTo *atomic.Int64) (seqs []int64) {
	client := w.socket()
	last := int64(0)
	over := func() bool { return upTo.Load() > 0 && last >= upTo.Load() }
	for ctx.Err() == nil && !over() {
		r, _ := http.NewRequestWithContext(ctx, "GET",
			fmt.Sprintf("http://cadre/v1/teams/%s/events?after=%d", name, last), nil)
		answer, err := client.Do(r)
		if err != nil {
			<-time.After(10 * time.Millisecond)
			continue
		}
		lines := bufio.NewScanner(answer.Body)
		lines.Buffer(nil, 1<<20)
		id := int64(0)
		for !over() && lines.Scan() {
			if text, is := strings.CutPrefix(lines.Text(), "id: "); is {
				id, _ = strconv.ParseInt(text, 10, 64)
			}
			if data, is := strings.CutPrefix(lines.Text(), "data: "); is && id > 0 {
				var record struct{ Seq int64 }
				if json.Unmarshal([]byte(data), &record) != nil || record.Seq != id {
					break // the server was killed while it wrote the line
				}
				seqs, last, id = append(seqs, id), id, 0
			}
		}
		answer.Body.Close()
	}
	return seqs
}
