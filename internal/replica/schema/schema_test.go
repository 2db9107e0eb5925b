package schema

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"pgregory.net/rapid"
)

func parsed(t testing.TB, text string) *Schema {
	t.Helper()
	s, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const review = `{"type": "object", "required": ["verdict", "findings"], "additionalProperties": false,
	"properties": {"verdict": {"enum": ["good", "bad"]},
		"findings": {"type": "array", "maxItems": 2, "items": {"$ref": "#/$defs/finding"}}},
	"$defs": {"finding": {"type": "object", "required": ["file"], "properties": {
		"file": {"type": "string", "pattern": "^[a-z/.]+$"}, "line": {"type": "integer", "minimum": 1}}}}}`

// TestMisfits checks that every error is reported, each with its place.
func TestMisfits(t *testing.T) {
	for _, c := range []struct{ name, result, errors string }{
		{"fits", `{"verdict": "good", "findings": []}`, ""},
		{"all errors", `{"findings": [{"file": "A", "line": 0.5}, {}], "note": 1}`,
			`verdict: is missing
findings[0].file: "A" does not match the pattern ^[a-z/.]+$
findings[0].line: must be integer, and is a number
findings[0].line: must be at least 1, and is 0.5
findings[1].file: is missing
note: is not a field that the schema has`},
		{"another type", `[1]`, "the result: must be object, and is an array"},
		{"no JSON", "I found nothing.", "the result is not JSON: invalid character 'I' looking for beginning of " +
			"value; write one JSON value and nothing else"},
		{"nothing", "  ", "the result is empty; it must be one JSON value"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := strings.Join(parsed(t, review).Misfits(c.result), "\n"); got != c.errors {
				t.Errorf("got\n%s\nwant\n%s", got, c.errors)
			}
		})
	}
}

// TestHostileSchemas checks that no schema makes the work for a value unbounded.
func TestHostileSchemas(t *testing.T) {
	doubling := `{"$ref": "#/$defs/a0", "$defs": {`
	for i := range 60 {
		n := string(rune('0'+i/10)) + string(rune('0'+i%10))
		m := string(rune('0'+(i+1)/10)) + string(rune('0'+(i+1)%10))
		doubling += `"a` + strings.TrimPrefix(n, "0") + `": {"allOf": [{"$ref": "#/$defs/a` +
			strings.TrimPrefix(m, "0") +
			`"}, {"$ref": "#/$defs/a` + strings.TrimPrefix(m, "0") + `"}]}, `
	}
	doubling += `"a60": {}}}`
	for name, text := range map[string]string{"itself": `{"$ref": "#"}`, "in turn": `{"$ref": "#/$defs/a",
		"$defs": {"a": {"anyOf": [{"$ref": "#"}]}}}`, "doubling": doubling} {
		t.Run(name, func(t *testing.T) {
			if got := parsed(t, text).Misfits("1"); len(got) != 1 || !strings.Contains(got[0], "too complex") {
				t.Errorf("got %q", got)
			}
		})
	}
}

// TestLongTexts checks that a text counts with its length: many reads of a long one are too many,
// and few of them are not.
func TestLongTexts(t *testing.T) {
	long := `"` + strings.Repeat("ab", 1<<18) + `"`
	many := func(n int, schema string) string {
		all := []string{"{}"}
		for i := range n {
			all = append(all, strings.ReplaceAll(schema, "§", strconv.Itoa(i)))
		}
		return `{"allOf": [` + strings.Join(all, ", ") + `]}`
	}
	for name, schema := range map[string]string{"patterns": `{"not": {"pattern": "(a|b|ab)*c§"}}`,
		"repeated": `{"not": {"pattern": "((a|b){30}){30}c§"}}`, "lengths": `{"minLength": §}`,
		"names": `{"propertyNames": {"minLength": 1, "pattern": "a*c§"}}`, "values": `{"not": {"const": "§"}}`,
		"patterns of names": `{"patternProperties": {"(a|b|ab)*c§": true}}`} {
		t.Run(name, func(t *testing.T) {
			text := long
			switch name {
			case "names", "patterns of names":
				text = `{` + long + `: 1}`
			case "values":
				text = `[` + long + `]`
			}
			often, seldom := 1500, 2
			if name == "repeated" { // each takes as long as a thousand others
				often, seldom = 1, 0
			}
			for n, want := range map[int]bool{often: true, seldom: false} {
				got := parsed(t, many(n, schema)).Misfits(text)
				if is := strings.Contains(fmt.Sprint(got), "too complex"); is != want {
					t.Errorf("%d times it is %.200q", n, got)
				}
			}
		})
	}
}

func TestInvalidSchemas(t *testing.T) {
	for text, want := range map[string]string{
		`{`:                                 "not JSON",
		`[]`:                                "not an object",
		`{"type": "text"}`:                  "at /type: must be one of null",
		`{"requird": ["a"]}`:                `"requird" is not a keyword that results can be checked against; did you mean required?`,
		`{"properties": {"a": 5}}`:          "at /properties/a: a schema is an object",
		`{"items": {"pattern": "("}}`:       "at /items/pattern: \"(\" is not a regular expression",
		`{"$ref": "https://example.org/s"}`: "at /$ref: \"https://example.org/s\" is not a schema within this one",
		`{"const": {"pattern": 5}, "not": {"$ref": "#/const"}}`: "at /not/$ref",
		`{"unevaluatedProperties": false}`:                      "is not a keyword",
		`{"minLength": -1}`:                                     "at /minLength: must be a whole number",
		`{"multipleOf": 0}`:                                     "at /multipleOf",
		`{"anyOf": []}`:                                         "at /anyOf: must be a list of schemas",
		`{"required": [1]}`:                                     "at /required: must be a list of texts",
	} {
		if s, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s was read as %v, %v; want %q", text, s, err, want)
		}
	}
}

// TestAsTheLibrary compares the answers with those of a library, for random schemas and values.
func TestAsTheLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, err := json.Marshal(map[string]any{"allOf": []any{drawSchema(t, 2)}})
		if err != nil {
			t.Fatal(err)
		}
		value, err := json.Marshal(drawValue(t, 2))
		if err != nil {
			t.Fatal(err)
		}
		ours, err := Parse(text)
		var theirs jsonschema.Schema
		if json.Unmarshal(text, &theirs) != nil || err != nil {
			t.Fatalf("%s is not a schema: %v", text, err)
		}
		resolved, err := theirs.Resolve(nil)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		var v any
		if err := json.Unmarshal(value, &v); err != nil {
			t.Fatal(err)
		}
		got, want := ours.Misfits(string(value)), resolved.Validate(v)
		if (len(got) == 0) != (want == nil) {
			t.Fatalf("%s against %s: %q, and the library says %v", value, text, got, want)
		}
	})
}

var names = rapid.SampledFrom([]string{"a", "b", "ab"})

func drawValue(t *rapid.T, depth int) any {
	most := 7
	if depth == 0 {
		most = 5
	}
	switch rapid.IntRange(0, most).Draw(t, "type") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return rapid.IntRange(-2, 4).Draw(t, "integer")
	case 3:
		return rapid.SampledFrom([]float64{-0.5, 0.5, 1.5, 3}).Draw(t, "number")
	case 4, 5:
		return rapid.SampledFrom([]string{"", "a", "ab", "äöü", "b1"}).Draw(t, "text")
	case 6:
		list := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "entries") {
			list = append(list, drawValue(t, depth-1))
		}
		return list
	}
	fields := map[string]any{}
	for range rapid.IntRange(0, 3).Draw(t, "fields") {
		fields[names.Draw(t, "name")] = drawValue(t, depth-1)
	}
	return fields
}

func drawSchema(t *rapid.T, depth int) any {
	if depth == 0 || rapid.IntRange(0, 7).Draw(t, "plain") == 0 {
		return rapid.SampledFrom([]any{true, false, map[string]any{}, map[string]any{"type": "string"}}).Draw(t,
			"simple")
	}
	sub := func() any { return drawSchema(t, depth-1) }
	subs := func() []any {
		list := []any{}
		for range rapid.IntRange(1, 3).Draw(t, "schemas") {
			list = append(list, sub())
		}
		return list
	}
	byName := func(of *rapid.Generator[string]) map[string]any {
		all := map[string]any{}
		for range rapid.IntRange(0, 2).Draw(t, "schemas") {
			all[of.Draw(t, "name")] = sub()
		}
		return all
	}
	small := func() int { return rapid.IntRange(0, 3).Draw(t, "n") }
	s := map[string]any{}
	for range rapid.IntRange(1, 4).Draw(t, "keywords") {
		switch key := rapid.SampledFrom(sorted(keywords)).Draw(t, "keyword"); key {
		case "type":
			s[key] = rapid.SampledFrom([]any{"null", "boolean", "object", "array", "number", "integer", "string",
				[]any{"string", "number"}}).Draw(t, "type")
		case "enum":
			s[key] = []any{drawValue(t, 1), drawValue(t, 1)}
		case "const":
			s[key] = drawValue(t, 1)
		case "multipleOf":
			s[key] = rapid.SampledFrom([]float64{0.5, 1, 2}).Draw(t, "number")
		case "maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum":
			s[key] = small()
		case "maxLength", "minLength", "minContains", "maxContains", "maxItems", "minItems", "minProperties",
			"maxProperties":
			s[key] = small()
		case "pattern":
			s[key] = "^a"
		case "uniqueItems":
			s[key] = rapid.Bool().Draw(t, "unique")
		case "allOf", "anyOf", "oneOf", "prefixItems":
			s[key] = subs()
		case "not", "if", "then", "else", "items", "contains", "additionalProperties", "propertyNames":
			s[key] = sub()
		case "properties":
			s[key] = byName(names)
		case "patternProperties":
			s[key] = byName(rapid.SampledFrom([]string{"^a", "b$"}))
		case "required":
			s[key] = []any{names.Draw(t, "name")}
		case "dependentRequired":
			s[key] = map[string]any{names.Draw(t, "name"): []any{names.Draw(t, "other")}}
		}
	}
	return s
}
