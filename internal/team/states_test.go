package team

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cadre/internal/testkit/golden"
)

// movesOf remembers the status of the team and its members. The returned function checks that they
// have changed only by moves in the tables.
func movesOf(s *State) func(*Record) error {
	was, moves := s.team.Status, MemberMoves()
	phases := map[string]Phase{}
	for i := range s.members {
		phases[s.members[i].Name] = s.Phase(s.members[i].Name)
	}
	return func(r *Record) error {
		if now := s.team.Status; now != was && !reachable(TeamMoves, was, now, changes(r)) {
			return fmt.Errorf("the team went from %q to %q, which no move does", was, now)
		}
		for i := range s.members {
			name := s.members[i].Name
			if now := s.Phase(name); now != phases[name] && !allowed(moves, phases[name], now) {
				return fmt.Errorf("%s went from %q to %q, which no move does", name, phases[name], now)
			}
		}
		return nil
	}
}

// changes counts how often the team changed its status in the record.
func changes(r *Record) (n int) {
	for _, e := range r.Events {
		if _, ok := e.(*TeamStatusChanged); ok {
			n++
		}
	}
	return max(n, 1)
}

func reachable[S ~string](moves []Move[S], from, to S, steps int) bool {
	if from == to {
		return true
	}
	for _, m := range moves {
		if steps > 0 && m.From == from && reachable(moves, m.To, to, steps-1) {
			return true
		}
	}
	return false
}

// draw draws the moves as text. Moves to the same status for the same reason share a line.
func draw[S ~string](what string, moves []Move[S]) string {
	type line struct {
		from     []string
		to, when string
	}
	var lines []line
	left, right := 0, 0
	for _, m := range moves {
		i := slices.IndexFunc(lines, func(l line) bool { return l.to == string(m.To) && l.when == m.When })
		if i < 0 {
			i = len(lines)
			lines = append(lines, line{to: string(m.To), when: m.When})
		}
		lines[i].from = append(lines[i].from, string(m.From))
		left, right = max(left, len(strings.Join(lines[i].from, ", "))), max(right, len(m.To))
	}
	var b strings.Builder
	b.WriteString(what + "\n")
	for _, l := range lines {
		fmt.Fprintf(&b, "  %-*s ─▶ %-*s  %s\n", left, strings.Join(l.from, ", "), right, l.to, l.when)
	}
	return b.String()
}

// TestThePageDrawsTheStates checks that the page shows the tables as they are, and the states of a
// task as the package comment draws them.
func TestThePageDrawsTheStates(t *testing.T) {
	const page = "../../docs/architecture/core.md"
	const begin, end = "<!-- states: drawn by internal/team from its tables; go test ./internal/team -run Draws " +
		"-update -->\n", "<!-- end of states -->"
	golden.Part(t, page, begin, end, "```\n"+draw("team", TeamMoves)+"\n"+draw("member", MemberMoves())+"\n"+
		taskDrawing(t)+"```\n")
}

// taskDrawing returns the drawing in the package comment of the states of a task.
func taskDrawing(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	drawing := regexp.MustCompile(`(?m)^//\ttask .*\n(//\t.*\n)*`).FindString(string(text))
	if drawing == "" {
		t.Fatal("the package comment does not draw the states of a task")
	}
	return strings.ReplaceAll(drawing, "//\t", "")
}

// TestSpentBudgetPauses checks that a member whose own budget is spent is not shown as spawning
// while a host runs its team, because no host starts it before its budget is raised.
func TestSpentBudgetPauses(t *testing.T) {
	s := &State{}
	apply := func(events ...Event) { s.Apply(&Record{Seq: s.Seq() + 1, ID: "r", At: 1, Events: events}) }
	apply(&TeamCreated{Team: Team{ID: "t", Name: "demo", Lead: "lead"}, Lead: Member{Name: "lead", Agent: External,
		Status: Active}}, &MemberSpawned{Member: Member{Name: "ann", Agent: Shell, Status: Active, Incarnation: 1}})
	hosted := &Outside{Hosted: true}
	is := func(when string, want Phase) {
		t.Helper()
		if got := s.Standing("ann", hosted); got != want {
			t.Errorf("%s ann is %s, not %s", when, got, want)
		}
	}
	apply(&MemberBudgetExhausted{Member: "ann", What: "time"})
	is("until its session ends", Phase(Active))
	apply(&MemberDetached{Member: "ann", Reason: BudgetSpentReason})
	is("after its budget was spent", Paused)
	apply(&MemberBudgetChanged{Member: "ann"})
	is("after its budget was raised", Phase(Spawning))
}

// TestMovesAreATable checks that no two moves are the same. Every status in the tables can be
// reached and, except for the last ones, left.
func TestMovesAreATable(t *testing.T) {
	checkMoves(t, TeamMoves, TeamAborted)
	checkMoves(t, MemberMoves(), Phase(Stopped), Phase(Failed))
}

func checkMoves[S ~string](t *testing.T, moves []Move[S], last ...S) {
	t.Helper()
	seen, from, to := map[[2]S]bool{}, map[S]bool{"": true}, map[S]bool{"": true}
	for _, m := range moves {
		if seen[[2]S{m.From, m.To}] || m.From == m.To {
			t.Errorf("%q to %q is listed twice, or is not a move", m.From, m.To)
		}
		seen[[2]S{m.From, m.To}], from[m.From], to[m.To] = true, true, true
	}
	for _, s := range last {
		if from[s] {
			t.Errorf("%q is left", s)
		}
		from[s] = true
	}
	for s := range to {
		if !from[s] {
			t.Errorf("%q is never left", s)
		}
	}
	for s := range from {
		if !to[s] {
			t.Errorf("%q is never got to", s)
		}
	}
}
