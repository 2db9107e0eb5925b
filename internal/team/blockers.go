package team

import "slices"

// A task waits for its open blockers. A task with When always or failed waits only for those that
// may still be done. This file keeps count, so that no question walks the list: a change costs as
// much as there are tasks for which it changes an answer.

// outlook is what the tasks behind a blocker need to know of it.
type outlook struct {
	open  bool
	stuck bool // it will not be done as things are: it is out of retries, or waits for such a task
}

// blockage is derived from a task and its blockers.
type blockage struct {
	open    int     // how many of its blockers are open
	stuck   int     // how many of those are stuck
	counted outlook // what the tasks in Blocks have counted for this one
}

// count adds a blocker with that outlook, or with by -1 takes it away.
func (b *blockage) count(o outlook, by int) {
	if o.open {
		b.open += by
	}
	if o.stuck {
		b.stuck += by
	}
}

// waits returns how many blockers t waits for. A task with When always or failed that has begun
// waits for none: a blocker may be open again by then.
func (t *Task) waits() int {
	switch {
	case !t.outlasts():
		return t.blockage.open
	case t.Status != Pending:
		return 0
	}
	return t.blockage.open - t.blockage.stuck
}

// waitsFor reports whether t waits for its blocker b.
func (t *Task) waitsFor(b *Task) bool {
	switch {
	case !t.outlasts():
		return b.Status.open()
	case t.Status != Pending:
		return false
	}
	return b.Status.open() && !b.blockage.counted.stuck
}

// outlook returns the task's outlook. A task with When always or failed waits for no stuck task, so
// it is stuck only when it is out of retries itself.
func (s *State) outlook(t *Task) outlook {
	return outlook{open: t.Status.open(),
		stuck: t.OutOfRetries() || t.Status == Pending && !t.outlasts() && s.stuckBefore(t) > 0}
}

// stuckBefore returns how many stuck tasks keep t from being done. A submitted task waits for its
// verifications alone: what was stuck before it ran does not matter any more.
func (s *State) stuckBefore(t *Task) (n int) {
	if t.Submission == nil {
		return t.blockage.stuck
	}
	for _, id := range t.Submission.Tasks {
		if v := s.task(id); v != nil && v.blockage.counted.stuck {
			n++
		}
	}
	return n
}

// reindex updates what is derived from the task at i, and the tasks behind it.
func (s *State) reindex(i int) {
	var few [8]int
	for next := append(few[:0], i); len(next) > 0; {
		i, next = next[len(next)-1], next[:len(next)-1]
		t := &s.tasks[i]
		s.reready(i)
		was, is := t.blockage.counted, s.outlook(t)
		if was == is {
			continue
		}
		t.blockage.counted = is
		for _, id := range t.Blocks {
			if w := s.task(id); w != nil {
				w.blockage.count(was, -1)
				w.blockage.count(is, +1)
				next = append(next, taskIndex(id))
			}
		}
	}
}

// reindexAll derives everything for all tasks.
func (s *State) reindexAll() {
	for i := range s.tasks {
		t := &s.tasks[i]
		t.blockage = blockage{counted: outlook{open: t.Status.open(), stuck: t.OutOfRetries()}}
	}
	for i := range s.tasks {
		t := &s.tasks[i]
		for _, id := range t.BlockedBy {
			if b := s.task(id); b != nil {
				t.blockage.count(b.blockage.counted, +1)
			}
		}
	}
	for i := range s.tasks {
		s.reindex(i)
	}
}

func (s *State) reready(i int) {
	t := &s.tasks[i]
	ready := t.Status == Pending && t.waits() == 0 && !t.OutOfRetries() && t.ForEach == nil && t.Submission == nil
	s.groups.set(i, t.ForEach != nil && t.Status == Pending)
	s.due.set(i, t.isDue())
	s.traced.set(i, t.Status == InProgress || (t.Status == Completed || t.Submission != nil) && t.Work.Open())
	at := priorityIndex(t.Priority)
	for p := range s.ready {
		s.ready[p].set(i, ready && p == at)
	}
	s.under.set(i, t.Status == InProgress)
	s.holding.set(i, s.takesPaths(t))
	s.failed.set(i, t.OutOfRetries())
}

// blockersOf returns the ids of the open blockers for which t waits.
func (s *State) blockersOf(t *Task) []string {
	if t.waits() == 0 {
		return nil
	}
	var open []string
	for _, id := range t.BlockedBy {
		if b := s.task(id); b != nil && t.waitsFor(b) {
			open = append(open, id)
		}
	}
	return open
}

// freedBy returns the tasks that wait for t and, once it is closed, for nothing more. Groups are
// not among them: no member takes one. Nor is a submitted task: the end of its round says what
// becomes of it.
func (s *State) freedBy(t *Task) (free []string) {
	for _, id := range t.Blocks {
		w := s.task(id)
		if w == nil || w.Status != Pending || w.waits() == 0 || w.ForEach != nil || w.Submission != nil {
			continue
		}
		after := *w
		if after.blockage.count(t.blockage.counted, -1); after.waits() == 0 && !after.moot() {
			free = append(free, id)
		}
	}
	return free
}

// freedByFailure returns the tasks with When always or failed that wait for nothing more once t is
// out of retries.
func (s *State) freedByFailure(t *Task) (free []string) {
	less := map[string]int{}
	for _, b := range s.turning(t, true) {
		for _, id := range b.Blocks {
			w := s.task(id)
			if w == nil || !w.outlasts() || w.Status != Pending {
				continue
			}
			if less[id]++; less[id] == w.waits() {
				free = append(free, id)
			}
		}
	}
	return free
}

// turning returns the tasks that become stuck when t does, or that stop being stuck when t does: t,
// and tasks behind it.
func (s *State) turning(t *Task, stuck bool) []*Task {
	turn := []*Task{t}
	blockers := map[*Task]int{} // that turn
	for i := 0; i < len(turn); i++ {
		for _, id := range turn[i].Blocks {
			w := s.task(id)
			if w == nil || w.Status != Pending || w.outlasts() || w.OutOfRetries() ||
				w.Submission != nil && !slices.Contains(w.Submission.Tasks, turn[i].ID) {
				continue
			}
			blockers[w]++
			before := s.stuckBefore(w)
			first, last := before == 0 && blockers[w] == 1, before == blockers[w]
			if stuck && first || !stuck && last {
				turn = append(turn, w)
			}
		}
	}
	return turn
}
