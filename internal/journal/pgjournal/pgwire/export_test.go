package pgwire

import (
	"slices"
	"time"
)

// Age makes the idle connections of the pool look as if they were made and used that much earlier.
func (p *Pool) Age(made, used time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.idle {
		c.made, c.used = c.made.Add(-made), c.used.Add(-used)
	}
}

// Sweep closes what nobody needs, as it is done every minute.
func (p *Pool) Sweep() { p.sweep() }

// PID returns the number of the server's process.
func (c *Conn) PID() uint32 { return c.pg.PID() }

// Prepared returns the texts that the connection has prepared, in order.
func (c *Conn) Prepared() (texts []string) {
	for text := range c.prepared {
		texts = append(texts, text)
	}
	slices.Sort(texts)
	return texts
}

// Decode reads a value of a type.
func Decode(of uint32, value []byte, into any) error { return decode(of, value, into) }
