package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// SettingsError is a settings file that cannot be used. Its text says where and what to do.
type SettingsError struct {
	File         string
	Line, Column int // from 1; the column counts bytes
	Reason       string
}

func (e *SettingsError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s; mend the file, or take the hook out of it", e.File, e.Line, e.Column, e.Reason)
}

// node is a JSON value that knows where it stands, so that an error about its meaning can name the
// place.
type node struct {
	at     int64
	scalar any // string, json.Number, bool or nil, when it is neither of the following
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

// document is a settings file while it is read.
type document struct {
	file string
	data []byte
	dec  *json.Decoder
}

// maxDepth is far above any settings file, and far below what a goroutine's stack takes.
const maxDepth = 100

// parse reads the file as one JSON value. A file without any content is an empty object, as it is
// for Claude Code.
func parse(file string, data []byte) (*document, *node, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	d := &document{file: file, data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	if len(bytes.TrimSpace(data)) == 0 {
		return d, &node{object: map[string]*node{}}, nil
	}
	// The decoder of tokens counts its errors from somewhere in the middle; this one counts from
	// the start.
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

// next is where the next token begins: the decoder tells only where the last one ended.
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
		Line:   1 + bytes.Count(before, []byte("\n")),
		Column: len(before) - bytes.LastIndexByte(before, '\n'),
		Reason: fmt.Sprintf(format, args...),
	}
}
