package tracing

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"cadre/internal/testkit/golden"
)

const page = "../../../docs/tracing.md"

// TestDocuments compares the tables of the page with what the code has.
func TestDocuments(t *testing.T) {
	var spans, ends, attributes, links, environment strings.Builder
	list := func(words []string) string {
		if len(words) == 0 {
			return ""
		}
		return "`" + strings.Join(words, "`, `") + "`"
	}
	spans.WriteString("| `cadre.span` | name | lasts | in |\n| --- | --- | --- | --- |\n")
	ends.WriteString("| `cadre.span` | `cadre.outcome` | failed |\n| --- | --- | --- |\n")
	of, keys := map[string][]string{}, []string{}
	for _, k := range kinds {
		fmt.Fprintf(&spans, "| `%s` | `%s` | %s | %s |\n", k.Kind, k.Name, k.Lasts, k.In)
		fmt.Fprintf(&ends, "| `%s` | %s | %s |\n", k.Kind, list(k.Outcomes), list(k.Failures))
		for _, a := range k.Attributes {
			if of[a] == nil {
				keys = append(keys, a)
			}
			of[a] = append(of[a], k.Kind)
		}
	}
	slices.Sort(keys)
	attributes.WriteString("| attribute | of |\n| --- | --- |\n")
	for _, key := range keys {
		fmt.Fprintf(&attributes, "| `%s` | %s |\n", key, strings.Join(of[key], ", "))
	}
	links.WriteString("| `cadre.link` | of | to |\n| --- | --- | --- |\n")
	for _, l := range linkKinds {
		fmt.Fprintf(&links, "| `%s` | %s | %s |\n", l.Link, l.From, l.To)
	}
	environment.WriteString("| variable | meaning |\n| --- | --- |\n")
	for _, v := range variables {
		fmt.Fprintf(&environment, "| `%s` | %s |\n", strings.ReplaceAll(v.Name, ", ", "`, `"), v.Meaning)
	}
	for name, table := range map[string]string{"spans": spans.String(), "outcomes": ends.String(),
		"attributes": attributes.String(), "links": links.String(), "variables": environment.String()} {
		golden.Part(t, page, "<!-- "+name+" -->\n", "<!-- end of "+name+" -->", table)
	}
}

// TestVariablesAreRead checks that each documented variable is read, and no other.
func TestVariablesAreRead(t *testing.T) {
	documented, read := map[string]bool{}, map[string]bool{}
	for _, v := range variables {
		for name := range strings.SplitSeq(v.Name, ", ") {
			documented[name] = true
		}
	}
	FromEnvironment(func(name string) string {
		read[name] = true
		if !documented[name] {
			t.Errorf("%s is read, and not documented", name)
		}
		return map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}[name]
	}, "1")
	FromEnvironment(func(name string) string {
		read[name] = true
		return map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c"}[name]
	}, "1")
	for name := range documented {
		if !read[name] {
			t.Errorf("%s is documented, and not read", name)
		}
	}
}
