package proc

import (
	"bytes"
	"fmt"
	"strings"
	"sync"

	"cadre/internal/sys/utf8text"
)

// DefaultKeep is the default number of bytes that a [Capture] keeps at each end.
const DefaultKeep = 32 << 10

// Capture is a writer that keeps the beginning and the end of its input and counts the rest. Its
// memory use is bounded. Writes never fail, and several goroutines may write at once. The zero
// Capture keeps [DefaultKeep] bytes at each end.
type Capture struct {
	// Head and Tail are the number of bytes to keep of the beginning and of the end. 0 means
	// DefaultKeep. They must not change after the first write.
	Head, Tail int

	mu     sync.Mutex
	head   []byte
	tail   []byte // only the last Tail bytes count; up to twice as many are held, so that writes seldom move them
	total  int64
	breaks int // line breaks so far
	lines  int // lines so far, up to the last one that is not blank
}

func (c *Capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total += int64(len(p))
	end := len(bytes.TrimRight(p, blank))
	if end > 0 {
		c.lines = c.breaks + bytes.Count(p[:end], []byte{'\n'}) + 1
	}
	c.breaks += bytes.Count(p, []byte{'\n'})
	keepHead, keepTail := orDefault(c.Head), orDefault(c.Tail)
	n := min(len(p), keepHead-len(c.head))
	c.head = append(c.head, p[:n]...)
	rest := p[n:]
	if len(rest) > keepTail {
		rest = rest[len(rest)-keepTail:]
	}
	if len(c.tail)+len(rest) > 2*keepTail {
		c.tail = append(c.tail[:0], c.tail[len(c.tail)-keepTail:]...)
	}
	c.tail = append(c.tail, rest...)
	return len(p), nil
}

// Total returns the number of bytes written.
func (c *Capture) Total() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}

// blank has the characters that a blank line may have, and those that end it.
const blank = " \t\r\n"

// Lines returns the number of lines that were written. Blank ones at the end do not count.
func (c *Capture) Lines() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lines
}

// String returns the kept bytes as valid UTF-8. A line of its own says how many bytes were omitted.
func (c *Capture) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	head, tail := c.head, c.tail[max(0, len(c.tail)-orDefault(c.Tail)):]
	if c.total == int64(len(head)+len(tail)) {
		return strings.ToValidUTF8(string(head)+string(tail), "\uFFFD")
	}
	head, tail = head[:utf8text.Whole(head)], tail[utf8text.First(tail):]
	omitted := c.total - int64(len(head)+len(tail))
	return fmt.Sprintf("%s\n[%d bytes left out]\n%s",
		bytes.ToValidUTF8(head, []byte("\uFFFD")), omitted, bytes.ToValidUTF8(tail, []byte("\uFFFD")))
}

func orDefault(keep int) int {
	if keep <= 0 {
		return DefaultKeep
	}
	return keep
}
