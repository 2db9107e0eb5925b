package tui

import (
	"testing"

	tea "charm.land/bubbletea/v2"

	"cadre/internal/team"
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
	x.says(" docs : cadre ")
	x.keys("up")
	x.says(" docs : cadre task rm 5") // for the team that the line names
}

// TestPaletteNamesItsTeam: the line says which team a command acts on, and a command never gets a
// team that is not shown as selected.
func TestPaletteNamesItsTeam(t *testing.T) {
	const none = "No team is selected: name the team in a command that needs one."
	s := newStory(t)
	x := newScreen(s, 80, 24)
	x.keys(":")
	x.says(" demo : cadre ") // the first row
	x.lacks(none)
	x.keys("esc", "down", ":")
	x.says(" broken : cadre ")
	x.keys("esc", "up", "enter")
	x.send(s.message())
	x.keys(":")
	x.says(" demo : cadre ")
	x.keys("esc", "a", ":")
	x.says(" demo : cadre ")
	x.keys("esc")
	x.send(teamsMsg{teams: []teamRow{rowOf(s.listed())}}) // nothing waits any more
	x.keys(":")
	x.says(none)
	x.keys("pause", "enter")
	x.wants(`command  ["pause"]`)
	x.keys("esc", "esc", "/", "nowhere", "enter") // no row of the list is left, and demo was open before
	x.keys(":")
	x.says(none)
	x.says(" : cadre ")
	x.keys("pause", "enter")
	x.wants(`command  ["pause"]`)
}

// TestPaletteInThePast: while the past is shown, a line that would change the team is refused and
// stays, and one that reads runs.
func TestPaletteInThePast(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 100, 30)
	x.open(s)
	x.send(recordsMsg{ref: "demo", fresh: true, records: s.records, whole: true})
	x.keys("[")
	if !x.away() {
		t.Fatal("the screen shows the present")
	}
	for _, line := range []string{"task add late", "cadre send ann hello", "budget --tokens 5", "serve"} {
		x.keys(":", line, "enter")
		if x.notice.text != inPast || x.input == nil || x.input.field.String() != line {
			t.Errorf("%s: %q, %v", line, x.notice.text, x.input)
		}
		x.keys("esc")
	}
	x.keys(":", "task list", "enter")
	x.wants(`command demo ["task" "list"]`)
}

// TestPaletteAsksBeforeItEnds: a line of the palette that would end the command of a shell member
// is asked about, in the words of the other ways to do it.
func TestPaletteAsksBeforeItEnds(t *testing.T) {
	s := newStory(t)
	s.do(team.User, &team.CreateTask{Name: "build", Subject: "Build", Run: "make", Owner: "lukas"})
	s.do("lukas", &team.ClaimTask{Task: "5"})
	x := newScreen(s, 100, 30)
	x.open(s)
	for _, line := range []string{"interrupt lukas", "cadre interrupt demo lukas",
		"send --to lukas --priority urgent stop",
		"send demo --to=lukas --priority=urgent stop"} {
		asked := len(x.asked)
		x.keys(":", line, "enter")
		x.says("This ends the command of lukas, and its task build fails. End it? [y/N]")
		x.keys("n")
		if len(x.asked) != asked {
			t.Errorf("%s ran without a yes: %s", line, x.last())
		}
		x.says(" : cadre " + line) // it can be corrected
		x.keys("esc")
	}
	x.keys(":", "interrupt lukas", "enter", "y")
	x.wants(`command demo ["interrupt" "lukas"]`)
	for line, want := range map[string]string{"interrupt lukas --yes": `["interrupt" "lukas" "--yes"]`,
		"interrupt ann":                         `["interrupt" "ann"]`,
		"send --to ann --priority urgent lukas": `["send" "--to" "ann" "--priority" "urgent" "lukas"]`,
		"interrupt --as lukas demo ann":         `["interrupt" "--as" "lukas" "demo" "ann"]`,
		"send --to lukas urgent":                `["send" "--to" "lukas" "urgent"]`,
		"send --to lukas hello":                 `["send" "--to" "lukas" "hello"]`} {
		x.keys(":", line, "enter")
		x.wants("command demo " + want)
		x.ask = nil
	}

	// What the members of another team run is not known here.
	for _, line := range []string{"interrupt docs lukas", "send docs --to=lukas --priority urgent stop"} {
		asked := len(x.asked)
		x.keys(":", line, "enter")
		x.says("If lukas of team docs is a shell member, this ends its command, and its task fails. End it?")
		x.keys("n", "esc")
		if len(x.asked) != asked {
			t.Errorf("%s ran without a yes: %s", line, x.last())
		}
	}
	x.keys("esc", "down", ":", "interrupt lukas", "enter") // the team that the list selects, which is not open
	x.says("If lukas of team")
	x.keys("n", "esc")
}
