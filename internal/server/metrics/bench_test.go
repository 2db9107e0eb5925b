package metrics

import (
	"fmt"
	"io"
	"runtime"
	"testing"

	"cadre/internal/team"
	"cadre/internal/testkit/historytest"
)

// BenchmarkAdd has the cost of adding a record, and that of applying it to the state alone.
func BenchmarkAdd(b *testing.B) {
	records := historytest.Long(1_000, 100).Records
	bench := func(name string, play func(b *testing.B)) {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				play(b)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(records)), "ns/record")
		})
	}
	bench("collector", func(b *testing.B) { feed(b, &Collector{}, 0, records) })
	bench("state", func(*testing.B) {
		s := &team.State{}
		for _, r := range records {
			s.Apply(r)
		}
	})
}

// BenchmarkWrite has the cost of a scrape with 100 teams of 1,000 records, and the memory for each
// of these teams.
func BenchmarkWrite(b *testing.B) {
	encoded := historytest.Long(1_000, 100).Encoded()
	c := &Collector{}
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	for i := range 100 {
		for seq, line := range encoded {
			r, err := team.DecodeRecord(int64(seq+1), string(line))
			if err != nil {
				b.Fatal(err)
			}
			if err := c.Add(fmt.Sprint("t", i), r); err != nil {
				b.Fatal(err)
			}
		}
	}
	perTeam := (heap() - before) / 100
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if err := c.Write(io.Discard, Gauges{Now: historytest.Began}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(perTeam), "heap-B/team")
}
