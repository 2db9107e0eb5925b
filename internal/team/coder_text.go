package team

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// The words of JSON: how texts and numbers are read and written, and how a value that nobody asked for is passed over.

func (c *coder) space() {
	for c.pos < len(c.in) && (c.in[c.pos] == ' ' || c.in[c.pos] == '\n' || c.in[c.pos] == '\t' || c.in[c.pos] == '\r') {
		c.pos++
	}
}

func (c *coder) take(b byte) bool {
	if c.space(); c.pos < len(c.in) && c.in[c.pos] == b {
		c.pos++
		return true
	}
	return false
}

func (c *coder) number() int64 {
	c.space()
	from := c.pos
	for c.pos < len(c.in) && (c.in[c.pos] == '-' || c.in[c.pos] >= '0' && c.in[c.pos] <= '9') {
		c.pos++
	}
	n, err := strconv.ParseInt(c.in[from:c.pos], 10, 64)
	if err != nil || c.pos < len(c.in) && strings.IndexByte(",]} \n\t\r", c.in[c.pos]) < 0 { // 1.5 is none
		c.fail("expected a whole number")
	}
	return n
}

// text reads a JSON string. Without escapes it is a part of the input, not a copy.
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
	if s := rest[:end]; strings.IndexByte(s, '\\') < 0 {
		c.pos += end + 1
		return s
	}
	for i := strings.IndexByte(rest, '\\'); i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case '"':
			s, ok := unescape(rest[:i])
			if c.pos += i + 1; !ok {
				c.fail("a text with a bad escape")
			}
			return s
		}
	}
	c.fail("a text without its end")
	return ""
}

// unescape reads what stands between the quotes of a JSON string.
func unescape(s string) (string, bool) {
	var out strings.Builder
	out.Grow(len(s))
	for {
		i := strings.IndexByte(s, '\\')
		if i < 0 {
			out.WriteString(s)
			return out.String(), true
		}
		out.WriteString(s[:i])
		if i+1 >= len(s) {
			return "", false
		}
		if at := strings.IndexByte(escapes, s[i+1]); at >= 0 {
			out.WriteByte(escaped[at])
			s = s[i+2:]
			continue
		}
		r, ok := escapedRune(s[i:])
		if !ok {
			return "", false
		}
		s = s[i+6:]
		if utf16.IsSurrogate(r) {
			low, ok := escapedRune(s)
			if r = utf16.DecodeRune(r, low); ok && r != utf8.RuneError {
				s = s[6:]
			}
		}
		out.WriteRune(r)
	}
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

// maxDepth is how deeply a value that we keep or pass over may be nested.
const maxDepth = 100

// skip passes over any value.
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

// appendText appends s as a JSON string, valid UTF-8 whatever s is.
func appendText(out []byte, s string) []byte {
	out = append(out, '"')
	from := 0
	for i := 0; i < len(s); {
		b := s[i]
		if b >= ' ' && b < utf8.RuneSelf && b != '"' && b != '\\' {
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
