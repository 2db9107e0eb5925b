package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

const aboutJSON = `# What ` + "`--json`" + ` prints

<!-- made from what the commands print: go test ./cmd/cadre -run DocumentsJSON -update -->

With ` + "`--json`" + ` a command prints one JSON value and a line break on standard output. ` + "`cadre run`" + ` and
commands that follow what happens print a value a line. What is meant for people stays on standard error.
An error is a line of JSON there, with a code and what to type: [exit-statuses.md](exit-statuses.md).

- Names are the same everywhere: a task is the same object in every command that prints one, and so are a member, a message and a team.
- Fields that are empty are left out. A newer version may add fields: pass over what you do not know.
- ` + "`at`" + `, ` + "`since`" + ` and names that end in ` + "`At`" + ` are points in time, in UTC milliseconds. ` + "`millis`" + ` is a length of time in milliseconds.
- ` + "`[]`" + ` stands for each element of a list, ` + "`{}`" + ` for each value of a mapping whose keys are names.
- [events.md](events.md) has the fields of events, and [observe.md](observe.md) what ` + "`cadre observe`" + ` prints.
`

// jsonCall is a command of docs/json.md.
type jsonCall struct {
	line   string
	prints string // the object that it prints; "" for an object that is described with the command
	before string // a script
	lines  string // what each line is, if the command prints several
}

var jsonCalls = []jsonCall{
	{line: "cadre version --json"},
	{line: "cadre create demo --goal 'Port the parser' --check 'lint: make lint' --allow 'Bash(go test:*)' --fact " +
		"make=Makefile --meta release=1.4 --json",
		prints: "team"},
	{line: "cadre spawn demo bob --agent external --role reviewer --plan-approval --json", prints: "member"},
	{line: "cadre task add demo 'Write the tests' --run 'echo x >tests.c' --owner ann --priority high " +
		"--description 'All of them' --metadata '{\"ticket\": 7}' --json", prints: "task",
		before: "cadre spawn demo ann --agent shell"},
	{line: "cadre plan submit demo 'Read them' --as bob --json"},
	{line: "cadre plan list demo --json"},
	{line: "cadre plan demo plan-1@bob --approve --json"},
	{line: "cadre delegate demo on --json"},
	{line: "cadre task claim demo 2 --as bob --json", prints: "task", before: `
cadre delegate demo off
until cadre task show demo 1 --json | grep '"commit"'; do sleep 0.1; done
cadre task add demo "Review them" --blocked-by 1`},
	{line: "cadre send demo --to bob 'The port is 4711.' --meta port=4711 --json", prints: "message"},
	{line: "cadre inbox demo bob --json", prints: "message"},
	{line: "cadre broadcast demo 'Lunch.' --json", prints: "message"},
	{line: "cadre task done demo 2 --as bob --result 'They are good.' --json", prints: "task", before: `
cadre task add demo "Say it" --owner ann --run false
until cadre task show demo 3 --json | grep '"failures"'; do sleep 0.1; done`},
	{line: "cadre task list demo --json", prints: "task"},
	{line: "cadre task show demo 1 --json", prints: "task"},
	{line: "cadre task show demo 1 --patch --json"},
	{line: "cadre status demo --json"},
	{line: "cadre attention --json", prints: "item"},
	{line: "cadre ls --json"},
	{line: "cadre probe demo --json"},
	{line: "cadre log demo --json"},
	{line: "cadre task update demo 4 --subject 'Write the manual' --json", prints: "task",
		before: "cadre task add demo 'Write a page'"},
	{line: "cadre reassign demo 4 bob --json", prints: "task"},
	{line: "cadre task release demo 4 --as bob --json", prints: "task", before: "cadre task claim demo 4 --as bob"},
	{line: "cadre task fail demo 4 --as bob --reason 'No paper' --json", prints: "task",
		before: "cadre task claim demo 4 --as bob"},
	{line: "cadre mode demo ann acceptEdits --json"},
	{line: "cadre budget demo --tokens 1000000 --usd 20 --json"},
	{line: "cadre facts demo --json"},
	{line: "cadre hooks demo --json", before: `
mkdir -p ~/.claude
printf '{"hooks":{"TaskCompleted":[{"matcher":"x","hooks":[{"type":"command","command":"true"}]}],
"TeammateIdle":[{"hooks":[{"type":"command","command":"true"}]}]}}' >~/.claude/settings.json
cadre hooks disable demo TeammateIdle`},
	{line: "cadre hooks disable demo TaskCompleted --json"},
	{line: "cadre hooks try demo TaskCompleted --json"},
	{line: "cadre shutdown demo ann --json", prints: "member"},
	{line: "cadre checkpoint demo --json"},
	{line: "cadre ls --git --json"},
	{line: "cadre fsck demo --json", before: "cadre fsck demo"}, // fsck updates projections
	{line: "cadre task rm demo 3 --json", prints: "task"},
	{line: "cadre push demo --yes --json", before: `
cadre task rm demo 4
git init -q --bare -b main ../remote
git remote add origin ../remote
git push -q origin main`},
	{line: "cadre consolidate demo --json", prints: "record"},
	{line: "cadre review demo --json"},
	{line: "cadre validate pair.yaml --json",
		before: "printf 'name: pair\nmembers: [{name: ann}]\ntasks: [{id: one, run: echo one}]\n' >pair.yaml"},
	{line: "cadre run pair.yaml --json", lines: "a record as in `cadre log`, and the last one has the result", before: `
printf 'name: pair\nmembers: [{name: ann}]\ntasks: [{id: one, run: echo one}]\n' >pair.yaml`},
	{line: "cadre run pair.yaml --dry-run --json", before: `
sed -i.old -e 's/echo one/false/' pair.yaml
cadre run pair.yaml || true
printf 'name: pair\nmembers: [{name: ann}, {name: bob}]\ntasks: [{id: one, run: echo one}]\n' >pair.yaml`},
	{line: "cadre cleanup demo --branches --yes --json", prints: "team"},
}

// withoutShape are the commands that docs/json.md does not describe, with the reason.
var withoutShape = map[string]string{
	"permit list":     "it needs an agent that asks",
	"abort":           "it prints the team",
	"attach":          "it becomes a terminal",
	"report-killed":   "hidden",
	"claude-teammate": "it shows an agent at work",
	"doctor":          "what it prints depends on the machine",
	"gemini-hook":     "hidden",
	"handover":        "it prints the member; it needs an agent",
	"help":            "it prints help",
	"hooks enable":    "it prints what hooks disable prints",
	"host":            "it prints nothing",
	"interrupt":       "it needs an agent at work",
	"init":            "it writes a file",
	"join":            "it shows an agent at work",
	"leave":           "it needs a request to shut down",
	"mcp":             "it speaks MCP",
	"observe":         "docs/observe.md",
	"permit":          "it needs an agent that asks",
	"pull":            "it needs another machine",
	"resend":          "it needs messages that are late",
	"resume":          "it prints what probe prints, then what run prints",
	"schema observe":  "it prints a JSON Schema",
	"schema teamfile": "it prints a JSON Schema",
	"task rollback":   "it needs work in a repository",
	"trust":           "it needs hooks of a project",
	wakeName:          "it is a hook of Claude Code",
	"completion":      "it prints a script",
}

// TestEveryShape checks that docs/json.md describes what each command prints, or that this file says
// why it does not.
func TestEveryShape(t *testing.T) {
	described := map[string]bool{}
	for _, call := range jsonCalls {
		words := strings.Fields(call.line)[1:]
		found, _, err := newApp().root(nil).Find(words)
		if err != nil {
			t.Fatalf("%s: %v", call.line, err)
		}
		described[strings.TrimPrefix(found.CommandPath(), "cadre ")] = true
	}
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
		if reason := withoutShape[name]; described[name] == (reason != "") {
			t.Errorf("%s: described %v, exempt because %q", name, described[name], reason)
		}
	}
	walk(newApp().root(nil))
	for name := range withoutShape {
		if !seen[name] {
			t.Errorf("%s is not a command", name)
		}
	}
}

// objects lists the objects that several commands print, in the order of the page.
var objects = []struct{ name, about string }{
	{"team", "A team as it is recorded. `cadre cleanup` adds the branches."},
	{"member", "The lead or a teammate, as it was when it joined."},
	{"task",
		"A task. `status` is `pending`, `in_progress`, `completed` or `deleted`; a task is blocked while one in `blockedBy`\n" +
			"is open, and failed when it has no retries left."},
	{"message", "A message. `to` is a member, or `*` with the `recipients`."},
	{"item", "Something that waits. `hint` is what would help: an action, and what to do it on."},
	{"record", "The record of a consolidation, as in the file `COMPLETED`."},
}

// fieldsOf maps the ends of field paths to the object that is the field's value. Some fields are
// described on another page.
var fieldsOf = map[string]string{"all[]": "task", "mail[]": "message", "attention[]": "item", "team": "team",
	"record":   "record",
	"events[]": "event"}

// TestDocumentsJSON checks that docs/json.md lists the fields that each command prints.
func TestDocumentsJSON(t *testing.T) {
	if testing.Short() {
		t.Skip("-short runs no team for a document")
	}
	t.Parallel()
	r := newReader(t)
	r.script(parser)
	all := shapes{} // of objects, by name, and of commands, by title
	commands := ""
	for _, c := range jsonCalls {
		r.script(c.before)
		out, errs, code := r.sh(c.line, "")
		if code != 0 {
			t.Fatalf("%s\nends with status %d\n%s%s", c.line, code, out, errs)
		}
		what := title(c.line)
		values, list := all.read(t, cmp.Or(c.prints, what), out)
		switch {
		case (values != 1) != (c.lines != ""):
			t.Errorf("%s prints %d values, but its section does not say so", c.line, values)
		case c.lines != "":
			commands += fmt.Sprintf("\n### %s\n\nA value a line: %s.\n\n%s", what, c.lines, all.table(what))
		case c.prints != "" && list:
			commands += fmt.Sprintf("\n### %s\n\nA list; each is %s.\n", what, article(c.prints))
		case c.prints != "":
			commands += fmt.Sprintf("\n### %s\n\nIt is %s.\n", what, article(c.prints))
		case list:
			commands += fmt.Sprintf("\n### %s\n\nA list.\n\n%s", what, all.table(what))
		default:
			commands += fmt.Sprintf("\n### %s\n\n%s", what, all.table(what))
		}
	}
	page := aboutJSON + "\n## Objects\n"
	for _, o := range objects {
		page += fmt.Sprintf("\n### %s\n\n%s\n\n%s", o.name, o.about, all.table(o.name))
	}
	page += "\n## Commands\n" + commands
	file := filepath.Join(top, "docs/json.md")
	is, err := os.ReadFile(file)
	if string(is) == page {
		return
	}
	if !*update {
		t.Fatalf("docs/json.md is stale (%v); to write it again: go test ./cmd/cadre -run DocumentsJSON "+
			"-update\n%s", err,
			firstDifference(string(is), page))
	}
	if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
}

// firstDifference returns the first lines in which two texts differ.
func firstDifference(is, want string) string {
	a, b := strings.Split(is, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d is %q, and is to be %q", i+1, a[i], b[i])
		}
	}
	return ""
}

// title returns the command without its subject: its words before the team, and the flags that
// change its output.
func title(line string) string {
	var words []string
	for _, w := range strings.Fields(line) {
		if w == "demo" || w == "pair.yaml" {
			break
		}
		words = append(words, w)
	}
	for _, flag := range []string{"--patch", "--git", "--dry-run"} {
		if strings.Contains(line, flag) && !slices.Contains(words, flag) {
			words = append(words, flag)
		}
	}
	return "`" + strings.ReplaceAll(strings.Join(words, " "), " --json", "") + "`"
}

// article returns a link to an object, with its article.
func article(object string) string {
	a := "a"
	if strings.ContainsAny(object[:1], "aeiou") {
		a = "an"
	}
	return fmt.Sprintf("%s [%s](#%s)", a, object, object)
}

// shapes are the kinds of values, by their object and by the path of their field.
type shapes map[string]map[string]map[string]bool

// read reads and counts the values of the output. list says that the last one is a list.
func (s shapes) read(t *testing.T, what, printed string) (n int, list bool) {
	t.Helper()
	for d := json.NewDecoder(strings.NewReader(printed)); ; n++ {
		var value any
		if err := d.Decode(&value); err == io.EOF {
			return n, list
		} else if err != nil {
			t.Fatalf("%s does not print JSON: %v\n%s", what, err, printed)
		}
		var elements []any
		if elements, list = value.([]any); !list {
			elements = []any{value}
		}
		for _, one := range elements {
			s.note(what, "", one)
		}
	}
}

// mappings lists the fields whose keys are names.
var mappings = []string{"metadata", "standings"}

func (s shapes) note(what, path string, value any) {
	add := func(kind string) {
		if s[what] == nil {
			s[what] = map[string]map[string]bool{}
		}
		if s[what][path] == nil {
			s[what][path] = map[string]bool{}
		}
		s[what][path][kind] = true
	}
	last := path[strings.LastIndexByte(path, '.')+1:]
	switch v := value.(type) {
	case map[string]any:
		if object := fieldsOf[last]; object == "event" {
			add("an [event](events.md)")
			return
		} else if object != "" {
			add(article(object))
			what, path = object, ""
		}
		for key, inner := range v {
			at := strings.TrimPrefix(path+"."+key, ".")
			if slices.Contains(mappings, last) {
				at = path + "{}"
			}
			s.note(what, at, inner)
		}
	case []any:
		for _, inner := range v {
			s.note(what, path+"[]", inner)
		}
	case string:
		add("text")
	case float64:
		add("number")
	case bool:
		add("true or false")
	}
}

func (s shapes) table(what string) string {
	var b strings.Builder
	b.WriteString("| field | value |\n| --- | --- |\n")
	for _, path := range slices.Sorted(maps.Keys(s[what])) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", path, strings.Join(slices.Sorted(maps.Keys(s[what][path])), " or "))
	}
	return b.String()
}
