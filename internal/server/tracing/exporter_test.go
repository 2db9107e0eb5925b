package tracing

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cadre/internal/journal"
	"cadre/internal/journal/memjournal"
	"cadre/internal/replica"
	"cadre/internal/team"
	"cadre/internal/testkit/historytest"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// told returns the history of a story.
func told(t *testing.T, story int) *historytest.Team {
	t.Helper()
	h := historytest.New()
	stories[story].tell(t, h)
	return h
}

func environ(values ...string) func(string) string {
	return func(name string) (value string) {
		for _, v := range values {
			if text, is := strings.CutPrefix(v, name+"="); is {
				value = text
			}
		}
		return value
	}
}

// journaled is a team whose journal grows.
type journaled struct {
	t     *testing.T
	store *memjournal.Store
	n     int64
}

func newJournaled(t *testing.T, records ...*team.Record) *journaled {
	j := &journaled{t: t, store: memjournal.New("core")}
	j.add(records...)
	return j
}

func (j *journaled) add(records ...*team.Record) {
	j.t.Helper()
	handle := j.store.Open()
	defer handle.Close()
	for _, r := range records {
		var err error
		j.n, err = handle.Append(j.t.Context(), j.n, func(journal.Record) error { return nil },
			func() ([]byte, error) { return team.AppendRecord(nil, r), nil })
		if err != nil {
			j.t.Fatal(err)
		}
	}
}

// Team returns the team as the server has it: a replica on its journal.
func (j *journaled) Team() Team {
	return Team{"t1", func(ctx context.Context, after int64) iter.Seq2[*team.Record, error] {
		return func(yield func(*team.Record, error) bool) {
			rep, err := replica.Open(ctx, j.store.Open(), replica.Options{})
			if err != nil {
				yield(nil, err)
				return
			}
			defer rep.Close()
			for r, err := range rep.Watch(ctx, after) {
				if !yield(r, err) {
					return
				}
			}
		}
	}}
}

// bench is an exporter and a receiver in a test bubble.
type bench struct {
	t      *testing.T
	net    *network
	r      *receiver
	folder string

	mu   sync.Mutex
	said []string
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, net: newNetwork(), r: &receiver{t: t}, folder: filepath.Join(t.TempDir(), "traces")}
	server := &http.Server{Handler: b.r}
	served := make(chan struct{})
	go func() {
		defer close(served)
		server.Serve(b.net)
	}()
	t.Cleanup(func() {
		server.Close()
		<-served
	})
	return b
}

// start runs an exporter until stop is called.
func (b *bench) start(teams func() []Team, env ...string) (stop func()) {
	env = append([]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://receiver:4318"}, env...)
	x := New(Options{Environment: environ(env...),
		Version: "1.2.3", Folder: b.folder, Teams: teams, Log: func(text string) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.said = append(b.said, text)
		}})
	x.sender.client.Transport = &http.Transport{DialContext: b.net.dial}
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		x.Run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

func (b *bench) log() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.said, "\n")
}

// elapse lets the time pass, and waits until nothing happens any more.
func elapse(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func namesOf(spans []Span) (names []string) {
	for _, s := range spans {
		names = append(names, s.Name)
	}
	return names
}

func (b *bench) want(spans []Span) {
	b.t.Helper()
	if got, want := b.r.names(), namesOf(spans); !slices.Equal(got, want) {
		b.t.Errorf("the receiver has %q, want %q", got, want)
	}
	if twice := b.r.repeated(); twice != nil {
		b.t.Errorf("sent twice: %q", twice)
	}
}

// TestSpansArrive checks over a real connection that what arrives is what the history has, in both
// encodings, as OpenTelemetry's own types read it.
func TestSpansArrive(t *testing.T) {
	h := told(t, 1)
	want := spansOf(h.Records)
	for _, protocol := range []string{"http/protobuf", "http/json"} {
		t.Run(protocol, func(t *testing.T) {
			r := &receiver{t: t}
			all := make(chan struct{})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
				r.ServeHTTP(w, request)
				if len(r.names()) == len(want) {
					close(all)
				}
			}))
			defer server.Close()
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			x := New(Options{Environment: environ("OTEL_EXPORTER_OTLP_ENDPOINT="+server.URL,
				"OTEL_EXPORTER_OTLP_PROTOCOL="+protocol, "OTEL_BSP_SCHEDULE_DELAY=10",
				"OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20s3cret,x-a=b", "OTEL_RESOURCE_ATTRIBUTES=env=test"),
				Version: "1.2.3", Folder: t.TempDir(),
				Teams: func() []Team { return []Team{newJournaled(t, h.Records...).Team()} },
				Log:   func(text string) { t.Error(text) }})
			go func() {
				defer close(done)
				x.Run(ctx)
			}()
			<-all
			cancel()
			<-done
			if r.headers.Get("Authorization") != "Bearer s3cret" || r.headers.Get("X-A") != "b" {
				t.Errorf("the headers are %v", r.headers)
			}
			for i, s := range r.spans {
				compare(t, s, &want[i])
			}
			if got := texts(r.of[0].Resource.Attributes); got != "env=test service.name=cadre service.version=1.2.3 "+
				"cadre.team=core " {
				t.Errorf("the resource is %s", got)
			}
			if scope := r.of[0].ScopeSpans[0].Scope; scope.Name != "cadre" || scope.Version != "1.2.3" {
				t.Errorf("the scope is %v", scope)
			}
		})
	}
}

func texts(all []*commonpb.KeyValue) string {
	var b strings.Builder
	for _, a := range all {
		switch v := a.Value.Value.(type) {
		case *commonpb.AnyValue_StringValue:
			fmt.Fprintf(&b, "%s=%s ", a.Key, v.StringValue)
		case *commonpb.AnyValue_IntValue:
			fmt.Fprintf(&b, "%s=%d ", a.Key, v.IntValue)
		case *commonpb.AnyValue_DoubleValue:
			fmt.Fprintf(&b, "%s=%g ", a.Key, v.DoubleValue)
		default:
			fmt.Fprintf(&b, "%s is a %T ", a.Key, v)
		}
	}
	return b.String()
}

func ours(all []Attribute) string {
	var b strings.Builder
	for _, a := range all {
		fmt.Fprintf(&b, "%s=%v ", a.Key, a.Value)
	}
	return b.String()
}

// compare fails if the span that arrived is another one.
func compare(t testing.TB, got *tracepb.Span, want *Span) {
	t.Helper()
	parent := want.Parent[:]
	if binary.LittleEndian.Uint64(parent) == 0 {
		parent = nil
	}
	if string(got.SpanId) != string(want.ID[:]) || string(got.ParentSpanId) != string(parent) ||
		len(got.TraceId) != 16 || got.Name != want.Name || got.Kind != tracepb.Span_SPAN_KIND_INTERNAL ||
		got.Flags != 0x101 {
		t.Errorf("%v arrived, want %+v", got, want)
	}
	if got.StartTimeUnixNano != uint64(want.Start)*1e6 || got.EndTimeUnixNano != uint64(want.End)*1e6 {
		t.Errorf("%s lasts from %d to %d", got.Name, got.StartTimeUnixNano, got.EndTimeUnixNano)
	}
	if texts(got.Attributes) != ours(want.Attributes) {
		t.Errorf("%s has %s, want %s", got.Name, texts(got.Attributes), ours(want.Attributes))
	}
	if len(got.Links) != len(want.Links) || len(got.Events) != len(want.Events) ||
		int(got.DroppedLinksCount) != want.DroppedLinks || int(got.DroppedEventsCount) != want.DroppedEvents {
		t.Fatalf("%s has %d links and %d events", got.Name, len(got.Links), len(got.Events))
	}
	for i, l := range want.Links {
		if g := got.Links[i]; string(g.SpanId) != string(l.To[:]) || string(g.TraceId) != string(got.TraceId) ||
			texts(g.Attributes) != ours(l.Attributes) {
			t.Errorf("%s has the link %v, want %v", got.Name, g, l)
		}
	}
	for i, e := range want.Events {
		if g := got.Events[i]; g.Name != e.Name || g.TimeUnixNano != uint64(e.At)*1e6 ||
			texts(g.Attributes) != ours(e.Attributes) {
			t.Errorf("%s has the event %v, want %v", got.Name, g, e)
		}
	}
	if failed := got.Status.GetCode() == tracepb.Status_STATUS_CODE_ERROR; failed != want.Failed ||
		got.Status.GetMessage() != want.Failure {
		t.Errorf("%s ended as %v", got.Name, got.Status)
	}
}

// FuzzSpan checks that a span with any text arrives as it is, in both encodings.
func FuzzSpan(f *testing.F) {
	f.Add("look", "broken \xff utf-8", int64(-1))
	f.Add("", "two\nlines\x00", int64(1)<<62)
	f.Fuzz(func(t *testing.T, name, text string, n int64) {
		o := begin(kindTeam, NewHistory().id("a"), NewHistory().id("b"), name, 5)
		o.set("text", text)
		o.set("n", n)
		o.link(o.Parent, Attribute{"text", clean(text)}, Attribute{"n", n})
		o.event(Event{"e", 6, []Attribute{{"text", words(text)}}})
		o.close(7, text, text, true)
		for kind, request := range map[string][]byte{
			"application/x-protobuf": protoRequest(nil, "1", [][]byte{o.proto([16]byte{1})}),
			"application/json":       jsonRequestOf(nil, "1", [][]byte{o.json([16]byte{1})}),
		} {
			compare(t, decode(t, kind, request).ResourceSpans[0].ScopeSpans[0].Spans[0], &o.Span)
		}
	})
}

// TestRestart checks that an exporter that ended at any record is continued by another one: every
// span is sent once.
func TestRestart(t *testing.T) {
	h := told(t, 0)
	want := spansOf(h.Records)
	for k := range h.Records {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			j := newJournaled(t, h.Records[:k]...)
			teams := func() []Team { return []Team{j.Team()} }
			stop := b.start(teams)
			elapse(6 * time.Second)
			stop()
			stop = b.start(teams)
			synctest.Wait()
			j.add(h.Records[k:]...)
			elapse(6 * time.Second)
			stop()
			b.want(want)
			if b.log() != "" {
				t.Errorf("said: %s", b.log())
			}
		})
	}
}

// TestKilledBeforeTheCursor checks that an exporter which was killed after a batch was sent, and
// before that was saved, sends that batch again with the same ids.
func TestKilledBeforeTheCursor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := told(t, 0)
		b := newBench(t)
		j := newJournaled(t, h.Records[:len(h.Records)-3]...)
		teams := func() []Team { return []Team{j.Team()} }
		stop := b.start(teams)
		elapse(6 * time.Second)
		path := cursors(b.folder).path("t1")
		saved, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		first := len(b.r.names())
		j.add(h.Records[len(h.Records)-3:]...)
		elapse(6 * time.Second)
		stop()
		if err := os.WriteFile(path, saved, 0o600); err != nil {
			t.Fatal(err)
		}
		stop = b.start(teams)
		elapse(6 * time.Second)
		stop()
		all := namesOf(spansOf(h.Records))
		if got, want := b.r.names(), append(slices.Clone(all), all[first:]...); first == 0 || !slices.Equal(got, want) {
			t.Errorf("the receiver has %q, want %q", got, want)
		}
		if got := b.r.repeated(); !slices.Equal(got, all[first:]) {
			t.Errorf("sent again with the same ids: %q, want %q", got, all[first:])
		}
	})
}

// TestDown checks that a receiver that is down for an hour gets everything when it is there again,
// that the person is told once, and that the exporter ends at once meanwhile.
func TestDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := told(t, 0)
		b := newBench(t)
		b.net.set(true)
		j := newJournaled(t, h.Records...)
		stop := b.start(func() []Team { return []Team{j.Team()} })
		elapse(time.Hour)
		if got := b.log(); got != "traces cannot be sent to receiver:4318: connection refused. They are sent when it "+
			"can be reached again" {
			t.Errorf("said: %s", got)
		}
		began := time.Now()
		stop()
		if took := time.Since(began); took > lastTime {
			t.Errorf("it ended after %s", took)
		}
		stop = b.start(func() []Team { return []Team{j.Team()} })
		elapse(time.Minute)
		b.net.set(false)
		elapse(2 * longestPause)
		stop()
		b.want(spansOf(h.Records))
		if !strings.HasSuffix(b.log(), "traces are sent to receiver:4318 again") || len(b.said) != 3 {
			t.Errorf("said: %s", b.log())
		}
	})
}

// TestHangs checks that a receiver that does not answer holds up neither the team nor the end of
// the exporter.
func TestHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := told(t, 0)
		b := newBench(t)
		b.r.answer = func(n int, _ http.ResponseWriter, r *http.Request) bool {
			<-r.Context().Done()
			return true
		}
		j := newJournaled(t, h.Records[:1]...)
		stop := b.start(func() []Team { return []Team{j.Team()} })
		j.add(h.Records[1:]...)
		elapse(6 * time.Second)
		began := time.Now()
		stop()
		if took := time.Since(began); took > lastTime || b.r.requests() != 1 || b.log() != "" {
			t.Errorf("it ended after %s and %d requests, and said: %s", took, b.r.requests(), b.log())
		}
		stop = b.start(func() []Team { return []Team{j.Team()} })
		elapse(20 * time.Second)
		if b.r.requests() < 2 || !strings.Contains(b.log(), "receiver:4318: ") {
			t.Errorf("after %d requests: %s", b.r.requests(), b.log())
		}
		began = time.Now()
		stop()
		if took := time.Since(began); took > lastTime {
			t.Errorf("it ended after %s", took)
		}
		b.r.mu.Lock()
		b.r.answer = nil
		b.r.mu.Unlock()
		stop = b.start(func() []Team { return []Team{j.Team()} })
		elapse(6 * time.Second)
		stop()
		b.want(spansOf(h.Records))
	})
}

// TestBusy checks that a receiver that is busy is asked again after the pause that it wants,
// whether as seconds or as a time, or else after a growing one.
func TestBusy(t *testing.T) {
	for _, c := range []struct {
		name        string
		code        int
		after       string
		least, most time.Duration // of three pauses
	}{
		{"503 with seconds", 503, "90", 270 * time.Second, 275 * time.Second},
		{"429 with a time", 429, "Sat, 01 Jan 2000 00:02:00 GMT", 110 * time.Second, 130 * time.Second},
		{"502", 502, "", 3500 * time.Millisecond, 10500 * time.Millisecond},
		{"504 with nonsense", 504, "soon", 3500 * time.Millisecond, 10500 * time.Millisecond},
		{"503 with a year", 503, "31536000", 3 * longestWish, 3*longestWish + time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := told(t, 0)
				b := newBench(t)
				var times []time.Time
				b.r.answer = func(n int, w http.ResponseWriter, _ *http.Request) bool {
					times = append(times, time.Now())
					if n > 3 {
						return false
					}
					w.Header().Set("Retry-After", c.after)
					w.WriteHeader(c.code)
					return true
				}
				j := newJournaled(t, h.Records...)
				stop := b.start(func() []Team { return []Team{j.Team()} })
				elapse(time.Hour)
				stop()
				b.want(spansOf(h.Records))
				if took := times[3].Sub(times[0]); len(times) != 4 || took < c.least || took > c.most {
					t.Errorf("%d requests within %s, want %s to %s", len(times), took, c.least, c.most)
				}
				if !strings.Contains(b.log(), fmt.Sprintf("it answers HTTP %d", c.code)) || len(b.said) != 2 {
					t.Errorf("said: %s", b.log())
				}
			})
		})
	}
}

// TestRefused checks that a request that is refused for good is not sent again, that later ones are
// sent, that redirects are not followed, and that the person is told once.
func TestRefused(t *testing.T) {
	for code, advice := range map[int]string{400: "", 401: "OTEL_EXPORTER_OTLP_HEADERS",
		404: "the path in OTEL_EXPORTER_OTLP_ENDPOINT", 307: "redirects are not followed", 500: ""} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := told(t, 0)
				b := newBench(t)
				b.r.answer = func(n int, w http.ResponseWriter, r *http.Request) bool {
					if n > 2 {
						return false
					}
					w.Header().Set("Location", "http://receiver:4318/v1/traces")
					w.WriteHeader(code)
					return true
				}
				j := newJournaled(t)
				stop := b.start(func() []Team { return []Team{j.Team()} }, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=1")
				j.add(h.Records...)
				elapse(time.Minute)
				stop()
				b.want(spansOf(h.Records)[2:])
				if got := b.log(); len(b.said) != 1 ||
					!strings.Contains(got, fmt.Sprintf("refused traces with HTTP %d", code)) ||
					!strings.Contains(got, advice) {
					t.Errorf("said: %s", got)
				}
			})
		})
	}
}

// TestPartlyRefused checks that the person is told once what a receiver did not take of a request.
func TestPartlyRefused(t *testing.T) {
	var why message
	why.sub(1, func(m *message) {
		m.varint(1, 2)
		m.text(2, "too old\x1b[31m")
	})
	for protocol, answer := range map[string]string{"http/protobuf": string(why),
		"http/json": `{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too old\u001b[31m"}}`} {
		t.Run(protocol, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := told(t, 0)
				b := newBench(t)
				b.r.answer = func(n int, w http.ResponseWriter, _ *http.Request) bool {
					fmt.Fprint(w, answer)
					return false
				}
				j := newJournaled(t, h.Records...)
				stop := b.start(func() []Team { return []Team{j.Team()} }, "OTEL_EXPORTER_OTLP_PROTOCOL="+protocol,
					"OTEL_BSP_MAX_EXPORT_BATCH_SIZE=1")
				elapse(time.Minute)
				stop()
				b.want(spansOf(h.Records))
				if got := b.log(); len(b.said) != 1 ||
					!strings.HasPrefix(got, "receiver:4318 refused 2 of the spans that it got: too old") ||
					strings.Contains(got, "\x1b") {
					t.Errorf("said: %q", got)
				}
			})
		})
	}
}

// FuzzAnswer checks that no answer of a receiver stops the exporter.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte("\x0a\x0c\x08\x02\x12\x08too many"))
	f.Add([]byte(`{"partialSuccess":{"rejectedSpans":3}}`))
	f.Add([]byte("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, answer []byte) {
		protoRefused(answer)
		jsonRefused(answer)
	})
}

// TestTeamsComeAndGo checks that a team that is listed later is followed, that one which is not
// listed any more is not, and that the cursor of a removed team is removed.
func TestTeamsComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := told(t, 0)
		b := newBench(t)
		j := newJournaled(t, h.Records[:len(h.Records)-1]...)
		var mu sync.Mutex
		var listed []Team
		list := func(teams ...Team) {
			mu.Lock()
			defer mu.Unlock()
			listed = teams
		}
		stop := b.start(func() []Team {
			mu.Lock()
			defer mu.Unlock()
			return listed
		})
		elapse(time.Minute)
		list(j.Team())
		elapse(time.Minute)
		all := spansOf(h.Records)
		b.want(all[:len(all)-1])
		list()
		elapse(time.Minute)
		j.add(h.Records[len(h.Records)-1])
		elapse(time.Minute)
		b.want(all[:len(all)-1])
		list(j.Team())
		elapse(time.Minute)
		b.want(all)
		j.store.Remove()
		elapse(time.Minute)
		if left, err := os.ReadDir(b.folder); err != nil || len(left) != 0 {
			t.Errorf("left in the folder: %v, %v", left, err)
		}
		stop()
		if b.log() != "" {
			t.Errorf("said: %s", b.log())
		}
	})
}

// TestRestoredTeam checks that the cursor of a lost history does not hold for the one that
// continues it, whose records begin with 1 again.
func TestRestoredTeam(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := told(t, 0)
		b := newBench(t)
		n := len(h.Records) - 1
		lost := newJournaled(t, h.Records[:n]...)
		stop := b.start(func() []Team { return []Team{lost.Team()} })
		elapse(time.Minute)
		stop()
		first := len(b.r.names())
		s := &team.State{}
		for _, r := range h.Records[:n] {
			s.Apply(r)
		}
		restored := &historytest.Team{State: &team.State{}, Now: h.Now}
		do(t, restored, team.User, &team.RestoreTeam{From: s})
		do(t, restored, team.User, &team.SetStatus{Status: team.TeamComplete})
		stop = b.start(func() []Team { return []Team{newJournaled(t, restored.Records...).Team()} })
		elapse(time.Minute)
		stop()
		if got := b.r.names()[first:]; !slices.Equal(got, []string{"invoke_workflow core"}) {
			t.Errorf("the restored team has sent %q", got)
		}
		stop = b.start(func() []Team { return []Team{newJournaled(t, restored.Records...).Team()} })
		elapse(time.Minute)
		stop()
		if twice := b.r.repeated(); twice != nil {
			t.Errorf("sent twice: %q", twice)
		}
	})
}

// TestUnreadableHistory checks that a history that cannot be read is tried again after a pause, and
// that the person is told once.
func TestUnreadableHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := told(t, 0)
		b := newBench(t)
		j := newJournaled(t, h.Records...).Team()
		tries := 0
		broken := Team{"t1", func(ctx context.Context, after int64) iter.Seq2[*team.Record, error] {
			return func(yield func(*team.Record, error) bool) {
				if tries++; tries > 3 {
					j.Follow(ctx, after)(yield)
				} else if yield(h.Records[0], nil) {
					yield(nil, errors.New("line 2 is damaged"))
				}
			}
		}}
		stop := b.start(func() []Team { return []Team{broken} })
		elapse(10 * time.Minute)
		stop()
		b.want(spansOf(h.Records))
		if b.log() != "traces pause: the history of team core cannot be read: line 2 is damaged" || tries != 4 {
			t.Errorf("after %d tries, said: %s", tries, b.log())
		}
	})
}

// TestDamagedCursor checks that a cursor that cannot be read or saved does not stop the exporter.
func TestDamagedCursor(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(path string) error
		saved  bool
	}{
		"garbage":                  {func(path string) error { return os.WriteFile(path, []byte("{"), 0o600) }, true},
		"a folder is in its place": {func(path string) error { return os.Mkdir(path, 0o700) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := told(t, 0)
				b := newBench(t)
				if err := errors.Join(os.Mkdir(b.folder, 0o700), c.damage(cursors(b.folder).path("t1"))); err != nil {
					t.Fatal(err)
				}
				j := newJournaled(t, h.Records...)
				stop := b.start(func() []Team { return []Team{j.Team()} })
				elapse(time.Minute)
				stop()
				b.want(spansOf(h.Records))
				if !strings.Contains(b.said[0], "sent again, with the same ids") || (len(b.said) == 1) != c.saved ||
					!c.saved && !strings.Contains(b.said[1], "cannot be saved") {
					t.Errorf("said: %s", b.log())
				}
			})
		})
	}
}

// TestRequestsAreSmall checks that a long history is sent in requests of a bounded size, however
// many spans the person allows in one.
func TestRequestsAreSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := historytest.Long(20_000, 500)
		b := newBench(t)
		largest := int64(0)
		b.r.answer = func(_ int, _ http.ResponseWriter, r *http.Request) bool {
			largest = max(largest, r.ContentLength)
			return false
		}
		j := newJournaled(t, h.Records...)
		stop := b.start(func() []Team { return []Team{j.Team()} }, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=4096")
		elapse(time.Minute)
		stop()
		b.want(spansOf(h.Records))
		if n := b.r.requests(); n < 2 || largest > maxBytes+64<<10 {
			t.Errorf("%d requests of up to %d bytes", n, largest)
		}
	})
}

// TestNothingIsSent checks that an exporter does nothing where the person asked for no traces.
func TestNothingIsSent(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for name, env := range map[string][]string{"nothing is set": nil, "disabled": {"OTEL_SDK_DISABLED=true",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + listener.Addr().String()}} {
		t.Run(name, func(t *testing.T) {
			New(Options{Environment: environ(env...), Folder: filepath.Join(t.TempDir(), "traces"),
				Teams: func() []Team {
					t.Error("it asks for teams")
					return nil
				},
				Log: func(text string) { t.Errorf("said: %s", text) }}).Run(t.Context())
		})
	}
}
