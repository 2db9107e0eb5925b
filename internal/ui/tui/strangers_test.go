package tui

import (
	"errors"
	"testing"

	"cadre/internal/inspect/attention"
	"cadre/internal/inspect/catalog"
	"cadre/internal/team"
)

// TestStrangers: the list has the teams of Claude Code that are not observed, and says how to show
// one.
func TestStrangers(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 120, 40)
	x.send(strangersMsg{strangerRow(catalog.Stranger{Name: "session-3ef3", Goal: "Fix\x1b[2J it", Teammates: 2,
		UpdatedAt: s.at, Tasks: map[string]int{"completed": 1, "pending": 2}}),
		strangerRow(catalog.Stranger{Name: "cut", Err: errors.New("no JSON")})})
	x.says("cadre · 6 teams")
	x.says("session-3ef3")
	x.says("not observed now")
	x.says("1/3")
	x.says("Fix␛[2J it")
	x.says("Its files cannot be read: no JSON")
	if row := strangerRow(catalog.Stranger{Members: []string{"an\x1b[2Jn"}}); row.roster[0] != "an␛[2Jn" {
		t.Errorf("the roster is %q", row.roster)
	}
	x.keys("end", "up")
	asked := len(x.asked)
	for _, key := range []string{"enter", "."} {
		x.keys(key)
		x.says("session-3ef3 --as-team session-3ef3")
		x.notice = notice{}
	}
	if len(x.asked) != asked || x.place != atTeams {
		t.Errorf("the screen opens it: %s", x.last())
	}
	x.prints = outputMsg{text: "fine"}
	x.keys(":")
	x.says("session-3ef3 : cadre")
	x.keys("ls", "enter")
	x.wants(`command claude:session-3ef3 ["ls"]`) // cadre refuses what needs a team

	// A team that is active works, and one that is observed no more works as long as its agents do.
	active := strangerRow(catalog.Stranger{Name: "session-3ef3", Active: true, UpdatedAt: s.at})
	gone := catalog.Overview{ID: "fx-1", Name: "fx", Observed: "session-3ef3", Status: team.TeamActive}
	for i, own := range [][]teamRow{nil, {rowOf(attention.Found{Folder: "fx", Overview: gone})}} {
		x.send(teamsMsg{teams: own})
		for _, row := range []teamRow{active, strangerRow(catalog.Stranger{Name: "session-3ef3"})} {
			x.send(strangersMsg{row})
			if len(x.teams) != 1 || x.teams[0].section != row.section {
				t.Errorf("%d: the teams are %+v, and the one of Claude Code is in %s", i, x.teams, row.section)
			}
		}
	}
	if active.section != attention.Working {
		t.Errorf("an active team is in %s", active.section)
	}
	x.send(strangersMsg{active})

	o := catalog.Overview{ID: "fx-1", Name: "fx", Observed: "session-3ef3", Watched: true, Status: team.TeamActive}
	x.send(teamsMsg{teams: []teamRow{rowOf(attention.Found{Folder: "fx", Overview: o})}})
	x.says("cadre · 1 team")
	x.lacks("session-3ef3")
}
