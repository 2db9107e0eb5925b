package team

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cadre/internal/testkit/golden"
)

// TestEventsManual makes docs/events.md from the comments and golden files of the events, or says
// that it is out of date.
func TestEventsManual(t *testing.T) {
	kinds := map[string]string{}
	var groups []*ast.GenDecl
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(files, func(a, b string) int { // files with general events first
		return cmp.Compare(strings.Index("event.go", b), strings.Index("event.go", a))
	})
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(kinds, kindsOf(file))
		for _, d := range file.Decls {
			if g, is := d.(*ast.GenDecl); is && g.Tok == token.TYPE {
				groups = append(groups, g)
			}
		}
	}
	if len(kinds) != len(eventKinds(t)) {
		t.Fatalf("the files have %d kinds, and there are %d golden files", len(kinds), len(eventKinds(t)))
	}
	var doc strings.Builder
	doc.WriteString(eventsHead)
	slices.SortStableFunc(groups, func(a, b *ast.GenDecl) int { // groups with a title first
		return cmp.Compare(strings.Index(a.Doc.Text(), groupTitle), strings.Index(b.Doc.Text(), groupTitle)) * -1
	})
	before := ""
	for _, g := range groups {
		title, titled := strings.CutPrefix(g.Doc.Text(), groupTitle)
		for _, s := range g.Specs {
			s := s.(*ast.TypeSpec)
			kind, is := kinds[s.Name.Name]
			if !is {
				continue
			}
			title, _, _ = strings.Cut(title, ";")
			if !titled {
				title = "branches, work and heartbeats"
			}
			if title != before {
				fmt.Fprintf(&doc, "\n## Events of %s\n", strings.TrimSuffix(strings.TrimSpace(title), "."))
				before = title
			}
			about := s.Doc
			if about == nil {
				about = g.Doc
			}
			text := strings.Join(strings.Fields(about.Text()), " ")
			text = strings.Replace(text, s.Name.Name, "`"+kind+"`", 1)
			shown := example(t, kind)
			fmt.Fprintf(&doc, "\n### %s\n\n%s\n\n```json\n%s\n```\n", kind, folded(keyed(text, s, shown), 120), shown)
			delete(kinds, s.Name.Name)
		}
	}
	for name := range kinds {
		t.Errorf("%s has no comment that could be shown", name)
	}
	golden.File(t, filepath.Join("..", "..", "docs", "events.md"), doc.String())
}

// groupTitle begins the comment of a group of events.
const groupTitle = "The events of "

const eventsHead = `# Events

<!-- made by: go test ./internal/team -run TestEventsManual -update -->

The history of a team is a list of records. ` + "`cadre log TEAM --json`" + ` prints them as one array,
and with ` + "`--follow`" + ` as one record a line:

` + "```json" + `
{
  "seq": 12,
  "v": 1,
  "id": "YRQ44FKX7GEFN3QT7HJ7XFKDWV",
  "actor": "ann",
  "at": 1700000000000,
  "events": [{"kind": "task_claimed", "task": "3", "member": "ann", "fence": 2}]
}
` + "```" + `

| key | what it is |
| --- | --- |
| ` + "`seq`" + ` | the record's place in the history, from 1 |
| ` + "`v`" + ` | the version of the format |
| ` + "`id`" + ` | the command's id; a command that is sent again with its id changes nothing |
| ` + "`actor`" + ` | who sent it: a member, ` + "`@user`" + ` for the person, or ` + "`@host:ID`" + ` |
| ` + "`at`" + ` | when, in milliseconds since 1970 |
| ` + "`events`" + ` | what changed, in order |

An event never changes its kind, and a field never its meaning. New fields are optional. A field that is missing is empty: no text, zero or false.
Times are milliseconds since 1970, durations milliseconds where the key does not say seconds. In the examples each field has a value.
`

// keyed replaces the names of the event's fields in a text by their keys in the example.
func keyed(text string, of *ast.TypeSpec, shown string) string {
	for _, field := range of.Type.(*ast.StructType).Fields.List {
		for _, name := range field.Names {
			key := strings.ToLower(name.Name[:1]) + name.Name[1:]
			if strings.Contains(shown, `"`+key+`":`) {
				text = regexp.MustCompile(`\b`+name.Name+`\b`).ReplaceAllString(text, "`"+key+"`")
			}
		}
	}
	return text
}

// kindsOf maps the names of the types to the kinds of their events.
func kindsOf(file *ast.File) map[string]string {
	kinds := map[string]string{}
	for _, d := range file.Decls {
		f, is := d.(*ast.FuncDecl)
		if !is || f.Name.Name != "Kind" || f.Recv == nil || len(f.Body.List) != 1 {
			continue
		}
		star, is := f.Recv.List[0].Type.(*ast.StarExpr)
		if !is {
			continue
		}
		kind := f.Body.List[0].(*ast.ReturnStmt).Results[0].(*ast.BasicLit).Value
		kinds[star.X.(*ast.Ident).Name] = strings.Trim(kind, `"`)
	}
	return kinds
}

// eventKinds returns the kinds that have a golden file.
func eventKinds(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "events", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// example returns the event of a golden file, one key per line.
func example(t *testing.T, kind string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "events", kind+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var record struct{ Events []json.RawMessage }
	if err := json.Unmarshal(data, &record); err != nil || len(record.Events) != 1 {
		t.Fatalf("%s: %v", kind, err)
	}
	var b strings.Builder
	write(t, &b, record.Events[0], "")
	return b.String()
}

// write writes a value on one line if it fits, and otherwise with one key or element per line.
func write(t *testing.T, b *strings.Builder, raw json.RawMessage, indent string) {
	t.Helper()
	if text := string(raw); len(indent)+len(text) <= 100 || text[0] != '{' && text[0] != '[' {
		b.WriteString(text)
		return
	}
	d := json.NewDecoder(strings.NewReader(string(raw)))
	open, err := d.Token()
	if err != nil {
		t.Fatal(err)
	}
	inner, between := indent+"  ", "\n"
	fmt.Fprint(b, open)
	for d.More() {
		b.WriteString(between + inner)
		if open == json.Delim('{') {
			key, err := d.Token()
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(b, "%q: ", key)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			t.Fatal(err)
		}
		write(t, b, value, inner)
		between = ",\n"
	}
	b.WriteString("\n" + indent + map[json.Delim]string{'{': "}", '[': "]"}[open.(json.Delim)])
}

// folded breaks a text into lines of at most width characters, at its spaces.
func folded(text string, width int) string {
	var b strings.Builder
	n := 0
	for word := range strings.FieldsSeq(text) {
		if n > 0 && n+1+len(word) > width {
			b.WriteString("\n")
			n = 0
		} else if n > 0 {
			b.WriteString(" ")
			n++
		}
		b.WriteString(word)
		n += len(word)
	}
	return b.String()
}
