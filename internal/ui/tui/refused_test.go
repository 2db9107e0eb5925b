package tui

import (
	"errors"
	"strings"
	"testing"

	"cadre/internal/inspect/attention"
	"cadre/internal/team"
)

// TestRefusedTextStays: a line that is refused comes back with its text, whatever it was for.
func TestRefusedTextStays(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 100, 24)
	x.keys("a")
	x.send(s.message())
	x.keys("down", "n")
	x.fails = errors.New("the plan was answered meanwhile")
	x.keys("Name the rules", "enter")
	x.says("the plan was answered meanwhile")
	x.says("reject bob ▸ Name the rules")
	x.keys("esc", "up", "a", "enter")
	x.says("rule for ann ▸ Bash(rm -rf build && make)")
	x.fails = nil
	x.keys("esc", "esc")

	x.open(s)
	x.prints = outputMsg{args: []string{"mode", "bob"}, text: "name the mode", code: 2}
	x.keys(":", "mode bob", "enter")
	x.says("name the mode")
	x.says(" : cadre mode bob")
	x.keys(" plan")
	x.prints = outputMsg{args: []string{"mode", "bob", "plan"}, text: "bob plans"}
	x.keys("enter")
	x.wants(`command demo ["mode" "bob" "plan"]`)
	x.lacks(" : cadre")

	x.prints = outputMsg{args: []string{"run", "x"}, text: "x.yaml:1:1: no key\nx.yaml:2:1: no key", code: 2}
	x.keys(":", "validate x", "enter")
	x.says("x.yaml:2:1")
	x.keys("esc", ":")
	x.lacks("validate x")
	x.keys("mo", "up")
	x.says(" : cadre validate x")
	x.keys("up")
	x.says(" : cadre mode bob plan")
	x.keys("up", "up")
	x.says("There is no earlier line.")
	x.says(" : cadre mode bob")
	x.keys("down", "down", "down", "down")
	x.says(" : cadre mo") // the line that was begun
	if got := x.input.field.String(); got != "mo" {
		t.Errorf("the line is %q", got)
	}
	x.keys("esc", "/", "up")
	x.says("lines of the palette alone")
}

// TestBusyTaskIsAskedFor: the screen asks before it takes a task from the member that works on it,
// and a no leaves the line as it was.
func TestBusyTaskIsAskedFor(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 80, 24)
	x.open(s)
	x.busy = true
	x.keys("t", ".")
	x.picks("reassign lexer")
	x.keys("bob", "enter")
	x.says("ann works on task lexer. Take the task from ann, and give it to bob? [y/N]")
	asked := len(x.asked)
	x.keys("n")
	if len(x.asked) != asked {
		t.Errorf("the screen asked for %s after a no", x.last())
	}
	x.says("who gets task lexer ▸ bob")
	x.keys("enter", "y")
	x.says("reassigned")
}

// TestDormantTeamIsResumed: the actions of a team without a living process begin with resume.
func TestDormantTeamIsResumed(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 80, 24)
	x.open(s)
	x.keys(".")
	x.lacks("Continue the team in the background")
	x.keys("esc")
	msg := s.message()
	msg.view = viewOf("demo", s.state, &team.Outside{At: s.at})
	if !msg.view.dormant {
		t.Fatal("the team is not dormant")
	}
	x.send(msg)
	x.keys(".")
	if first := x.menu.choices[0].name; first != "resume" {
		t.Errorf("the menu begins with %s", first)
	}
	x.picks("resume")
	x.says("Resume the team demo in the background?")
	x.keys("y")
	x.wants(`command demo ["resume" "demo-1"]`)
}

// TestObservedTeams: nothing is offered that cannot be done to a team that is only observed.
func TestObservedTeams(t *testing.T) {
	s := &story{t: t, state: &team.State{}, at: start}
	apply := func(events ...team.Event) {
		r := &team.Record{Seq: s.state.Seq() + 1, At: s.at, Actor: "observer", Events: events}
		s.state.Apply(r)
		s.records = append(s.records, r)
	}
	apply(&team.TeamCreated{Team: team.Team{ID: "seen-1", Name: "demo", Observed: "fx", Lead: "team-lead",
		Status: team.TeamActive}, Lead: team.Member{Name: "team-lead", Agent: team.External, Status: team.Active}},
		&team.MemberSpawned{Member: team.Member{Name: "ann", Agent: "claude", Status: team.Active}},
		&team.TaskCreated{Task: team.Task{ID: "1", Subject: "Look", Status: team.InProgress, Owner: "ann"}})
	x := newScreen(s, 120, 40)
	x.chosen.team = "demo"
	x.open(s)
	x.lacks("delegate")
	x.keys("D")
	x.says("This team is only observed: its own agents decide what happens in it.")
	x.keys(".")
	for _, name := range []string{"abort", "reassign", "interrupt", "budget"} {
		x.lacks(name)
	}
	x.picks("cleanup")
	x.keys("y")
	x.wants(`command demo ["cleanup" "seen-1" "--yes"]`)
	x.keys("t", "enter")
	x.lacks("reassign")
	x.keys("R")
	x.says("This team is only observed")
	x.keys("esc", "1", "end", "enter")
	if x.place != atMember || x.typed() != nil {
		t.Errorf("letters go to a line at %v", x.place)
	}
	x.lacks("▸")
	x.keys("i")
	x.says("This team is only observed")

	gone := s.listed()
	if row := rowOf(gone); row.section != attention.Finished || row.state != "not observed now" {
		t.Errorf("a team that is not observed is %q in section %v", row.state, row.section)
	}
	gone.Overview.Watched = true
	if row := rowOf(gone); row.section != attention.Working || row.state != "observed" {
		t.Errorf("a team that is observed is %q in section %v", row.state, row.section)
	}
}

// TestYouHaveNoSession: what the screen says of the lead is true where the person leads.
func TestYouHaveNoSession(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 80, 24)
	x.open(s)
	x.keys("enter", "tab", "x")
	x.says("You lead this team: lead has no session and no turns.")
	if frame := stripped(strings.Join(x.frame(), "\n")); strings.Contains(frame, "runs its own session") {
		t.Errorf("the screen speaks of a session of the person:\n%s", frame)
	}
}
