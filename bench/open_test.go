package bench

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"cadre/internal/journal"
	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// BenchmarkOpen opens a team of 1,000,000 records, and alternates with only reading and decoding
// its snapshot. The limit for the ratio is 2. It also reports the heap of the open team, as a ratio
// to a team with the same tasks and a twentieth of the history: about 1.
func BenchmarkOpen(b *testing.B) {
	ctx := context.Background()
	long, short := built(b, 1_000_000), built(b, 50_000)
	var whole, alone time.Duration
	for range b.N {
		began := time.Now()
		open(b, long).Close()
		whole += time.Since(began)

		began = time.Now()
		j, _, err := long.Open("open", nil)
		if err != nil {
			b.Fatal(err)
		}
		s, err := j.Snapshot(ctx)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := team.DecodeSnapshot(s.Seq, s.Data); err != nil {
			b.Fatal(err)
		}
		j.Close()
		alone += time.Since(began)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(whole)/float64(alone), "times-snapshot")
	b.ReportMetric(heap(b, long)/heap(b, short), "heap-ratio")
}

// built creates a team with a snapshot some records before its end, as a team in use has.
func built(b *testing.B, records int) layout.Home {
	h := layout.Home{Root: b.TempDir()}
	if err := Build(h, "open", 10_000, records); err != nil {
		b.Fatal(err)
	}
	rep := open(b, h)
	defer rep.Close()
	if _, err := rep.Do(context.Background(), team.Command{Actor: "m1", Body: &team.SendMessage{To: "m2",
		Body: "the first write saves the snapshot"}}); err != nil {
		b.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(h.Root, "teams", "open", "state.json")); err != nil {
		b.Fatal(err)
	}
	for range 300 {
		if _, err := rep.Do(context.Background(), team.Command{Actor: "m1", Body: &team.SendMessage{To: "m2",
			Body: "and this is the tail behind it"}}); err != nil {
			b.Fatal(err)
		}
	}
	return h
}

func open(b *testing.B, h layout.Home) *replica.Replica {
	var j journal.Journal
	j, _, err := h.Open("open", nil)
	if err != nil {
		b.Fatal(err)
	}
	rep, err := replica.Open(context.Background(), j, replica.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return rep
}

// heap returns the memory that an open team keeps, in bytes.
func heap(b *testing.B, h layout.Home) float64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	rep := open(b, h)
	runtime.GC()
	runtime.ReadMemStats(&after)
	rep.Close()
	return float64(after.HeapAlloc - before.HeapAlloc)
}
