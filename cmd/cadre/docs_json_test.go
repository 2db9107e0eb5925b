package main

import (
	"fmt"
	"go/ast"
	goparser "go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"cadre/internal/testkit/golden"
	"cadre/internal/testkit/typedoc"
)

const aboutJSON = `# What ` + "`--json`" + ` prints

<!-- made from the types that the commands print: go test ./cmd/cadre -run DocumentsJSON -update -->

With ` + "`--json`" + ` a command prints one JSON value and a line break on standard output. ` + "`cadre run`" + ` and
commands that follow what happens print a value a line. What is meant for people stays on standard error.
An error is the last line there, with a code and what to type: [error](#error), [exit-statuses.md](exit-statuses.md).

- Names are the same everywhere: a task is the same object in every command that prints one, and so are a member, a message and a team.
- A field that is empty may be left out. A newer version may add fields: ignore those that you do not know.
- ` + "`time`" + ` is a point in time, in UTC milliseconds since 1970. ` + "`milliseconds`" + ` and ` + "`seconds`" + ` are lengths of time.
- ` + "`[]`" + ` stands for each element of a list, ` + "`{}`" + ` for each value of a mapping whose keys are names.
- [events.md](events.md) has the fields of events, and [observe.md](observe.md) what ` + "`cadre observe`" + ` prints.
`

// jsonCall is a call of a command that prints JSON.
type jsonCall struct {
	line   string
	before string // a script
}

var jsonCalls = []jsonCall{
	{line: "cadre version --json"},
	{line: "cadre --json run --template"},
	{line: "cadre create demo --goal 'Port the parser' --check 'lint: make lint' --allow 'Bash(go test:*)' --fact " +
		"make=Makefile --metadata release=1.4 --json"},
	{line: "cadre spawn demo bob --agent external --role reviewer --plan-approval --json"},
	{line: "cadre task add demo 'Write the tests' --run 'echo x >tests.c' --owner ann --priority high " +
		"--description 'All of them' --metadata '{\"ticket\": 7}' --json",
		before: "cadre spawn demo ann --agent shell"},
	{line: "cadre plan submit demo 'Read them' --as bob --json"},
	{line: "cadre plan list demo --json"},
	{line: "cadre plan demo plan-1@bob --approve --json"},
	{line: "cadre delegate demo on --json"},
	{line: "cadre task claim demo 2 --as bob --json", before: `
cadre delegate demo off
until cadre task show demo 1 --json | grep '"commit"'; do sleep 0.1; done
cadre task add demo "Review them" --blocked-by 1`},
	{line: "cadre send demo --to bob 'The port is 4711.' --metadata port=4711 --json"},
	{line: "cadre inbox demo bob --json"},
	{line: "cadre broadcast demo 'Lunch.' --json"},
	{line: "cadre task done demo 2 --as bob --result 'They are good.' --json", before: `
cadre task add demo "Say it" --owner ann --run false
until cadre task show demo 3 --json | grep '"failures"'; do sleep 0.1; done`},
	{line: "cadre note set demo decisions/api 'Errors are JSON.' --json"},
	{line: "cadre note append demo decisions/api 'They have a code.' --as bob --json"},
	{line: "cadre note get demo decisions/api --json"},
	{line: "cadre note list demo --json"},
	{line: "cadre note log demo decisions/api --json"},
	{line: "cadre note rm demo decisions/api --json"},
	{line: "cadre task list demo --json"},
	{line: "cadre task show demo 1 --json"},
	{line: "cadre task show demo 1 --patch --json"},
	{line: "cadre status demo --json"},
	{line: "cadre attention --json"},
	{line: "cadre ls --json"},
	{line: "cadre probe demo --json"},
	{line: "cadre log demo --json"},
	{line: "cadre task update demo 4 --subject 'Write the manual' --json",
		before: "cadre task add demo 'Write a page'"},
	{line: "cadre reassign demo 4 bob --json"},
	{line: "cadre task release demo 4 --as bob --json", before: "cadre task claim demo 4 --as bob"},
	{line: "cadre task fail demo 4 --as bob --reason 'No paper' --json",
		before: "cadre task claim demo 4 --as bob"},
	{line: "cadre mode demo bob acceptEdits --json"},
	{line: "cadre budget demo --tokens 1000000 --usd 20 --json"},
	{line: "cadre facts demo --json"},
	{line: "cadre hooks demo --json", before: `
mkdir -p ~/.claude
printf '{"hooks":{"TaskCompleted":[{"matcher":"x","hooks":[{"type":"command","command":"true"}]}],
"TeammateIdle":[{"hooks":[{"type":"command","command":"true"}]}]}}' >~/.claude/settings.json
cadre hooks disable demo TeammateIdle`},
	{line: "cadre hooks disable demo TaskCompleted --json"},
	{line: "cadre hooks try demo TaskCompleted --json"},
	{line: "cadre shutdown demo ann --json"},
	{line: "cadre checkpoint demo --json"},
	{line: "cadre ls --git --json"},
	{line: "cadre fsck demo --json", before: "cadre fsck demo"}, // fsck updates projections
	{line: "cadre task rm demo 3 --json"},
	{line: "cadre push demo --yes --json", before: `
cadre task rm demo 4
git init -q --bare -b main ../remote
git remote add origin ../remote
git push -q origin main`},
	{line: "cadre consolidate demo --json"},
	{line: "cadre review demo --json"},
	{line: "cadre validate pair.yaml --json",
		before: "printf 'name: pair\nmembers: [{name: ann}]\ntasks: [{id: one, run: echo one}]\n' >pair.yaml"},
	{line: "cadre run pair.yaml --json", before: `
printf 'name: pair\nmembers: [{name: ann}]\ntasks: [{id: one, run: echo one}]\n' >pair.yaml`},
	{line: "cadre run pair.yaml --dry-run --json", before: `
sed -i.old -e 's/echo one/false/' pair.yaml
cadre run pair.yaml || true
printf 'name: pair\nmembers: [{name: ann}, {name: bob}]\ntasks: [{id: one, run: echo one}]\n' >pair.yaml`},
	{line: "cadre cleanup demo --branches --yes --json"},
}

// withoutShape are the commands that print no JSON of their own, with the reason.
var withoutShape = map[string]string{
	"report-killed":   "hidden",
	"watch":           "it is a screen",
	"claude-teammate": "it shows an agent at work",
	"completion":      "it prints a script",
	"gemini-hook":     "hidden",
	"help":            "it prints help",
	"host":            "it prints nothing",
	"join":            "it shows an agent at work",
	"mcp":             "it speaks MCP",
	"panes":           "it opens panes of a terminal",
	"observe":         "docs/observe.md",
	"schema observe":  "it prints a JSON Schema",
	"schema teamfile": "it prints a JSON Schema",
	wakeName:          "it is a hook of Claude Code",
}

// TestEveryShape checks that the page describes what each command prints, or that this file says
// why it does not.
func TestEveryShape(t *testing.T) {
	described := prints()
	seen := map[string]bool{"help": true, "completion": true} // which cobra adds
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, below := range c.Commands() {
			walk(below)
		}
		name := strings.TrimPrefix(c.CommandPath(), "cadre ")
		if !c.HasParent() || c.HasSubCommands() && !acts(c) {
			return
		}
		seen[name] = true
		if reason := withoutShape[name]; (described[name] != nil) == (reason != "") {
			t.Errorf("%s: described %v, exempt because %q", name, described[name], reason)
		}
	}
	walk(newApp().root(nil))
	for name := range withoutShape {
		if !seen[name] {
			t.Errorf("%s is not a command", name)
		}
	}
	for name := range described {
		if !seen[name] {
			t.Errorf("%s is not a command", name)
		}
	}
}

// TestDocumentsJSON checks that docs/json.md lists each field that a command can print.
func TestDocumentsJSON(t *testing.T) {
	s := newShapes(t)
	page := aboutJSON + "\n## Objects\n"
	for _, o := range objects() {
		page += fmt.Sprintf("\n### %s\n\n%s\n\n", o.name, o.about)
		if o.values != "" {
			page += s.words.List(o.of, o.values, o.key) + "\n"
		}
		page += s.table(o.of, s.objects[o.name])
	}
	page += "\n## Commands\n"
	all := prints()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, p := range all[name] {
			page += fmt.Sprintf("\n### %s\n\n%s", title(name, p.flags), s.describe(p))
		}
	}
	golden.File(t, filepath.Join(top, "docs/json.md"), strings.TrimRight(page, "\n")+"\n")
}

// TestNamesOfFields checks that the names of fields follow one rule, and tell times from durations.
func TestNamesOfFields(t *testing.T) {
	s := newShapes(t)
	check := func(what string, is shape) {
		for path, kind := range is {
			name := strings.Trim(path[strings.LastIndexByte(path, '.')+1:], "[]{}")
			timely := name == "at" || name == "since" || strings.HasSuffix(name, "At") ||
				strings.HasSuffix(name, "Since")
			switch {
			case name != "" && (name[0] < 'a' || name[0] > 'z'):
				t.Errorf("%s: %s does not begin with a small letter", what, path)
			case kind == "time" && !timely && !slices.Contains(oldTimes, name):
				t.Errorf("%s: %s is a time: call it at, since or somethingAt", what, path)
			case kind != "time" && timely && name != "handoverAt":
				t.Errorf("%s: %s is %s, and is called like a time", what, path, kind)
			case kind == "nanoseconds":
				t.Errorf("%s: %s is in nanoseconds", what, path)
			}
		}
	}
	for name, is := range s.objects {
		check(name, is)
	}
	for name, all := range prints() {
		for _, p := range all {
			for _, of := range p.types {
				check(name, s.of(of, s.named(of)))
			}
		}
	}
}

// oldTimes are times whose names are in the journals of teams, so that they stay.
var oldTimes = []string{"deadline", "offline", "leadLost", "budgetFrom"}

// describe says what one form of a command prints.
func (s *shapes) describe(p printedForm) string {
	var b strings.Builder
	subject := map[form]string{value: "It", array: "A list; each", aLine: "A value a line; each"}[p.form]
	if p.form != value && len(p.types) == 1 && s.named(p.types[0]) == "" && s.of(p.types[0], "")[""] == "" {
		subject = strings.TrimSuffix(subject, "; each")
		fmt.Fprintf(&b, "%s.\n\n", subject)
	} else if len(p.types) > 1 {
		b.WriteString(map[form]string{array: "A list", aLine: "A value a line"}[p.form] + ", of these kinds:\n\n")
	}
	for i, of := range p.types {
		name, is := s.named(of), s.of(of, s.named(of))
		link := is[""]
		if name != "" {
			link = article(name)
		}
		if len(p.types) > 1 {
			subject = fmt.Sprintf("%d. It", i+1)
		}
		switch {
		case name != "":
			fmt.Fprintf(&b, "%s is %s.\n\n", subject, link)
		case link != "":
			is = maps.Clone(is)
			delete(is, "")
			fmt.Fprintf(&b, "%s is %s, and has:\n\n%s\n", subject, link, s.table(of, is))
		case len(p.types) > 1:
			fmt.Fprintf(&b, "%s has:\n\n%s\n", subject, s.table(of, is))
		default:
			b.WriteString(s.table(of, is))
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// table lists the fields of a shape, with what the comments of their types say. Each needs a
// comment.
func (s *shapes) table(of reflect.Type, is shape) string {
	s.t.Helper()
	says := map[string]typedoc.Description{}
	s.words.Describe(says, of, "")
	var b strings.Builder
	b.WriteString("| field | value | what it is |\n| --- | --- | --- |\n")
	for _, path := range slices.Sorted(maps.Keys(is)) {
		if path != "" && says[path].Text == "" {
			s.t.Errorf("docs/json.md does not describe %q of %s: write a comment at the field %s", path, of,
				says[path].Field)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", path, is[path], says[path].Text)
	}
	return b.String()
}

// TestPrintedTypes checks that commands print only values of types that [prints] lists. A mapping
// has no type of its own, so nothing could describe it.
func TestPrintedTypes(t *testing.T) {
	known := map[string]bool{"failed": true}
	for _, all := range prints() {
		for _, p := range all {
			for _, of := range p.types {
				known[of.Name()] = true
			}
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "observe") {
			continue
		}
		set := token.NewFileSet()
		file, err := goparser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, is := n.(*ast.CallExpr)
			if !is || len(call.Args) == 0 {
				return true
			}
			method, is := call.Fun.(*ast.SelectorExpr)
			if !is || method.Sel.Name != "print" && method.Sel.Name != "Value" {
				return true
			}
			literal, is := call.Args[0].(*ast.CompositeLit)
			if !is {
				return true
			}
			checked++
			if of, is := literal.Type.(*ast.Ident); !is || !known[of.Name] {
				t.Errorf("%s prints a value whose type is not in prints()", set.Position(call.Pos()))
			}
			return true
		})
	}
	if checked < 15 {
		t.Errorf("the test found %d printed literals", checked)
	}
}

// title returns the command with the flags of one form.
func title(name, flags string) string {
	var all []string
	for flag := range strings.SplitSeq(flags, "|") {
		all = append(all, "`"+strings.TrimSpace("cadre "+name+" "+flag)+"`")
	}
	return strings.Join(all, ", ")
}

// article returns a link to an object, with its article.
func article(object string) string {
	a := "a"
	if strings.ContainsAny(object[:1], "aeio") {
		a = "an"
	}
	return fmt.Sprintf("%s [%s](#%s)", a, object, strings.ReplaceAll(object, " ", "-"))
}

// TestJSONOfCommands checks that commands print what docs/json.md says.
func TestJSONOfCommands(t *testing.T) {
	if testing.Short() {
		t.Skip("-short runs no team for a document")
	}
	t.Parallel()
	r := newReader(t)
	r.script(parser)
	s := newShapes(t)
	for _, c := range jsonCalls {
		r.script(c.before)
		out, errs, code := r.sh(c.line, "")
		if code != 0 {
			t.Fatalf("%s\nends with status %d\n%s%s", c.line, code, out, errs)
		}
		found, _, err := newApp().root(nil).Find(strings.Fields(c.line)[1:])
		if err != nil {
			t.Fatalf("%s: %v", c.line, err)
		}
		s.check(strings.TrimPrefix(found.CommandPath(), "cadre "), out)
	}
}
