package tui

import (
	"errors"
	"testing"

	"cadre/internal/inspect/attention"
	"cadre/internal/inspect/catalog"
	"cadre/internal/team"
)

// TestStrangers: the list has the teams of Claude Code that nobody observes, and says how to show one.
func TestStrangers(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 120, 40)
	x.send(strangersMsg{strangerRow(catalog.Stranger{Name: "session-3ef3", Goal: "Fix\x1b[2J it", Teammates: 2, UpdatedAt: s.at,
		Tasks: map[string]int{"completed": 1, "pending": 2}}),
		strangerRow(catalog.Stranger{Name: "cut", Err: errors.New("no JSON")})})
	x.says("cadre · 6 teams")
	x.says("session-3ef3")
	x.says("not observed now")
	x.says("1/3")
	x.says("Fix␛[2J it")
	x.says("Its files cannot be read: no JSON")
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

	o := catalog.Overview{ID: "fx-1", Name: "fx", Observed: "session-3ef3", Watched: true, Status: team.TeamActive}
	x.send(teamsMsg{teams: []teamRow{rowOf(attention.Found{Folder: "fx", Overview: o})}})
	x.says("cadre · 2 teams")
	x.lacks("session-3ef3")
}
