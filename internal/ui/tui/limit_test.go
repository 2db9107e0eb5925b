package tui

import (
	"testing"

	"cadre/internal/team"
)

// TestRateLimit: a rate limit that lasts waits for the user, and a key has the model tried again
// now. So does the menu of the member that waits.
func TestRateLimit(t *testing.T) {
	s := newStory(t)
	s.do(team.Host("host-1"), &team.ReportTrouble{Member: "ann", Trouble: team.TroubleLimit, Text: "429",
		Pool: "claude, login", Until: s.at + 3_600_000})
	x := newScreen(s, 100, 40)
	x.keys("a")
	x.send(s.message())
	for one, _ := x.item(); one.Kind != team.ItemRateLimit; one, _ = x.item() {
		before := x.itemIndex()
		if x.keys("down"); x.itemIndex() == before {
			t.Fatal("no item is about the rate limit")
		}
	}
	x.says("cadre lift demo ann")
	x.keys("r")
	x.wants("demo *team.LiftLimit &{Member:ann}")
	x.says("The model of ann is tried again now.")
	s.do(team.User, &team.LiftLimit{Member: "ann"})
	x.send(s.message())
	if one := x.team.members[1]; one.name != "ann" || one.limited {
		t.Errorf("after that, ann is %+v", one)
	}
}
