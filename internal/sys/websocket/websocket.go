// Package websocket implements WebSocket (RFC 6455) over an existing connection.
//
// # Authority
//
// It implements the handshake, frames and masking, and answers pings and closes. The caller decides
// who may connect and what the messages mean. Extensions and subprotocols are neither offered nor
// accepted.
//
// The package exists because every WebSocket library imports net/http, and each command of cadre
// would pay for its initialisation. The tests use such a library as the peer.
//
// # Guarantees
//
//   - No input of the peer makes the package allocate more than about twice the bytes received, or
//     more than the limit.
//   - A peer that violates the protocol loses its connection. Messages received before stay valid.
//   - A context that ends during a read or a write closes the connection, because a frame may be
//     half read or half written.
//
// # Concurrency
//
// One goroutine may read; any goroutine may write, ping and close. Pings are answered, and
// responses to pings and closes are received, only while a read is in progress.
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

// Kind is the type of a message.
type Kind byte

// Types of messages.
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

// Status codes of a close.
const (
	StatusNormal        = 1000
	statusProtocolError = 1002
	statusTooBig        = 1009
	statusNone          = 1005 // the close had no code
)

// ErrTooBig reports a message over the limit. The connection is closed.
var ErrTooBig = errors.New("the message is over the limit")

// CloseError reports that the peer closed the connection.
type CloseError struct {
	Code   int
	Reason string
}

func (e *CloseError) Error() string {
	return "the peer closed the connection: " + strconv.Itoa(e.Code) + " " + strconv.Quote(e.Reason)
}

// broken is a protocol violation by the peer.
type broken struct{ why string }

func (b broken) Error() string { return "the peer violated the protocol: " + b.why }

const (
	defaultLimit = 32 << 10
	// closeTimeout is how long the peer may take to answer a close.
	closeTimeout = 5 * time.Second
	// readChunk is the chunk size for reading a message whose length is only announced.
	readChunk = 64 << 10
	// maxControl is the maximum payload of a ping, a pong or a close.
	maxControl = 125
)

// Conn is a WebSocket connection.
type Conn struct {
	conn   net.Conn
	in     *bufio.Reader
	client bool // a client masks its frames
	limit  int

	writing chan struct{} // holds one value during a write
	closing bool          // the close, always the last frame, was written; belongs to the writer
	ended   chan struct{} // closed with the connection
	end     sync.Once
	read    chan struct{} // closed when no further message can be read
	readEnd sync.Once

	mu    sync.Mutex
	pings int
	pongs map[string]chan struct{} // pending pings by payload
}

func newConn(c net.Conn, in *bufio.Reader, client bool) *Conn {
	return &Conn{conn: c, in: in, client: client, limit: defaultLimit, writing: make(chan struct{}, 1),
		ended: make(chan struct{}), read: make(chan struct{}), pongs: map[string]chan struct{}{}}
}

// SetReadLimit limits the size of a message, in bytes; the default is 32 KiB. It must be called
// before Read.
func (c *Conn) SetReadLimit(bytes int) { c.limit = bytes }

// CloseNow closes the connection without a close frame.
func (c *Conn) CloseNow() error {
	var err error
	c.end.Do(func() {
		close(c.ended)
		err = c.conn.Close()
	})
	return err
}

// Close sends a close frame, waits a moment for the peer's close, and closes the connection. The
// peer's close is only seen while another goroutine reads.
func (c *Conn) Close(code int, reason string) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
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

// Write writes a message. If ctx ends first, the connection is closed.
func (c *Conn) Write(ctx context.Context, kind Kind, message []byte) error {
	return c.write(ctx, byte(kind), message)
}

// Ping returns when the peer has answered. By then the peer has processed everything written
// before.
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

// ponged wakes the Ping that waits for this payload.
func (c *Conn) ponged(payload []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answered := c.pongs[string(payload)]; answered != nil {
		close(answered)
		delete(c.pongs, string(payload))
	}
}

// write writes one frame, which is a complete message.
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

// header returns the header of a final frame up to its length.
func header(op byte, length int, masked bool) []byte {
	h := []byte{0x80 | op, 0}
	switch {
	case length <= maxControl:
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

// mask masks or unmasks a payload. The first byte of the key applies to the first byte of the
// payload.
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

// Read returns the next message. After an error the connection is closed. If the peer closed it,
// the error is a [CloseError].
func (c *Conn) Read(ctx context.Context) (Kind, []byte, error) {
	stop := context.AfterFunc(ctx, func() { c.CloseNow() })
	defer stop()
	kind, message, err := c.message(ctx)
	if err == nil {
		return kind, message, nil
	}
	c.readEnd.Do(func() { close(c.read) })
	if wrong, ok := errors.AsType[broken](err); ok {
		c.refuse(ctx, statusProtocolError, wrong.why)
	} else if errors.Is(err, ErrTooBig) {
		c.refuse(ctx, statusTooBig, "")
	}
	c.CloseNow()
	return 0, nil, errors.Join(ctx.Err(), err)
}

// refuse tells the peer why the connection closes, if the peer accepts that quickly.
func (c *Conn) refuse(ctx context.Context, code int, why string) {
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	c.write(ctx, opClose, append(binary.BigEndian.AppendUint16(nil, uint16(code)), why...))
}

// message reads frames until a message is complete, and answers control frames in between.
func (c *Conn) message(ctx context.Context) (kind Kind, message []byte, err error) {
	for {
		f, err := c.frame()
		if err != nil {
			return 0, nil, err
		}
		switch f.op {
		case opText, opBinary:
			if kind != 0 {
				return 0, nil, broken{"a message begins inside another"}
			}
			kind = Kind(f.op)
		case opContinue:
			if kind == 0 {
				return 0, nil, broken{"a continuation without a message"}
			}
		case opPing, opPong, opClose:
			if err := c.control(ctx, f); err != nil {
				return 0, nil, err
			}
			continue
		default:
			return 0, nil, broken{fmt.Sprintf("unknown opcode %d", f.op)}
		}
		if message, err = c.payload(message, f, c.limit); err != nil {
			return 0, nil, err
		}
		if f.last {
			return kind, message, nil
		}
	}
}

// frame is the header of a frame.
type frame struct {
	op     byte
	last   bool
	length uint64
	key    [4]byte // zero if it is not masked
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
		return f, broken{"a frame uses an extension"}
	case masked == c.client:
		return f, broken{"a client must mask its frames, and a server must not"}
	case f.op&0x8 != 0 && (!f.last || f.length > maxControl):
		return f, broken{"a control frame is too long or fragmented"}
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

// unexpected turns the end of a connection inside a frame into [io.ErrUnexpectedEOF].
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// payload appends the payload of a frame, up to the limit for the whole message. It allocates
// memory as data arrives.
func (c *Conn) payload(to []byte, f frame, limit int) ([]byte, error) {
	if f.length > uint64(limit-len(to)) {
		return nil, ErrTooBig
	}
	from := len(to)
	for left := int(f.length); left > 0; {
		n := min(left, max(readChunk, len(to))) // at most doubles the buffer
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

// control answers a control frame. For a close it returns a [CloseError].
func (c *Conn) control(ctx context.Context, f frame) error {
	payload, err := c.payload(nil, f, maxControl)
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
		return broken{"a close has an incomplete code"}
	}
	if len(payload) >= 2 {
		closed.Code, closed.Reason = int(binary.BigEndian.Uint16(payload)), string(payload[2:])
		payload = payload[:2]
	}
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	c.write(ctx, opClose, payload) // the answer; not sent if our close came first
	return closed
}
