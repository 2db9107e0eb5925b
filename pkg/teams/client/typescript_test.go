package client

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cadre/internal/inspect/history"
	"cadre/internal/server/api"
	core "cadre/internal/team"
	"cadre/internal/testkit/golden"
	"cadre/internal/testkit/typedoc"
)

// top is the folder of the module.
const top = "../../.."

const aboutTypes = `// The types of cadre's HTTP API, for TypeScript. A test makes this file from the Go types of the
// routes: go test ./pkg/teams/client -run '^TestTypeScript$' -update
//
// Times are milliseconds since 1970. A field that may be missing is left out where it is zero.

`

// script makes declarations of Go types.
type script struct {
	words *typedoc.Comments
	names map[reflect.Type]string
	taken map[string]bool
	parts []string // the declarations
}

var (
	textual  = reflect.TypeFor[encoding.TextMarshaler]()
	anything = reflect.TypeFor[json.RawMessage]()
)

// of returns the TypeScript type of a Go type.
func (s *script) of(t reflect.Type) string {
	switch {
	case t == anything:
		return "unknown"
	case t == reflect.TypeFor[[]core.Event]():
		return "Event[]"
	case t.Implements(textual):
		return "string"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.Slice:
		return s.of(t.Elem()) + "[]"
	case reflect.Map:
		return "{ [key: string]: " + s.of(t.Elem()) + " }"
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int64:
		return "number"
	case reflect.Struct:
		return s.object(t)
	}
	panic("no type for " + t.String())
}

// object declares a struct once, and returns its name.
func (s *script) object(t reflect.Type) string {
	if name := s.names[t]; name != "" {
		return name
	}
	name := strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
	if name == "Record" { // TypeScript has a type of that name
		name = "TeamRecord"
	}
	if s.taken[name] {
		pkg := t.PkgPath()[strings.LastIndexByte(t.PkgPath(), '/')+1:]
		name = strings.ToUpper(pkg[:1]) + pkg[1:] + name
	}
	s.names[t], s.taken[name] = name, true
	extends := ""
	if t == reflect.TypeFor[history.MailboxMessage]() {
		extends = " extends " + s.of(reflect.TypeFor[core.Message]())
	}
	s.declare(t, "export interface "+name+extends, "")
	return name
}

// declare declares a struct, with a first field.
func (s *script) declare(t reflect.Type, head, field string) {
	var b strings.Builder
	b.WriteString(comment("", s.words.Type(t)) + head + " {\n" + field)
	derived := s.words.Derived(t)
	for _, f := range s.words.Fields(t) {
		if f.Anonymous || derived[f.Key] != "" { // it is extended, or follows below
			continue
		}
		tag := f.Tag.Get("json")
		missing := ""
		if f.Coded || strings.Contains(tag, ",omit") || t == reflect.TypeFor[history.MailboxMessage]() {
			missing = "?"
		}
		fmt.Fprintf(&b, "%s  %s%s: %s;\n", comment("  ", f.Text), f.Key, missing, s.of(f.Type))
	}
	for _, key := range slices.Sorted(maps.Keys(derived)) {
		of := map[string]string{"blocked": "string[]", "events": "Event[]", "v": "number", "dirty": "number"}[key]
		if of == "" {
			of = "string"
		}
		fmt.Fprintf(&b, "%s  %s?: %s;\n", comment("  ", derived[key]), key, of)
	}
	s.parts = append(s.parts, b.String()+"}\n")
}

func comment(indent, text string) string {
	if text == "" {
		return ""
	}
	return indent + "/** " + strings.ReplaceAll(strings.ReplaceAll(text, "*/", "* /"), `\|`, "|") + " */\n"
}

// events declares the events of records.
func (s *script) events(t testing.TB) {
	var names []string
	for _, kind := range core.Kinds() {
		var r core.Record
		if err := json.Unmarshal(fmt.Appendf(nil, `{"events":[{"kind":%q}]}`, kind), &r); err != nil {
			t.Fatal(err)
		}
		of := reflect.TypeOf(r.Events[0]).Elem()
		name := of.Name() + "Event"
		s.declare(of, "export interface "+name, fmt.Sprintf("  kind: %q;\n", kind))
		names = append(names, name)
	}
	s.parts = append(s.parts, "/** What happened in a record, told apart by its kind. */\nexport type Event =\n  | "+
		strings.Join(names, "\n  | ")+";\n")
}

var inPath = regexp.MustCompile(`\{([a-z]+)\}`)

// typescript returns the declarations of the API.
func typescript(t testing.TB) string {
	s := &script{words: typedoc.New(t, top), names: map[reflect.Type]string{}, taken: map[string]bool{}}
	for _, plain := range []reflect.Type{reflect.TypeFor[core.Team](), reflect.TypeFor[core.Member](),
		reflect.TypeFor[core.Task](),
		reflect.TypeFor[core.Message](), reflect.TypeFor[api.Problem]()} { // these have the plain names
		s.of(plain)
	}
	var routes, streams strings.Builder
	for _, r := range api.Routes() {
		var path, query []string
		for _, m := range inPath.FindAllStringSubmatch(r.Path, -1) {
			path = append(path, m[1]+": string")
		}
		for _, p := range r.Query {
			of := map[string]string{"integer": "number", "array": "string[]"}[p.Type]
			if of == "" {
				of = p.Type
			}
			query = append(query, p.Name+"?: "+of)
		}
		object := func(fields []string) string {
			if len(fields) == 0 {
				return "{}"
			}
			return "{ " + strings.Join(fields, "; ") + " }"
		}
		body, answer := "undefined", "undefined"
		if r.Body != nil {
			body = s.of(r.Body)
		}
		if r.Answer != nil {
			answer = s.of(r.Answer)
		}
		if r.Stream {
			fmt.Fprintf(&streams, "%s  %q: { %s: %s; end: {}; problem: Problem };\n", comment("  ", r.About), r.Path,
				r.Event, answer)
			answer = "ReadableStream"
		}
		fmt.Fprintf(&routes, "%s  %q: { path: %s; query: %s; body: %s; answer: %s };\n", comment("  ", r.About),
			r.Method+" "+r.Path, object(path), object(query), body, answer)
	}
	s.events(t)
	s.parts = append(s.parts, "/** The routes: what each takes and answers. An error is answered with a Problem. */\n"+
		"export interface Routes {\n"+routes.String()+"}\n",
		"/** The streams of server-sent events: the data of each event, by its name. */\n"+
			"export interface Streams {\n"+streams.String()+"}\n")
	return aboutTypes + strings.Join(s.parts, "\n")
}

// TestTypeScript checks that the file has the types of the API.
func TestTypeScript(t *testing.T) {
	golden.File(t, filepath.Join(top, "docs", "api.d.ts"), typescript(t))
}

// TestTypeScriptCompiles checks the file with the TypeScript compiler, and that a program against
// it is checked: its mistakes are found, and nothing else.
func TestTypeScriptCompiles(t *testing.T) {
	if testing.Short() {
		t.Skip("it installs a compiler; not with -short")
	}
	for _, program := range []string{"npm", "node"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s does not exist: %v", program, err)
		}
	}
	dir := t.TempDir()
	copied := func(to string, from ...string) {
		text, err := os.ReadFile(filepath.Join(append([]string{top}, from...)...))
		ok(t, err)
		ok(t, os.WriteFile(filepath.Join(dir, to), text, 0o600))
	}
	copied("package.json", "examples", "observe-ts", "package.json") // it has a compiler
	copied("package-lock.json", "examples", "observe-ts", "package-lock.json")
	copied("api.d.ts", "docs", "api.d.ts")
	copied("program.ts", "pkg", "teams", "client", "testdata", "program.ts")
	run := func(name string, args ...string) (string, error) {
		c := exec.CommandContext(within(t), name, args...)
		c.Dir = dir
		out, err := c.CombinedOutput()
		return string(out), err
	}
	if out, err := run("npm", "ci", "--loglevel", "error", "--prefer-offline", "--fetch-retries", "1"); err != nil {
		t.Skipf("cannot install the TypeScript compiler: %v\n%s", err, out)
	}
	tsc := func() (string, error) {
		return run("node", filepath.Join("node_modules", "typescript", "bin", "tsc"), "--noEmit", "--strict",
			"--target", "ES2023", "--module", "NodeNext", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess",
			"--types", "node", "program.ts")
	}
	if out, err := tsc(); err != nil {
		t.Fatalf("the program does not compile: %v\n%s", err, out)
	}
	program := filepath.Join(dir, "program.ts")
	text, err := os.ReadFile(program)
	ok(t, err)
	wrong := bytes.ReplaceAll(text, []byte("// @ts-expect-error"), []byte("//"))
	ok(t, os.WriteFile(program, wrong, 0o600))
	out, err := tsc()
	if mistakes := bytes.Count(text, []byte("// @ts-expect-error")); err == nil ||
		strings.Count(out, "error TS") != mistakes || mistakes < 3 {
		t.Errorf("the compiler finds other mistakes than the %d in the program: %v\n%s", mistakes, err, out)
	}
}
