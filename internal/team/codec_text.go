package team

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// This file reads and writes JSON texts and numbers, and skips values of unknown fields.

func (c *coder) space() {
	for c.pos < len(c.in) && (c.in[c.pos] == ' ' || c.in[c.pos] == '\n' || c.in[c.pos] == '\t' || c.in[c.pos] == '\r') {
		c.pos++
	}
}

func (c *coder) take(b byte) bool {
	if c.pos < len(c.in) && c.in[c.pos] != b {
		c.space()
	}
	if c.pos < len(c.in) && c.in[c.pos] == b {
		c.pos++
		return true
	}
	return false
}

// number reads a whole number. The common ones, positive and too short to overflow, are read faster
// than strconv does.
func (c *coder) number() int64 {
	c.space()
	from, n := c.pos, int64(0)
	p := from
	for ; p < len(c.in) && c.in[p]-'0' <= 9; p++ {
		n = n*10 + int64(c.in[p]-'0')
	}
	if p == from || p-from > 18 {
		if p == from && p < len(c.in) && c.in[p] == '-' {
			p++
		}
		for p < len(c.in) && c.in[p]-'0' <= 9 {
			p++
		}
		var err error
		if n, err = strconv.ParseInt(c.in[from:p], 10, 64); err != nil {
			c.fail("expected a whole number")
			return 0
		}
	}
	if c.pos = p; p < len(c.in) && c.in[p] != ',' && c.in[p] != '}' && c.in[p] != ']' && c.in[p] > ' ' { // 1.5
		c.fail("expected a whole number")
		return 0
	}
	return n
}

// text reads a JSON string. Without escapes it shares the input, not a copy.
func (c *coder) text() string {
	if !c.take('"') {
		c.fail("expected a text")
		return ""
	}
	rest := c.in[c.pos:]
	end := strings.IndexByte(rest, '"')
	if end < 0 {
		c.fail("a text without its end")
		return ""
	}
	if strings.IndexByte(rest[:end], '\\') >= 0 {
		return c.escapedText(rest, end)
	}
	c.pos += end + 1
	return rest[:end]
}

// chunk is how many bytes of texts with escapes share one allocation.
const chunk = 32 << 10

// escapedText reads a text that has escapes. rest begins after the opening quote and has its next
// quote at end.
func (c *coder) escapedText(rest string, end int) string {
	if c.texts.Cap()-c.texts.Len() < end {
		c.texts = strings.Builder{} // texts that were read keep the old buffer
		c.texts.Grow(max(end, min(len(rest), chunk)))
	}
	from := c.texts.Len()
	for {
		i := strings.IndexByte(rest[:end], '\\')
		if i < 0 {
			c.texts.WriteString(rest[:end])
			c.pos = len(c.in) - len(rest) + end + 1
			return c.texts.String()[from:]
		}
		c.texts.WriteString(rest[:i])
		n := c.escape(rest[i:])
		if n == 0 {
			c.fail("a text with a bad escape")
			return ""
		}
		rest, end = rest[i+n:], end-i-n
		if end < 0 { // that quote was escaped
			if end = strings.IndexByte(rest, '"'); end < 0 {
				c.fail("a text without its end")
				return ""
			}
		}
	}
}

// escape decodes the escape at the start of s, writes the character and returns the length of the
// escape, 0 for a bad one.
func (c *coder) escape(s string) int {
	if len(s) < 2 {
		return 0
	}
	if at := strings.IndexByte(escapes, s[1]); at >= 0 {
		c.texts.WriteByte(escaped[at])
		return 2
	}
	r, ok := escapedRune(s)
	if !ok {
		return 0
	}
	n := 6
	if utf16.IsSurrogate(r) {
		low, ok := escapedRune(s[6:])
		if r = utf16.DecodeRune(r, low); ok && r != utf8.RuneError {
			n = 12
		}
	}
	c.texts.WriteRune(r)
	return n
}

const (
	escapes = `"\/bfnrt`
	escaped = "\"\\/\b\f\n\r\t"
)

// escapedRune reads the \uXXXX that s starts with.
func escapedRune(s string) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(s[2:6], 16, 16)
	return rune(n), err == nil
}

// maxDepth limits the nesting of a value that we keep or skip.
const maxDepth = 100

// skip moves past any value.
func (c *coder) skip(depth int) {
	if depth > maxDepth {
		c.fail("nested too deeply")
	}
	c.space()
	if c.err != nil || c.pos >= len(c.in) {
		c.fail("expected a value")
		return
	}
	switch b := c.in[c.pos]; b {
	case '"':
		c.text()
	case '{', '[':
		c.pos++
		for n := 0; c.err == nil && !c.take(b+2); n++ { // in ASCII a closing bracket comes two after its opening one
			if n > 0 && !c.take(',') {
				c.fail("expected a comma")
				return
			}
			if b == '{' {
				if c.text(); !c.take(':') {
					c.fail("expected a colon")
					return
				}
			}
			c.skip(depth + 1)
		}
	default:
		from := c.pos
		for c.pos < len(c.in) && strings.IndexByte(",]} \n\t\r", c.in[c.pos]) < 0 {
			c.pos++
		}
		if !json.Valid([]byte(c.in[from:c.pos])) {
			c.fail("expected a value")
		}
	}
}

const hexDigits = "0123456789abcdef"

// plain marks the bytes that stand for themselves in a JSON string.
var plain = func() (p [256]bool) {
	for b := ' '; b < utf8.RuneSelf; b++ {
		p[b] = b != '"' && b != '\\'
	}
	return p
}()

// appendText appends s as a JSON string. The result is valid UTF-8 for any s.
func appendText(out []byte, s string) []byte {
	out = append(out, '"')
	from := 0
	for i := 0; i < len(s); {
		b := s[i]
		if plain[b] {
			i++
			continue
		}
		if b >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				out = append(append(out, s[from:i]...), "\uFFFD"...)
				from = i + 1
			}
			i += n
			continue
		}
		out = append(out, s[from:i]...)
		switch b {
		case '"', '\\':
			out = append(out, '\\', b)
		case '\n':
			out = append(out, '\\', 'n')
		case '\t':
			out = append(out, '\\', 't')
		case '\r':
			out = append(out, '\\', 'r')
		default:
			out = append(out, '\\', 'u', '0', '0', hexDigits[b>>4], hexDigits[b&15])
		}
		i++
		from = i
	}
	return append(append(out, s[from:]...), '"')
}
