package bench

import (
	"fmt"
	"testing"
	"time"

	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// withPaths creates a team with that many tasks, of which eight members have one each in progress. Each task
// has a path of its own, if paths is set, and every tenth has one that another task in progress has.
func withPaths(h layout.Home, name string, tasks int, paths bool) error {
	var commands []team.Command
	add := func(actor string, body team.Body) {
		commands = append(commands, team.Command{ID: fmt.Sprintf("%s-%026d", name, len(commands)), Actor: actor,
			At: replica.Now(), Body: body})
	}
	add(team.User, &team.CreateTeam{TeamID: name + "-" + replica.NewID(), Name: name, Dir: "/"})
	for i := range 9 {
		add(team.User, &team.SpawnMember{Name: fmt.Sprintf("m%d", i), Agent: team.External})
	}
	for i := range tasks {
		t := &team.CreateTask{Subject: fmt.Sprintf("Look into module %d and mend what is broken there", i),
			Description: "Read the module, run its tests, and report what you changed and why."}
		if paths {
			t.Paths = []string{fmt.Sprintf("src/module%d/**", i)}
			if i > 8 && i%10 == 9 {
				t.Paths = []string{"src/module3/*.go"}
			}
		}
		add("lead", t)
	}
	for i := range 8 {
		add(fmt.Sprintf("m%d", i), &team.ClaimTask{})
	}
	return h.Create(name, commands)
}

// BenchmarkClaimPaths times the claim of the next of 10,000 tasks with paths, and alternates with tasks
// without. The limit for the ratio of medians is 1.2.
func BenchmarkClaimPaths(b *testing.B) {
	cadre, _ := programs(b)
	h := layout.Home{Root: b.TempDir(), Claude: b.TempDir()}
	once := timed(b, h)
	for name, paths := range map[string]bool{"plain": false, "paths": true} {
		if err := withPaths(h, name, 10_000, paths); err != nil {
			b.Fatal(err)
		}
		once(cadre, "send", name, "--to", "m1", "the first writer saves the snapshot and the projections")
	}
	var plain, paths []time.Duration
	for range max(b.N, 60) {
		plain = append(plain, once(cadre, "task", "claim", "plain", "--next", "--as", "m8"))
		paths = append(paths, once(cadre, "task", "claim", "paths", "--next", "--as", "m8"))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(median(paths))/float64(median(plain)), "times-plain")
}
