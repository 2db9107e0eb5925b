package web

import (
	"reflect"
	"testing"
	"time"

	"cadre/internal/engine"
	"cadre/internal/testkit/historytest"
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
