package main

import "testing"

// TestProgressTimes checks that the times of a run's lines are in order, also where a line was held
// back.
func TestProgressTimes(t *testing.T) {
	p := &progress{}
	late := p.clock(2_000_000)
	if early := p.clock(1_000_000); early != late {
		t.Errorf("%s comes after %s", early, late)
	}
	if last := p.clock(3_000_000); last == late {
		t.Errorf("%s comes twice", last)
	}
}
