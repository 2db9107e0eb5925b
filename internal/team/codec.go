package team

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// fielder is a value that is written as one JSON object. Its fields method names each field once,
// in a fixed order. The same list serves writing, reading and cleaning.
type fielder interface{ fields(c *coder) }

// coder walks the fields of values. We wrote our own because a command must load a team of ten
// thousand tasks in milliseconds, and reflection is too slow for that. Reading makes one pass over
// one string, and the texts that it returns are parts of that string. The benchmark Codec in bench
// compares it with segmentio/encoding and encoding/json. It stays only while both are slower.
//
// Writing leaves out zero values. Reading expects the fields in the order in which they are
// written, where any may be absent: that takes a single pass. An object with another order of
// fields, or with fields of a later version, is read by name instead.
type coder struct {
	mode mode
	view bool // writing for people and programs: with derived fields

	out   []byte // writing
	first bool   // no field of this object was written or read yet

	in     string // reading
	pos    int
	texts  strings.Builder
	byName map[string]int // reading by name: position of each value of this object
	tagged tagged         // the present event; events do not nest
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

func decode(v fielder, in string) error { return read(v, in, coder{mode: reading}) }

// unmarshal reads a value that was written for people and programs. null changes nothing, as
// package encoding/json asks for.
func unmarshal(v fielder, data []byte) error {
	if string(data) == "null" {
		return nil
	}
	return read(v, string(data), coder{mode: reading, view: true})
}

func read(v fielder, in string, c coder) error {
	if !utf8.ValidString(in) {
		in = strings.ToValidUTF8(in, "\uFFFD")
	}
	c.in = in
	c.object(v)
	if c.space(); c.err == nil && c.pos != len(c.in) {
		c.fail("text after the value")
	}
	return c.err
}

// clean makes every text of v valid UTF-8 and every duration a whole number of its units. Then v is
// equal to what reading its encoding gives.
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

// object writes, reads or cleans v as one JSON object.
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
	// The fields come in another order, or this version does not know one of them.
	c.pos = start
	end := c.index()
	if c.err != nil {
		return
	}
	v.fields(c)
	c.pos = end
}

// index records where the value of each field of the object is, and returns the position after the
// object.
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

// field moves to the value of key and reports whether it has one. When writing, zero says that the
// value is left out.
func (c *coder) field(key string, zero bool) bool {
	switch {
	case c.mode == writing:
		return !zero && c.begin(key)
	case c.mode == cleaning:
		return true
	case c.byName != nil:
		return c.named(key)
	}
	// Is it the object's next key? For most fields it is not, and a function call would cost as
	// much as this look. After an error no key matches.
	p := c.pos
	if !c.first {
		if p >= len(c.in) || c.in[p] != ',' {
			return false
		}
		p++
	}
	n := p + len(key)
	if n+3 > len(c.in) || c.in[p] != '"' || c.in[n+1] != '"' || c.in[n+2] != ':' || c.in[p+1:n+1] != key {
		return false
	}
	c.pos = n + 3
	c.first = false
	return true
}

// ahead reports whether key is known to be the object's next one, when reading. A caller may then
// skip the fields before it, each of which takes a look.
func (c *coder) ahead(key string) bool {
	at, first := c.pos, c.first
	found := c.mode == reading && c.byName == nil && c.field(key, false)
	c.pos, c.first = at, first
	return found
}

// named moves to the value of key in an object whose fields come in any order.
func (c *coder) named(key string) bool {
	at, ok := c.byName[key]
	if ok = ok && c.err == nil; ok {
		c.pos = at
	}
	return ok
}

// begin writes the key of a value.
func (c *coder) begin(key string) bool {
	if !c.first {
		c.out = append(c.out, ',')
	}
	c.first = false
	c.out = append(c.out, '"')
	c.out = append(c.out, key...)
	c.out = append(c.out, '"', ':')
	return true
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

// duration codes a length of time as a whole number of units. Cleaning rounds it to such a number,
// so that a state that applied the record equals a state that read it back.
func (c *coder) duration(key string, v *time.Duration, unit time.Duration) {
	if !c.field(key, *v == 0) {
		return
	}
	switch c.mode {
	case writing:
		c.out = strconv.AppendInt(c.out, wholeUnits(*v, unit), 10)
	case reading:
		*v = multiple(c.number(), unit)
	case cleaning:
		*v = multiple(wholeUnits(*v, unit), unit)
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

// raws codes an object whose values may be any JSON, kept as their text.
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
		all := map[string]json.RawMessage{}
		if !c.take('{') {
			c.fail("expected an object")
		}
		for c.err == nil && !c.take('}') {
			if len(all) > 0 && !c.take(',') {
				c.fail("expected a comma")
			}
			k := c.text()
			if !c.take(':') {
				c.fail("expected a colon")
			}
			all[k] = c.raw()
		}
		if *v = all; len(all) == 0 {
			*v = nil
		}
	}
}

// rawValue codes one value that may be any JSON, kept as its text.
func (c *coder) rawValue(key string, v *json.RawMessage) {
	if !c.field(key, len(*v) == 0) {
		return
	}
	switch c.mode {
	case writing:
		c.out = append(c.out, *v...)
	case reading:
		if *v = c.raw(); string(*v) == "null" {
			*v = nil
		}
	}
}

// raw reads any value and returns its text, on one line.
func (c *coder) raw() json.RawMessage {
	c.space()
	from := c.pos
	if c.skip(0); c.err != nil {
		return nil
	}
	value := json.RawMessage(c.in[from:c.pos])
	var one bytes.Buffer
	switch {
	case strings.IndexByte(`{["`, value[0]) >= 0 && !json.Valid(value): // skip checked other values well enough
		c.fail("expected a JSON value")
	case bytes.ContainsAny(value, "\n\r") && json.Compact(&one, value) == nil:
		return one.Bytes()
	}
	return value
}

// sub codes a field whose value is an object.
func (c *coder) sub(key string, zero bool, v fielder) {
	if c.field(key, zero) {
		c.object(v)
	}
}

// part codes an object that is absent in most values.
func part[T any, P interface {
	*T
	fielder
}](c *coder, key string, v **T) {
	switch {
	case !c.field(key, *v == nil) || c.mode == cleaning && *v == nil:
		return
	case c.mode == reading:
		*v = new(T)
	case c.mode == cleaning:
		own := **v // copy it: the sender of the command keeps its own
		*v = &own
	}
	c.object(P(*v))
}

// opt codes a field that distinguishes absence from a zero value.
func opt[T any](c *coder, key string, v **T, one func(key string, v *T)) {
	if c.mode != reading {
		if *v == nil {
			return
		}
		if c.mode == cleaning {
			own := **v // copy it: the sender of the command keeps its own
			*v = &own
			one(key, *v)
			return
		}
		mark := len(c.out)
		if one(key, *v); len(c.out) == mark { // write the zero value: here it differs from absence
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

// list codes a field whose value is an array.
func list[T any](c *coder, key string, v *[]T, one func(*T)) {
	if !c.field(key, len(*v) == 0) {
		return
	}
	switch c.mode {
	case cleaning:
		if *v = slices.Clone(*v); len(*v) == 0 { // copy it: the sender of the command keeps its own
			*v = nil
		}
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
			n := len(*v)
			*v = slices.Grow(*v, 1)[:n+1]
			clear((*v)[n:])
			one(&(*v)[n])
		}
		if len(*v) == 0 {
			*v = nil
		}
	}
}

// objects codes a list of objects.
func objects[T any, P interface {
	*T
	fielder
}](c *coder, key string, v *[]T) {
	list(c, key, v, func(one *T) { c.object(P(one)) })
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
