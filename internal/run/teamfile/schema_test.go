package teamfile_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v4"

	"cadre/internal/run/teamfile"
)

type object = map[string]any

// everyAgent are the agents that a team file can name.
var everyAgent = []teamfile.Agent{{Name: "shell", CommandsOnly: true}, {Name: "external"}, {Name: "claude"},
	{Name: "claude-tmux"}, {Name: "codex"}, {Name: "gemini"}, {Name: "opencode"}, {Name: "acp:"}}

// places are the mappings of a team file: where the schema defines each, and a file with the
// mapping left open. The rest of the file is valid.
var places = map[string]string{
	"":            "%s",
	"lead":        "lead: %s",
	"parameter":   "parameters: {one: %s}",
	"defaults":    "defaults: %s",
	"member":      "members: [%s]",
	"task":        "tasks: [%s]",
	"until":       "tasks: [{id: a, until: %s}]",
	"forEach":     "tasks: [{id: one, forEach: %s}]",
	"verify":      "tasks: [{id: one, verify: %s}]",
	"hooks":       "hooks: %s",
	"hookGroup":   "hooks: {TaskCreated: [%s]}",
	"hook":        "hooks: {TaskCreated: [{hooks: [%s]}]}",
	"namedCheck":  "checks: [%s]",
	"permissions": "permissions: %s",
	"budget":      "budget: %s",
	"liveness":    "liveness: %s",
	"fact":        "facts: [%s]",
	"report":      "report: %s",
}

func schema(t *testing.T) (doc object, definition func(name string) object) {
	t.Helper()
	if err := json.Unmarshal([]byte(teamfile.Schema), &doc); err != nil {
		t.Fatal(err)
	}
	return doc, func(name string) object {
		if name == "" {
			return doc
		}
		return doc["$defs"].(object)[name].(object)
	}
}

func compiled(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal([]byte(teamfile.Schema), &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

// problems returns the objections of the parser and the schema to the text, the schema's as one
// error.
func problems(t *testing.T, s *jsonschema.Resolved, text string) (parser []string, bySchema error) {
	t.Helper()
	var all teamfile.Errors
	if _, err := teamfile.ParseUnset([]byte(text), "t.yaml", everyAgent); errors.As(err, &all) {
		for _, e := range all {
			parser = append(parser, e.Message)
		}
	}
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return parser, s.Validate(v)
}

// TestSchemaHasTheKeys: the schema has exactly the keys that the parser knows.
func TestSchemaHasTheKeys(t *testing.T) {
	doc, definition := schema(t)
	for name := range doc["$defs"].(object) {
		if _, is := definition(name)["properties"]; is && places[name] == "" {
			t.Errorf("no file of this test has %s", name)
		}
	}
	unknown := regexp.MustCompile(`unknown key "(\w+)" of .*?; (?:known: ([^\n]*?)(?: and (\d+) more)?|did you mean.*)(?:\n|$)`)
	for name, place := range places {
		keys := slices.Sorted(maps.Keys(definition(name)["properties"].(object)))
		for _, key := range keys {
			text := fmt.Sprintf(place, flow(name, key+": 1"))
			if _, err := teamfile.Parse([]byte(text), "t.yaml", everyAgent); err != nil &&
				strings.Contains(err.Error(), "unknown key "+strconv.Quote(key)) {
				t.Errorf("the parser does not know %s of %q", key, name)
			}
		}
		const none = "qqqqqqqqqqqqqqqqqqqqqqqq"
		_, err := teamfile.Parse(fmt.Appendf(nil, place, flow(name, none+": 1")), "t.yaml", everyAgent)
		if err == nil {
			t.Fatalf("%q takes any key", name)
		}
		found := unknown.FindStringSubmatch(err.Error())
		if found == nil || found[1] != none {
			t.Fatalf("%q: %v", name, err)
		}
		known := len(strings.Split(found[2], ", "))
		if found[3] != "" {
			more, _ := strconv.Atoi(found[3])
			known += more
		}
		if known != len(keys) {
			t.Errorf("%q: the parser knows %d keys (%s), the schema %d: %s", name, known, found[2], len(keys), keys)
		}
	}
}

// flow writes the entry as the mapping in its place.
func flow(place, entry string) string {
	if place == "" {
		return entry
	}
	return "{" + entry + "}"
}

// TestSchemaTakesTeamFiles: what the parser accepts fits the schema.
func TestSchemaTakesTeamFiles(t *testing.T) {
	s := compiled(t)
	files, err := filepath.Glob("../templates/builtin/*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("%v %v", files, err)
	}
	for _, file := range append(files, "testdata/full.yaml") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if parser, bySchema := problems(t, s, string(data)); len(parser) > 0 || bySchema != nil {
			t.Errorf("%s: the parser says %q, the schema %v", file, parser, bySchema)
		}
	}
}

// TestSchemaHasTheValues: for keys whose values are words, numbers in a range, durations or
// booleans, parser and schema accept and refuse the same values.
func TestSchemaHasTheValues(t *testing.T) {
	s := compiled(t)
	doc, definition := schema(t)
	tried := 0
	for name, place := range places {
		for key, p := range definition(name)["properties"].(object) {
			good, bad := values(doc, p.(object))
			if key == "agent" && name == "lead" { // a shell cannot lead, but the schema does not say so
				good = slices.DeleteFunc(good, func(v string) bool { return v == "shell" || v == "external" })
			}
			refused := func(value string) (bool, bool) {
				t.Helper()
				tried++
				whole := complete(name, fmt.Sprintf(place, flow(name, key+": "+value)))
				parser, bySchema := problems(t, s, whole)
				return slices.ContainsFunc(parser, func(message string) bool {
					_, rest, of := strings.Cut(message, key+" ")
					return of && (strings.HasPrefix(rest, "is a") || strings.HasPrefix(rest, "is true") ||
						strings.HasPrefix(rest, "needs") || strings.HasPrefix(rest, `"`) || strings.HasPrefix(rest,
						"of a hook"))
				}), bySchema != nil
			}
			for _, v := range good {
				if parser, bySchema := refused(v); bySchema || parser {
					t.Errorf("%s of %q: %s is refused: parser %v, schema %v", key, name, v, parser, bySchema)
				}
			}
			for _, v := range bad {
				if parser, bySchema := refused(v); !bySchema || !parser {
					t.Errorf("%s of %q: %s is taken: parser refuses %v, schema refuses %v", key, name, v, parser,
						bySchema)
				}
			}
		}
	}
	if tried < 150 {
		t.Errorf("only %d values were tried", tried)
	}
}

// complete adds what else a file needs.
func complete(place, text string) string {
	lines := []string{text}
	for key, rest := range map[string]string{"name": "name: demo", "members": "members: [{name: ann, agent: external}]",
		"tasks": "tasks: [{id: one}]"} {
		if !strings.HasPrefix(text, key+":") {
			lines = append(lines, rest)
		}
	}
	needs := map[string]string{"member": "name: bob", "task": "id: two", "hook": "command: x",
		"hookGroup":  "hooks: [{command: x}]",
		"namedCheck": "run: x", "until": "run: x", "lead": "agent: claude", "fact": "path: x",
		"verify": "by: ann"}[place]
	if key, _, _ := strings.Cut(needs, ":"); needs != "" && !strings.Contains(text, "{"+key+":") {
		lines[0] = strings.Replace(lines[0], "{"+inner(lines[0]), "{"+needs+", "+inner(lines[0]), 1)
	}
	return strings.Join(lines, "\n") + "\n"
}

// inner returns the content of the innermost mapping of the text.
func inner(text string) string {
	i := strings.LastIndexByte(text, '{')
	return text[i+1:]
}

// values returns some values that the property accepts, and some that it refuses, as YAML.
func values(doc, p object) (good, bad []string) {
	if ref, is := p["$ref"].(string); is {
		name := strings.TrimPrefix(ref, "#/$defs/")
		switch name {
		case "duration":
			return []string{"90s", "1h30m", "1.5h"}, []string{"90", "soon", "-3s"}
		case "agent":
			return []string{"claude", "claude-tmux", "codex", "gemini", "opencode", "shell", "external", `"acp:x"`},
				[]string{"gpt", `"acp:"`}
		}
		return nil, nil
	}
	if words, is := p["enum"].([]any); is {
		for _, w := range words {
			if w != nil {
				good = append(good, w.(string))
			}
		}
		return good, []string{"nonsense"}
	}
	kinds, _ := p["type"].([]any)
	switch {
	case slices.Contains(kinds, any("boolean")):
		return []string{"true", "false"}, []string{"maybe"}
	case slices.Contains(kinds, any("integer")):
		low, high := p["minimum"].(float64), p["maximum"].(float64)
		good = []string{fmt.Sprint(int64(low))}
		bad = []string{fmt.Sprint(int64(low) - 1), "many"}
		if high < 1e15 {
			good, bad = append(good, fmt.Sprint(int64(high))), append(bad, fmt.Sprint(int64(high)+1))
		}
		return good, bad
	case slices.Contains(kinds, any("number")) && slices.Contains(kinds, any("string")): // money
		return []string{"2.5", "$2.50", "5 USD", "0.29"}, []string{"0", "much", "-1", "5 EUR", "$", "$5 USD"}
	case slices.Contains(kinds, any("number")):
		return []string{"2.5"}, []string{"0", "much"}
	}
	return nil, nil
}
