package filejournal_test

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cadre/internal/journal/filejournal"
	"cadre/internal/journal/journaltest"
)

// record is about as long as a typical event.
var record = fmt.Sprintf(`{"kind":"message_sent","from":"researcher","to":"lead","text":%q}`,
	strings.Repeat("the parser keeps its place ", 8))

// bare measures the minimum cost of durable appends: n writes and syncs of the same size in the
// same file system.
func bare(b *testing.B, dir string, n int) time.Duration {
	b.Helper()
	f, err := os.Create(filepath.Join(dir, "bare"))
	if err != nil {
		b.Fatal(err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	line := []byte(record + strings.Repeat(" ", 40) + "\n")
	began := time.Now()
	for range n {
		if _, err := f.Write(line); err != nil {
			b.Fatal(err)
		}
		if err := filejournal.SyncData(f); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(began)
}

// BenchmarkAppendOneProcess compares durable appends with bare writes and syncs. The two alternate,
// so that the disk is in the same condition for both.
func BenchmarkAppendOneProcess(b *testing.B) {
	dir := create(b, filejournal.Options{})
	j := open(b, dir, filejournal.Options{})
	var least, ours time.Duration
	last := int64(0)
	const burst = 200
	appends := 0
	for b.Loop() {
		least += bare(b, dir, burst)
		began := time.Now()
		for range burst {
			var err error
			if last, err = journaltest.Add(context.Background(), j, last, record); err != nil {
				b.Fatal(err)
			}
		}
		ours += time.Since(began)
		appends += burst
	}
	b.ReportMetric(float64(least)/float64(ours), "ratio-of-bare")
	b.ReportMetric(float64(ours.Microseconds())/float64(appends), "µs/append")
	b.ReportMetric(float64(least.Microseconds())/float64(appends), "µs/bare")
}

// BenchmarkAppend32Processes compares the total rate of 32 processes with that of one process that
// only writes and syncs.
func BenchmarkAppend32Processes(b *testing.B) {
	const processes, burst = 32, 50
	dir := create(b, filejournal.Options{})
	var children []*child
	for range processes {
		c := start(b, task{Role: "on command", Dir: dir, Data: record})
		defer c.end()
		children = append(children, c)
	}
	for _, c := range children {
		if got := c.line(); got != "ready" {
			b.Fatal(got)
		}
	}
	var least, ours time.Duration
	for b.Loop() {
		least += bare(b, dir, processes*burst)
		began := time.Now()
		for _, c := range children {
			fmt.Fprintln(c.in, burst)
		}
		for _, c := range children {
			if got := c.line(); got != "done" {
				b.Fatal(got)
			}
		}
		ours += time.Since(began)
	}
	b.ReportMetric(float64(least)/float64(ours), "ratio-of-bare")
	b.ReportMetric(float64(ours.Microseconds())/float64(b.N*processes*burst), "µs/append")
}

// BenchmarkOpenMillion compares opening a journal of a million records and reading its state with
// reading only the snapshot file.
func BenchmarkOpenMillion(b *testing.B) {
	const n = 1_000_000
	records := slices.Repeat([][]byte{[]byte(record)}, n)
	dir := filepath.Join(b.TempDir(), "team")
	if err := filejournal.Create(dir, "team", records, filejournal.Options{}); err != nil {
		b.Fatal(err)
	}
	last := int64(n)
	for _, size := range []int{256 << 10, 1 << 20, 4 << 20} {
		b.Run(fmt.Sprintf("snapshot=%dKiB", size>>10), func(b *testing.B) {
			last = saveWithTail(b, dir, last, size)
			benchmarkOpen(b, dir, last)
		})
	}
}

// saveWithTail saves a snapshot and appends the maximum number of records that may follow one.
func saveWithTail(b *testing.B, dir string, last int64, size int) int64 {
	state, _ := json.Marshal(strings.Repeat("s", size))
	j := open(b, dir, filejournal.Options{})
	err := j.SaveSnapshot(context.Background(), func() (int64, []byte) { return last, state })
	for err == nil && !j.SnapshotDue(len(state)) {
		last, err = journaltest.Add(context.Background(), j, last, record)
	}
	if err != nil {
		b.Fatal(err)
	}
	return last
}

func benchmarkOpen(b *testing.B, dir string, last int64) {
	ctx := context.Background()
	var least, ours time.Duration
	for b.Loop() {
		began := time.Now()
		file, err := os.ReadFile(filepath.Join(dir, "state.json"))
		if err != nil {
			b.Fatal(err)
		}
		crc32.Checksum(file, crc32.MakeTable(crc32.Castagnoli))
		least += time.Since(began)

		began = time.Now()
		j, err := filejournal.Open(dir, filejournal.Options{})
		if err != nil {
			b.Fatal(err)
		}
		s, err := j.Snapshot(ctx)
		if err != nil {
			b.Fatal(err)
		}
		seq := s.Seq
		for r, err := range j.Read(ctx, s.Seq) {
			if err != nil {
				b.Fatal(err)
			}
			seq = r.Seq
		}
		ours += time.Since(began)
		if seq != last {
			b.Fatalf("read up to %d of %d", seq, last)
		}
		j.Close()
	}
	b.ReportMetric(float64(ours)/float64(least), "ratio-to-file")
	b.ReportMetric(float64(ours.Microseconds())/float64(b.N), "µs/open")
}

// BenchmarkWatchLatency measures the time from the start of an append in another process until a
// watcher in this one has the record.
func BenchmarkWatchLatency(b *testing.B) {
	dir := create(b, filejournal.Options{})
	j := open(b, dir, filejournal.Options{})
	c := start(b, task{Role: "on command", Dir: dir, Data: record})
	defer c.end()
	if got := c.line(); got != "ready" {
		b.Fatal(got)
	}
	ctx, stop := context.WithCancel(context.Background())
	seen := make(chan time.Time)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, err := range journaltest.Watch(ctx, j, 0) {
			if err != nil {
				return
			}
			seen <- time.Now()
		}
	}()
	var all []time.Duration
	for b.Loop() {
		began := time.Now()
		fmt.Fprintln(c.in, 1)
		all = append(all, (<-seen).Sub(began))
		if got := c.line(); got != "done" {
			b.Fatal(got)
		}
	}
	stop()
	<-ended
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "median-ms")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "p99-ms")
}
