package tui

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"cadre/internal/inspect/attention"
	"cadre/internal/inspect/catalog"
	"cadre/internal/render"
	"cadre/internal/team"
)

// lacks checks that the screen does not show the text.
func (x *screen) lacks(text string) {
	x.t.Helper()
	if frame := stripped(strings.Join(x.frame(), "\n")); strings.Contains(frame, text) {
		x.t.Errorf("the screen says %q:\n%s", text, frame)
	}
}

// TestNeedsOfTheOpenTeam: the title counts the items of the open team, and those of others apart.
func TestNeedsOfTheOpenTeam(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 120, 40)
	x.open(s)
	x.says("! needs you 2, 1 elsewhere")
	x.keys("a")
	x.says("! needs you 3")
	x.lacks("elsewhere")
	x.keys("esc", "esc")
	x.lacks("needs you 2")
}

// TestNamesOfTeams: a team is called by its name where no other team has it, and else by its name
// in commands.
func TestNamesOfTeams(t *testing.T) {
	row := func(ref, name string) attention.Found {
		return attention.Found{Folder: ref, Overview: catalog.Overview{ID: ref, Name: name, Status: team.TeamActive},
			Items: []team.Item{{Kind: team.ItemFailed, WaitsFor: team.ForUser, Member: "ann", Text: "ann failed."}}}
	}
	s := newStory(t)
	x := newScreen(s, 80, 24)
	show := func(all ...attention.Found) {
		var msg teamsMsg
		for _, one := range all {
			msg.teams, msg.items = append(msg.teams, rowOf(one)), append(msg.items, itemsOf(one)...)
		}
		x.send(msg)
	}
	show(row("c-zagdie5", "release"), row("c-umpfel3", "docs"))
	x.keys("a")
	x.says("▸ release  ann failed.")
	x.lacks("▸ c-zagdie5")
	show(row("c-zagdie5", "release"), row("c-umpfel3", "release"))
	x.says("▸ c-zagdie5")
	x.says("  c-umpfel3")
}

// TestTeamsAtWorkThatNeedYou: where the only teams at work need the person, the empty section does
// not say that no team is running.
func TestTeamsAtWorkThatNeedYou(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 80, 24)
	x.send(teamsMsg{teams: []teamRow{rowOf(s.listed())}, items: itemsOf(s.listed())})
	x.says("The teams at work need you.")
	x.lacks("No team is running.")
}

// TestForIsOfTheTask: FOR says how long a member works on its task, not for how long it is active.
func TestForIsOfTheTask(t *testing.T) {
	s := newStory(t)
	s.do(team.User, &team.AnswerPermission{Request: "permission-2@ann", Allow: true})
	s.do("ann", &team.CompleteTask{Task: "1", Fence: 1, Result: "done"})
	s.at += 60_000
	s.do("ann", &team.ClaimTask{Task: "parser"})
	began := s.at
	for _, m := range viewOf("demo", s.state, s.found()).members {
		if m.name == "ann" && m.since != began {
			t.Errorf("ann works on it since %v, and the screen says since %v", began, m.since)
		}
	}
}

// TestPastHasNoFuture: in the past, the timeline ends at the moment that is shown.
func TestPastHasNoFuture(t *testing.T) {
	s := newStory(t)
	s.do(team.User, &team.SpawnMember{Name: "late", Agent: "shell"})
	x := newScreen(s, 80, 24)
	x.open(s)
	x.keys("4")
	x.says("◆")
	x.says("  late")
	x.keys("[", "[", "[", "[")
	x.says("as of 09:01:53")
	x.lacks("◆")
	x.lacks("waits for a person")
	x.lacks("  late")
}

// TestWideTables: a wide screen shows long names whole, and a table gets the room that the one
// beside it does not need.
func TestWideTables(t *testing.T) {
	const long = "reviewer-of-everything-that-others-wrote"
	s := newStory(t)
	s.do(team.User, &team.SpawnMember{Name: long, Agent: "shell"})
	for _, one := range []struct {
		width int
		whole bool
	}{{120, false}, {300, true}} {
		x := newScreen(s, one.width, 40)
		x.open(s)
		if whole := strings.Contains(stripped(strings.Join(x.frame()[:9], "\n")), long); whole != one.whole {
			t.Errorf("at %d columns, the name is whole: %v", one.width, whole)
		}
	}
	s = newStory(t)
	s.do(team.User, &team.AnswerPlan{Request: "plan-1@bob", Approved: true})
	s.do(team.User, &team.AnswerPermission{Request: "permission-2@ann", Allow: true})
	s.do("ann", &team.CompleteTask{Task: "1", Fence: 1, Result: "done"})
	s.do(team.User, &team.CreateTask{Name: "integration-of-all", Subject: "Run every test of both modules, three times",
		Owner: "ann", BlockedBy: []string{"parser"}})
	x := newScreen(s, 120, 40)
	x.send(teamsMsg{teams: []teamRow{rowOf(s.listed())}})
	x.open(s)
	x.says("OWNER")
}

// TestListsSayThatTheyGoOn: a list or a text with more lines than the screen says how many are
// hidden.
func TestListsSayThatTheyGoOn(t *testing.T) {
	s := newStory(t)
	for i := range 60 {
		s.do(team.User, &team.CreateTask{Name: fmt.Sprint("t", i), Subject: "Some work",
			Description: strings.Repeat("a\n\n", 50)})
	}
	for _, size := range sizes {
		x := newScreen(s, size[0], size[1])
		var teams []teamRow
		for i := range 60 {
			teams = append(teams, rowOf(attention.Found{Folder: fmt.Sprint("team-", i),
				Overview: catalog.Overview{ID: "x", Name: fmt.Sprint("team-", i), Status: team.TeamActive}}))
		}
		x.send(teamsMsg{teams: append(teams, rowOf(s.listed()))})
		x.says("↓ ")
		x.keys("end")
		x.says("↑ ")
		x.keys("home")
		x.open(s)
		for _, tab := range []string{"2", "5"} {
			x.keys(tab)
			x.says("↓ ")
			x.keys("end")
			x.says("↑ ")
			x.keys("home")
		}
		x.keys("2", "down", "down", "down", "down", "down", "enter")
		x.says("↓ ")
		x.keys("end")
		x.says("↑ ")
		x.keys("?")
		x.says("↓ ")
	}
}

// TestPlanIsLaidOutAgain: a plan of a consolidation uses the width that the screen has now.
func TestPlanIsLaidOutAgain(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 40, 24)
	x.staged = stagingOf(nil)
	x.open(s)
	x.keys(".")
	x.picks("consolidate")
	narrow := stripped(strings.Join(x.frame(), "\n"))
	x.send(tea.WindowSizeMsg{Width: 120, Height: 40})
	if wide := stripped(strings.Join(x.frame(), "\n")); strings.Count(strings.TrimRight(wide, "\n"), "\n") ==
		strings.Count(narrow, "\n") || len(x.overlay.text) == 0 {
		t.Errorf("the plan is laid out as before:\n%s", wide)
	}
	again := newScreen(s, 120, 40)
	again.staged = stagingOf(nil)
	again.open(s)
	again.keys(".")
	again.picks("consolidate")
	if got, want := x.frame(), again.frame(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("after a change of the size:\n%s\nat once:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestDiffIsLaidOutAgain: a diff uses the width that the screen has now, also before it is read
// again.
func TestDiffIsLaidOutAgain(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 120, 40)
	x.diffs = diffMsg{head: "the saved work", patch: "diff --git a/a b/a\n+" + strings.Repeat("word ", 18) + "end\n"}
	x.open(s)
	x.keys("2", "enter", "d")
	x.says("end")
	x.send(tea.WindowSizeMsg{Width: 40, Height: 40})
	x.says("end")
	for _, l := range x.frame() {
		if w := render.Widest(stripped(l)); w > 40 {
			t.Errorf("a line has %d columns: %q", w, stripped(l))
		}
	}
}

// TestListsNameTheFilter: the bottom line of a list names the key that narrows it.
func TestListsNameTheFilter(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 80, 24)
	x.says("/ filter")
	x.open(s)
	x.keys("2")
	x.says("/ filter")
}

// TestMessagesSayThatTheyGoOn: messages that were scrolled say how many are above and below.
func TestMessagesSayThatTheyGoOn(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 80, 15)
	x.open(s)
	x.keys("3")
	x.lacks("more below")
	x.keys("up", "up")
	x.says("more above, ↓ 2 more below")
	x.keys("end")
	x.lacks("more below")
}

// TestLettersAreTextInTheLine: the keys of the line have no letters.
func TestLettersAreTextInTheLine(t *testing.T) {
	for _, k := range keymap() {
		for _, name := range k.names {
			if k.in&inLine != 0 && len([]rune(name)) == 1 {
				t.Errorf("%s in the line is text, and not a key that can %s", name, k.help)
			}
		}
	}
}

// TestNarrowTables: on a narrow screen, a long name leaves room for what its member does.
func TestNarrowTables(t *testing.T) {
	s := newStory(t)
	s.do(team.User, &team.SpawnMember{Name: "reviewer-of-everything-that-others-wrote", Agent: "shell"})
	x := newScreen(s, 40, 15)
	x.open(s)
	x.says("asks for Ba…")
	x.says("-wrote")
}

// TestLegendEntriesStayWhole: a legend that takes several lines is broken between its entries.
func TestLegendEntriesStayWhole(t *testing.T) {
	lines := legendLines("▓ runs a tool  ░ blocked  · idle  ✗ failed", 36)
	if got, want := strings.Join(lines, "\n"), "▓ runs a tool  ░ blocked  · idle\n✗ failed"; got != want {
		t.Errorf("the legend is\n%s\nand not\n%s", got, want)
	}
}

// TestTroubleBesideAFilter: a filter does not hide that the team can no longer be read, and neither
// does the past.
func TestTroubleBesideAFilter(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 80, 24)
	x.open(s)
	x.keys("/", "m:ann", "enter")
	x.says("m:ann  (/ changes this)")
	x.send(teamMsg{ref: x.ref, err: errors.New("the disk is gone")})
	x.says("the disk is gone")
	x.says("m:ann  (/ changes this)")
}
