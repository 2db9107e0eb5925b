package timeline

import (
	"reflect"
	"slices"
	"testing"

	"cadre/internal/team"
	"cadre/internal/testkit/historytest"

	"pgregory.net/rapid"
)

// TestUntil checks that the lanes as they were after a record are those of a timeline that ends
// with it, also after the timeline has grown again.
func TestUntil(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := historytest.Play(historytest.Choices(150).Draw(t, "choices"))
		pause := team.Time(rapid.SampledFrom([]int{0, 0, 90_000, 500_000}).Draw(t, "pause"))
		every := rapid.IntRange(3, 40).Draw(t, "every")
		last := rapid.IntRange(1, len(h.Records)).Draw(t, "last")
		var short, whole Timeline
		var seq int64
		for i, r := range h.Records {
			later := *r
			later.At += pause * team.Time(i/every)
			whole.Add(&later)
			if i < last {
				short.Add(&later)
				seq = r.Seq
			}
		}
		began, at := short.Bounds()
		was := whole.Until(seq, at)
		if !slices.Equal(was.Members(), short.Members()) || was.Through() != seq {
			t.Fatalf("through %d, %v, want %v", was.Through(), was.Members(), short.Members())
		}
		if first, last := was.Bounds(); first != began || last != at {
			t.Fatalf("from %d to %d, want %d to %d", first, last, began, at)
		}
		v := View{Columns: rapid.IntRange(1, 200).Draw(t, "columns"), Whole: rapid.Bool().Draw(t, "whole")}
		if rapid.Bool().Draw(t, "part") {
			v.From = began + team.Time(rapid.Int64Range(0, int64(at-began)).Draw(t, "from"))
		}
		if rapid.Bool().Draw(t, "later") {
			v.To = at + team.Time(rapid.Int64Range(1, 600_000).Draw(t, "to"))
			v.Whole = true
		}
		got, want := was.Frame(v), short.Frame(v)
		for i, row := range want.Rows {
			spans := short.lanes[i].spans
			for c := range row.Cells { // another record of the same time may have ended the last span
				brief := len(spans) == 0 || spans[len(spans)-1].at == at
				if want.Edges[c+1] > at && brief || want.Edges[c] >= at && v.To == 0 {
					row.Cells[c].Kind, got.Rows[i].Cells[c].Kind = Absent, Absent
				}
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("after record %d at %d it is\n%+v\nwant\n%+v", seq, at, got, want)
		}
		for _, name := range short.Members() {
			if got, want := was.Marks(name, 0, at+1), short.Marks(name, 0, at+1); !slices.Equal(got, want) {
				t.Fatalf("the marks of %s are %v, want %v", name, got, want)
			}
		}
	})
}
