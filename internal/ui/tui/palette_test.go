package tui

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

// TestPaletteKeepsItsTeam: a refused line and the confirmation of a command stay with the team for
// which they were typed, and name it, whichever team is open by then.
func TestPaletteKeepsItsTeam(t *testing.T) {
	begins := func(prints outputMsg) *screen {
		s := newStory(t)
		x := newScreen(s, 100, 24)
		x.open(s)
		x.prints = prints
		x.keys(":", "task rm 5")
		_, late := x.Update(tea.KeyPressMsg(special["enter"]))
		x.run(x.Model.open("docs"))
		x.run(late)
		x.wants(`command demo ["task" "rm" "5"]`)
		return x
	}

	args := []string{"task", "rm", "5"}
	x := begins(outputMsg{args: args, text: "task 5 is held", code: 1})
	x.says(" demo : cadre task rm 5")
	x.keys(" '", "enter") // a line that cannot be read
	x.says(" demo : cadre task rm 5 '")
	x.keys("backspace", "backspace", "tab")
	x.wants(`command demo ["__complete" "task" "rm" "5"]`)
	x.prints = outputMsg{args: args, text: "task 5 is deleted"}
	x.keys("enter")
	x.wants(`command demo ["task" "rm" "5"]`)

	asks := outputMsg{args: args, code: 2, asked: "Do it?"}
	x = begins(asks)
	x.says("Team demo: Do it? [y/N]")
	x.keys("n")
	x.says(" demo : cadre task rm 5")
	x.keys("enter")
	x.says("Team demo: Do it? [y/N]")
	x.prints = outputMsg{text: "task 5 is deleted"}
	x.keys("y")
	x.wants(`command demo ["task" "rm" "5" "--yes"]`)

	x = begins(outputMsg{args: args, text: "task 5 is held\nby ann", code: 1})
	x.says("by ann")
	x.keys("esc", ":")
	if got := x.input.field.String(); got != "" {
		t.Errorf("a line for the team docs starts with %q", got)
	}
	x.lacks("demo : cadre")
	x.keys("esc")
	x.run(x.Model.open("demo"))
	x.keys(":")
	x.says(" : cadre task rm 5")
	if strings.Contains(stripped(strings.Join(x.frame(), "\n")), "demo : cadre") {
		t.Error("the line names the team that is open")
	}
}
