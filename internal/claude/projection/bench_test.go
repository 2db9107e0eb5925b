package projection

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"cadre/internal/team"
)

// big returns a team with n tasks.
func big(b *testing.B, n int) *history {
	h := newHistory(b, "T1", 1)
	for i := range n {
		h.do(b, "lead", &team.CreateTask{Subject: fmt.Sprint("task ", i), Description: "what is to be done, and why"})
	}
	return h
}

// BenchmarkProject measures a projection of a team with 10,000 tasks.
func BenchmarkProject(b *testing.B) {
	const tasks = 10_000
	b.Run("nothing changed", func(b *testing.B) {
		p, h := newProjector(b), big(b, tasks)
		project(b, p, h)
		for b.Loop() {
			project(b, p, h)
		}
	})
	b.Run("one task changed", func(b *testing.B) {
		p, h := newProjector(b), big(b, tasks)
		project(b, p, h)
		subject := ""
		for i := 0; b.Loop(); i++ {
			b.StopTimer()
			subject = fmt.Sprint("change ", i)
			h.do(b, "lead", &team.UpdateTask{Task: fmt.Sprint(1 + i%tasks), Subject: &subject})
			b.StartTimer()
			project(b, p, h)
		}
	})
	b.Run("from nothing", func(b *testing.B) {
		p, h := newProjector(b), big(b, tasks)
		for b.Loop() {
			b.StopTimer()
			if err := errors.Join(os.RemoveAll(p.Claude), os.RemoveAll(p.Mark)); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			project(b, p, h)
		}
	})
}
