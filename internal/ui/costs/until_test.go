package costs

import (
	"slices"
	"testing"

	"cadre/internal/team"
	"cadre/internal/testkit/historytest"

	"pgregory.net/rapid"
)

// TestUntil checks that the costs as they were after a record have the columns of costs that end
// with it, and its exact sums where the points of a long history do not have them.
func TestUntil(t *testing.T) {
	h := historytest.Long(6_000, 40)
	var whole Costs
	for _, r := range h.Records {
		whole.Add(r)
	}
	rapid.Check(t, func(t *rapid.T) {
		seq := rapid.Int64Range(1, int64(len(h.Records))).Draw(t, "seq")
		var short Costs
		for _, r := range h.Records[:seq] {
			short.Add(r)
		}
		from := whole.Known(seq)
		if seq-from > stopEvery {
			t.Fatalf("from record %d to %d are more than a few", from, seq)
		}
		was, at := whole.Until(seq, h.Records[from:seq])
		if at != h.Records[seq-1].At || was.Through() != seq {
			t.Fatalf("it is of record %d at %d, want %d at %d", was.Through(), at, seq, h.Records[seq-1].At)
		}
		end := View{Edges: []team.Time{h.Records[0].At, at}}
		got, want := was.Rows(end), short.Rows(end)
		if !slices.EqualFunc(got, want, func(a, b Row) bool { return a.Member == b.Member && a.Sum == b.Sum }) {
			t.Fatalf("after record %d it is %+v, want %+v", seq, got, want)
		}
	})
}
