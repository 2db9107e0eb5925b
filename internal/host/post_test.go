package host

import (
	"slices"
	"testing"

	"cadre/internal/team"
)

// TestPost checks that a message is given once, by either way, and not again while its arrival is
// being recorded. Mail that did not leave is given again.
func TestPost(t *testing.T) {
	t.Parallel()
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
	taken("b") // the inbox has them until their arrival is recorded
	p.back(byTool)
	taken("c", 2)
	arrived([]int64{2}, "c")
	p.back("c")
	taken("d")
}

// TestPostBetweenTurns checks that mail that a tool carries while a prompt waits may belong to the
// next turn, and stays on its way until that is clear.
func TestPostBetweenTurns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  func(*post)
		here []int64 // mail behind tools that has arrived when the turn has ended well
	}{
		"the prompt waits":             {func(p *post) { p.settle(false) }, []int64{1}},
		"it came in this turn":         {func(p *post) { p.arrived("a"); p.settle(false) }, []int64{1, 2}},
		"it was not taken":             {func(p *post) { p.back("a"); p.settle(false) }, []int64{1, 2}},
		"results may be lost":          {func(p *post) { p.settle(true) }, []int64{1, 2}},
		"the agent showed what it was": {func(p *post) { p.arrived(byTool, 2); p.settle(false) }, []int64{1}},
		"the turn that it began has ended": {func(p *post) {
			p.settle(false)
			p.back(byTool)
			p.arrived("a")
			p.settle(
				false)
		}, []int64{2}},
	} {
		t.Run(name, func(t *testing.T) {
			var p post
			p.take([]team.Message{{Seq: 1}}, byTool)
			p.handed("a")
			p.take([]team.Message{{Seq: 2}}, byTool)
			c.end(&p)
			var here []int64
			for _, m := range p.arrived(byTool) {
				here = append(here, m.Seq)
			}
			if !slices.Equal(here, c.here) {
				t.Errorf("%v arrived, not %v", here, c.here)
			}
		})
	}
}
