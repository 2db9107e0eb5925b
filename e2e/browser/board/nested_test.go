package board

import (
	"crypto/rand"
	"strings"
	"testing"

	"cadre/internal/team"
)

// TestTeamInATeam leads from the member to the team that works for it, and back.
func TestTeamInATeam(t *testing.T) {
	upID, subID := "up-"+strings.ToLower(rand.Text()), "up-sub-"+strings.ToLower(rand.Text())
	up := storyOf(t, &team.CreateTeam{TeamID: upID, Name: "up", MaxDepth: 1})
	up.do(team.User, &team.SpawnMember{Name: "sub", Agent: team.NestedTeam, Prompt: "Build it"})
	up.do(team.User, &team.CreateTask{Subject: "Build the docs", Owner: "sub"})
	up.do("sub", &team.ClaimTask{})
	up.do("sub", &team.BeginChild{Task: "1", Team: subID, Name: "up-sub"})
	sub := storyOf(t, &team.CreateTeam{TeamID: subID, Name: "up-sub", Goal: "Write the manual", Depth: 1,
		Parent: team.Parent{Team: upID, Name: "up", Member: "sub", Task: "1"}})
	w := serve(t, up, sub)
	b := browse(t, 1300, 900)
	b.login(w, "#team=up")
	b.shows("Its team: up-sub")
	js[bool](b, `[...document.querySelectorAll(".members a")].find(e => e.innerText === "up-sub").click(), true`)
	b.shows("Write the manual")
	b.until(`[...document.querySelectorAll(".parent a")].some(e => e.innerText === "up")`)
	js[bool](b, `[...document.querySelectorAll("header a")].find(e => e.innerText === "up").click(), true`)
	b.shows("Its team: up-sub")
}
