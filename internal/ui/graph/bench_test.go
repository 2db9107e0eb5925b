package graph

import (
	"slices"
	"testing"
	"time"

	"cadre/internal/team"
	"cadre/internal/testkit/historytest"
)

// BenchmarkPick chooses the tasks of a graph among 10,000, in times of reading them. Drawing costs
// the same for any number of tasks.
func BenchmarkPick(b *testing.B) {
	h := historytest.Long(30_000, 10_000)
	var reading, picking, drawing time.Duration
	for b.Loop() {
		began := time.Now()
		n := 0
		for range h.State.Tasks() {
			n++
		}
		reading += time.Since(began)
		began = time.Now()
		p := Pick(h.State.Tasks(), 0)
		picking += time.Since(began)
		began = time.Now()
		if g := p.Draw(Options{Columns: 120}); len(g.Lines) != Most || n < 10_000 {
			b.Fatal(len(g.Lines), n)
		}
		drawing += time.Since(began)
	}
	b.ReportMetric(float64(picking)/float64(reading), "x-reading")
	b.ReportMetric(float64(drawing.Microseconds())/float64(b.N), "µs/drawing")
}

// TestPickLeavesOutTheOldest checks which of many tasks are shown.
func TestPickLeavesOutTheOldest(t *testing.T) {
	var all []team.Task
	for i, status := range []team.TaskStatus{team.Completed, team.Pending, team.Completed, team.InProgress,
		team.Deleted} {
		all = append(all, team.Task{ID: string(rune('1' + i)), Status: status, CompletedAt: team.Time(i)})
	}
	var got []string
	p := Pick(slices.Values(all), 3)
	for _, one := range p.tasks {
		got = append(got, one.ID)
	}
	if !slices.Equal(got, []string{"2", "3", "4"}) || p.missing["completed"] != 1 || p.missing["pending"] != 0 {
		t.Errorf("%v, without %v", got, p.missing)
	}
}
