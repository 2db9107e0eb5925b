package projection

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cadre/internal/team"
)

// beside returns a projector for a team that shares its name with another one.
func beside(t *testing.T, claude string) *Projector {
	p := projectorOf(t.TempDir(), claude)
	p.Beside = true
	return p
}

// shown returns the ids of the teams in Claude Code's folders, by the names of the folders.
func shown(t *testing.T, claude string) []string {
	t.Helper()
	var all []string
	configs, _ := filepath.Glob(filepath.Join(claude, "teams", "*", configName))
	for _, path := range configs {
		o, err := configOwner(path)
		if err != nil || o == nil {
			t.Fatalf("%s: %v", path, err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(filepath.Dir(path))
		if !strings.Contains(string(data), `"name": "`+name+`"`) || !strings.Contains(string(data), `"lead@`+name+`"`) {
			t.Errorf("%s has another name in it:\n%s", path, data)
		}
		all = append(all, name+" "+o.TeamID)
	}
	slices.Sort(all)
	return all
}

// TestTwoOfAName checks that the second team of a name is shown as NAME-2, the third as NAME-3.
// Each follows its own state, and the removal of one leaves the others.
func TestTwoOfAName(t *testing.T) {
	one, first := working(t)
	p2, p3 := beside(t, one.Claude), beside(t, one.Claude)
	second, third := newHistory(t, "T2", 2), newHistory(t, "T3", 3)
	expect := func(want ...string) {
		t.Helper()
		if got := shown(t, one.Claude); !slices.Equal(got, want) {
			t.Errorf("shown are %q, and not %q", got, want)
		}
	}
	for range 2 {
		project(t, p2, second)
		project(t, p3, third)
		project(t, one, first)
		expect("health T1", "health-2 T2", "health-3 T3")
		second.do(t, "lead", &team.CreateTask{Subject: "more"})
		third.do(t, "lead", &team.CreateTask{Subject: "more"})
		first.do(t, "lead", &team.CreateTask{Subject: "more"})
	}
	project(t, p2, second)
	if missing(filepath.Join(one.Claude, "tasks", "health-2", "2.json")) {
		t.Error("the second task of the second team is missing")
	}
	if n := stepsOf(t, p2, second); n != 0 {
		t.Errorf("the next projection took %d steps", n)
	}
	second.do(t, "lead", &team.CleanUp{})
	project(t, p2, second)
	expect("health T1", "health-3 T3")
	if err := os.Remove(p3.Mark); err != nil {
		t.Fatal(err)
	}
	project(t, p3, third) // without a mark it is written again, at the first free name
	third.do(t, "lead", &team.CleanUp{})
	if err := os.RemoveAll(filepath.Dir(p3.Mark)); err != nil {
		t.Fatal(err)
	}
	project(t, p3, third)
	if got := shown(t, one.Claude); slices.Contains(got, "health-2 T3") {
		t.Errorf("after its removal there is %q", got)
	}
}

// TestWithdraw checks that a team takes back its own folders and no other team's.
func TestWithdraw(t *testing.T) {
	one, first := working(t)
	project(t, one, first)
	p, second := beside(t, one.Claude), newHistory(t, "T2", 2)
	project(t, p, second)
	if err := p.Withdraw(second.state.Team()); err != nil {
		t.Fatal(err)
	}
	if got := shown(t, one.Claude); !slices.Equal(got, []string{"health T1"}) {
		t.Errorf("there is %q", got)
	}
	if !missing(filepath.Join(one.Claude, "tasks", "health-2")) {
		t.Error("its tasks are still there")
	}
}

// TestBesideGivesWay checks that a team that really has the name NAME-2 gets its folders, and the
// team that was shown there moves on.
func TestBesideGivesWay(t *testing.T) {
	one, _ := working(t)
	p, second := beside(t, one.Claude), newHistory(t, "T2", 2)
	project(t, p, second)
	dir := filepath.Join(one.Claude, "teams", "health-2")
	data := `{"cadre":{"teamId":"X","createdAt":99,"seq":4},"name": "health-2","x":"lead@health-2"}`
	if err := os.WriteFile(filepath.Join(dir, configName), []byte(strings.Replace(data, `"x":"lead`, `"x": "lead`, 1)),
		0o600); err != nil {
		t.Fatal(err)
	}
	second.do(t, "lead", &team.CreateTask{Subject: "more"})
	project(t, p, second)
	if got := shown(t, one.Claude); !slices.Equal(got, []string{"health T1", "health-2 X", "health-3 T2"}) {
		t.Errorf("shown are %q", got)
	}
}
