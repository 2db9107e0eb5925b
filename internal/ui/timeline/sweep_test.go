package timeline

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"cadre/internal/team"

	"pgregory.net/rapid"
)

func same(t *team.Time) team.Time { return *t }

// TestSweep compares sweeps with a search from the start, over items that are spread evenly or in
// heaps.
func TestSweep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gap := rapid.SampledFrom([]int64{0, 1, 5, 1000})
		var items []team.Time
		at := team.Time(0)
		for _, more := range rapid.SliceOfN(gap, 0, 200).Draw(t, "gaps") {
			at += team.Time(more)
			items = append(items, at)
		}
		now := team.Time(rapid.Int64Range(-10, int64(at)+10).Draw(t, "start"))
		s := newSweep(items, same, now)
		for _, more := range rapid.SliceOfN(rapid.SampledFrom([]int64{-7, 0, 1, 3, 40, 5000}), 1, 60).Draw(t, "steps") {
			to := now + team.Time(more)
			got := s.to(to)
			now = max(now, to)
			want := -1
			for i, item := range items {
				if item <= now {
					want = i
				}
			}
			if got != want || s.index != want {
				t.Fatalf("at %d of %v it is %d, not %d", now, items, got, want)
			}
		}
	})
}

// TestSweepSteps counts how many items a lookup reads: about as many of a long history as of a
// short one, and never more than twice those of a binary search.
func TestSweepSteps(t *testing.T) {
	const columns = 120
	steps := func(items []team.Time) (mean float64, most int) {
		read := 0
		of := func(t *team.Time) team.Time { read++; return *t }
		end := items[len(items)-1]
		s, sum := newSweep(items, of, 0), 0
		for i := range columns {
			read = 0
			s.to(end * team.Time(i+1) / columns)
			sum, most = sum+read, max(most, read)
		}
		return float64(sum) / columns, most
	}
	random := rand.New(rand.NewPCG(1, 2))
	spread := func(n int) []team.Time {
		items := make([]team.Time, n)
		at := 0.0
		for i := range items {
			at += random.ExpFloat64() * 1000
			items[i] = team.Time(at)
		}
		return items
	}
	short, _ := steps(spread(1_000))
	long, _ := steps(spread(1_000_000))
	if long > short+6 {
		t.Errorf("a lookup reads %.1f of 1,000 items, and %.1f of 1,000,000", short, long)
	}
	heaps := make([]team.Time, 100_000)
	for i := range heaps {
		heaps[i] = team.Time(math.Pow(float64(i/1000), 3)) * 1000
	}
	slices.Sort(heaps)
	if _, most := steps(heaps); most > 2*bits.Len(uint(len(heaps)))+2 {
		t.Errorf("a lookup reads %d of 100,000 items in heaps", most)
	}
}
