package tui

import (
	"slices"
	"testing"

	"cadre/internal/inspect/attention"
	"cadre/internal/inspect/catalog"
	"cadre/internal/team"
)

// TestTheTeamOfAMember: the row of a member that is a team names the team that works for it, Enter
// opens that, and Escape leads back.
func TestTheTeamOfAMember(t *testing.T) {
	s := &story{t: t, state: &team.State{}, at: start}
	s.do(team.User, &team.CreateTeam{TeamID: "demo-1", Name: "demo", Dir: "/w/parser", MaxDepth: 1})
	s.do(team.User, &team.SpawnMember{Name: "sub", Agent: team.NestedTeam, Prompt: "Build it"})
	s.do(team.User, &team.CreateTask{Subject: "Build the docs", Owner: "sub"})
	s.do("sub", &team.ClaimTask{})
	s.do("sub", &team.BeginChild{Task: "1", Team: "demo-sub-1", Name: "demo-sub"})
	x := newScreen(s, 120, 30)
	child := attention.Found{Folder: "demo-sub", Overview: catalog.Overview{ID: "demo-sub-1", Name: "demo-sub",
		Status: team.TeamActive, Parent: "demo-1", Depth: 1}}
	x.send(teamsMsg{teams: []teamRow{rowOf(s.listed()), rowOf(child)}})
	x.open(s)
	x.says("team demo-sub works")
	for m := (memberRow{}); m.name != "sub"; m, _ = x.selectedMember() {
		x.keys("shift+down")
	}
	x.keys("enter")
	if x.place != atTeam || x.ref != "demo-sub" || !slices.Contains(x.asked, "open demo-sub") {
		t.Fatalf("the screen shows %v of %s after %v", x.place, x.ref, x.asked)
	}
	x.keys("esc")
	if x.place != atTeam || x.ref != "demo" {
		t.Errorf("the way back leads to %v of %s", x.place, x.ref)
	}
	s.do("sub", &team.CompleteTask{Task: "1", Fence: 1, Result: "built"})
	x.send(s.message())
	x.keys("enter")
	if x.place != atMember {
		t.Errorf("without a team, Enter shows %v", x.place)
	}
}
