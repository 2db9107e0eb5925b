package tui

import (
	"strconv"
	"testing"

	"cadre/internal/ui/sessionview"
)

// TestScrolledWhileItGrows scrolls in a session from which the lines that were read are dropped.
func TestScrolledWhileItGrows(t *testing.T) {
	var s session
	add := func(n int) {
		lines := make([]sessionview.Line, n)
		for i := range lines {
			lines[i] = sessionview.Line{Text: strconv.Itoa(i)}
		}
		s.add(sessionMsg{lines: lines})
	}
	add(100)
	s.move(-30, 80, 20)
	for range 10 {
		add(mostSession)
		for _, by := range []int{30, -30, -farAway, 1, farAway, -1} {
			s.move(by, 80, 20)
			if n := len(s.shown(80, 20)); n != 20 {
				t.Fatalf("%d rows of 20 are shown at %+v of %d lines", n, s.pos, len(s.lines))
			}
		}
	}
}
