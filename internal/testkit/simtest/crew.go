package simtest

import (
	"iter"
	"sync"
)

// crew lends coroutines to threads. A history has hundreds of threads, but few at a time. Reused
// coroutines keep their grown stacks.
type crew struct{ idle []*hand }

// hand is a coroutine that runs one function after the other.
type hand struct {
	do    func()
	next  func() (done, ok bool)
	stop  func()
	yield func(done bool) bool
}

// hire returns a hand that will run do.
func (c *crew) hire(do func()) *hand {
	if n := len(c.idle); n > 0 {
		h := c.idle[n-1]
		c.idle = c.idle[:n-1]
		h.do = do
		return h
	}
	h := &hand{do: do}
	h.next, h.stop = iter.Pull(func(yield func(bool) bool) {
		h.yield = yield
		for {
			h.do()
			if !yield(true) {
				return
			}
		}
	})
	return h
}

// dismiss takes back a hand that has finished or has not started.
func (c *crew) dismiss(h *hand) {
	h.do = nil
	c.idle = append(c.idle, h)
}

// work resumes the hand until it rests. It reports whether the function has returned.
func (h *hand) work() (done bool) {
	done, _ = h.next()
	return done
}

// rest yields to the other threads. Only the hand itself calls it.
func (h *hand) rest() { h.yield(false) }

// close ends the coroutines. None may be running.
func (c *crew) close() {
	for _, h := range c.idle {
		h.stop()
	}
	c.idle = nil
}

// errands lends goroutines to real code, as crew lends coroutines to threads. Reused goroutines
// keep their grown stacks.
type errands struct {
	mu   sync.Mutex
	idle []chan func()
}

// run runs do in a goroutine. The goroutine stays for reuse until over is closed.
func (e *errands) run(do func(), over <-chan struct{}) {
	e.mu.Lock()
	if n := len(e.idle); n > 0 {
		work := e.idle[n-1]
		e.idle = e.idle[:n-1]
		e.mu.Unlock()
		work <- do
		return
	}
	e.mu.Unlock()
	work := make(chan func(), 1)
	go func() {
		for {
			do()
			e.mu.Lock()
			e.idle = append(e.idle, work)
			e.mu.Unlock()
			select {
			case do = <-work:
			case <-over:
				return
			}
		}
	}()
}
