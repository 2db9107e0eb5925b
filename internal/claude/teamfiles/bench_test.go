package teamfiles

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"
)

// BenchmarkFollow measures the time from writing a task's file until a follower reports it: the
// median for a team of 10,000 tasks, relative to a team of ten. It should be about 1.
func BenchmarkFollow(b *testing.B) {
	for b.Loop() {
		few, many := followed(b, 10), followed(b, 10_000)
		b.ReportMetric(float64(many)/float64(few), "x-of-ten")
		b.ReportMetric(float64(many.Microseconds())/1000, "ms")
		b.ReportMetric(0, "ns/op")
	}
}

func followed(b *testing.B, tasks int) time.Duration {
	b.Helper()
	tm, _ := newTeam(b, "ann")
	if err := os.MkdirAll(tm.tasks, 0o700); err != nil {
		b.Fatal(err)
	}
	for n := 1; n <= tasks; n++ {
		write(b, tm.task(fmt.Sprint(n)), fmt.Sprintf(
			`{"id":"%d","subject":"s","status":"pending","blocks":[],"blockedBy":[]}`, n))
	}
	ctx, stop := context.WithTimeout(b.Context(), time.Minute)
	defer stop()
	ready, changed, over := make(chan struct{}), make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(over)
		for _, c := range tm.Follow(ctx) {
			switch c.(type) {
			case *Whole:
				close(ready)
			case *TaskChanged:
				changed <- struct{}{}
			}
		}
	}()
	<-ready
	var took []time.Duration
	for n := range 50 {
		began := time.Now()
		write(b, tm.task("7"), fmt.Sprintf(`{"id":"7","subject":"s%d","status":"pending","blocks":[],"blockedBy":[]}`,
			n))
		select {
		case <-changed:
		case <-ctx.Done():
			b.Fatal("it does not tell")
		}
		took = append(took, time.Since(began))
	}
	stop()
	<-over
	slices.Sort(took)
	return took[len(took)/2]
}
