package sdkrelay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"unicode/utf8"

	"cadre/internal/sys/websocket"
)

const (
	// maxMessage bounds one message, which has to be in memory as a whole.
	maxMessage = 256 << 20
	// window is how much may be under way to an end without its having said that it is there. It is
	// less than what lies in the buffers of a connection, so that a ping gets through to an end
	// that does not read just now.
	window = 128 << 10
	// mostBroken is how many connections a message may break.
	mostBroken = 5
)

// peer is one end that connects by WebSocket, and again when its connection is gone. It has one
// connection at a time: a new one takes the place of the old.
type peer struct {
	name string
	out  *queue // what it gets
	// begins is called when a connection is there and those before have said their last, and take
	// with each of its messages, in order and never both at once.
	begins func(*websocket.Request)
	take   func(message)
	// fail is told what makes it useless to go on.
	fail func(error)
	warn func(string)

	mu   sync.Mutex
	drop context.CancelFunc // ends the present connection
	over chan struct{}      // is closed when it has ended
}

// serve is one connection, from its request to its end.
func (p *peer) serve(ctx context.Context, r *websocket.Request) {
	conn, err := r.Accept()
	if err != nil {
		p.warn(fmt.Sprintf("%s could not connect: %v", p.name, err))
		return
	}
	defer conn.CloseNow()
	conn.SetReadLimit(maxMessage)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	leave := p.enter(cancel)
	defer leave()
	if ctx.Err() != nil {
		return
	}
	p.begins(r)
	at, dropped, err := p.out.again(mostBroken)
	if err != nil {
		p.fail(err)
		return
	}
	if dropped != nil {
		p.warn(fmt.Sprintf("a message of %d bytes broke %d connections to %s and is given up", len(dropped.data),
			mostBroken, p.name))
	}
	var writing sync.WaitGroup
	defer writing.Wait()
	writing.Go(func() {
		defer cancel()
		if err := p.write(ctx, conn, at); err != nil {
			p.fail(err)
		}
	})
	defer cancel()
	for {
		kind, data, err := conn.Read(ctx)
		if err != nil {
			if errors.Is(err, websocket.ErrTooBig) {
				p.warn(fmt.Sprintf("%s said more than %d bytes at once, which is lost", p.name, maxMessage))
			}
			return
		}
		p.take(message{data: data, binary: kind == websocket.Binary})
	}
}

// enter takes the place of the connection before, and returns when that has ended: all that it read
// was passed on.
func (p *peer) enter(cancel context.CancelFunc) (leave func()) {
	over := make(chan struct{})
	p.mu.Lock()
	drop, before := p.drop, p.over
	p.drop, p.over = cancel, over
	p.mu.Unlock()
	if before != nil {
		drop()
		<-before
	}
	return func() { close(over) }
}

// present is the connection that is there, if any: it is closed when that has ended.
func (p *peer) present() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over == nil {
		none := make(chan struct{})
		close(none)
		return none
	}
	return p.over
}

// write sends what is in the queue from number at on, until the connection ends. What is no UTF-8
// goes as a binary frame: as text it would end the connection.
func (p *peer) write(ctx context.Context, conn *websocket.Conn, at int64) error {
	for under := 0; ; {
		m, more, err := p.out.next(ctx, at)
		if errors.Is(err, io.EOF) {
			conn.Close(websocket.StatusNormal, "all is said")
			return nil
		}
		if err != nil {
			return nil
		}
		kind := websocket.Text
		if m.binary || !utf8.Valid(m.data) {
			kind = websocket.Binary
		}
		if conn.Write(ctx, kind, m.data) != nil {
			return nil
		}
		at++
		if under += len(m.data); more && under < window {
			continue
		}
		if conn.Ping(ctx) != nil {
			return nil
		}
		under = 0
		if err := p.out.ack(at); err != nil {
			return err
		}
	}
}
