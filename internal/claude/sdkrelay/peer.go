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
	// maxMessage limits the size of one message, which must fit in memory.
	maxMessage = 256 << 20
	// window limits the number of unacknowledged bytes in flight. It is smaller than the buffers of
	// a connection, so that a ping gets through to a peer that does not read at the moment.
	window = 128 << 10
	// maxBroken is the number of connections that one message may break.
	maxBroken = 5
)

// peer is a side that connects by WebSocket and may reconnect. It has one connection at a time: a
// new one replaces the old one.
type peer struct {
	name string
	out  *queue // messages for the peer
	// begins is called when a connection is open and all messages of earlier connections have been
	// taken. take is called with each message, in order. The two are never called concurrently.
	begins func(*websocket.Request)
	take   func(message)
	// fail is called with a fatal error.
	fail func(error)
	warn func(string)

	mu   sync.Mutex
	drop context.CancelFunc // ends the present connection
	over chan struct{}      // closed when the present connection has ended
}

// serve handles one connection, from its request to its end.
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
	at, dropped, err := p.out.rewind(maxBroken)
	if err != nil {
		p.fail(err)
		return
	}
	if dropped != nil {
		p.warn(fmt.Sprintf("a message of %d bytes broke %d connections to %s and was dropped", len(dropped.data),
			maxBroken, p.name))
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
				p.warn(fmt.Sprintf("%s sent a message of more than %d bytes, which is lost", p.name, maxMessage))
			}
			return
		}
		p.take(message{data: data, binary: kind == websocket.Binary})
	}
}

// enter replaces the previous connection, and returns when that has ended and everything it read
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

// present returns a channel that is closed when the present connection has ended, or a closed one
// if there is no connection.
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

// write sends the messages of the queue from number at on, until the connection ends. A message
// that is not UTF-8 is sent as a binary frame, because an invalid text frame would end the
// connection.
func (p *peer) write(ctx context.Context, conn *websocket.Conn, at int64) error {
	for under := 0; ; {
		m, more, err := p.out.next(ctx, at)
		if errors.Is(err, io.EOF) {
			conn.Close(websocket.StatusNormal, "end of session")
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
