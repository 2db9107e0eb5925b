package tui

import (
	"errors"
	"strings"
	"testing"

	"cadre/internal/team"
)

// picks selects the entry of the open menu with that name, and chooses it.
func (x *screen) picks(name string) {
	x.t.Helper()
	if x.menu == nil {
		x.t.Fatalf("no menu is open to pick %s:\n%s", name, stripped(strings.Join(x.frame(), "\n")))
	}
	for i, c := range x.menu.choices {
		if c.name == name {
			for x.menu.selected < i {
				x.keys("down")
			}
			for x.menu.selected > i {
				x.keys("up")
			}
			x.keys("enter")
			return
		}
	}
	x.t.Fatalf("the menu has no %s:\n%s", name, stripped(strings.Join(x.frame(), "\n")))
}

// TestActions does to a team and to a member what the command line can do, and asks before what is
// hard to undo.
func TestActions(t *testing.T) {
	s := newStory(t)
	s.do(team.User, &team.SetBudget{Budget: team.Budget{Tokens: 100_000}})
	s.do(team.User, &team.SpawnMember{Name: "eve", Agent: team.External})
	s.do(team.User, &team.AddRule{Rule: "Bash(make)", Member: "ann"})
	x := newScreen(s, 100, 30)
	x.open(s)
	x.keys("shift+down", ".")
	x.says("ann, team demo")
	x.picks("mode ann")
	x.says("It asks before it changes something. This is the mode now.")
	x.picks("mode ann acceptEdits")
	x.wants("demo *team.SetMode &{Member:ann Mode:acceptEdits Spawns:false}")
	x.keys(".")
	x.picks("mode ann")
	asked := len(x.asked)
	x.picks("mode ann bypassPermissions")
	x.says("Let ann do everything without asking? [y/N]")
	x.keys("n")
	if len(x.asked) != asked {
		t.Errorf("the screen asked for %s without a yes", x.last())
	}

	x.keys(".")
	x.picks("budget")
	x.says("53200 of 100000 tokens, 53 %.")
	x.picks("budget --tokens")
	x.says("tokens of the team demo ▸ 100000")
	x.keys("0", "enter")
	x.wants(`command demo ["budget" "demo-1" "--tokens" "1000000"]`)
	x.keys(".")
	x.picks("budget ann")
	x.says("No limit; $0.4120 used.")
	x.picks("budget --usd")
	x.says("0 or an empty line removes the limit.")
	x.keys("2.50", "enter")
	x.wants(`command demo ["budget" "demo-1" "--member" "ann" "--usd" "2.50"]`)

	for _, one := range []struct{ name, question, command string }{
		{"interrupt ann", "Interrupt the turn of ann?", "demo *team.Interrupt &{Member:ann}"},
		{"handover ann", "Replace the session of ann", `command demo ["handover" "demo-1" "ann"]`},
		{"shutdown ann", "Shut down ann?", `command demo ["shutdown" "demo-1" "ann"]`},
		{"shutdown --graceful", "wind down?", `command demo ["shutdown" "demo-1" "--graceful"]`},
		{"pause", "End the sessions of the team demo?", `command demo ["pause" "demo-1"]`},
		{"abort", "End every session of the team demo at once?", `command demo ["abort" "demo-1" "--yes"]`},
		{"checkpoint", "", `command demo ["checkpoint" "demo-1"]`},
	} {
		x.keys(".")
		x.picks(one.name)
		if one.question != "" {
			x.says(one.question)
			x.keys("y")
		}
		x.wants(one.command)
		if x.menu != nil {
			t.Errorf("%s leaves the menu open", one.name)
		}
	}

	x.keys(".")
	x.picks("permission")
	x.says("For ann: exactly the command make.")
	x.picks("Bash(make)")
	x.says("Remove the rule Bash(make)?")
	x.keys("y")
	x.wants("demo *team.RemoveRule &{Rule:Bash(make) Member:ann}")
	x.keys(".")
	x.picks("permission")
	x.picks("permission add")
	x.keys("Edit")
	x.says("No bounds: it allows changes to any file of this machine.")
	x.keys("(docs/**)")
	x.says("Allows changes to docs/** in the team's directory.")
	x.keys("enter")
	x.wants("demo *team.AddRule &{Rule:Edit(docs/**) Member: Unbounded:false}")
}

// TestWholeExplanations: the menu cuts no explanation. Where the entries do not fit, it shows those
// around the selected one, and says how many are hidden.
func TestWholeExplanations(t *testing.T) {
	for _, size := range []struct{ width, height int }{{120, 40}, {80, 24}, {40, 15}, {40, 10}} {
		s := newStory(t)
		x := newScreen(s, size.width, size.height)
		x.open(s)
		x.keys("shift+down", ".")
		seen := 0
		for i, c := range x.menu.choices {
			frame := x.frame()
			text := strings.Join(strings.Fields(stripped(strings.Join(frame, " "))), " ")
			if !strings.Contains(text, c.name+" "+c.about) || !strings.Contains(text, c.why) ||
				strings.Contains(text, "…") {
				t.Errorf("%v: %s is not shown with %q:\n%s", size, c.name, c.about, stripped(strings.Join(frame, "\n")))
			}
			if len(frame) != size.height || i == 0 && strings.Contains(text, " more") != (size.height < 20) {
				t.Errorf("%v: the menu is\n%s", size, stripped(strings.Join(frame, "\n")))
			}
			seen++
			x.keys("down")
		}
		if seen < 10 {
			t.Errorf("the menu has %d entries", seen)
		}
	}
}

// TestActionsThatDoNotApply: an entry that does not apply says why, and leaves the menu open.
func TestActionsThatDoNotApply(t *testing.T) {
	s := newStory(t)
	s.do(team.User, &team.SpawnMember{Name: "eve", Agent: team.External})
	x := newScreen(s, 80, 24)
	x.open(s)
	x.view("eve")
	x.keys("tab", ".")
	asked := len(x.asked)
	for name, why := range map[string]string{"interrupt eve": "eve runs its own session: its turns cannot be " +
		"interrupted",
		"handover eve": "eve runs its own session, and cadre cannot replace it.",
		"mode eve":     "eve runs its own session, and asks by the rules of that session."} {
		x.picks(name)
		x.says(why)
	}
	x.keys("esc")
	if x.menu != nil || x.place != atMember {
		t.Error("Escape does not lead from the menu to the member")
	}
	x.keys("esc")
	for one, _ := x.selectedMember(); one.name != "lead"; one, _ = x.selectedMember() {
		x.keys("shift+up")
	}
	x.keys(".")
	for _, name := range []string{"interrupt lead", "handover lead", "shutdown lead", "mode lead", "budget lead"} {
		x.lacks(name)
	}
	x.keys("esc", "[")
	x.keys(".")
	x.says("Nothing can be done in the past.")
	x.keys("0")
	if len(x.asked) != asked+1 && !strings.HasPrefix(x.last(), "moment") {
		t.Errorf("an entry that does not apply asked for %s", x.last())
	}
}

// TestActionsOfTasks reassigns, releases and deletes the selected task.
func TestActionsOfTasks(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 80, 24)
	x.open(s)
	x.keys("t", ".")
	x.says("task lexer, team demo")
	x.picks("reassign lexer")
	x.keys("bob", "enter")
	x.wants("reassign demo #1 bob")
	x.keys(".")
	x.picks("task release lexer")
	x.keys("y")
	x.wants(`command demo ["task" "release" "demo-1" "#1"]`)
	x.keys(".")
	x.picks("task rm lexer")
	x.keys("y")
	x.wants(`command demo ["task" "rm" "demo-1" "#1"]`)
}

// TestActionsInTheList: in the list of teams the menu has the actions of the selected team, once it
// has been read. A key that was pressed meanwhile cancels the menu.
func TestActionsInTheList(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 100, 30)
	x.keys(".")
	x.says("Reading the team demo …")
	x.send(s.message())
	x.says("team demo")
	x.picks("checkpoint")
	x.wants(`command demo ["checkpoint" "demo-1"]`)
	if x.place != atTeams || x.menu != nil {
		t.Errorf("the menu leads to %v", x.place)
	}
	x.keys(".")
	for _, c := range x.menu.choices {
		if strings.Contains(c.name, "ann") || strings.HasPrefix(c.name, "task ") {
			t.Errorf("the menu of a team has %s", c.name)
		}
	}
	x.keys("esc")

	x = newScreen(s, 100, 30)
	x.keys(".", "end")
	x.send(s.message())
	if x.menu != nil {
		t.Error("the menu opens after another key")
	}
	x = newScreen(s, 100, 30)
	x.keys(".")
	x.send(teamMsg{ref: "demo", err: errors.New("the journal is damaged")})
	x.says("the journal is damaged")
}
