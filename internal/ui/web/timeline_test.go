package web

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"cadre/internal/engine"
	"cadre/internal/team"
	"cadre/internal/testkit/historytest"
	"cadre/internal/testkit/soak"
)

// pastOf returns the history of the team as it was after a record, from one that has been read.
func pastOf(t testing.TB, of *engine.Team, read *recalled, seq int64) *recalled {
	was, err := read.until(t.Context(), of, seq)
	if err != nil {
		t.Fatal(err)
	}
	return was
}

// TestLanesOfThePast: the lanes and costs as they were after each record are those of a history
// that ends with it.
func TestLanesOfThePast(t *testing.T) {
	records := 1_500
	if testing.Short() {
		records = 200
	}
	h := historytest.Long(records, 40)
	of := opened(t, h)
	var whole, ends recalled
	if err := whole.read(t.Context(), of, latest); err != nil {
		t.Fatal(err)
	}
	for _, r := range h.Records {
		ends.add(r)
		for _, columns := range []int{7, 300} {
			got, want := pastOf(t, of, &whole, r.Seq).view(0, 0, columns), ends.view(0, 0, columns)
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("after record %d, the lanes are\n%+v\nwant\n%+v", r.Seq, got, want)
			}
		}
	}
}

// TestLanesOfAFile: the page of an exported team makes the columns that the server has for it: of
// all of the time and of parts of it, in any width, and as they were after any record.
func TestLanesOfAFile(t *testing.T) {
	soak.Long(t)
	type shown struct {
		From    team.Time `json:"from"`
		To      team.Time `json:"to"`
		Columns int       `json:"columns"`
		Seq     int64     `json:"seq"`
		Want    lanes     `json:"want"`
	}
	random := rand.New(rand.NewPCG(1, 15))
	kinds, quiet, used := map[string]bool{}, 0, 0
	for i := range 8 {
		h := historytest.Long(600, 40)
		if i > 0 {
			h = historytest.Play(historytest.Choices(400).Example(i))
		}
		for n, r := range h.Records {
			r.At += 400_000 * team.Time(i%2*n/50) // sometimes nobody works for long
		}
		of, read, file := opened(t, h), recalled{}, newStillLanes()
		for _, r := range h.Records {
			read.add(r)
			file.add(&read)
		}
		file.end(&read)
		first, last := read.lanes.Bounds()
		var views []shown
		for range 200 {
			v := shown{Columns: 1 + random.IntN(400), Seq: int64(random.IntN(len(h.Records) + 1))}
			if random.IntN(3) > 0 {
				v.From = first + team.Time(random.Int64N(int64(last-first)))
			}
			if random.IntN(3) > 0 {
				v.To = max(first, v.From) + 1 + team.Time(random.Int64N(int64(last-first)))
			}
			was := &read
			if v.Seq > 0 {
				was = pastOf(t, of, &read, v.Seq)
			}
			v.Want = was.view(v.From, v.To, v.Columns)
			views = append(views, v)
			quiet, used = quiet+len(v.Want.Quiet), used+len(v.Want.Costs)
			for _, r := range v.Want.Rows {
				for _, one := range r.Runs {
					kinds[one.Kind] = true
				}
			}
		}
		if said := node(t, "lanes.js", map[string]any{"lanes": file, "views": views}); said != "the same\n" {
			t.Errorf("history %d: %s", i, said)
		}
	}
	if len(kinds) < 7 || used == 0 || quiet == 0 {
		t.Errorf("the histories have the kinds %v, %d compressed columns and %d rows of costs", kinds, quiet, used)
	}
}

// BenchmarkStepBack measures the lanes of the record before the one that is shown, near the end of
// a long history, in times of those of the record after it.
func BenchmarkStepBack(b *testing.B) {
	h := historytest.Long(50_000, 500)
	of := opened(b, h)
	var read recalled
	if err := read.read(b.Context(), of, latest); err != nil {
		b.Fatal(err)
	}
	shown := int64(49_000)
	step := func(by int64) time.Duration {
		began := time.Now()
		shown += by
		pastOf(b, of, &read, shown).view(0, 0, 600)
		return time.Since(began)
	}
	var back, forward time.Duration
	for b.Loop() {
		back += step(-1)
		forward += step(+1)
		shown--
	}
	b.ReportMetric(float64(back)/float64(forward), "x-forward")
	b.ReportMetric(float64(back.Microseconds())/float64(b.N), "µs/step-back")
}
