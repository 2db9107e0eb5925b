package guest

import (
	"sync"

	"cadre/internal/agent"
)

// queue buffers the updates of a session until the member takes them, so that neither waits for the
// other. A session can take a prompt even while it produces many updates.
type queue struct {
	more chan struct{} // buffers one wake-up
	over chan struct{}

	mu  sync.Mutex
	all []agent.Update
}

func newQueue(s agent.Session) *queue {
	q := &queue{more: make(chan struct{}, 1), over: make(chan struct{})}
	go func() {
		defer close(q.over)
		for u := range s.Updates() {
			q.mu.Lock()
			q.all = append(q.all, u)
			q.mu.Unlock()
			select {
			case q.more <- struct{}{}:
			default:
			}
		}
	}()
	return q
}

func (q *queue) take() []agent.Update {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.all
	q.all = nil
	return all
}
