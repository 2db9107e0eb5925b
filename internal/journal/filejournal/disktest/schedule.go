package disktest

import (
	"cmp"
	"slices"
	"sync"
	"testing/synctest"
)

// Schedule runs the operations on a disk one at a time, in an order that the test chooses. It is
// used inside a [synctest] bubble, whose goroutines are the processes. When all of them are
// blocked, the schedule chooses which operation happens next.
type Schedule struct {
	choose  Choose
	mu      sync.Mutex
	waiting []*request
	last    *Process
}

type request struct {
	op    *Op
	leave chan Fault
}

// NewSchedule puts a disk under a schedule.
func NewSchedule(d *Disk, choose Choose) *Schedule {
	s := &Schedule{choose: choose}
	d.Before = s.wait
	return s
}

func (s *Schedule) wait(op *Op) Fault {
	r := &request{op, make(chan Fault)}
	s.mu.Lock()
	s.waiting = append(s.waiting, r)
	s.mu.Unlock()
	return <-r.leave
}

// Next performs one operation, with the given fault, and returns when all processes are blocked
// again. It returns nil if no waiting operation is ready.
func (s *Schedule) Next(fault func(*Op) Fault) *Op {
	synctest.Wait()
	r := s.pick()
	if r == nil {
		return nil
	}
	s.last = r.op.Process
	r.leave <- fault(r.op)
	synctest.Wait()
	return r.op
}

// pick chooses a ready operation. Choice 0 stays with the process of the last one.
func (s *Schedule) pick() *request {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ready []*request
	for _, r := range s.waiting {
		if r.op.Ready() {
			ready = append(ready, r)
		}
	}
	if len(ready) == 0 {
		return nil
	}
	slices.SortFunc(ready, func(a, b *request) int {
		x, y := a.op, b.op
		return cmp.Or(cmp.Compare(s.turn(x), s.turn(y)), cmp.Compare(x.Process.Name, y.Process.Name),
			cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Path, y.Path), cmp.Compare(x.Off, y.Off))
	})
	n := 0
	if len(ready) > 1 {
		n = max(0, s.choose(2*len(ready))-len(ready)) // half of the time the same process continues
	}
	r := ready[n]
	s.waiting = slices.DeleteFunc(s.waiting, func(o *request) bool { return o == r })
	return r
}

func (s *Schedule) turn(op *Op) int {
	if op.Process == s.last {
		return 0
	}
	return 1
}

// Release unblocks all operations of a killed process, or all operations if p is nil because the
// power is off. They fail.
func (s *Schedule) Release(p *Process) {
	for {
		synctest.Wait()
		s.mu.Lock()
		var released []*request
		s.waiting = slices.DeleteFunc(s.waiting, func(r *request) bool {
			gone := p == nil || r.op.Process == p
			if gone {
				released = append(released, r)
			}
			return gone
		})
		s.mu.Unlock()
		if len(released) == 0 {
			return
		}
		for _, r := range released {
			r.leave <- Fault{}
		}
	}
}
