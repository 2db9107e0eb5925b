package machines

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"cadre/internal/team"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestRather checks which machine takes a member.
func TestRather(t *testing.T) {
	t.Parallel()
	on := func(name string, used, slots int, labels ...string) Machine {
		return Machine{Name: name, Labels: labels, Slots: slots, Project: "p", Running: true, Runs: make([]Run, used)}
	}
	gone, drained, elsewhere := on("gone", 0, 9, "gpu"), on("drained", 0, 9, "gpu"), on("elsewhere", 0, 9, "gpu")
	gone.Running, drained.Drained, elsewhere.Project = false, true, "q"
	for _, c := range []struct {
		name   string
		member team.Member
		used   int
		others []Machine
		want   string
	}{
		{"alone", team.Member{}, 1, nil, "me"},
		{"the one with the smaller part in use", team.Member{}, 1, []Machine{on("other", 1, 8, "gpu")}, "other"},
		{"the one with the smaller part, not the smaller number", team.Member{}, 1, []Machine{on("other", 2, 2, "gpu"),
			on("third", 3, 8, "gpu")}, "me"},
		{"of two alike, the first by name", team.Member{}, 1, []Machine{on("amy", 1, 4, "gpu")}, "amy"},
		{"where it was", team.Member{Machine: "me"}, 3, []Machine{on("other", 0, 4, "gpu")}, "me"},
		{"where it was, elsewhere", team.Member{Machine: "other"}, 0, []Machine{on("third", 0, 4, "gpu"),
			on("other", 3, 4, "gpu")}, "other"},
		{"where it was, and there is no room", team.Member{Machine: "other"}, 0, []Machine{on("other", 4, 4, "gpu")}, "me"},
		{"machines that cannot take it", team.Member{}, 3, []Machine{gone, drained, elsewhere, on("cpu", 0, 9, "cpu")}, "me"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &machine{Machine: on("me", 0, 4, "gpu")}
			c.member.RunsOn = []string{"gpu"}
			if got := m.rather(c.others, &c.member, c.used); got != c.want {
				t.Errorf("it is %s, not %s", got, c.want)
			}
		})
	}
}

// TestTakes: a machine leaves a member to the machine that should rather have it, for a while, and
// never takes more than it has slots for.
func TestTakes(t *testing.T) {
	t.Parallel()
	m := &machine{Machine: Machine{Name: "me", Labels: []string{"gpu"}, Slots: 1, Project: "p"},
		serving: map[string]*serving{}, reserved: map[string]bool{}, waiting: map[string]time.Time{}}
	other := Machine{Name: "other", Labels: []string{"gpu"}, Slots: 4, Project: "p", Running: true}
	m.others, m.known = []Machine{other}, time.Now().Add(time.Hour)
	ann := &team.Member{Name: "ann", RunsOn: []string{"gpu"}, Machine: "other"}
	bob := &team.Member{Name: "bob", RunsOn: []string{"gpu"}}
	if m.takes(t.Context(), "t1", ann) {
		t.Error("it takes what the other one should have")
	}
	m.waiting["t1/ann"] = time.Now().Add(-patience)
	if !m.takes(t.Context(), "t1", ann) {
		t.Error("nobody takes the member")
	}
	if m.takes(t.Context(), "t1", bob) {
		t.Error("it takes two with one slot")
	}
	m.taken("t1", "ann") // the attempt failed
	if !m.takes(t.Context(), "t1", bob) {
		t.Error("it does not get its slot back")
	}
	if m.drain.Store(true); m.takes(t.Context(), "t1", ann) {
		t.Error("it takes one although it is drained")
	}
}
