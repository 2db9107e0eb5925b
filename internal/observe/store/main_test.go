package store

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cadre/internal/observe"
	"cadre/internal/observe/present"
	"cadre/internal/observe/source"
	"cadre/internal/team"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

// recording returns a recording of a real program.
func recording(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "testdata", "claude", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// ticks returns a clock that advances by a millisecond at each call, so that the same lines have
// the same times.
func ticks() func() team.Time {
	now := team.Time(1795219500000)
	return func() team.Time { now++; return now }
}

// running is a running watch.
type running struct {
	*Watch
	t    *testing.T
	stop context.CancelFunc
	done chan error

	mu    sync.Mutex
	seen  []observe.Seen
	wakes chan struct{}
}

// run starts a watch on the feeds. It ends with the test, or with finish.
func run(t *testing.T, w *Watch, feeds ...source.Feed) *running {
	t.Helper()
	r := &running{Watch: w, t: t, done: make(chan error, 1), wakes: make(chan struct{}, 1)}
	if w.Now == nil {
		w.Now = ticks()
	}
	w.Look = func(_ Observer, seen observe.Seen) error {
		r.mu.Lock()
		r.seen = append(r.seen, seen)
		r.mu.Unlock()
		select {
		case r.wakes <- struct{}{}:
		default:
		}
		return nil
	}
	if err := w.Begin(t.Context(), Team(observe.Options{})); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	r.stop = stop
	go func() { r.done <- w.Run(ctx, feeds...) }()
	t.Cleanup(stop)
	return r
}

// finish waits until all feeds have ended.
func (r *running) finish() {
	r.t.Helper()
	select {
	case err := <-r.done:
		if err != nil {
			r.t.Fatal(err)
		}
	case <-time.After(patience):
		r.t.Fatal("the watch does not end")
	}
}

// end cancels the watch.
func (r *running) end() { r.t.Helper(); r.stop(); r.finish() }

// until waits until holds returns true.
func (r *running) until(what string, holds func(o Observer) bool) {
	r.t.Helper()
	for deadline := time.After(patience); ; {
		ok := false
		r.View(func(o Observer) { ok = holds(o) })
		if ok {
			return
		}
		select {
		case <-r.wakes:
		case <-time.After(5 * time.Millisecond): // an irrelevant line does not wake it
		case <-deadline:
			r.View(func(o Observer) { r.t.Fatalf("%s: %+v\n%s", what, o.Counts(), jsonOf(present.StateOf(o.Team()))) })
		}
	}
}

func (r *running) state() string {
	var s string
	r.View(func(o Observer) { s = stateOf(o) })
	return s
}

// stateOf returns the state with members sorted by name, because their order depends on whose lines
// are read first.
func stateOf(o Observer) string {
	s := present.StateOf(o.Team())
	if s != nil {
		slices.SortFunc(s.Members, func(a, b present.TeamMember) int { return strings.Compare(a.Name, b.Name) })
	}
	return jsonOf(s)
}

func jsonOf(v any) string {
	out, _ := json.Marshal(v)
	return string(out)
}

// plainly returns the state that an observer makes directly from the lines of some sources.
func plainly(sources ...[]byte) string {
	o, now := observe.New(observe.Options{}), ticks()
	for i, data := range sources {
		for line := range bytes.Lines(data) {
			o.Line(string(rune('a'+i)), line, now())
		}
	}
	return stateOf(o)
}

func appendTo(t testing.TB, path string, data []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func lines(n int64) func(Observer) bool {
	return func(o Observer) bool { return o.Counts().Lines >= n }
}
