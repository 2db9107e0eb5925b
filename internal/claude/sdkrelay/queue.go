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

// queue keeps messages in order until who gets them has them. It holds so many bytes in memory, or
// one message that is longer, and those behind them in a file; put waits when both are full.
type queue struct {
	memory int64

	mu      sync.Mutex
	held    []message
	first   int64 // number of held[0]
	bytes   int64 // of held
	sent    int64 // the number behind the last one that was taken by next
	broke   int   // connections that ended with held[0] sent and nothing acknowledged
	file    spill
	closed  bool
	changed chan struct{} // closed and made anew with every change
}

func newQueue(memory, disk int64) *queue {
	return &queue{memory: memory, file: spill{limit: disk}, changed: make(chan struct{})}
}

// change wakes whoever waits. The lock is held.
func (q *queue) change() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// put adds a message, and waits for room if it has to.
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

// next returns message number at, and whether there is one behind it to be sent now; io.EOF when
// there will be none.
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

// ack says that all messages before number n have arrived.
func (q *queue) ack(n int64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n <= q.first || q.closed && len(q.held) == 0 {
		return nil
	}
	q.broke = 0
	return q.drop(int(n - q.first))
}

// drop takes messages off, and those that have room now from the file. The lock is held.
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

// again returns the number to go on with on a new connection: that of the first message that is not
// known to have arrived. A message that ended so many connections is dropped before, and returned.
func (q *queue) again(most int) (at int64, dropped *message, err error) {
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

// close says that nothing more is put.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.closed = true
		q.change()
	}
}

// discard gives up what is in the queue.
func (q *queue) discard() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.first += int64(len(q.held))
	q.held, q.bytes, q.closed = nil, 0, true
	q.file.close()
	q.change()
}

// idle reports whether everything that was put has arrived.
func (q *queue) idle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.held) == 0 && q.file.empty()
}

// changes is closed with the next change.
func (q *queue) changes() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.changed
}
