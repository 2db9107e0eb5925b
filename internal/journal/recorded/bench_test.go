package recorded

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"cadre/internal/journal/filejournal"
	"cadre/internal/team"
	"cadre/internal/testkit/historytest"
)

// BenchmarkJump jumps to any record of a history of 100,000 on disk: with nothing in memory, and
// with the keyframes of earlier jumps. The unit of the ratio is the decoding and applying of the
// records between two keyframes.
func BenchmarkJump(b *testing.B) {
	const records = 100_000
	for _, tasks := range []int{100, 5_000} {
		h := historytest.Long(records, tasks)
		dir := filepath.Join(b.TempDir(), "team")
		if err := filejournal.Create(dir, "t1", h.Encoded(), filejournal.Options{}); err != nil {
			b.Fatal(err)
		}
		var some []string
		for _, r := range h.Records[:records/4] {
			some = append(some, string(team.AppendRecord(nil, r)))
		}
		h = nil // a live history of decoded records would be the garbage collector's work, not the jump's
		open := func() (*filejournal.Journal, *Past) {
			j, err := filejournal.Open(dir, filejournal.Options{})
			if err != nil {
				b.Fatal(err)
			}
			return j, pastOf(j)
		}
		jump := func(p *Past, seq int64) time.Duration {
			began := time.Now()
			if _, err := p.At(b.Context(), seq); err != nil {
				b.Fatal(err)
			}
			return time.Since(began)
		}
		random := rand.New(rand.NewPCG(1, 2))
		name := map[int]string{100: "few-tasks", 5_000: "many-tasks"}[tasks]
		b.Run("first/"+name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				j, p := open()
				took = append(took, jump(p, 1+random.Int64N(records)))
				j.Close()
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[0].Microseconds())/1000, "ms-best")
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms-median")
			b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "ms-worst")
		})
		b.Run("later/"+name, func(b *testing.B) {
			j, p := open()
			defer j.Close()
			if err := p.Prepare(b.Context()); err != nil {
				b.Fatal(err)
			}
			lines := some[:p.frames[len(p.frames)/2].Seq-p.frames[len(p.frames)/2-1].Seq]
			var took []time.Duration
			var unit time.Duration
			for b.Loop() {
				took = append(took, jump(p, 1+random.Int64N(records)))
				began := time.Now()
				s, _ := team.DecodeSnapshot(0, "")
				for i, line := range lines {
					r, err := team.DecodeRecord(int64(i+1), line)
					if err != nil {
						b.Fatal(err)
					}
					s.Apply(r)
				}
				unit += time.Since(began)
			}
			slices.Sort(took)
			median := took[len(took)/2]
			b.ReportMetric(float64(median.Microseconds())/1000, "ms-median")
			b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "ms-worst")
			b.ReportMetric(float64(median)*float64(len(took))/float64(unit), "x-interval")
			b.ReportMetric(float64(p.held)/(1<<20), "MB-held")
		})
	}
}
