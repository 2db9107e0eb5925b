// Package schema says whether a JSON value fits a JSON Schema, and if not, why: with every error
// and its place in the value, so that an agent can correct all of them at once.
//
// # Authority
//
// The package decides which schemas are valid, and what fits them. The meaning is that of JSON
// Schema 2020-12, of which it has the keywords that describe results. It refuses a schema with a
// keyword that it does not have, because a demand that nothing checks is no demand. Tests compare
// its answers with a library's. The library itself is not linked, because it initialises more at
// the start of each command than all of ours, stops at the first error, and follows references
// without end.
//
// # Guarantees
//
//   - A schema may come from an agent. References stay in the schema, and the work for one value is
//     bounded, whatever the schema refers to.
//   - It reads only its arguments.
package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
)

// pattern is a regular expression, and of how many instructions its program consists. Matching a
// text takes at most as many for each of its bytes.
type pattern struct {
	*regexp.Regexp
	parts int
}

// Schema is a valid JSON Schema.
type Schema struct {
	root     any
	patterns map[string]pattern // by their texts
	places   map[string]any     // the schemas within it, by their JSON Pointers
	refs     []place
}

// place is a reference, and where it is.
type place struct{ at, ref string }

// kinds of the values of keywords.
type kind int

const (
	note       kind = iota // it says something to people
	one                    // a schema
	several                // a list of schemas
	named                  // schemas by name
	texts                  // a list of texts
	textLists              // lists of texts by name
	amount                 // a whole number from 0 on
	number                 // a number
	expression             // a regular expression
	switched               // true or false
	values                 // a list of values
	value                  // a value
	types                  // the name of a type, or a list of these
	reference              // a reference within the schema
)

// keywords lists the keywords of a schema.
var keywords = map[string]kind{
	"$schema": note, "$id": note, "$comment": note, "title": note, "description": note, "default": note,
	"examples": note, "deprecated": note, "readOnly": note, "writeOnly": note, "format": note,
	"contentEncoding": note, "contentMediaType": note,

	"$ref": reference, "$defs": named, "definitions": named,
	"allOf": several, "anyOf": several, "oneOf": several, "not": one, "if": one, "then": one, "else": one,
	"type": types, "enum": values, "const": value,
	"multipleOf": number, "maximum": number, "exclusiveMaximum": number, "minimum": number, "exclusiveMinimum": number,
	"maxLength": amount, "minLength": amount, "pattern": expression,
	"items": one, "prefixItems": several, "contains": one, "minContains": amount, "maxContains": amount,
	"maxItems": amount, "minItems": amount, "uniqueItems": switched,
	"properties": named, "patternProperties": named, "additionalProperties": one, "propertyNames": one,
	"required": texts, "dependentRequired": textLists, "minProperties": amount, "maxProperties": amount,
}

var typeNames = []string{"null", "boolean", "object", "array", "number", "integer", "string"}

// Parse reads a schema. The error says where in the schema it is wrong.
func Parse(text []byte) (*Schema, error) {
	s := &Schema{patterns: map[string]pattern{}, places: map[string]any{}}
	if err := json.Unmarshal(text, &s.root); err != nil {
		return nil, fmt.Errorf("the schema is not JSON: %w", err)
	}
	if _, is := s.root.(map[string]any); !is {
		return nil, errors.New("the schema is not an object such as {type: object}")
	}
	if err := s.check(s.root, ""); err != nil {
		return nil, err
	}
	for _, r := range s.refs {
		if _, found := s.find(r.ref); !found {
			return nil, wrong(r.at, "%q is not a schema within this one; write a reference such as #/$defs/name",
				clip(r.ref))
		}
	}
	return s, nil
}

// escape writes a name as a part of a JSON Pointer.
func escape(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// check returns an error if a schema is invalid. at is its place in the whole schema.
func (s *Schema) check(schema any, at string) error {
	s.places[at] = schema
	if _, is := schema.(bool); is {
		return nil
	}
	all, is := schema.(map[string]any)
	if !is {
		return wrong(at, "a schema is an object, or true or false, not %s", typeOf(schema))
	}
	for _, key := range sorted(all) {
		kind, known := keywords[key]
		if !known && !strings.HasPrefix(key, "x-") {
			return wrong(at+"/"+escape(key), "%q is not a keyword that results can be checked against%s", key,
				meant(key))
		}
		if err := s.checkValue(kind, all[key], at+"/"+escape(key)); err != nil {
			return err
		}
	}
	return nil
}

func (s *Schema) checkValue(k kind, v any, at string) error {
	switch k {
	case one:
		return s.check(v, at)
	case several:
		list, is := v.([]any)
		if !is || len(list) == 0 {
			return wrong(at, "must be a list of schemas")
		}
		for i, part := range list {
			if err := s.check(part, at+"/"+strconv.Itoa(i)); err != nil {
				return err
			}
		}
	case named:
		return s.checkNamed(v, at)
	case textLists:
		lists, is := v.(map[string]any)
		if !is {
			return wrong(at, "must be an object")
		}
		for _, name := range sorted(lists) {
			if err := s.checkValue(texts, lists[name], at+"/"+name); err != nil {
				return err
			}
		}
	default:
		return s.checkPlain(k, v, at)
	}
	return nil
}

func (s *Schema) checkNamed(v any, at string) error {
	all, is := v.(map[string]any)
	if !is {
		return wrong(at, "must be an object of schemas")
	}
	for _, name := range sorted(all) {
		if strings.HasSuffix(at, "/patternProperties") {
			if err := s.compile(name, at); err != nil {
				return err
			}
		}
		if err := s.check(all[name], at+"/"+escape(name)); err != nil {
			return err
		}
	}
	return nil
}

// checkPlain checks the value of a keyword that has no schemas in it.
func (s *Schema) checkPlain(k kind, v any, at string) error {
	text, isText := v.(string)
	n, isNumber := v.(float64)
	list, isList := v.([]any)
	switch k {
	case texts:
		if !isList || slices.ContainsFunc(list, func(v any) bool { _, is := v.(string); return !is }) {
			return wrong(at, "must be a list of texts")
		}
	case amount:
		if !isNumber || n < 0 || n != float64(int64(n)) {
			return wrong(at, "must be a whole number from 0 on")
		}
	case number:
		if !isNumber || strings.HasSuffix(at, "/multipleOf") && n <= 0 {
			return wrong(at, "must be a number, and of multipleOf one above 0")
		}
	case expression:
		if !isText {
			return wrong(at, "must be a regular expression")
		}
		return s.compile(text, at)
	case switched:
		if _, is := v.(bool); !is {
			return wrong(at, "must be true or false")
		}
	case values:
		if !isList {
			return wrong(at, "must be a list of values")
		}
	case types:
		if isText {
			list, isList = []any{text}, true
		}
		if !isList || len(list) == 0 || slices.ContainsFunc(list, func(v any) bool {
			name, _ := v.(string)
			return !slices.Contains(typeNames, name)
		}) {
			return wrong(at, "must be one of %s, or a list of these", strings.Join(typeNames, ", "))
		}
	case reference:
		if !isText {
			return wrong(at, "must be a reference such as #/$defs/name")
		}
		s.refs = append(s.refs, place{at, text})
	}
	return nil
}

func (s *Schema) compile(text, at string) error {
	re, err := regexp.Compile(text)
	if err != nil {
		return wrong(at, "%q is not a regular expression: %v", clip(text), err)
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return err
	}
	s.patterns[text] = pattern{re, len(program.Inst)}
	return nil
}

// find returns the schema to which a reference points: # or #/ and a path.
func (s *Schema) find(ref string) (any, bool) {
	path, is := strings.CutPrefix(ref, "#")
	schema, there := s.places[path]
	return schema, is && there
}

// Error says where a schema is wrong, and why.
type Error struct {
	At   string // JSON Pointer of the place; "" for the whole schema
	Text string
}

func (e *Error) Error() string {
	if e.At == "" {
		return "the schema is wrong: " + e.Text
	}
	return "the schema is wrong at " + e.At + ": " + e.Text
}

func wrong(at, format string, args ...any) error {
	return &Error{at, fmt.Sprintf(format, args...)}
}

// meant returns a hint for a keyword that was mistyped.
func meant(key string) string {
	for _, known := range sorted(keywords) {
		if strings.EqualFold(known, key) || len(key) > 3 && close(known, key) {
			return "; did you mean " + known + "?"
		}
	}
	return ""
}

// close reports whether one text becomes the other when a letter is added, removed or changed.
func close(a, b string) bool {
	if len(a) < len(b) {
		a, b = b, a
	}
	if len(a) > len(b)+1 {
		return false
	}
	i := 0
	for i < len(b) && a[i] == b[i] {
		i++
	}
	return a[i:] == b[i:] || i < len(a) && a[i+1:] == b[i:] || i < len(b) && a[i+1:] == b[i+1:]
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// clip shortens a text for an error.
func clip(s string) string {
	const enough = 80
	if len(s) <= enough {
		return s
	}
	return strings.ToValidUTF8(s[:enough], "") + "…"
}
