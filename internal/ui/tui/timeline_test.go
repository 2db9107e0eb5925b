package tui

import (
	"fmt"
	"strings"
	"testing"

	"cadre/internal/team"
)

// TestLegendIsWhole: with more members than a small screen has lines, the timeline shows its whole
// legend, and the selected member.
func TestLegendIsWhole(t *testing.T) {
	s := newStory(t)
	for i := range 12 {
		s.do(team.User, &team.SpawnMember{Name: fmt.Sprint("worker-", i), Agent: team.External})
	}
	x := newScreen(s, 40, 15)
	x.open(s)
	x.keys("4", "down")
	words := map[string]string{"█": "works", "?": "waits for a person", "‥": "has no session", "◆": "plan", "·": "idle"}
	for range 16 {
		frame := stripped(strings.Join(x.frame()[3:], "\n"))
		lanes, legend, more := strings.Cut(frame, " more")
		if !more {
			t.Fatalf("nothing says that members are hidden:\n%s", frame)
		}
		if !strings.Contains(lanes, "▸ "+x.chosenMember()+" ") {
			t.Errorf("%s is not shown:\n%s", x.chosenMember(), frame)
		}
		for sign, word := range words {
			if strings.Contains(lanes, sign) && !strings.Contains(legend, sign+" "+word) {
				t.Errorf("the legend has no %s:\n%s", sign, frame)
			}
		}
		x.keys("down")
	}
}
