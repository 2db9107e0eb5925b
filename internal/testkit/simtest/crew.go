package simtest

import (
	"iter"
	"sync"
)

// crew lends coroutines to threads. A history has hundreds of threads, few at a time: their stacks
// need not be made and grow for each of them.
type crew struct{ idle []*hand }

// hand is a coroutine that does one thing after the other.
type hand struct {
	do    func()
	next  func() (done, ok bool)
	stop  func()
	yield func(done bool) bool
}

// hire returns a hand that is to do that.
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

// dismiss takes back a hand that is done, or has not begun.
func (c *crew) dismiss(h *hand) {
	h.do = nil
	c.idle = append(c.idle, h)
}

// work lets the hand go on until it rests. It reports whether it is done.
func (h *hand) work() (done bool) {
	done, _ = h.next()
	return done
}

// rest gives the others their turn. The hand itself calls it.
func (h *hand) rest() { h.yield(false) }

// close ends the coroutines, none of which is at work.
func (c *crew) close() {
	for _, h := range c.idle {
		h.stop()
	}
	c.idle = nil
}

// errands lends goroutines to real code, as crew does coroutines to threads: a stack that has grown
// is there for the next one.
type errands struct {
	mu   sync.Mutex
	idle []chan func()
}

// run starts a goroutine that does that, until over is closed.
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
