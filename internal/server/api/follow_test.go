package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cadre/internal/engine"
	"cadre/internal/layout"
	"cadre/internal/server/api"
	"cadre/internal/server/auth"
	"cadre/internal/team"
)

// TestNoTear checks that a state and the events after it fit together, while a writer adds records:
// each reader applies the events to the state at its seq, and has then the state of the end.
func TestNoTear(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	of := l.create(members("ann")...)
	const records, readers = 300, 8
	last := of.Seq() + records
	var all sync.WaitGroup
	all.Go(func() {
		for i := range records {
			act(t, of, team.User, &team.CreateTask{Subject: fmt.Sprint("task ", i)})
		}
	})
	ends := make([]*team.State, readers)
	for i := range readers {
		all.Go(func() { ends[i] = rebuilt(l, i, last) })
	}
	all.Wait()
	if err := of.Refresh(within(t)); err != nil {
		t.Fatal(err)
	}
	of.View(func(s *team.State) {
		want := string(team.AppendSnapshot(nil, s))
		for i, end := range ends {
			if end == nil || string(team.AppendSnapshot(nil, end)) != want {
				t.Errorf("reader %d has another state at the end", i)
			}
		}
	})
}

// rebuilt reads a state of the team, and follows the events after it to the record last. It returns
// the state that they make.
func rebuilt(l *lab, i int, last int64) *team.State {
	is := l.send("GET", demo, nil)
	var now struct {
		Seq      int64
		Tasks    []struct{ ID string }
		Messages int64
	}
	if err := json.Unmarshal(is.body, &now); err != nil ||
		!strings.HasPrefix(is.header.Get("ETag"), fmt.Sprintf(`"%d-`, now.Seq)) {
		l.t.Errorf("%v: %v", err, is.header)
		return nil
	}
	state := &team.State{} // as it is at that seq
	for _, r := range ask[[]raw](l.client, "GET", demo+"/records", nil) {
		if record := decoded(l.t, r); record.Seq <= now.Seq {
			state.Apply(record)
		}
	}
	if n := len(collect(state)); state.Seq() != now.Seq || n != len(now.Tasks) || state.MessageCount() != now.Messages {
		l.t.Errorf("reader %d: the state at %d has %d tasks, and the answer %d", i, now.Seq, n, len(now.Tasks))
	}
	s := l.stream(fmt.Sprint(demo, "/events?after=", now.Seq))
	for state.Seq() < last {
		e := s.next()
		record := decoded(l.t, raw(e.data))
		if record.Seq != state.Seq()+1 || e.id != strconv.FormatInt(record.Seq, 10) {
			l.t.Errorf("reader %d: after %d comes %d, with the id %s", i, state.Seq(), record.Seq, e.id)
			return nil
		}
		state.Apply(record)
	}
	return state
}

// decoded returns the record that an answer has.
func decoded(t testing.TB, data raw) *team.Record {
	var head struct{ Seq int64 }
	err := json.Unmarshal(data, &head)
	var r *team.Record
	if err == nil {
		r, err = team.DecodeRecord(head.Seq, string(data))
	}
	if err != nil {
		t.Errorf("%v: %.300s", err, data)
		return &team.Record{}
	}
	return r
}

// TestManyReaders checks that 200 clients, half of which read nothing, keep no record from a
// writer, and that the others get each record once.
func TestManyReaders(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	of := l.create(members("ann")...)
	clients, records := 200, int64(1000)
	if testing.Short() {
		clients, records = 40, 300
	}
	first := of.Seq()
	var all sync.WaitGroup
	for i := range clients {
		s := l.stream(fmt.Sprint(demo, "/events?after=", first))
		if i%2 == 1 { // it has connected, and reads nothing
			continue
		}
		s.checker = nil // other tests check these
		all.Go(func() {
			for seq := first + 1; seq <= first+records; seq++ {
				if e, err := s.read(); err != nil || e.id != strconv.FormatInt(seq, 10) {
					t.Errorf("client %d: %+v instead of %d, %v", i, e, seq, err)
					return
				}
			}
		})
	}
	for i := range records {
		act(t, of, team.User, &team.SendMessage{To: "ann", Body: fmt.Sprint("message ", i, " ", filler)})
	}
	all.Wait()
	if of.Seq() != first+records {
		t.Errorf("%d records", of.Seq()-first)
	}
}

// filler makes records long enough for them to fill the buffers of a connection that nobody reads.
var filler = string(slices.Repeat([]byte{'x'}, 2000))

// TestCameBack checks that a client that is disconnected misses nothing and gets nothing twice.
func TestCameBack(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	of := l.create(members("ann")...)
	seen := "0"
	for i := range 20 {
		act(t, of, team.User, &team.CreateTask{Subject: fmt.Sprint(i)})
		s := l.stream(demo+"/events", "Last-Event-ID", seen)
		for seen != strconv.FormatInt(of.Seq(), 10) {
			e := s.next()
			was, _ := strconv.Atoi(seen)
			if e.id != strconv.Itoa(was+1) {
				t.Fatalf("after %s comes %s", seen, e.id)
			}
			seen = e.id
		}
		s.close()
	}
}

// TestBeat checks that a stream that has nothing to say shows that it is alive.
func TestBeat(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	of := l.create(&team.SpawnMember{Name: "gus", Agent: team.Claude})
	l.api = api.New(api.Options{Engine: l.Engine, Keeps: l.keeps, Beat: time.Millisecond})
	c := &client{t, l.listen(l.socket+"2", as(auth.Principal{Role: auth.Admin})), l.checker}
	for _, path := range []string{fmt.Sprint(demo, "/events?after=", of.Seq()), demo + "/members/gus/session",
		"/v1/watch"} {
		s := c.stream(path)
		for range 3 {
			line, err := s.lines.ReadString('\n')
			if err != nil || line != ": nothing new\n" {
				t.Fatalf("%s: %q, %v", path, line, err)
			}
			s.lines.ReadString('\n')
		}
		s.close()
	}
}

// appendWord makes this test program append records to a team, and print the 99th percentile of
// what one took, in microseconds.
const appendWord = "append-for-a-test"

func appendHere(home layout.Home, name string) {
	const records = 2000
	of, err := (&engine.Engine{Home: home}).Open(context.Background(), name)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	defer of.Close()
	var took []time.Duration
	offered := time.NewTicker(time.Millisecond)
	defer offered.Stop()
	for i := range records {
		<-offered.C
		began := time.Now()
		if _, err := of.Do(context.Background(), team.Command{Actor: team.User,
			Body: &team.CreateTask{Subject: fmt.Sprint("task ", i)}}); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	fmt.Println(took[records*99/100].Microseconds())
}

// BenchmarkAppend offers a team 1,000 records a second, from a process beside the server as a host
// is one. p99-ratio is the 99th percentile of an append while 200 clients follow the team, half of
// which read nothing, over the one without clients.
func BenchmarkAppend(b *testing.B) {
	p99 := func(clients int) float64 {
		l := newLab(b)
		of := l.create(members("ann")...)
		for i := range clients {
			s := l.stream(fmt.Sprint(demo, "/events?after=", of.Seq()))
			if i%2 == 0 {
				go io.Copy(io.Discard, s.lines)
			}
		}
		out, err := exec.Command(os.Args[0], appendWord, l.Home.Root, l.Home.Claude, "demo").CombinedOutput()
		if err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		took, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
		if err != nil {
			b.Fatal(err)
		}
		return took
	}
	for b.Loop() {
		alone, with := p99(0), p99(200)
		b.ReportMetric(alone, "µs-alone")
		b.ReportMetric(with, "µs-with-clients")
		b.ReportMetric(with/alone, "p99-ratio")
	}
}
