package sdkrelay

import (
	"context"
	"io"
	"sync"
)

// message is one frame.
type message struct {
	data   []byte
	binary bool
}

// queue keeps messages in order until their receiver has acknowledged them. It holds a limited
// number of bytes in memory, or one longer message, and the messages after them in a file. put
// waits when both are full.
type queue struct {
	memory int64

	mu      sync.Mutex
	held    []message
	first   int64 // number of held[0]
	bytes   int64 // of held
	sent    int64 // one more than the last number returned by next
	broke   int   // connections that ended after held[0] was sent and before anything was acknowledged
	file    spill
	closed  bool
	changed chan struct{} // closed and replaced at every change
}

func newQueue(memory, disk int64) *queue {
	return &queue{memory: memory, file: spill{limit: disk}, changed: make(chan struct{})}
}

// change wakes all waiters. The caller holds the lock.
func (q *queue) change() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// put adds a message. It waits if there is no room.
func (q *queue) put(ctx context.Context, m message) error {
	for {
		q.mu.Lock()
		if q.closed {
			q.mu.Unlock()
			return io.ErrClosedPipe
		}
		if done := q.add(m); done {
			q.change()
			q.mu.Unlock()
			return nil
		}
		changed := q.changed
		q.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (q *queue) add(m message) bool {
	if q.file.empty() && q.fits(int64(len(m.data))) {
		q.hold(m)
		return true
	}
	return q.file.push(m)
}

func (q *queue) fits(n int64) bool { return len(q.held) == 0 || q.bytes+n <= q.memory }

func (q *queue) hold(m message) {
	q.held = append(q.held, m)
	q.bytes += int64(len(m.data))
}

// next returns message number at, and whether the one after it can be sent now. It returns io.EOF
// if there will be no such message.
func (q *queue) next(ctx context.Context, at int64) (m message, more bool, err error) {
	for {
		q.mu.Lock()
		i := at - q.first
		if i < int64(len(q.held)) {
			m = q.held[i]
			q.sent = max(q.sent, at+1)
			more = i+1 < int64(len(q.held))
			q.mu.Unlock()
			return m, more, nil
		}
		over, changed := q.closed && q.file.empty(), q.changed
		q.mu.Unlock()
		if over {
			return m, false, io.EOF
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return m, false, ctx.Err()
		}
	}
}

// ack records that all messages before number n have arrived.
func (q *queue) ack(n int64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n <= q.first || q.closed && len(q.held) == 0 {
		return nil
	}
	q.broke = 0
	return q.drop(int(n - q.first))
}

// drop removes n messages and refills the memory from the file. The caller holds the lock.
func (q *queue) drop(n int) error {
	for _, m := range q.held[:n] {
		q.bytes -= int64(len(m.data))
	}
	q.first += int64(n)
	clear(q.held[:n])
	if q.held = q.held[n:]; len(q.held) == 0 {
		q.held = nil
	}
	defer q.change()
	for !q.file.empty() && q.fits(q.file.head()) {
		m, err := q.file.pop()
		if err != nil {
			return err
		}
		q.hold(m)
	}
	return nil
}

// rewind returns the number of the first unacknowledged message, at which a new connection
// continues. If that message has broken too many connections, rewind drops and returns it first.
func (q *queue) rewind(most int) (at int64, dropped *message, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.sent > q.first {
		q.broke++
	}
	q.sent = q.first
	if q.broke >= most {
		q.broke = 0
		m := q.held[0]
		err = q.drop(1)
		return q.first, &m, err
	}
	return q.first, nil, nil
}

// close records that no more messages will be put.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.closed = true
		q.change()
	}
}

// discard drops all messages in the queue.
func (q *queue) discard() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.first += int64(len(q.held))
	q.held, q.bytes, q.closed = nil, 0, true
	q.file.close()
	q.change()
}

// idle reports whether all messages have been acknowledged.
func (q *queue) idle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.held) == 0 && q.file.empty()
}

// changes returns a channel that is closed at the next change.
func (q *queue) changes() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.changed
}
