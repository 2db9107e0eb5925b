package inspect

import (
	"testing"
	"time"

	"cadre/internal/team"
)

// TestPace: there is an estimate of the remaining time once there is enough to base it on, and none
// from bursts alone.
func TestPace(t *testing.T) {
	for _, c := range []struct {
		name    string
		done    [][2]team.Time // when each began and ended, in seconds
		open    int
		workers int
		want    time.Duration
	}{
		{"nothing is done", nil, 5, 1, 0},
		{"two are done", [][2]team.Time{{1, 2}, {3, 4}}, 5, 1, 0},
		{"three are done", [][2]team.Time{{1, 3}, {3, 5}, {5, 7}}, 5, 1, 10 * time.Second},
		{"by two", [][2]team.Time{{1, 3}, {3, 5}, {5, 7}}, 5, 2, 6 * time.Second},
		{"by nobody", [][2]team.Time{{1, 3}, {3, 5}, {5, 7}}, 5, 0, 10 * time.Second},
		{"nothing is left", [][2]team.Time{{1, 3}, {3, 5}, {5, 7}}, 0, 1, 0},
		{"three that began together", [][2]team.Time{{1, 3}, {1, 4}, {2, 5}}, 5, 3, 0},
		{"a hundred that began together, in any order", append(make([][2]team.Time, 0, 100), burst(100)...), 5, 3, 0},
		{"one that began later", [][2]team.Time{{4, 5}, {1, 3}, {1, 4}}, 6, 3, 4 * time.Second},
	} {
		var p pace
		for _, d := range c.done {
			p.add(team.Task{Status: team.Completed, StartedAt: d[0] * 1000, CompletedAt: d[1] * 1000})
		}
		p.add(team.Task{Status: team.Pending, StartedAt: 1, CompletedAt: 100_000})
		p.add(team.Task{Status: team.Completed, CompletedAt: 100_000}) // completed without a claim
		if got := p.left(c.open, c.workers); got != c.want {
			t.Errorf("%s: %s, not %s", c.name, got, c.want)
		}
	}
}

func burst(n int) (all [][2]team.Time) {
	for i := range n {
		all = append(all, [2]team.Time{1, team.Time(200 - i)})
	}
	return all
}
