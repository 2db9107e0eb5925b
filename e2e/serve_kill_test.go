package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"cadre/internal/replica"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"
	teamclient "cadre/pkg/teams/client"
)

// mortal is a server that is killed during steps. After each kill another one is started.
type mortal struct {
	*process
	start func() *process
	delay func() time.Duration // from the beginning of a step to the kill
	steps int
	cut   int // steps that were not over when the server was killed
}

// forMoments plays something with a server that is killed once in each step: at a random moment. In
// a soak it is played again and again. The moment is then the same in each step, and a millisecond
// later each time, until it is after the end of every step.
func forMoments(t *testing.T, start func() *process, play func(m *mortal, round int)) {
	t.Helper()
	const last = 40 // milliseconds; a step takes some ten
	m := &mortal{process: start(), start: start}
	for round := range soak.Of(1, last) {
		m.delay = func() time.Duration { return time.Duration(rand.Int64N(30e6)) }
		if soak.Wanted() {
			m.delay = func() time.Duration { return time.Duration(round*1e6 + rand.IntN(1e6)) }
		}
		play(m, round)
		if t.Failed() {
			t.Fatalf("it failed in round %d", round)
		}
	}
	t.Logf("of %d steps, %d were not over when the server was killed", m.steps, m.cut)
}

// during does a step, and kills the server meanwhile. It returns the step's error, when the next
// server has answered.
func (m *mortal) during(step func() error) error {
	done := make(chan error, 1)
	go func() { done <- step() }()
	<-time.After(m.delay())
	if m.steps++; len(done) == 0 {
		m.cut++
	}
	m.kill()
	m.process = m.start()
	return <-done
}

// seen is what a client saw: of which record, and the rest of its cursor.
type seen struct {
	seq  int64
	what string
}

// before returns what was seen of the records before that one.
func before(seq int64, all []seen) (some []seen) {
	for _, one := range all {
		if one.seq < seq {
			some = append(some, one)
		}
	}
	return some
}

// subscribed follows team demo over the WebSockets of all servers up to a record.
func (w *world) subscribed(ctx context.Context, upTo *atomic.Int64) (events []seen) {
	var seq, part int64
	for ctx.Err() == nil && (upTo.Load() == 0 || seq < upTo.Load()) {
		ws, _, err := websocket.Dial(ctx, "ws://cadre/ws", &websocket.DialOptions{HTTPClient: w.socket()})
		if err != nil {
			<-time.After(10 * time.Millisecond)
			continue
		}
		ws.SetReadLimit(1 << 20)
		cursor := fmt.Sprintf(`"after":%d`, seq)
		if part > 0 {
			cursor += fmt.Sprintf(`,"part":%d`, part)
		}
		ask := `{"type":"subscribe","payload":{"teamId":"demo",` + cursor + `}}`
		err = ws.Write(ctx, websocket.MessageText, []byte(ask))
		for err == nil && (upTo.Load() == 0 || seq < upTo.Load()) {
			var data []byte
			if _, data, err = ws.Read(ctx); err != nil {
				break
			}
			var frame struct {
				Type      string
				Seq, Part int64
			}
			if json.Unmarshal(data, &frame) != nil || frame.Type == "error" {
				return append(events, seen{seq, string(data)})
			}
			if frame.Seq > 0 {
				seq, part = frame.Seq, frame.Part
				events = append(events, seen{seq, fmt.Sprintf("%s, part %d", frame.Type, part)})
			}
		}
		ws.CloseNow()
	}
	return events
}

// followers are clients of three kinds that follow team demo over all servers: Server-Sent Events,
// WebSocket, and the client for Go.
type followers struct {
	w       *world
	upTo    atomic.Int64 // the last record to see, once it is known
	all     sync.WaitGroup
	records []int64 // of Server-Sent Events
	frames  []seen  // of the WebSocket
	facts   []seen  // of the client for Go
}

func (w *world) follow(ctx context.Context, c *teamclient.Client) *followers {
	f := &followers{w: w}
	f.all.Go(func() { f.records = w.followed(ctx, "demo", &f.upTo) })
	f.all.Go(func() { f.frames = w.subscribed(ctx, &f.upTo) })
	f.all.Go(func() { f.facts = factsOf(ctx, c, &f.upTo) })
	return f
}

// factsOf follows team demo with the client for Go up to a record.
func factsOf(ctx context.Context, c *teamclient.Client, upTo *atomic.Int64) (facts []seen) {
	for e, err := range c.Events(ctx, "demo", 0) {
		if err != nil {
			return append(facts, seen{e.Seq, err.Error()})
		}
		facts = append(facts, seen{e.Seq, fmt.Sprintf("%T", e.Fact)})
		if last := upTo.Load(); last > 0 && e.Seq >= last {
			break
		}
	}
	return facts
}

// check waits until the followers have seen the team up to its present end. It compares what they
// saw with what a client sees that was never interrupted.
func (f *followers) check(ctx context.Context, c *teamclient.Client) {
	t := f.w.t
	t.Helper()
	last := f.w.seq()
	f.upTo.Store(last)
	f.w.must("send", "demo", "--to", "lead", "another record, which wakes the clients")
	f.all.Wait()
	var whole atomic.Int64
	whole.Store(last)
	for i, seq := range f.records {
		if seq != int64(i+1) {
			t.Fatalf("Server-Sent Events: record %d is in the place of %d", seq, i+1)
		}
	}
	if int64(len(f.records)) < last {
		t.Errorf("Server-Sent Events: %d of %d records", len(f.records), last)
	}
	for name, saw := range map[string]struct{ got, want []seen }{
		"the WebSocket":     {f.frames, f.w.subscribed(ctx, &whole)},
		"the client for Go": {f.facts, factsOf(ctx, c, &whole)},
	} {
		got, want := before(last, saw.got), before(last, saw.want)
		if !slices.Equal(got, want) || len(got) == 0 {
			t.Errorf("%s showed\n%v\nnot\n%v", name, got, want)
		}
	}
}

// TestServeRounds kills the server of a working team again and again, and at times the host of the
// team too, while a client adds tasks and others follow. Each task is added once and completed
// once. The followers miss nothing and see nothing twice. A soak kills hundreds of servers.
func TestServeRounds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.serve()
	kills := soak.Of(4, 300)
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience+time.Duration(kills)*10*time.Second)
	defer cancel()
	c, err := teamclient.Open(teamclient.Options{Home: w.home})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.CreateTeam(ctx, teamclient.TeamSpec{Name: "demo"}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ann", "bob", "eve"} {
		if _, err := c.Spawn(ctx, "demo", teamclient.MemberSpec{Name: name, Agent: "shell"}); err != nil {
			t.Fatal(err)
		}
	}
	following := w.follow(ctx, c)
	var adding sync.WaitGroup
	var added atomic.Int64
	over := make(chan struct{})
	for range 3 {
		adding.Go(func() { w.addTasks(ctx, &added, over) })
	}
	rep := w.replica("demo")
	defer rep.Close()
	for round := range kills {
		for target := rep.Seq() + 1 + rand.Int64N(12); rep.Seq() < target; {
			if err := rep.Wait(ctx, rep.Seq()); err != nil {
				t.Fatal(err)
			}
		}
		p.kill()
		if round%4 == 3 {
			w.killHosts(w.teamDir())
		}
		p = w.serve()
	}
	close(over)
	adding.Wait()
	tasks := int(added.Load())
	w.untilCompleted(tasks)
	following.check(ctx, c)
	w.onceEach(rep, tasks)
	t.Logf("%d servers were killed while %d tasks were added", kills, tasks)
}

// onceEach checks that each of so many tasks was added once and completed once.
func (w *world) onceEach(rep *replica.Replica, tasks int) {
	w.t.Helper()
	created, completed := map[string]int{}, map[string]int{}
	for r, err := range rep.Read(w.t.Context(), 0) {
		if err != nil {
			w.t.Fatal(err)
		}
		for _, e := range r.Events {
			switch e := e.(type) {
			case *team.TaskCreated:
				created[e.Task.Subject]++
			case *team.TaskCompleted:
				completed[e.Task]++
			}
		}
	}
	for i := 1; i <= tasks; i++ {
		if n := created[fmt.Sprint("number ", i)]; n != 1 {
			w.t.Errorf("number %d was added %d times", i, n)
		}
		if n := completed[fmt.Sprint(i)]; n != 1 {
			w.t.Errorf("task %d was completed %d times", i, n)
		}
	}
}

// addTasks adds tasks to team demo, one after the other, until it is over. Each gets the next
// number.
func (w *world) addTasks(ctx context.Context, added *atomic.Int64, over <-chan struct{}) {
	for {
		select {
		case <-over:
			return
		default:
		}
		n := added.Add(1)
		add := request{method: "POST", path: "/v1/teams/demo/tasks",
			body: fmt.Sprintf(`{"subject":"number %d","run":"sleep 0.0%d","retries":9}`, n, rand.IntN(9))}
		if err := w.insist(ctx, add, fmt.Sprint("task ", n)); err != nil {
			w.t.Error(err)
			return
		}
	}
}
