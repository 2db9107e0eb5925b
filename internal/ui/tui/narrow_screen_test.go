package tui

import (
	"strings"
	"testing"

	"cadre/internal/inspect/attention"
	"cadre/internal/inspect/catalog"
	"cadre/internal/render"
	"cadre/internal/team"
)

// TestTwinsAtAnySize: teams of one name can be told apart at each size, by their projects, or
// within a project by the names that commands take; no line is wider than the screen.
func TestTwinsAtAnySize(t *testing.T) {
	for _, size := range sizes {
		s := newStory(t)
		x := newScreen(s, size[0], size[1])
		teams := []teamRow{rowOf(s.listed())}
		for folder, dir := range map[string]string{"release": "/home/kim/code/first/parser",
			"release-2": "/home/kim/code/second/parser", "release-3": "/home/kim/code/second/parser"} {
			o := catalog.Overview{ID: folder, Name: "release", Project: dir, Status: team.TeamActive, Goal: "A goal",
				Tasks: map[string]int{"pending": 10}, Usage: team.Usage{InputTokens: 1e6, CostMicroUSD: 1e6}}
			teams = append(teams, rowOf(attention.Found{Folder: folder, Overview: o}))
		}
		x.send(teamsMsg{teams: teams})
		rows := map[string]bool{}
		for _, l := range x.frame() {
			if l = stripped(l); render.Widest(l) > size[0] {
				t.Errorf("at %v a line has %d columns: %q", size, render.Widest(l), l)
			}
			if strings.Contains(l, "release ") {
				rows[l] = true
			}
		}
		if len(rows) != 3 {
			t.Errorf("at %v three teams of one name are shown as\n%s", size, stripped(strings.Join(x.frame(), "\n")))
		}
	}
}

// TestExternalMembers: the timeline of a team without sessions has the times that it covers, and
// the head says which members work.
func TestExternalMembers(t *testing.T) {
	s := &story{t: t, state: &team.State{}, at: start}
	s.do(team.User, &team.CreateTeam{TeamID: "demo-1", Name: "demo", Dir: "/w/parser", Lead: "lead",
		LeadAgent: team.External})
	for _, m := range []string{"ann", "bob"} {
		s.do(team.User, &team.SpawnMember{Name: m, Agent: team.External})
		s.at += 1_800_000
	}
	s.do(team.User, &team.CreateTask{Name: "lexer", Subject: "Write the lexer"})
	x := newScreen(s, 80, 15)
	x.send(teamsMsg{teams: []teamRow{rowOf(s.listed())}})
	x.open(s)
	x.keys("4")
	for _, text := range []string{"09:00 ", "09:3", "▸ lead ····", "  ann  ····"} {
		x.says(text)
	}
	s.do("ann", &team.ClaimTask{Task: "lexer"})
	x.send(s.message())
	x.says("1 working")
}
