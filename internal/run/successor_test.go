package run

import (
	"slices"
	"strings"
	"testing"

	"cadre/internal/engine"
	"cadre/internal/journal/memjournal"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// TestLine ends each teammate again and again: its successors are numbered, whatever the length of
// its name, and each of them has one successor.
func TestLine(t *testing.T) {
	t.Parallel()
	rep, err := replica.Open(t.Context(), memjournal.New("t").Open(), replica.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer rep.Close()
	l := Lead{Team: &engine.Team{Replica: rep}, Log: func(string) {}}
	do := func(body team.Body) {
		t.Helper()
		if _, err := rep.Do(t.Context(), team.Command{Actor: team.User, Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	long := strings.Repeat("x", team.MaxName)
	do(&team.CreateTeam{TeamID: "t", Name: "demo", Dir: "/d"})
	do(&team.SpawnMember{Name: "w", Agent: team.Shell})
	do(&team.SpawnMember{Name: long, Agent: team.Shell})
	do(&team.SpawnMember{Name: "old", Agent: team.Shell})
	do(&team.SpawnMember{Name: "old-again-2", Agent: team.Shell})
	do(&team.SpawnMember{Name: "old-again-2-again-2", Agent: team.Shell}) // as earlier versions called it
	do(&team.CreateTask{Subject: "look", Run: "true"})
	for range 9 {
		var running []string
		rep.View(func(s *team.State) {
			for _, m := range s.Members()[1:] {
				if m.Status.Running() && m.Name != "old-again-2-again-2" {
					running = append(running, m.Name)
				}
			}
		})
		for _, name := range running {
			do(&team.ReportStopped{Member: name, Reason: "shut down"})
		}
		if err := l.Retry(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	rep.View(func(s *team.State) {
		for _, m := range s.Members()[1:] {
			names = append(names, m.Name)
		}
	})
	want := []string{"w", long, "old", "old-again-2", "old-again-2-again-2"}
	for n := 2; n <= 10; n++ {
		want = append(want, successor("w", n), successor(long, n))
	}
	if !slices.Equal(names, want) || want[len(want)-2] != "w-again-10" {
		t.Errorf("the members are %q", names)
	}
}
