package inspect

import (
	"time"

	"cadre/internal/team"
)

// pace is how long tasks have taken so far.
type pace struct {
	tasks                 int
	took                  time.Duration // in total
	firstEnd, latestBegin team.Time
}

// enough is the number of completed tasks that an estimate needs: the first one or two are often
// not typical.
const enough = 3

func (p *pace) add(t team.Task) {
	if t.Status != team.Completed || t.StartedAt <= 0 || t.CompletedAt < t.StartedAt {
		return
	}
	if p.tasks == 0 || t.CompletedAt < p.firstEnd {
		p.firstEnd = t.CompletedAt
	}
	p.tasks++
	p.took += t.CompletedAt.Sub(t.StartedAt)
	p.latestBegin = max(p.latestBegin, t.StartedAt)
}

// left estimates how long that many open tasks take that many workers; 0 if too little is known. It
// needs several samples from more than one burst. If tasks started together, only the short ones
// have ended at first. So a task counts as a sample of its own only if it started after another one
// had ended.
func (p *pace) left(open, workers int) time.Duration {
	if open == 0 || p.tasks < enough || p.latestBegin < p.firstEnd {
		return 0
	}
	workers = max(workers, 1)
	rounds := (open + workers - 1) / workers
	return (p.took / time.Duration(p.tasks)).Truncate(time.Millisecond) * time.Duration(rounds)
}
