package coordinator

import (
	"bufio"
	"net"
	"net/http"
	"sync"
	"time"
)

// mostHeld bounds the bytes that a corked connection holds back.
const mostHeld = 64 << 10

// corked is a connection that can hold back what is written, so that many frames are one call of
// the system.
type corked struct {
	net.Conn

	mu      sync.Mutex
	holders int
	held    []byte
}

// Write writes, or holds back.
func (c *corked) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holders == 0 {
		return c.Conn.Write(p)
	}
	if c.held = append(c.held, p...); len(c.held) >= mostHeld {
		return len(p), c.flush()
	}
	return len(p), nil
}

// hold makes Write hold back until as many calls of release.
func (c *corked) hold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holders++
}

// release writes what was held back. The reader may take [slowReader] for it.
func (c *corked) release() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holders--
	if len(c.held) == 0 {
		return nil
	}
	c.SetWriteDeadline(time.Now().Add(slowReader))
	defer c.SetWriteDeadline(time.Time{})
	return c.flush()
}

func (c *corked) flush() error {
	_, err := c.Conn.Write(c.held)
	c.held = c.held[:0]
	return err
}

// corking is an answer whose connection becomes a corked one.
type corking struct {
	http.ResponseWriter
	conn *corked // nil before Hijack
}

// Hijack takes the connection over.
func (w *corking) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	w.conn = &corked{Conn: conn}
	return w.conn, bufio.NewReadWriter(rw.Reader, bufio.NewWriter(w.conn)), nil
}
