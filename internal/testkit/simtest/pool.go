package simtest

import (
	"iter"
	"sync"
)

// coroutinePool lends coroutines to threads. A history has hundreds of threads, but few at a time.
// Reused coroutines keep their grown stacks.
type coroutinePool struct{ idle []*coroutine }

// coroutine runs one function after the other.
type coroutine struct {
	do    func()
	next  func() (done, ok bool)
	stop  func()
	yield func(done bool) bool
}

// get returns a coroutine that will run do.
func (c *coroutinePool) get(do func()) *coroutine {
	if n := len(c.idle); n > 0 {
		h := c.idle[n-1]
		c.idle = c.idle[:n-1]
		h.do = do
		return h
	}
	h := &coroutine{do: do}
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

// put takes back a coroutine that has finished or has not started.
func (c *coroutinePool) put(h *coroutine) {
	h.do = nil
	c.idle = append(c.idle, h)
}

// resume runs the coroutine until it pauses. It reports whether the function has returned.
func (h *coroutine) resume() (done bool) {
	done, _ = h.next()
	return done
}

// pause yields to the other threads. Only the coroutine itself calls it.
func (h *coroutine) pause() { h.yield(false) }

// close ends the coroutines. None may be running.
func (c *coroutinePool) close() {
	for _, h := range c.idle {
		h.stop()
	}
	c.idle = nil
}

// goroutinePool lends goroutines to real code, as coroutinePool lends coroutines to threads. Reused
// goroutines keep their grown stacks.
type goroutinePool struct {
	mu   sync.Mutex
	idle []chan func()
}

// run runs do in a goroutine. The goroutine stays for reuse until over is closed.
func (e *goroutinePool) run(do func(), over <-chan struct{}) {
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
