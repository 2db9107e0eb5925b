package coord

import (
	"slices"
	"testing"

	"cadre/internal/team"
)

// A message is given once, by whichever road, and not again while it is being recorded that it arrived. What did not leave is given again.
func TestPost(t *testing.T) {
	var p post
	mail := []team.Message{{Seq: 1}, {Seq: 2}, {Seq: 3}}
	taken := func(carrier string, want ...int64) {
		t.Helper()
		var got []int64
		for _, m := range p.take(mail, carrier) {
			got = append(got, m.Seq)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s takes %v, not %v", carrier, got, want)
		}
	}
	taken("a", 1, 2, 3)
	taken(byTool)
	p.back("a")
	taken(byTool, 1, 2, 3)
	arrived := func(want []int64, carrier string, only ...int64) {
		t.Helper()
		var got []int64
		for _, m := range p.arrived(carrier, only...) {
			got = append(got, m.Seq)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v arrived, not %v", got, want)
		}
	}
	arrived([]int64{1, 3}, byTool, 1, 3)
	taken("b") // the inbox has them until the record of their arrival is there
	p.back(byTool)
	taken("c", 2)
	arrived([]int64{2}, "c")
	p.back("c")
	taken("d")
}
