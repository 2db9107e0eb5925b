// Package journaltest is the conformance suite for journals: the contract of package journal as
// tests, and benchmarks that compare implementations.
//
// Each test gets a function that opens handles on one new, empty journal. The handles stand for
// processes.
package journaltest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cadre/internal/journal"
)

// Open creates an empty journal and returns a function that opens another handle on it. Run closes
// the handles.
type Open func(testing.TB) (handle func() journal.Journal)

// Run tests a journal against the contract.
func Run(t *testing.T, open Open) {
	tests := []struct {
		name string
		run  func(*testing.T, func() journal.Journal)
	}{
		{"an empty journal", testEmpty},
		{"records come back in order, from any cursor", testOrder},
		{"data comes back as it was", testData},
		{"append shows what the caller does not know", testCatchUp},
		{"racing handles never decide on the same state", testConflict},
		{"racing goroutines of one handle", testOneHandle},
		{"decide may refuse or write nothing", testDecide},
		{"catchUp may fail", testCatchUpFails},
		{"a caller cannot know more than the journal", testAhead},
		{"a panic in decide releases the lock", testPanic},
		{"snapshots", testSnapshots},
		{"keyframes", testKeyframes},
		{"a snapshot is due after enough history", testSnapshotDue},
		{"wait wakes, at once and later", testWait},
		{"watch loses nothing", testWatch},
		{"a reader may stop early", testStopEarly},
		{"a deadline ends the wait for other writers", testDeadline},
		{"an ended context ends every call", testCancelled},
		{"close ends calls in progress", testClose},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			handle := open(t)
			test.run(t, func() journal.Journal {
				j := handle()
				t.Cleanup(func() { j.Close() })
				return j
			})
		})
	}
}

func testEmpty(t *testing.T, open func() journal.Journal) {
	j := open()
	if got := All(t, j, 0); len(got) != 0 {
		t.Errorf("read: %q", got)
	}
	s, err := j.Snapshot(t.Context())
	if err != nil || s.Seq != 0 || s.Data != "" {
		t.Errorf("snapshot: %+v, %v", s, err)
	}
	if j.SnapshotDue(1) {
		t.Error("a snapshot of nothing is due")
	}
}

func testOrder(t *testing.T, open func() journal.Journal) {
	a, b := open(), open()
	const n = 20
	fill(t, a, n)
	for _, j := range []journal.Journal{a, b, open()} {
		for after := int64(n); after >= 0; after-- {
			got := All(t, j, after)
			if int64(len(got)) != n-after {
				t.Fatalf("read after %d: %d records", after, len(got))
			}
			for i, data := range got {
				if data != fmt.Sprint(after+int64(i)+1) {
					t.Fatalf("read after %d: record %d is %s", after, after+int64(i)+1, data)
				}
			}
		}
	}
}

func testData(t *testing.T, open func() journal.Journal) {
	long, _ := json.Marshal(strings.Repeat("long ", 1<<18))
	values := []string{`0`, `""`, `null`, `{}`, `[{"a":"}\n{"}]`, `"line\nbreak"`, `"  é 漢 \u0000 "`, string(long),
		`{"seq":1,"crc":"00000000","data":1}`}
	a, b := open(), open()
	for i, v := range values {
		if _, err := Add(t.Context(), a, int64(i), v); err != nil {
			t.Fatalf("append %.40s: %v", v, err)
		}
	}
	for _, j := range []journal.Journal{a, b} {
		for i, got := range All(t, j, 0) {
			if got != values[i] {
				t.Errorf("record %d: got %.40s, want %.40s", i+1, got, values[i])
			}
		}
	}
	if _, err := Add(t.Context(), a, int64(len(values)), "{not json"); err == nil {
		t.Error("data that is not JSON was accepted")
	}
	if _, err := Add(t.Context(), a, int64(len(values)), "{\n\"a\":\n1}"); err != nil {
		t.Errorf("JSON of several lines: %v", err)
	}
	var out bytes.Buffer
	if got := All(t, b, int64(len(values))); len(got) != 1 || json.Compact(&out, []byte(got[0])) != nil ||
		out.String() != `{"a":1}` {
		t.Errorf("JSON of several lines: %q", got)
	}
}

func testCatchUp(t *testing.T, open func() journal.Journal) {
	a, b := open(), open()
	fill(t, a, 5)
	for _, after := range []int64{0, 3, 5} {
		seen := after
		_, err := b.Append(t.Context(), after, func(r journal.Record) error {
			if r.Seq != seen+1 || string(r.Data) != fmt.Sprint(r.Seq) {
				t.Errorf("after %d: was shown %d %s", seen, r.Seq, r.Data)
			}
			seen = r.Seq
			return nil
		}, func() ([]byte, error) {
			if seen != 5 {
				t.Errorf("decides on the state at %d", seen)
			}
			return nil, nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// testConflict tests the conflict rule as users see it: each record names the state that it was
// decided on, and that must be the state right before it.
func testConflict(t *testing.T, open func() journal.Journal) {
	const writers, each = 8, 25
	var wg sync.WaitGroup
	for i := range writers {
		j := open()
		wg.Go(func() { appendOwn(t, j, i, each) })
	}
	wg.Wait()
	checkOwn(t, open(), writers, each)
}

func testOneHandle(t *testing.T, open func() journal.Journal) {
	const writers, each = 8, 25
	j := open()
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() { appendOwn(t, j, i, each) })
	}
	wg.Wait()
	checkOwn(t, j, writers, each)
}

type own struct{ Writer, N, On int64 }

func appendOwn(t *testing.T, j journal.Journal, writer, each int) {
	state := int64(0)
	for n := range each {
		seq, err := j.Append(t.Context(), state, func(r journal.Record) error {
			state = r.Seq
			return nil
		}, func() ([]byte, error) {
			return json.Marshal(own{int64(writer), int64(n), state})
		})
		if err != nil || seq != state+1 {
			t.Errorf("append: seq %d decided on %d: %v", seq, state, err)
			return
		}
		state = seq
	}
}

func checkOwn(t *testing.T, j journal.Journal, writers, each int) {
	next := make([]int64, writers)
	all := All(t, j, 0)
	for i, data := range all {
		var o own
		if err := json.Unmarshal([]byte(data), &o); err != nil {
			t.Fatal(err)
		}
		if o.On != int64(i) {
			t.Fatalf("record %d was decided on the state at %d", i+1, o.On)
		}
		if o.N != next[o.Writer] {
			t.Fatalf("writer %d: record %d, expected %d", o.Writer, o.N, next[o.Writer])
		}
		next[o.Writer]++
	}
	if len(all) != writers*each {
		t.Fatalf("%d records, want %d", len(all), writers*each)
	}
}

func testDecide(t *testing.T, open func() journal.Journal) {
	j := open()
	fill(t, j, 2)
	refusal := errors.New("no")
	nothing := func(journal.Record) error { return nil }
	if _, err := j.Append(t.Context(), 2, nothing, func() ([]byte, error) {
		return []byte("3"),
			refusal
	}); err != refusal {
		t.Errorf("refused: got %v, want the refusal as it is", err)
	}
	if seq, err := j.Append(t.Context(), 0, nothing, func() ([]byte, error) { return nil, nil }); seq != 2 ||
		err != nil {
		t.Errorf("nothing to write: got %d, %v", seq, err)
	}
	if got := All(t, open(), 0); len(got) != 2 {
		t.Errorf("records: %q", got)
	}
}

func testCatchUpFails(t *testing.T, open func() journal.Journal) {
	j := open()
	fill(t, j, 2)
	broken := errors.New("broken")
	_, err := j.Append(t.Context(), 0, func(journal.Record) error { return broken }, func() ([]byte, error) {
		t.Error("decide was called")
		return nil, nil
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	fill3, err := Add(t.Context(), open(), 2, "3")
	if fill3 != 3 || err != nil {
		t.Errorf("append after that: %d, %v", fill3, err)
	}
}

func testAhead(t *testing.T, open func() journal.Journal) {
	j := open()
	fill(t, j, 1)
	if _, err := Add(t.Context(), j, 7, "8"); err == nil {
		t.Error("a caller that knows record 7 of a journal of one was not refused")
	}
	if got := All(t, j, 7); len(got) != 0 {
		t.Errorf("read: %q", got)
	}
}

func testPanic(t *testing.T, open func() journal.Journal) {
	a, b := open(), open()
	func() {
		defer func() { recover() }()
		a.Append(t.Context(), 0, nil, func() ([]byte, error) { panic("decide") })
	}()
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	for i, j := range []journal.Journal{b, a} {
		if _, err := Add(ctx, j, int64(i), "1"); err != nil {
			t.Error(err)
		}
	}
}

func testSnapshots(t *testing.T, open func() journal.Journal) {
	a, b := open(), open()
	fill(t, a, 5)
	save := func(j journal.Journal, seq int64, data string) {
		t.Helper()
		if err := j.SaveSnapshot(t.Context(), journal.Snapshot{Seq: seq, Data: data}.Taken); err != nil {
			t.Errorf("save %d: %v", seq, err)
		}
	}
	expect := func(seq int64, data string) {
		t.Helper()
		for _, j := range []journal.Journal{a, b, open()} {
			s, err := j.Snapshot(t.Context())
			if err != nil || s.Seq != seq || s.Data != data {
				t.Errorf("got %d %s, %v, want %d %s", s.Seq, s.Data, err, seq, data)
			}
			if got := All(t, j, s.Seq); int64(len(got)) != 5-seq {
				t.Errorf("records after the snapshot: %q", got)
			}
		}
	}
	save(a, 3, `{"n":3}`)
	expect(3, `{"n":3}`)
	save(b, 2, `{"n":2}`) // older: dropped
	expect(3, `{"n":3}`)
	save(b, 5, `{"n":5}`)
	expect(5, `{"n":5}`)
	if err := a.SaveSnapshot(t.Context(), journal.Snapshot{Seq: 9, Data: `9`}.Taken); err == nil {
		t.Error("a snapshot of a state that is not there yet was taken")
	}
	expect(5, `{"n":5}`)
}

func testKeyframes(t *testing.T, open func() journal.Journal) {
	a, b := open(), open()
	if seqs, err := a.Keyframes(t.Context()); err != nil || len(seqs) != 0 {
		t.Errorf("an empty journal has the keyframes %d, %v", seqs, err)
	}
	const records = 20
	fill(t, a, records)
	data := func(seq int64) string { return fmt.Sprintf(`{"n":%d}`, seq) }
	for seq := int64(1); seq <= records; seq++ {
		s := journal.Snapshot{Seq: seq, Data: data(seq)}
		if err := b.SaveKeyframe(t.Context(), s); err != nil {
			t.Error(err)
		}
		if seq%3 == 0 {
			if err := a.SaveSnapshot(t.Context(), s.Taken); err != nil {
				t.Error(err)
			}
		}
	}
	seqs, err := b.Keyframes(t.Context())
	if err != nil || !slices.IsSorted(seqs) || !slices.Contains(seqs, 18) {
		t.Errorf("the keyframes are %d, %v", seqs, err)
	}
	for seq := int64(0); seq <= records+1; seq++ {
		want := journal.Snapshot{}
		if slices.Contains(seqs, seq) {
			want = journal.Snapshot{Seq: seq, Data: data(seq)}
		}
		for _, j := range []journal.Journal{a, b, open()} {
			if s, err := j.Keyframe(t.Context(), seq); err != nil || s != want {
				t.Errorf("the keyframe of record %d is %+v, %v, not %+v", seq, s, err, want)
			}
			if got := All(t, j, seq); int64(len(got)) != max(0, records-seq) {
				t.Errorf("records after %d: %q", seq, got)
			}
		}
	}
}

func testSnapshotDue(t *testing.T, open func() journal.Journal) {
	j := open()
	data, _ := json.Marshal(strings.Repeat("x", 32<<10))
	var seq int64
	for n := 0; !j.SnapshotDue(1000); n++ {
		if n > 1000 {
			t.Fatal("32 MiB of history and no snapshot due")
		}
		var err error
		if seq, err = Add(t.Context(), j, seq, string(data)); err != nil {
			t.Fatal(err)
		}
	}
	if j.SnapshotDue(1 << 30) {
		t.Error("a snapshot of 1 GiB is due as early as one of 1000 bytes")
	}
	if err := j.SaveSnapshot(t.Context(), journal.Snapshot{Seq: seq, Data: `{}`}.Taken); err != nil {
		t.Fatal(err)
	}
	if j.SnapshotDue(1000) {
		t.Error("a snapshot is due right after one")
	}
}

func testWait(t *testing.T, open func() journal.Journal) {
	a, b := open(), open()
	fill(t, a, 1)
	for _, j := range []journal.Journal{a, b} {
		if err := j.Wait(t.Context(), 0); err != nil {
			t.Error(err)
		}
	}
	woken := make(chan error, 6)
	for i := range cap(woken) {
		j := []journal.Journal{a, b}[i%2]
		go func() { woken <- j.Wait(t.Context(), 1) }()
	}
	if _, err := Add(t.Context(), a, 1, "2"); err != nil {
		t.Fatal(err)
	}
	for range cap(woken) {
		if err := <-woken; err != nil {
			t.Error(err)
		}
	}
}

func testWatch(t *testing.T, open func() journal.Journal) {
	const n = 200
	var wg sync.WaitGroup
	for range 3 {
		j := open()
		wg.Go(func() {
			seq := int64(0)
			for r, err := range Watch(t.Context(), j, 0) {
				if seq++; err != nil || r.Seq != seq || string(r.Data) != fmt.Sprint(seq) {
					t.Errorf("got %d %s, %v, want %d", r.Seq, r.Data, err, seq)
				}
				if err != nil || seq == n {
					return
				}
			}
		})
	}
	fill(t, open(), n)
	wg.Wait()
}

func testStopEarly(t *testing.T, open func() journal.Journal) {
	j := open()
	fill(t, j, 5)
	for range 3 {
		for r, err := range j.Read(t.Context(), 1) {
			if err != nil || r.Seq != 2 {
				t.Errorf("%d, %v", r.Seq, err)
			}
			break
		}
	}
}

// held runs body while another handle is inside decide, which excludes every other writer.
func held(t *testing.T, j journal.Journal, body func()) {
	inside, leave := make(chan struct{}), make(chan struct{})
	done := make(chan error)
	go func() {
		_, err := j.Append(context.Background(), 0, func(journal.Record) error { return nil }, func() ([]byte, error) {
			close(inside)
			<-leave
			return []byte(`"held"`), nil
		})
		done <- err
	}()
	<-inside
	body()
	close(leave)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func testDeadline(t *testing.T, open func() journal.Journal) {
	a, b := open(), open()
	held(t, a, func() {
		for _, j := range []journal.Journal{b, a, b} {
			ctx, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
			_, err := j.Append(ctx, 0, nil, func() ([]byte, error) {
				t.Error("two writers at once")
				return nil, nil
			})
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			stop()
		}
		if got := All(t, b, 0); len(got) != 0 { // readers are not excluded
			t.Errorf("read: %q", got)
		}
	})
	for i, j := range []journal.Journal{b, a} {
		if seq, err := Add(t.Context(), j, int64(i+1), "2"); err != nil || seq != int64(i+2) {
			t.Errorf("after that: %d, %v", seq, err)
		}
	}
}

func testCancelled(t *testing.T, open func() journal.Journal) {
	j := open()
	fill(t, j, 1)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := j.Wait(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("wait: %v", err)
	}
	if _, err := Add(ctx, j, 1, "2"); !errors.Is(err, context.Canceled) {
		t.Errorf("append: %v", err)
	}
	if _, err := j.Snapshot(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("snapshot: %v", err)
	}
	for _, err := range j.Read(ctx, 0) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("read: %v", err)
		}
	}
	if got := All(t, j, 0); len(got) != 1 {
		t.Errorf("records: %q", got)
	}
}

func testClose(t *testing.T, open func() journal.Journal) {
	a, b := open(), open()
	held(t, a, func() {
		appended, waited := make(chan error), make(chan error)
		go func() { _, err := Add(t.Context(), b, 0, "1"); appended <- err }()
		go func() { waited <- b.Wait(t.Context(), 7) }()
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if err := <-appended; !errors.Is(err, os.ErrClosed) {
			t.Errorf("append: %v", err)
		}
		if err := <-waited; !errors.Is(err, os.ErrClosed) {
			t.Errorf("wait: %v", err)
		}
	})
	if err := b.Close(); err != nil {
		t.Errorf("closed again: %v", err)
	}
	for _, err := range b.Read(t.Context(), 0) {
		if !errors.Is(err, os.ErrClosed) {
			t.Errorf("read: %v", err)
		}
	}
	for r, err := range a.Read(t.Context(), 0) { // the other handle still works; closing it during a read ends the read
		if r.Seq == 1 && err == nil {
			a.Close()
		} else if !errors.Is(err, os.ErrClosed) {
			t.Errorf("read: %d, %v", r.Seq, err)
		}
	}
}

// Watch yields the records after seq after as they arrive, until ctx ends; the error of ctx is then
// in the last pair. A slow consumer loses nothing, because Watch holds a cursor and no buffer.
func Watch(ctx context.Context, j journal.Journal, after int64) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		for {
			for r, err := range j.Read(ctx, after) {
				if !yield(r, err) || err != nil {
					return
				}
				after = r.Seq
			}
			if err := j.Wait(ctx, after); err != nil {
				yield(journal.Record{}, err)
				return
			}
		}
	}
}
