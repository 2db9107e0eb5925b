package recorded

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"cadre/internal/journal/filejournal"
	"cadre/internal/team"
	"cadre/internal/testkit/historytest"
)

// BenchmarkJump jumps to any record of a history of 100,000 on disk. A cold jump has nothing in
// memory, and the keyframes that the team's writers left. The first one is in a history that was
// copied from another machine without keyframes, and then opened. A later one has the keyframes of
// a screen. The unit of x-raw is reading the files of the journal, that of x-interval the decoding
// and applying of the records between two keyframes in memory.
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
		saveAsWritersDo(b, dir, h)
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
		cold := func(seq int64) (took, work time.Duration) {
			began, worked := time.Now(), processTime(b)
			j, p := open()
			jump(p, seq)
			took, work = time.Since(began), processTime(b)-worked
			j.Close()
			return took, work
		}
		random := rand.New(rand.NewPCG(1, 2))
		name := map[int]string{100: "few-tasks", 5_000: "many-tasks"}[tasks]
		b.Run("cold/"+name, func(b *testing.B) {
			j, _ := open()
			kept, err := j.Keyframes(b.Context())
			j.Close()
			if err != nil {
				b.Fatal(err)
			}
			var took, work []time.Duration
			run := func(seq int64) {
				t, w := cold(seq)
				took, work = append(took, t), append(work, w)
			}
			for b.Loop() {
				for range 200 {
					run(1 + random.Int64N(records))
				}
				for _, seq := range kept {
					run(seq - 1) // farthest from the keyframe before it
				}
			}
			report(b, took)
			slices.Sort(work)
			b.ReportMetric(float64(work[len(work)/2].Microseconds())/1000, "cpu-ms-median")
			b.ReportMetric(float64(work[len(work)-1].Microseconds())/1000, "cpu-ms-worst")
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2])/float64(raw(b, dir)), "x-raw")
			b.ReportMetric(float64(bytes(b, filepath.Join(dir, "journal", "keyframes"), "*.json"))/(1<<20),
				"MB-keyframes")
			b.ReportMetric(0, "ns/op")
		})
		b.Run("first/"+name, func(b *testing.B) {
			var took, work, opening []time.Duration
			for b.Loop() {
				for _, name := range []string{"journal/keyframes", "state.json"} {
					if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
						b.Fatal(err)
					}
				}
				j, p := open()
				began := time.Now()
				if _, _, err := State(b.Context(), j, nil); err != nil {
					b.Fatal(err)
				}
				opening = append(opening, time.Since(began))
				worked := processTime(b)
				took = append(took, jump(p, 1+random.Int64N(records)))
				work = append(work, processTime(b)-worked)
				j.Close()
			}
			report(b, took)
			slices.Sort(opening)
			b.ReportMetric(float64(opening[len(opening)/2].Microseconds())/1000, "ms-opening")
			slices.Sort(work)
			b.ReportMetric(float64(work[len(work)-1].Microseconds())/1000, "cpu-ms-worst")
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
			b.ReportMetric(float64(p.bytes)/(1<<20), "MB-held")
		})
	}
}

// saveAsWritersDo saves the snapshots that the writers of the history would have saved.
func saveAsWritersDo(b *testing.B, dir string, h *historytest.Team) {
	j, err := filejournal.Open(dir, filejournal.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer j.Close()
	s, _ := team.DecodeSnapshot(0, "")
	var line, data []byte
	unsaved := 0
	for _, r := range h.Records {
		s.Apply(r)
		line = team.AppendRecord(line[:0], r)
		if unsaved += len(line); unsaved < max(64<<10, len(data)/8) {
			continue
		}
		unsaved, data = 0, team.AppendSnapshot(data[:0], s)
		if err := j.SaveSnapshot(b.Context(), func() (int64, []byte) { return r.Seq, data }); err != nil {
			b.Fatal(err)
		}
	}
}

func report(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[0].Microseconds())/1000, "ms-best")
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms-median")
	b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "ms-worst")
}

// raw returns how long it takes to read the segments of the journal.
func raw(b *testing.B, dir string) time.Duration {
	best := time.Hour
	for range 5 {
		began := time.Now()
		bytes(b, filepath.Join(dir, "journal"), "*.jsonl")
		best = min(best, time.Since(began))
	}
	return best
}

// bytes reads the files of the folder, and returns how many bytes they have.
func bytes(b *testing.B, dir, pattern string) (sum int) {
	paths, _ := filepath.Glob(filepath.Join(dir, pattern))
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			b.Fatal(err)
		}
		sum += len(data)
	}
	return sum
}

// processTime returns the processor time that the process used.
func processTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
