package bench

import (
	"encoding/json"
	"testing"
	"time"

	segmentio "github.com/segmentio/encoding/json"

	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// BenchmarkCodec reads the snapshot of a team of 10,000 tasks with the core's own codec, which also
// builds the indexes. It alternates with two libraries, which fill the same structs and build no
// index. The core keeps its own codec as long as both ratios are above 1.
func BenchmarkCodec(b *testing.B) {
	h := layout.Home{Root: b.TempDir(), Claude: b.TempDir()}
	if err := Build(h, "codec", 10_000, 10_000); err != nil {
		b.Fatal(err)
	}
	j, _, err := h.Open("codec", nil)
	if err != nil {
		b.Fatal(err)
	}
	rep, err := replica.Open(b.Context(), j, replica.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer rep.Close()
	var data []byte
	var seq int64
	rep.View(func(s *team.State) { data, seq = team.AppendSnapshot(nil, s), s.Seq() })

	type plain struct {
		Team     team.Team
		Members  []team.Member
		Messages []team.Message
		Tasks    []team.Task
	}
	library := func(unmarshal func([]byte, any) error) func() int {
		return func() int {
			var p plain
			if err := unmarshal(data, &p); err != nil {
				b.Fatal(err)
			}
			return len(p.Tasks)
		}
	}
	var took [3]time.Duration
	for range b.N {
		for i, read := range []func() int{
			func() int {
				s, err := team.DecodeSnapshot(seq, string(data))
				if err != nil {
					b.Fatal(err)
				}
				return s.Count(team.Pending)
			},
			library(segmentio.Unmarshal), library(json.Unmarshal),
		} {
			began := time.Now()
			if n := read(); n != 10_000 {
				b.Fatalf("reader %d has %d tasks", i, n)
			}
			took[i] += time.Since(began)
		}
	}
	b.ReportMetric(float64(took[0].Milliseconds())/float64(b.N), "ms-ours")
	b.ReportMetric(float64(took[1])/float64(took[0]), "segmentio/ours")
	b.ReportMetric(float64(took[2])/float64(took[0]), "encoding/ours")
}
