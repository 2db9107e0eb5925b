package tui

import (
	"slices"
	"strings"
	"testing"

	"cadre/internal/inspect/attention"
	"cadre/internal/inspect/catalog"
)

// TestNarrow checks filters over the lists of teams and tasks: what they show, that they say what
// they hide, what is wrong with them, and what they could be.
func TestNarrow(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 100, 30)
	frame := func() string { return stripped(strings.Join(x.frame(), "\n")) }
	x.keys("/", "s:complete", "enter")
	if len(x.teams) != 1 || x.teams[0].name != "old" || !strings.Contains(frame(), "1 of 4: s:complete") {
		t.Errorf("%d teams:\n%s", len(x.teams), frame())
	}
	x.keys("/", " nobody", "enter")
	if len(x.teams) != 0 || strings.Contains(frame(), "Nothing waits") ||
		strings.Count(frame(), "matches the filter") != len(attention.Sections) {
		t.Errorf("%d teams:\n%s", len(x.teams), frame())
	}
	x.keys("enter")
	if !strings.Contains(x.notice.text, "No team matches the filter") {
		t.Errorf("%q", x.notice.text)
	}
	x.keys("/")
	for range "s:complete nobody" {
		x.keys("backspace")
	}
	x.keys("x:y", "enter")
	if x.input == nil || x.input.field.String() != "x:y" || !strings.Contains(x.notice.text, `is not a key`) {
		t.Errorf("%q", x.notice.text)
	}
	for range "x:y" {
		x.keys("backspace")
	}
	x.keys("enter")
	if x.input != nil || len(x.teams) != 4 {
		t.Errorf("%d teams", len(x.teams))
	}

	for state, o := range map[string]catalog.Overview{"dormant": {Dormant: true}, "ready": {Winding: "ready"},
		"winding": {Winding: "winding_down"}, "released": {Released: 1}, "interrupted": {Interrupted: true},
		"damaged": {}} {
		row := attention.Found{Folder: "odd", Overview: o}
		if state != "damaged" {
			row.Overview.ID = "odd-1"
		}
		before := x.everyTeam
		x.send(teamsMsg{teams: append([]teamRow{rowOf(row)}, before...)})
		x.keys("/", "s:"+state, "enter")
		if !slices.ContainsFunc(x.teams, func(r teamRow) bool { return r.ref == "odd" }) {
			t.Errorf("s:%s selects %d teams: %s", state, len(x.teams), x.notice.text)
		}
		x.input, x.narrowTeams = nil, narrowing{}
		x.send(teamsMsg{teams: before})
	}

	x.open(s)
	x.keys("/", "m:a", "tab")
	if x.input.field.String() != "m:ann" {
		t.Errorf("completed to %q", x.input.field.String())
	}
	x.keys(" s:", "tab")
	if !strings.Contains(x.notice.text, "s:blocked") || x.input.field.String() != "m:ann s:" {
		t.Errorf("offered %q", x.notice.text)
	}
	x.keys("in_", "tab", "enter")
	if x.tab != tabTasks || len(x.team.tasks) != 1 || x.team.tasks[0].called != "lexer" ||
		!strings.Contains(frame(), "1 of 4: m:ann s:in_progress") {
		t.Errorf("%+v", x.team.tasks)
	}
	x.send(s.message()) // a new state is narrowed too
	if len(x.team.tasks) != 1 {
		t.Errorf("%d tasks", len(x.team.tasks))
	}
	x.keys("[") // and so is the past
	if !x.away() || len(x.team.tasks) != 1 {
		t.Errorf("%d tasks in the past", len(x.team.tasks))
	}
	if called := x.called("2"); called != "parser" {
		t.Errorf("a task that is not shown is called %q", called)
	}
}
