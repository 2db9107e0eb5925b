package schema

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits on one answer.
const (
	mostErrors = 20
	mostSteps  = 200_000 // schemas that are applied to one value and its parts, and reads of its texts
	mostDepth  = 200     // schemas within schemas
	// bytes of a text that are read in a step. A pattern reads each as often as it has parts
	bytesInStep = 512
)

// Misfits says why the text is not JSON that fits the schema, one error each. It is empty for a
// text that fits.
func (s *Schema) Misfits(text string) []string {
	var v any
	if strings.TrimSpace(text) == "" {
		return []string{"the result is empty; it must be one JSON value"}
	}
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return []string{fmt.Sprintf("the result is not JSON: %v; write one JSON value and nothing else", err)}
	}
	steps := 0
	f := fitting{s: s, size: len(text), steps: &steps}
	f.apply(s.root, v, "")
	if steps > mostSteps {
		return []string{"the schema is too complex for this result: checking it takes too many steps"}
	}
	if more := len(f.errors) - mostErrors; more > 0 {
		return append(f.errors[:mostErrors:mostErrors], fmt.Sprintf("and %d more", more))
	}
	return f.errors
}

// fitting collects the errors of one value.
type fitting struct {
	s      *Schema
	size   int  // bytes of the whole result
	steps  *int // shared by all alternatives of a value
	depth  int
	errors []string
}

func (f *fitting) fail(at, format string, args ...any) {
	if at == "" {
		at = "the result"
	}
	f.errors = append(f.errors, at+": "+fmt.Sprintf(format, args...))
}

// errorsOf returns why the value does not fit the schema, without recording it.
func (f *fitting) errorsOf(schema, v any, at string) []string {
	one := fitting{s: f.s, size: f.size, steps: f.steps, depth: f.depth}
	one.apply(schema, v, at)
	return one.errors
}

// reads counts the steps of reading so many bytes so many times. It reports whether there were not
// too many yet.
func (f *fitting) reads(bytes, times int) bool {
	*f.steps += min(bytes*times/bytesInStep, mostSteps)
	return *f.steps <= mostSteps
}

// matches reports whether the text matches the pattern. After too many steps it does not look.
func (f *fitting) matches(pattern, text string) bool {
	p := f.s.patterns[pattern]
	return f.reads(len(text), p.parts) && p.MatchString(text)
}

// show is [show] for a value of which parts may be shown many times.
func (f *fitting) show(v any) string {
	switch v.(type) {
	case []any, map[string]any:
		if !f.reads(f.size, 1) {
			return typeOf(v)
		}
	}
	return show(v)
}

func (f *fitting) fits(schema, v any) bool { return len(f.errorsOf(schema, v, "")) == 0 }

// apply applies the schema to the value at that place. After too many steps it does nothing.
func (f *fitting) apply(schema, v any, at string) {
	if *f.steps++; *f.steps > mostSteps || len(f.errors) > 10*mostErrors {
		return
	}
	if f.depth++; f.depth > mostDepth { // such as a schema that is a reference to itself
		*f.steps = mostSteps + 1
	}
	defer func() { f.depth-- }()
	is, all := schema.(map[string]any)
	if !all {
		if allowed, _ := schema.(bool); !allowed {
			f.fail(at, "nothing is allowed here")
		}
		return
	}
	if ref, there := is["$ref"].(string); there {
		to, _ := f.s.find(ref)
		f.apply(to, v, at)
	}
	f.plain(is, v, at)
	switch v := v.(type) {
	case string:
		f.text(is, v, at)
	case float64:
		f.number(is, v, at)
	case []any:
		f.list(is, v, at)
	case map[string]any:
		f.object(is, v, at)
	}
	f.logic(is, v, at)
}

// plain applies the keywords for any value.
func (f *fitting) plain(is map[string]any, v any, at string) {
	if t, there := is["type"]; there {
		names, several := t.([]any)
		if !several {
			names = []any{t}
		}
		if !slices.ContainsFunc(names, func(name any) bool { return isA(v, name.(string)) }) {
			f.fail(at, "must be %s, and is %s", orList(names, func(name any) string { return name.(string) }),
				typeOf(v))
		}
	}
	if allowed, there := is["enum"].([]any); there &&
		!slices.ContainsFunc(allowed, func(one any) bool { return equal(one, v) }) {
		f.fail(at, "must be one of %s, and is %s", orList(allowed, show), f.show(v))
	}
	if only, there := is["const"]; there && !equal(only, v) {
		f.fail(at, "must be %s, and is %s", show(only), f.show(v))
	}
}

func (f *fitting) text(is map[string]any, v, at string) {
	n := 0.0
	if f.reads(len(v), 1) {
		n = float64(utf8.RuneCountInString(v))
	}
	if least, there := is["minLength"].(float64); there && n < least {
		f.fail(at, "has %v characters, and needs at least %v", n, least)
	}
	if most, there := is["maxLength"].(float64); there && n > most {
		f.fail(at, "has %v characters, of at most %v", n, most)
	}
	if p, there := is["pattern"].(string); there && !f.matches(p, v) {
		f.fail(at, "%s does not match the pattern %s", show(v), p)
	}
}

func (f *fitting) number(is map[string]any, v float64, at string) {
	for _, bound := range []struct {
		key, words string
		broken     func(limit float64) bool
	}{
		{"minimum", "at least", func(l float64) bool { return v < l }},
		{"maximum", "at most", func(l float64) bool { return v > l }},
		{"exclusiveMinimum", "above", func(l float64) bool { return v <= l }},
		{"exclusiveMaximum", "below", func(l float64) bool { return v >= l }},
		{"multipleOf", "a multiple of", func(l float64) bool { q := v / l; return q != math.Trunc(q) }},
	} {
		if limit, there := is[bound.key].(float64); there && bound.broken(limit) {
			f.fail(at, "must be %s %v, and is %v", bound.words, limit, v)
		}
	}
}

func (f *fitting) list(is map[string]any, v []any, at string) {
	f.count(is, "Items", "entries", len(v), at)
	first, _ := is["prefixItems"].([]any)
	for i, schema := range first[:min(len(first), len(v))] {
		f.apply(schema, v[i], fmt.Sprintf("%s[%d]", at, i))
	}
	if schema, there := is["items"]; there {
		for i := len(first); i < len(v); i++ {
			f.apply(schema, v[i], fmt.Sprintf("%s[%d]", at, i))
		}
	}
	if schema, there := is["contains"]; there {
		least, most := 1.0, math.Inf(1)
		if n, there := is["minContains"].(float64); there {
			least = n
		}
		if n, there := is["maxContains"].(float64); there {
			most = n
		}
		n := 0.0
		for _, part := range v {
			if f.fits(schema, part) {
				n++
			}
		}
		if n < least || n > most {
			f.fail(at, "has %v entries of the kind that it must contain", n)
		}
	}
	if unique, _ := is["uniqueItems"].(bool); unique {
		for i := range v {
			*f.steps += i / 8
			if slices.ContainsFunc(v[:i], func(other any) bool { return equal(other, v[i]) }) {
				f.fail(fmt.Sprintf("%s[%d]", at, i), "is there twice")
				break
			}
			if *f.steps > mostSteps {
				return
			}
		}
	}
}

func (f *fitting) count(is map[string]any, of, what string, n int, at string) {
	if least, there := is["min"+of].(float64); there && float64(n) < least {
		f.fail(at, "has %d %s, and needs at least %v", n, what, least)
	}
	if most, there := is["max"+of].(float64); there && float64(n) > most {
		f.fail(at, "has %d %s, of at most %v", n, what, most)
	}
}

func (f *fitting) object(is map[string]any, v map[string]any, at string) {
	f.count(is, "Properties", "fields", len(v), at)
	required, _ := is["required"].([]any)
	for _, name := range required {
		if _, there := v[name.(string)]; !there {
			f.fail(field(at, name.(string)), "is missing")
		}
	}
	dependent, _ := is["dependentRequired"].(map[string]any)
	for _, name := range sorted(dependent) {
		if _, there := v[name]; !there {
			continue
		}
		for _, other := range dependent[name].([]any) {
			if _, there := v[other.(string)]; !there {
				f.fail(field(at, other.(string)), "is missing, and %s is there", name)
			}
		}
	}
	properties, _ := is["properties"].(map[string]any)
	patterns, _ := is["patternProperties"].(map[string]any)
	for _, name := range sorted(v) {
		here, known := field(at, name), false
		if schema, there := properties[name]; there {
			known = true
			f.apply(schema, v[name], here)
		}
		for _, pattern := range sorted(patterns) {
			if f.matches(pattern, name) {
				known = true
				f.apply(patterns[pattern], v[name], here)
			}
		}
		if rest, there := is["additionalProperties"]; there && !known {
			if rest == false {
				f.fail(here, "is not a field that the schema has")
			} else {
				f.apply(rest, v[name], here)
			}
		}
		if schema, there := is["propertyNames"]; there && !f.fits(schema, name) {
			f.fail(here, "this name is not allowed")
		}
	}
}

// logic applies the keywords that combine schemas.
func (f *fitting) logic(is map[string]any, v any, at string) {
	all, _ := is["allOf"].([]any)
	for _, schema := range all {
		f.apply(schema, v, at)
	}
	if some, there := is["anyOf"].([]any); there {
		f.alternatives(some, v, at, math.MaxInt)
	}
	if some, there := is["oneOf"].([]any); there {
		f.alternatives(some, v, at, 1)
	}
	if schema, there := is["not"]; there && f.fits(schema, v) {
		f.fail(at, "fits what it must not be")
	}
	if schema, there := is["if"]; there {
		then := "else"
		if f.fits(schema, v) {
			then = "then"
		}
		if schema, there := is[then]; there {
			f.apply(schema, v, at)
		}
	}
}

// alternatives checks that the value fits one of the schemas, or more of them up to most. The
// errors of the one that it nearly fits say what is missing.
func (f *fitting) alternatives(some []any, v any, at string, most int) {
	n := 0
	var nearest []string
	for _, schema := range some {
		errs := f.errorsOf(schema, v, at)
		if len(errs) == 0 {
			n++
		} else if nearest == nil || len(errs) < len(nearest) {
			nearest = errs
		}
	}
	switch {
	case n == 0:
		f.fail(at, "fits none of the %d alternatives; for the nearest one: %s", len(some), strings.Join(nearest, "; "))
	case n > most:
		f.fail(at, "fits %d of the alternatives, and must fit exactly one", n)
	}
}

// field returns the place of a field of the value at that place.
func field(at, name string) string {
	if at == "" {
		return clip(name)
	}
	return at + "." + clip(name)
}

func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case float64:
		return "a number"
	case []any:
		return "an array"
	}
	return "an object"
}

// isA reports whether the value has the type of that name.
func isA(v any, name string) bool {
	switch v := v.(type) {
	case nil:
		return name == "null"
	case bool:
		return name == "boolean"
	case string:
		return name == "string"
	case float64:
		return name == "number" || name == "integer" && v == math.Trunc(v)
	case []any:
		return name == "array"
	}
	return name == "object"
}

func equal(a, b any) bool {
	switch a := a.(type) {
	case []any:
		b, is := b.([]any)
		return is && slices.EqualFunc(a, b, equal)
	case map[string]any:
		b, is := b.(map[string]any)
		if !is || len(a) != len(b) {
			return false
		}
		for key, one := range a {
			if other, there := b[key]; !there || !equal(one, other) {
				return false
			}
		}
		return true
	}
	switch b.(type) {
	case []any, map[string]any:
		return false
	}
	return a == b
}

// show returns the value as JSON, shortened.
func show(v any) string {
	const enough = 1 << 10 // more than is shown
	if text, is := v.(string); is && len(text) > enough {
		v = text[:enough]
	}
	data, err := json.Marshal(v)
	if err != nil {
		return typeOf(v)
	}
	return clip(string(data))
}

func orList(all []any, show func(any) string) string {
	var words []string
	for i, one := range all {
		if i == mostErrors {
			words = append(words, "…")
			break
		}
		words = append(words, show(one))
	}
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}
