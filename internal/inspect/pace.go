package inspect

import (
	"time"

	"cadre/internal/team"
)

// pace is how long tasks took so far.
type pace struct {
	tasks                 int
	took                  team.Time // together
	firstEnd, latestBegin team.Time
}

// enough is how many tasks have to be completed before an estimate says anything: the first one or
// two are as often as not the odd ones.
const enough = 3

func (p *pace) add(t team.Task) {
	if t.Status != team.Completed || t.StartedAt <= 0 || t.CompletedAt < t.StartedAt {
		return
	}
	if p.tasks == 0 || t.CompletedAt < p.firstEnd {
		p.firstEnd = t.CompletedAt
	}
	p.tasks++
	p.took += t.CompletedAt - t.StartedAt
	p.latestBegin = max(p.latestBegin, t.StartedAt)
}

// left is about how long so many open tasks take that many workers; 0 where too little is known.
// There have to be some samples, and not of one burst alone: of tasks that began together only the
// short ones have ended at first, so that a task counts as a sample of its own when it began after
// another one had ended.
func (p *pace) left(open, workers int) time.Duration {
	if open == 0 || p.tasks < enough || p.latestBegin < p.firstEnd {
		return 0
	}
	workers = max(workers, 1)
	rounds := (open + workers - 1) / workers
	return time.Duration(int64(p.took)/int64(p.tasks)) * time.Millisecond * time.Duration(rounds)
}
