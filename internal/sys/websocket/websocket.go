// Package websocket speaks WebSocket (RFC 6455) over a connection that there is already.
//
// # Authority
//
// It does the handshake, frames, masks, and answers pings and closes. Who may connect, to what, and
// what the messages say is its caller's affair. Extensions and subprotocols are neither offered nor
// taken.
//
// It is here because every library of WebSocket brings net/http with it, whose initialisation each
// command of cadre would pay for. The tests have such a library at the other end.
//
// # Guarantees
//
//   - Nothing that the peer sends allocates more than about twice of what it has sent, nor more than
//     the limit.
//   - A peer that breaks the protocol loses its connection. What it said before stays said.
//   - A context that ends during a read or a write ends the connection, because a frame may be half
//     read or half written.
//
// # Concurrency
//
// One goroutine reads; any may write, ping and close. Pings are answered, and answers to pings and
// to closes seen, while somebody reads.
package websocket

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Kind is what a message is.
type Kind byte

// The kinds of messages.
const (
	Text   Kind = opText
	Binary Kind = opBinary
)

const (
	opContinue = 0x0
	opText     = 0x1
	opBinary   = 0x2
	opClose    = 0x8
	opPing     = 0x9
	opPong     = 0xA
)

// Codes of a close.
const (
	StatusNormal        = 1000
	statusProtocolError = 1002
	statusTooBig        = 1009
	statusNone          = 1005 // there was none
)

// ErrTooBig is the error of a message over the limit. The connection has ended with it.
var ErrTooBig = errors.New("the message is over the limit")

// CloseError says that the peer closed the connection.
type CloseError struct {
	Code   int
	Reason string
}

func (e *CloseError) Error() string {
	return "the peer closed the connection: " + strconv.Itoa(e.Code) + " " + strconv.Quote(e.Reason)
}

// broken is an error in what the peer sent.
type broken struct{ why string }

func (b broken) Error() string { return "the peer broke the protocol: " + b.why }

const (
	defaultLimit = 32 << 10
	// farewell is how long the peer may take to answer a close.
	farewell = 5 * time.Second
	// step is how much is read at once of a message whose length the peer has only said.
	step = 64 << 10
	// mostOfControl is the longest payload of a ping, a pong or a close.
	mostOfControl = 125
)

// Conn is one connection.
type Conn struct {
	conn   net.Conn
	in     *bufio.Reader
	client bool // it masks what it writes
	limit  int

	writing chan struct{} // holds one value while somebody writes
	closing bool          // a close was written, and is the last; of who writes
	ended   chan struct{} // closed with the connection
	end     sync.Once
	read    chan struct{} // closed when nothing more is read
	unread  sync.Once

	mu    sync.Mutex
	pings int
	pongs map[string]chan struct{} // by the payload that is waited for
}

func newConn(c net.Conn, in *bufio.Reader, client bool) *Conn {
	return &Conn{conn: c, in: in, client: client, limit: defaultLimit, writing: make(chan struct{}, 1),
		ended: make(chan struct{}), read: make(chan struct{}), pongs: map[string]chan struct{}{}}
}

// SetReadLimit bounds a message that is read, in bytes; 32 KiB without it. It is called before Read.
func (c *Conn) SetReadLimit(bytes int) { c.limit = bytes }

// CloseNow ends the connection without a word.
func (c *Conn) CloseNow() error {
	var err error
	c.end.Do(func() {
		close(c.ended)
		err = c.conn.Close()
	})
	return err
}

// Close tells the peer that this was all, waits for a moment until it has said the same to whoever
// reads, and ends the connection.
func (c *Conn) Close(code int, reason string) error {
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	err := c.write(ctx, opClose, append(binary.BigEndian.AppendUint16(nil, uint16(code)), reason...))
	if err == nil {
		select {
		case <-c.read:
		case <-ctx.Done():
		}
	}
	return errors.Join(err, c.CloseNow())
}

// Write writes a message. When ctx ends first, the connection does.
func (c *Conn) Write(ctx context.Context, kind Kind, message []byte) error {
	return c.write(ctx, byte(kind), message)
}

// Ping returns when the peer has answered all that was written before.
func (c *Conn) Ping(ctx context.Context) error {
	answered := make(chan struct{})
	c.mu.Lock()
	c.pings++
	payload := strconv.Itoa(c.pings)
	c.pongs[payload] = answered
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.pongs, payload)
		c.mu.Unlock()
	}()
	if err := c.write(ctx, opPing, []byte(payload)); err != nil {
		return err
	}
	select {
	case <-answered:
		return nil
	case <-c.ended:
		return net.ErrClosed
	case <-c.read:
		return net.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ponged is told of an answer to a ping.
func (c *Conn) ponged(payload []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answered := c.pongs[string(payload)]; answered != nil {
		close(answered)
		delete(c.pongs, string(payload))
	}
}

// write writes one frame, which is a whole message.
func (c *Conn) write(ctx context.Context, op byte, payload []byte) error {
	select {
	case c.writing <- struct{}{}:
	case <-c.ended:
		return net.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.writing }()
	if c.closing {
		return net.ErrClosed
	}
	c.closing = op == opClose
	defer context.AfterFunc(ctx, func() { c.CloseNow() })()
	parts := net.Buffers{header(op, len(payload), c.client), payload}
	if c.client {
		var key [4]byte
		rand.Read(key[:])
		masked := append(key[:], payload...)
		mask(key, masked[len(key):])
		parts[1] = masked
	}
	if _, err := parts.WriteTo(c.conn); err != nil {
		c.CloseNow()
		return errors.Join(ctx.Err(), err)
	}
	return nil
}

// header is the beginning of a frame that is the last of its message, up to the length.
func header(op byte, length int, masked bool) []byte {
	h := []byte{0x80 | op, 0}
	switch {
	case length <= mostOfControl:
		h[1] = byte(length)
	case length <= 1<<16-1:
		h[1] = 126
		h = binary.BigEndian.AppendUint16(h, uint16(length))
	default:
		h[1] = 127
		h = binary.BigEndian.AppendUint64(h, uint64(length))
	}
	if masked {
		h[1] |= 0x80
	}
	return h
}

// mask masks and unmasks: the first byte of the payload meets the first of the key.
func mask(key [4]byte, payload []byte) {
	twice := uint64(binary.LittleEndian.Uint32(key[:]))
	twice |= twice << 32
	for len(payload) >= 8 {
		binary.LittleEndian.PutUint64(payload, binary.LittleEndian.Uint64(payload)^twice)
		payload = payload[8:]
	}
	for i := range payload {
		payload[i] ^= key[i%4]
	}
}

// Read returns the next message. When it returns an error, the connection has ended: by a
// [CloseError] if the peer said so.
func (c *Conn) Read(ctx context.Context) (Kind, []byte, error) {
	stop := context.AfterFunc(ctx, func() { c.CloseNow() })
	defer stop()
	kind, message, err := c.message(ctx)
	if err == nil {
		return kind, message, nil
	}
	c.unread.Do(func() { close(c.read) })
	if wrong, ok := errors.AsType[broken](err); ok {
		c.refuse(ctx, statusProtocolError, wrong.why)
	} else if errors.Is(err, ErrTooBig) {
		c.refuse(ctx, statusTooBig, "")
	}
	c.CloseNow()
	return 0, nil, errors.Join(ctx.Err(), err)
}

// refuse tells the peer why the connection ends, if it takes that in a moment.
func (c *Conn) refuse(ctx context.Context, code int, why string) {
	ctx, cancel := context.WithTimeout(ctx, farewell)
	defer cancel()
	c.write(ctx, opClose, append(binary.BigEndian.AppendUint16(nil, uint16(code)), why...))
}

// message reads frames to the end of a message, and answers those that stand between.
func (c *Conn) message(ctx context.Context) (kind Kind, message []byte, err error) {
	for {
		f, err := c.frame()
		if err != nil {
			return 0, nil, err
		}
		switch f.op {
		case opText, opBinary:
			if kind != 0 {
				return 0, nil, broken{"a message begins in another"}
			}
			kind = Kind(f.op)
		case opContinue:
			if kind == 0 {
				return 0, nil, broken{"a message continues that did not begin"}
			}
		case opPing, opPong, opClose:
			if err := c.control(ctx, f); err != nil {
				return 0, nil, err
			}
			continue
		default:
			return 0, nil, broken{fmt.Sprintf("there is no frame of kind %d", f.op)}
		}
		if message, err = c.payload(message, f, c.limit); err != nil {
			return 0, nil, err
		}
		if f.last {
			return kind, message, nil
		}
	}
}

// frame is the beginning of a frame.
type frame struct {
	op     byte
	last   bool
	length uint64
	key    [4]byte // zero where it is not masked
}

func (c *Conn) frame() (f frame, err error) {
	var b [8]byte
	if _, err := io.ReadFull(c.in, b[:2]); err != nil {
		return f, err
	}
	f.op, f.last, f.length = b[0]&0x0F, b[0]&0x80 != 0, uint64(b[1]&0x7F)
	masked := b[1]&0x80 != 0
	switch {
	case b[0]&0x70 != 0:
		return f, broken{"a frame is of an extension"}
	case masked == c.client:
		return f, broken{"a client masks its frames, and a server does not"}
	case f.op&0x8 != 0 && (!f.last || f.length > mostOfControl):
		return f, broken{"a control frame is long or in parts"}
	}
	switch f.length {
	case 126:
		_, err = io.ReadFull(c.in, b[:2])
		f.length = uint64(binary.BigEndian.Uint16(b[:2]))
	case 127:
		_, err = io.ReadFull(c.in, b[:8])
		f.length = binary.BigEndian.Uint64(b[:8])
	}
	if err == nil && masked {
		_, err = io.ReadFull(c.in, f.key[:])
	}
	return f, unexpected(err)
}

// unexpected is the error of a connection that ends within a frame.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// payload appends what the frame carries, up to the limit for all. Memory is taken as it comes.
func (c *Conn) payload(to []byte, f frame, limit int) ([]byte, error) {
	if f.length > uint64(limit-len(to)) {
		return nil, ErrTooBig
	}
	from := len(to)
	for left := int(f.length); left > 0; {
		n := min(left, max(step, len(to))) // at most as much again as there is
		at := len(to)
		to = slices.Grow(to, n)[:at+n]
		if _, err := io.ReadFull(c.in, to[at:]); err != nil {
			return nil, unexpected(err)
		}
		left -= n
	}
	if f.key != [4]byte{} {
		mask(f.key, to[from:])
	}
	return to, nil
}

// control answers a control frame. The error of a close is a [CloseError].
func (c *Conn) control(ctx context.Context, f frame) error {
	payload, err := c.payload(nil, f, mostOfControl)
	if err != nil {
		return err
	}
	switch f.op {
	case opPing:
		return c.write(ctx, opPong, payload)
	case opPong:
		c.ponged(payload)
		return nil
	}
	closed := &CloseError{Code: statusNone}
	if len(payload) == 1 {
		return broken{"a close has half a code"}
	}
	if len(payload) >= 2 {
		closed.Code, closed.Reason = int(binary.BigEndian.Uint16(payload)), string(payload[2:])
		payload = payload[:2]
	}
	ctx, cancel := context.WithTimeout(ctx, farewell)
	defer cancel()
	c.write(ctx, opClose, payload) // the answer, if ours was not the first word
	return closed
}
