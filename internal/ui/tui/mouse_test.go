package tui

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"cadre/internal/render"
)

// clickOn clicks where the screen shows the text.
func (x *screen) clickOn(text string) {
	x.t.Helper()
	x.View()
	for y, l := range x.frame() {
		if at := strings.Index(stripped(l), text); at >= 0 {
			x.send(tea.MouseClickMsg{X: render.Widest(stripped(l)[:at]), Y: y, Button: tea.MouseLeft})
			return
		}
	}
	x.t.Fatalf("the screen does not show %q:\n%s", text, stripped(strings.Join(x.frame(), "\n")))
}

// TestMouse: a click selects a row, a second one opens it, and tabs can be clicked, at each size.
func TestMouse(t *testing.T) {
	for _, size := range sizes {
		s := newStory(t)
		x := newScreen(s, size[0], size[1])
		x.clickOn("docs")
		if x.chosen.team != "docs" || x.place != atTeams {
			t.Errorf("at %v a click chose %q", size, x.chosen.team)
		}
		x.clickOn("demo")
		x.clickOn("demo")
		x.wants("open demo")
		x.send(s.message())
		x.send(recordsMsg{ref: "demo", fresh: true, records: s.records, whole: true})
		x.clickOn("lukas")
		if x.place != atTeam || x.chosen.member != "lukas" {
			t.Errorf("at %v a click chose %q", size, x.chosen.member)
		}
		x.clickOn("lukas")
		x.wants("session demo lukas")
		x.keys("tab", "left")
		x.clickOn(map[int]string{40: " 2  3", 80: " 2 tasks", 120: "2 tasks"}[size[0]])
		if x.tab != tabTasks {
			t.Errorf("at %v a click on a tab showed tab %d", size, x.tab)
		}
		x.clickOn("lint")
		if x.chosen.task != "3" {
			t.Errorf("at %v a click chose task %q", size, x.chosen.task)
		}
		x.clickOn("lint")
		if x.place != atTask || x.shown.id != "3" {
			t.Errorf("at %v a second click opened %d %q", size, x.place, x.shown.id)
		}
		x.keys("esc", "5")
		x.clickOn("parser")
		x.clickOn("parser")
		if x.shown.id != "2" {
			t.Errorf("at %v a click in the graph opened %q", size, x.shown.id)
		}
		x.keys("esc", "4")
		x.clickOn("bob")
		if x.chosen.member != "bob" {
			t.Errorf("at %v a click in the timeline chose %q", size, x.chosen.member)
		}
		x.keys("a")
		x.clickOn("plan")
		if one, _ := x.item(); one.Member != "bob" {
			t.Errorf("at %v a click chose the item of %q", size, one.Member)
		}
		x.clickOn("plan")
		x.wants("session demo bob")
	}
}

// TestMouseOff: M leaves the mouse to the terminal, and takes it back. A click answers no question.
func TestMouseOff(t *testing.T) {
	x := newScreen(newStory(t), 80, 24)
	if x.View().MouseMode != tea.MouseModeCellMotion {
		t.Error("the mouse is off at the start")
	}
	x.keys("M")
	x.says("select text")
	if x.View().MouseMode != tea.MouseModeNone {
		t.Error("M did not leave the mouse to the terminal")
	}
	x.keys("M")
	if x.View().MouseMode != tea.MouseModeCellMotion {
		t.Error("M did not take the mouse back")
	}
	x.open(x.story)
	x.keys("D")
	x.clickOn("lukas")
	if x.ask == nil || x.chosen.member == "lukas" {
		t.Error("a click while the screen asks did something")
	}
}

// TestPaletteOnTheSelectedTeam: a command acts on the team of the selected row, which its line
// names.
func TestPaletteOnTheSelectedTeam(t *testing.T) {
	x := newScreen(newStory(t), 80, 24)
	x.clickOn("docs")
	x.prints = outputMsg{text: "done\n"}
	x.keys(":")
	x.says("docs : cadre")
	x.keys("status", "enter")
	x.wants(`command docs ["status"]`)
	x.keys("a")
	x.keys("end")
	x.keys(":", "status", "enter")
	x.wants(`command broken ["status"]`)
}
