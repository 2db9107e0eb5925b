package filejournal_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"cadre/internal/journal/filejournal"
	"cadre/internal/journal/journaltest"
	"cadre/internal/testkit/soak"
)

// ledger compares a journal with the acknowledgements that its writers got.
type ledger struct {
	mu    sync.Mutex
	acked map[int64]string // seq to id
}

// note records a child's output, which has a line "seq id" for each record.
func (l *ledger) note(t *testing.T, out string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(out) {
		if !strings.HasSuffix(line, "\n") {
			continue // killed while writing the line
		}
		var seq int64
		var id string
		if _, err := fmt.Sscan(line, &seq, &id); err != nil {
			t.Errorf("a child said %q", line)
			continue
		}
		if other, ok := l.acked[seq]; ok {
			t.Errorf("record %d was acknowledged to be %s and %s", seq, other, id)
		}
		l.acked[seq] = id
	}
}

// check reads a journal from the start: every acknowledged record is in its place, and none is
// there twice.
func (l *ledger) check(t *testing.T, dir string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	j, err := filejournal.Open(dir, filejournal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	seen := map[string]int{}
	all := journaltest.All(t, j, 0)
	for i, data := range all {
		var r struct{ ID string }
		if err := json.Unmarshal([]byte(data), &r); err != nil {
			t.Fatal(err)
		}
		seq := int64(i + 1)
		if seen[r.ID]++; seen[r.ID] > 1 {
			t.Errorf("%s is there twice", r.ID)
		}
		if want, ok := l.acked[seq]; ok && want != r.ID {
			t.Errorf("record %d is %s and was acknowledged to be %s", seq, r.ID, want)
		}
	}
	for seq, id := range l.acked {
		if seq > int64(len(all)) {
			t.Errorf("record %d, %s, was acknowledged and is not there", seq, id)
		}
	}
}

// TestKill kills writers at each step of an append, a rotation and a snapshot, and at random
// moments, while others continue. The journal keeps every acknowledged record, and the next writer
// can use it.
func TestKill(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	atSteps, atRandom := 280, 260
	if testing.Short() {
		atSteps, atRandom = 60, 20
	}
	dir := create(t, filejournal.Options{})
	book := ledger{acked: map[int64]string{}}
	const segment = 2000 // a few records, so that every run rotates
	t.Run("at a step", func(t *testing.T) {
		inParallel(atSteps, func(n int) {
			c := start(t, task{Role: "append", Dir: dir, Name: fmt.Sprint("step", n), SegmentSize: segment,
				KillAt: n + 1, Data: strings.Repeat("x", 100)})
			out, err := c.end()
			if err == nil || strings.Contains(out, "error") {
				t.Errorf("a child was to be killed at step %d: %s %v", n+1, out, err)
			}
			book.note(t, out)
			if n%20 == 19 {
				book.check(t, dir)
			}
		})
	})
	t.Run("at any moment", func(t *testing.T) {
		inParallel(atRandom, func(n int) {
			c := start(t, task{Role: "append", Dir: dir, Name: fmt.Sprint("random", n), SegmentSize: segment,
				Data: strings.Repeat("x", 100)})
			first := c.line()
			kill := time.AfterFunc(time.Duration(rand.IntN(5000))*time.Microsecond, func() { c.cmd.Process.Kill() })
			defer kill.Stop()
			out, err := c.end()
			if err == nil || strings.Contains(first+out, "error") {
				t.Errorf("a child was to be killed: %s %v", out, err)
			}
			if first != "" {
				out = first + "\n" + out
			}
			book.note(t, out)
			if n%20 == 19 {
				book.check(t, dir)
			}
		})
	})
	j := open(t, dir, filejournal.Options{})
	last, err := journaltest.Add(t.Context(), j, 0, `{"id":"after"}`)
	if err != nil {
		t.Fatal(err)
	}
	book.acked[last] = "after"
	book.check(t, dir)
	if s, err := j.Snapshot(t.Context()); err != nil || s.Seq == 0 {
		t.Errorf("snapshot: %d, %v", s.Seq, err)
	}
	kept, err := j.Keyframes(t.Context())
	if err != nil || len(kept) < 10 {
		t.Errorf("keyframes: %d, %v", kept, err)
	}
	for _, seq := range kept {
		if s, err := j.Keyframe(t.Context(), seq); err != nil || s.Seq != seq ||
			s.Data != fmt.Sprintf(`{"at":%d}`, seq) {
			t.Errorf("the keyframe of record %d is %+v, %v", seq, s, err)
		}
	}
	t.Logf("%d processes killed, %d of %d records acknowledged", atSteps+atRandom, len(book.acked), last)
}

// inParallel calls body for 0 to n-1, three at a time.
func inParallel(n int, body func(int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range 3 {
		wg.Go(func() {
			for i := range next {
				body(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

// TestManyProcesses appends from several processes at once. All records are there, each once and in
// one order.
func TestManyProcesses(t *testing.T) {
	t.Parallel()
	processes, each := 24, 100
	if testing.Short() {
		processes, each = 16, 20
	}
	dir := create(t, filejournal.Options{})
	book := ledger{acked: map[int64]string{}}
	var children []*child
	for n := range processes {
		children = append(children, start(t, task{Role: "append", Dir: dir, Name: fmt.Sprint(n), Count: each,
			SegmentSize: 20_000}))
	}
	for _, c := range children {
		out, err := c.end()
		if err != nil {
			t.Errorf("%s: %v", out, err)
		}
		book.note(t, out)
	}
	if len(book.acked) != processes*each {
		t.Errorf("%d records were acknowledged, want %d", len(book.acked), processes*each)
	}
	book.check(t, dir)
}
