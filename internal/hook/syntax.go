package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// SettingsError reports a settings file that cannot be used. Its text says where, and what to do.
type SettingsError struct {
	File         string
	Line, Column int // from 1; the column counts bytes
	Reason       string
}

func (e *SettingsError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s; correct the file, or remove the hook from it", e.File, e.Line, e.Column, e.Reason)
}

// node is a JSON value with its position in the file, so that an error about its meaning can name
// the place.
type node struct {
	at     int64
	scalar any // string, json.Number, bool or nil, if it is neither an object nor an array
	object map[string]*node
	array  []*node
}

func (n *node) kind() string {
	switch {
	case n.object != nil:
		return "an object"
	case n.array != nil:
		return "an array"
	}
	switch n.scalar.(type) {
	case string:
		return "a string"
	case json.Number:
		return "a number"
	case bool:
		return "a boolean"
	}
	return "null"
}

// document is a settings file that is being read.
type document struct {
	file string
	data []byte
	dec  *json.Decoder
}

// maxDepth is far above any settings file, and far below what the stack of a goroutine allows.
const maxDepth = 100

// parse reads the file as one JSON value. As in Claude Code, an empty file is an empty object.
func parse(file string, data []byte) (*document, *node, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	d := &document{file: file, data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	if len(bytes.TrimSpace(data)) == 0 {
		return d, &node{object: map[string]*node{}}, nil
	}
	// The offset in an error of Decoder.Token is not from the start of the file; this one is.
	var syntax *json.SyntaxError
	if err := json.Unmarshal(data, new(json.RawMessage)); errors.As(err, &syntax) {
		return nil, nil, d.errorf(max(0, syntax.Offset-1), "not valid JSON: %v", err)
	}
	d.dec.UseNumber()
	root, err := d.value(0)
	return d, root, err
}

func (d *document) value(depth int) (*node, error) {
	n := &node{at: d.next()}
	if depth > maxDepth {
		return nil, d.errorf(n.at, "values are nested more than %d deep", maxDepth)
	}
	token, err := d.dec.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		n.object = map[string]*node{}
		for d.dec.More() {
			key, err := d.dec.Token()
			if err != nil {
				return nil, err
			}
			if n.object[key.(string)], err = d.value(depth + 1); err != nil {
				return nil, err
			}
		}
		_, err = d.dec.Token()
	case json.Delim('['):
		n.array = []*node{}
		for d.dec.More() {
			element, err := d.value(depth + 1)
			if err != nil {
				return nil, err
			}
			n.array = append(n.array, element)
		}
		_, err = d.dec.Token()
	default:
		n.scalar = token
	}
	return n, err
}

// next returns the offset of the next token. The decoder reports only where the last one ended.
func (d *document) next() int64 {
	at := d.dec.InputOffset()
	for at < int64(len(d.data)) && bytes.IndexByte([]byte(" \t\r\n,:"), d.data[at]) >= 0 {
		at++
	}
	return at
}

func (d *document) errorf(at int64, format string, args ...any) error {
	before := d.data[:min(at, int64(len(d.data)))]
	return &SettingsError{
		File:   d.file,
		Line:   d.line(at),
		Column: len(before) - bytes.LastIndexByte(before, '\n'),
		Reason: fmt.Sprintf(format, args...),
	}
}

// line returns the line at that offset, from 1.
func (d *document) line(at int64) int {
	return 1 + bytes.Count(d.data[:min(at, int64(len(d.data)))], []byte("\n"))
}
