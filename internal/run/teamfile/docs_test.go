package teamfile_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cadre/internal/run/teamfile"
	"cadre/internal/testkit/golden"
)

// manual is the document of team files. The part between the two marks is made from the schema.
const (
	manual    = "../../../docs/team-files.md"
	firstMark = "<!-- made from the schema: go test ./internal/run/teamfile -update -->\n"
	lastMark  = "<!-- end -->\n"
)

// chapters are the mappings of a team file in the order of the manual.
var chapters = []struct{ definition, title string }{
	{"", "The file"}, {"parameter", "`parameters`"}, {"defaults", "`defaults`"}, {"lead", "`lead`"},
	{"member", "`members`"}, {"task", "`tasks`"},
	{"until", "`until`"},
	{"forEach", "`forEach`"},
	{"verify", "`verify` of a task"},
	{"permissions", "`permissions`"}, {"budget", "`budget`"}, {"namedCheck", "`checks`"}, {"hooks", "`hooks`"},
	{"hookGroup", "An entry of a hook's event"}, {"hook", "A command of a hook"}, {"liveness", "`liveness`"},
	{"fact", "`facts`"}, {"report", "`report`"},
}

// TestManual: the manual has every key, as the schema describes it.
func TestManual(t *testing.T) {
	golden.Part(t, manual, firstMark, lastMark, tables(t))
}

// TestManualsFiles: each complete team file in the manual is valid.
func TestManualsFiles(t *testing.T) {
	text, err := os.ReadFile(manual)
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(text, -1)
	if len(blocks) < 2 {
		t.Fatalf("%d files in %s", len(blocks), manual)
	}
	for _, b := range blocks {
		if _, err := teamfile.Parse(b[1], "manual.yaml", everyAgent); err != nil {
			t.Errorf("%v", err)
		}
	}
}

func tables(t *testing.T) string {
	t.Helper()
	_, definition := schema(t)
	order := keyOrder(t)
	var b strings.Builder
	for _, c := range chapters {
		of := definition(c.definition)
		fmt.Fprintf(&b, "\n### %s\n\n", c.title)
		if d, is := of["description"].(string); is && c.definition != "" {
			fmt.Fprintf(&b, "%s\n\n", d)
		}
		b.WriteString("| key | value | left out | what it is |\n| --- | --- | --- | --- |\n")
		properties := of["properties"].(object)
		for _, key := range order[c.definition] {
			p := properties[key].(object)
			left := "-"
			if d, is := p["default"]; is {
				left = "`" + jsonOf(t, d) + "`"
			} else if required, _ := of["required"].([]any); slices.Contains(required, any(key)) {
				left = "required"
			}
			what := fmt.Sprint(p["description"])
			if examples, is := p["examples"].([]any); is {
				what += "; e.g. `" + jsonOf(t, examples[0]) + "`"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", key, kindOf(p), left, strings.ReplaceAll(what, "|", `\|`))
		}
	}
	b.WriteString("\n")
	return b.String()
}

// keyOrder returns the keys of each mapping in the order of the schema.
func keyOrder(t *testing.T) map[string][]string {
	t.Helper()
	type properties struct{ Properties json.RawMessage }
	var doc struct {
		properties
		Defs map[string]json.RawMessage `json:"$defs"`
	}
	if err := json.Unmarshal([]byte(teamfile.Schema), &doc); err != nil {
		t.Fatal(err)
	}
	order := map[string][]string{"": keysOf(t, doc.Properties)}
	for name, raw := range doc.Defs {
		var p properties
		if err := json.Unmarshal(raw, &p); err != nil {
			t.Fatal(err)
		}
		if p.Properties != nil {
			order[name] = keysOf(t, p.Properties)
		}
	}
	return order
}

// keysOf returns the keys of a JSON object in its order.
func keysOf(t *testing.T, raw json.RawMessage) (keys []string) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(raw)))
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key.(string))
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			t.Fatal(err)
		}
	}
	return keys
}

// kindOf says in a word or two which values a key has.
func kindOf(p object) string {
	if one, is := p["oneOf"].([]any); is {
		var kinds []string
		for _, o := range one {
			kinds = append(kinds, kindOf(o.(object)))
		}
		return strings.Join(kinds, " or ")
	}
	if ref, is := p["$ref"].(string); is {
		switch name := strings.TrimPrefix(ref, "#/$defs/"); name {
		case "text", "name", "id", "duration":
			return name
		case "agent":
			return "an agent"
		case "check":
			return "text or mapping"
		case "forEach":
			return "mapping"
		default:
			return "mapping"
		}
	}
	if words, is := p["enum"].([]any); is {
		var all []string
		for _, w := range words {
			if w != nil {
				all = append(all, "`"+w.(string)+"`")
			}
		}
		return strings.Join(all, ", ")
	}
	kinds, _ := p["type"].([]any)
	switch kind := fmt.Sprint(kinds[0]); kind {
	case "array":
		if len(p["items"].(object)) == 0 {
			return "list"
		}
		return "list of " + kindOf(p["items"].(object))
	case "integer":
		if high := p["maximum"].(float64); high < 1e15 {
			return fmt.Sprintf("%.0f to %.0f", p["minimum"], high)
		}
		return "whole number"
	case "boolean":
		return "true or false"
	case "string":
		return "text"
	case "object":
		if of, is := p["additionalProperties"].(object); is && of["$ref"] == "#/$defs/parameter" {
			return "mapping of mappings"
		}
		if of, is := p["additionalProperties"].(object); is && fmt.Sprint(of["type"]) == "array" {
			return "mapping of lists"
		}
		return "mapping of text"
	default:
		return kind
	}
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	if s, is := v.(string); is {
		return s
	}
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
