package team

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// fielder is a value that is one JSON object: fields names each of its fields once, in a fixed order, and that one list serves writing, reading and cleaning.
type fielder interface{ fields(c *coder) }

// coder walks the fields of values. It is our own because a command must load a team of ten thousand tasks in
// milliseconds, which reflection does not: reading makes one pass over one string, of which every text it yields is a part.
//
// Writing leaves out zero values. Reading expects the fields in the order in which they are written, where any may be
// absent, and that is a single pass; an object with its fields in another order, or with fields of a later version, is read by name instead.
type coder struct {
	mode mode
	view bool // writing for people and programs: with derived fields

	out   []byte // writing
	first bool   // no field of this object was written or read yet

	in     string // reading
	pos    int
	byName map[string]int // reading by name: position of each value of the present object
	err    error
}

type mode int

const (
	writing mode = iota
	reading
	cleaning
)

func encode(v fielder, view bool, buf []byte) []byte {
	c := coder{mode: writing, view: view, out: buf}
	c.object(v)
	return c.out
}

func decode(v fielder, in string) error {
	c := coder{mode: reading, in: in}
	c.object(v)
	if c.space(); c.err == nil && c.pos != len(c.in) {
		c.fail("text after the value")
	}
	return c.err
}

// clean makes every text of v valid UTF-8, so that v is equal to what reading its encoding gives.
func clean(v fielder) {
	c := coder{mode: cleaning}
	v.fields(&c)
}

func (c *coder) fail(what string) {
	if c.err == nil {
		c.err = fmt.Errorf("not a valid record: %s at byte %d", what, c.pos)
	}
	c.pos = len(c.in)
}

// object writes, reads or cleans v itself, in the place of a value.
func (c *coder) object(v fielder) {
	switch c.mode {
	case cleaning:
		v.fields(c)
	case writing:
		outer := c.first
		c.out = append(c.out, '{')
		c.first = true
		v.fields(c)
		c.out = append(c.out, '}')
		c.first = outer
	case reading:
		byName, first := c.byName, c.first
		c.byName = nil
		c.open(v)
		c.byName, c.first = byName, first
	}
}

func (c *coder) open(v fielder) {
	if !c.take('{') {
		c.fail("expected an object")
		return
	}
	if c.take('}') {
		return
	}
	start := c.pos
	c.first = true
	v.fields(c)
	if c.err != nil || c.take('}') {
		return
	}
	// Another order, or fields that this version does not know.
	c.pos = start
	end := c.index()
	if c.err != nil {
		return
	}
	v.fields(c)
	c.pos = end
}

// index notes where the value of each field of the object lies and returns the position after the object.
func (c *coder) index() int {
	c.byName = map[string]int{}
	for c.err == nil {
		key := c.text()
		if !c.take(':') {
			c.fail("expected a colon")
			break
		}
		c.space()
		c.byName[key] = c.pos
		c.skip(0)
		if c.take(',') {
			continue
		}
		if c.take('}') {
			break
		}
		c.fail("expected a comma or the end of the object")
	}
	return c.pos
}

// field moves to the value of key and reports whether there is one. zero says, for writing, that the value is to be left out.
func (c *coder) field(key string, zero bool) bool {
	switch c.mode {
	case cleaning:
		return true
	case writing:
		if zero {
			return false
		}
		if !c.first {
			c.out = append(c.out, ',')
		}
		c.first = false
		c.out = append(c.out, '"')
		c.out = append(c.out, key...)
		c.out = append(c.out, '"', ':')
		return true
	}
	if c.err != nil {
		return false
	}
	if c.byName != nil {
		at, ok := c.byName[key]
		c.pos = at
		return ok
	}
	p := c.pos
	if !c.first {
		if p >= len(c.in) || c.in[p] != ',' {
			return false
		}
		p++
	}
	if n := p + len(key); n+3 <= len(c.in) && c.in[p] == '"' && c.in[n+1] == '"' && c.in[n+2] == ':' && c.in[p+1:n+1] == key {
		c.pos = n + 3
		c.first = false
		return true
	}
	return false
}

func (c *coder) str(key string, v *string) {
	if !c.field(key, *v == "") {
		return
	}
	switch c.mode {
	case writing:
		c.out = appendText(c.out, *v)
	case reading:
		*v = c.text()
	case cleaning:
		*v = strings.ToValidUTF8(*v, "\uFFFD")
	}
}

func (c *coder) int(key string, v *int64) {
	if !c.field(key, *v == 0) {
		return
	}
	switch c.mode {
	case writing:
		c.out = strconv.AppendInt(c.out, *v, 10)
	case reading:
		*v = c.number()
	}
}

func (c *coder) bool(key string, v *bool) {
	if !c.field(key, !*v) {
		return
	}
	switch c.mode {
	case writing:
		c.out = append(c.out, "true"...)
	case reading:
		c.space()
		switch rest := c.in[c.pos:]; {
		case strings.HasPrefix(rest, "true"):
			*v = true
			c.pos += 4
		case strings.HasPrefix(rest, "false"):
			*v = false
			c.pos += 5
		default:
			c.fail("expected true or false")
		}
	}
}

func (c *coder) strs(key string, v *[]string) {
	list(c, key, v, func(s *string) {
		switch c.mode {
		case writing:
			c.out = appendText(c.out, *s)
		case reading:
			*s = c.text()
		case cleaning:
			*s = strings.ToValidUTF8(*s, "\uFFFD")
		}
	})
}

func (c *coder) ints(key string, v *[]int64) {
	list(c, key, v, func(n *int64) {
		switch c.mode {
		case writing:
			c.out = strconv.AppendInt(c.out, *n, 10)
		case reading:
			*n = c.number()
		}
	})
}

// raws is an object whose values are any JSON, kept as their text.
func (c *coder) raws(key string, v *map[string]json.RawMessage) {
	if !c.field(key, len(*v) == 0) {
		return
	}
	switch c.mode {
	case writing:
		c.out = append(c.out, '{')
		for i, k := range sorted(*v) {
			if i > 0 {
				c.out = append(c.out, ',')
			}
			c.out = appendText(c.out, k)
			c.out = append(c.out, ':')
			c.out = append(c.out, (*v)[k]...)
		}
		c.out = append(c.out, '}')
	case reading:
		*v = map[string]json.RawMessage{}
		if !c.take('{') {
			c.fail("expected an object")
		}
		for c.err == nil && !c.take('}') {
			if len(*v) > 0 && !c.take(',') {
				c.fail("expected a comma")
			}
			k := c.text()
			if !c.take(':') {
				c.fail("expected a colon")
			}
			c.space()
			from := c.pos
			c.skip(0)
			if c.err == nil {
				(*v)[k] = json.RawMessage(c.in[from:c.pos])
			}
		}
		for _, raw := range *v {
			if !json.Valid(raw) {
				c.fail("expected a JSON value")
			}
		}
	}
}

// sub is a field whose value is an object.
func (c *coder) sub(key string, zero bool, v fielder) {
	if c.field(key, zero) {
		c.object(v)
	}
}

// opt is a field that tells absence from a zero value.
func opt[T any](c *coder, key string, v **T, one func(key string, v *T)) {
	if c.mode != reading {
		if *v == nil || c.mode == cleaning {
			if *v != nil {
				one(key, *v)
			}
			return
		}
		mark := len(c.out)
		if one(key, *v); len(c.out) == mark { // a zero value, which says something here
			c.field(key, false)
			switch any(**v).(type) {
			case string:
				c.out = append(c.out, `""`...)
			case int64:
				c.out = append(c.out, '0')
			case bool:
				c.out = append(c.out, "false"...)
			}
		}
		return
	}
	at, first := c.pos, c.first
	present := c.field(key, false)
	c.pos, c.first = at, first
	if present {
		*v = new(T)
		one(key, *v)
	}
}

// list is a field whose value is an array.
func list[T any](c *coder, key string, v *[]T, one func(*T)) {
	if !c.field(key, len(*v) == 0) {
		return
	}
	switch c.mode {
	case cleaning:
		for i := range *v {
			one(&(*v)[i])
		}
	case writing:
		c.out = append(c.out, '[')
		for i := range *v {
			if i > 0 {
				c.out = append(c.out, ',')
			}
			one(&(*v)[i])
		}
		c.out = append(c.out, ']')
	case reading:
		if *v = (*v)[:0]; !c.take('[') {
			c.fail("expected an array")
		}
		for c.err == nil && !c.take(']') {
			if len(*v) > 0 && !c.take(',') {
				c.fail("expected a comma")
				return
			}
			var zero T
			*v = append(*v, zero)
			one(&(*v)[len(*v)-1])
		}
		if len(*v) == 0 {
			*v = nil
		}
	}
}

// objects is a list of objects.
func objects[T any, P interface {
	*T
	fielder
}](c *coder, key string, v *[]T) {
	list(c, key, v, func(one *T) { c.object(P(one)) })
}

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
	if err != nil {
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
			var s string
			if json.Unmarshal([]byte(c.in[c.pos-1:c.pos+i+1]), &s) != nil {
				c.fail("a text with a bad escape")
			} else {
				c.pos += i + 1
			}
			return s
		}
	}
	c.fail("a text without its end")
	return ""
}

// skip passes over any value.
func (c *coder) skip(depth int) {
	if depth > 100 {
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

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
