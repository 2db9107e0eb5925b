package main

import (
	"fmt"
	"go/ast"
	goparser "go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"cadre/internal/team"
)

// comments has what the comments in the code say of the fields of types.
type comments struct {
	t        *testing.T
	packages map[string]*commented
}

// commented is what one package says of its types.
type commented struct {
	path   string
	fields map[string]string // by "Type.Field"
	keys   map[string]string // the field behind "Type.key", for types of package team with their own encoding
	coded  map[string][]string
	values []constant
}

// constant is a text that a field can have.
type constant struct{ name, of, value, about string }

// derived describes fields that no field of a type has.
var derived = map[string]string{
	"Task.state":      "pending, blocked, in_progress, failed, completed or deleted",
	"Task.blocked[]":  "ids of the open tasks that it waits for now",
	"Base.dirty":      "number of files that differed from that commit",
	"Record.v":        "version of the format",
	"Record.events[]": "what changed, in order",
}

// of reads the comments of a package.
func (w *comments) of(path string) *commented {
	w.t.Helper()
	if found := w.packages[path]; found != nil {
		return found
	}
	found := &commented{path: path, fields: map[string]string{}, keys: map[string]string{}, coded: map[string][]string{}}
	w.packages[path] = found
	dir := filepath.Join(top, strings.TrimPrefix(path, "cadre/"))
	entries, err := os.ReadDir(dir)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := goparser.ParseFile(token.NewFileSet(), filepath.Join(dir, entry.Name()), nil, goparser.ParseComments)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, d := range file.Decls {
			found.declared(d)
		}
	}
	return found
}

// declared adds what a declaration says: the comments of the fields of a type, or the keys of its
// encoding.
func (c *commented) declared(d ast.Decl) {
	switch d := d.(type) {
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if one, is := spec.(*ast.ValueSpec); is && d.Tok == token.CONST && len(one.Names) == 1 && len(one.Values) == 1 {
				c.constant(one)
			}
			one, is := spec.(*ast.TypeSpec)
			if !is {
				continue
			}
			of, is := one.Type.(*ast.StructType)
			if !is {
				continue
			}
			for _, field := range of.Fields.List {
				for _, name := range field.Names {
					c.fields[one.Name.Name+"."+name.Name] = strings.TrimSpace(field.Doc.Text() + " " + field.Comment.Text())
				}
			}
		}
	case *ast.FuncDecl:
		if d.Name.Name != "fields" || d.Recv == nil {
			return
		}
		pointer, is := d.Recv.List[0].Type.(*ast.StarExpr)
		if !is {
			return
		}
		of := pointer.X.(*ast.Ident).Name
		ast.Inspect(d.Body, func(n ast.Node) bool {
			if call, is := n.(*ast.CallExpr); is {
				if key, field := coded(call); key != "" && field != "" {
					c.keys[of+"."+key] = field
					c.coded[of] = append(c.coded[of], key)
				}
			}
			return true
		})
	}
}

// constant adds a constant, if it is a text.
func (c *commented) constant(s *ast.ValueSpec) {
	text, is := s.Values[0].(*ast.BasicLit)
	if !is || text.Kind != token.STRING {
		return
	}
	one := constant{name: s.Names[0].Name, value: strings.Trim(text.Value, "`\""),
		about: strings.Join(strings.Fields(s.Doc.Text()+" "+s.Comment.Text()), " ")}
	if of, is := s.Type.(*ast.Ident); is {
		one.of = of.Name
	}
	c.values = append(c.values, one)
}

// list returns a table of the values that the field with that key can have: the constants of a type,
// or those whose names begin with a prefix.
func (w *comments) list(of reflect.Type, typeOrPrefix, key string) string {
	w.t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "| `%s` | what it means |\n| --- | --- |\n", key)
	for _, c := range w.of(of.PkgPath()).values {
		if c.of != typeOrPrefix && (c.of != "" || !strings.HasPrefix(c.name, typeOrPrefix)) {
			continue
		}
		about := w.plainly(of, c.about)
		if about == "" {
			w.t.Errorf("the constant %s has no comment that docs/json.md could show", c.name)
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", c.value, about)
	}
	return b.String()
}

// coded returns the key and the field of a call that encodes one, such as c.str("id", &t.ID).
func coded(call *ast.CallExpr) (key, field string) {
	for _, arg := range call.Args {
		if text, is := arg.(*ast.BasicLit); is && text.Kind == token.STRING {
			key = strings.Trim(text.Value, `"`)
		}
		ast.Inspect(arg, func(n ast.Node) bool {
			if address, is := n.(*ast.UnaryExpr); is && address.Op == token.AND {
				if of, is := address.X.(*ast.SelectorExpr); is {
					field = of.Sel.Name
				}
			}
			return true
		})
	}
	return key, field
}

// description is what a comment says of a field.
type description struct {
	text  string
	field string // where the comment is, as in "cadre/internal/team Task.ID"
}

// describe adds to all what comments say of the fields of a type, by the paths of a [shape].
func (w *comments) describe(all map[string]description, of reflect.Type, path string) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || !strings.HasPrefix(of.PkgPath(), "cadre/") {
		return
	}
	says := w.of(of.PkgPath())
	name := of.Name()
	defer func() {
		for key, text := range derived {
			if rest, is := strings.CutPrefix(key, name+"."); is {
				all[joined(path, rest)] = description{text: text}
			}
		}
	}()
	if keys := says.coded[name]; keys != nil {
		for _, key := range keys {
			if field, is := of.FieldByName(says.keys[name+"."+key]); is {
				w.field(all, says, of, field, joined(path, key))
			}
		}
		return
	}
	for i := range of.NumField() {
		field := of.Field(i)
		key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case key == "-" || !field.IsExported():
		case field.Anonymous && key == "":
			w.describe(all, field.Type, path)
		default:
			w.field(all, says, of, field, joined(path, says.key(name, field)))
		}
	}
}

// field adds what is said of a field, and of the fields of its value.
func (w *comments) field(all map[string]description, says *commented, in reflect.Type, field reflect.StructField,
	path string) {
	declared := in.Name() + "." + field.Name

	of := field.Type
	for {
		switch {
		case of.Kind() == reflect.Pointer:
			of = of.Elem()
			continue
		case of.Kind() == reflect.Slice && of.Elem().Kind() != reflect.Uint8:
			path, of = path+"[]", of.Elem()
			continue
		case of.Kind() == reflect.Map:
			path, of = path+"{}", of.Elem()
			continue
		}
		break
	}
	text := says.fields[declared]
	for _, verb := range []string{" is ", " says that "} { // a comment above a field begins with its name
		text = strings.TrimPrefix(text, field.Name+verb)
	}
	all[path] = description{w.plainly(in, text), says.path + " " + declared}
	w.describe(all, of, path)
}

func joined(path, key string) string { return strings.TrimPrefix(path+"."+key, ".") }

var (
	links   = regexp.MustCompile(`\[([A-Za-z.]+)\]`)
	byEmpty = strings.NewReplacer(`""`, "empty", "nil for", "left out for", "|", `\|`)
)

// constants are the values of constants that comments link to.
var constants = map[string]string{"ForUser": team.ForUser, "InMerged": team.InMerged, "Always": team.Always,
	"DefaultHandoverAt": fmt.Sprint(team.DefaultHandoverAt), "DefaultPatience": team.Span(team.DefaultPatience),
	"DefaultMaxTeammates": fmt.Sprint(team.DefaultMaxTeammates)}

// plainly returns a comment in the type of, as a text for people who do not read the code. The comment may
// name constants and other fields of the type, and nothing else of the code.
func (w *comments) plainly(of reflect.Type, comment string) string {
	w.t.Helper()
	text := strings.Join(strings.Fields(comment), " ")
	if text, _, _ = strings.Cut(text, "; see ["); strings.HasPrefix(text, "see [") {
		return ""
	}
	text = links.ReplaceAllStringFunc(text, func(link string) string {
		value := constants[strings.Trim(link, "[]")]
		if value == "" {
			w.t.Errorf("the comment %q of a printed field names %s, which a reader of docs/json.md does not know", text,
				link)
		}
		return value
	})
	for i := range of.NumField() { // the first word may be capitalised for another reason
		field := of.Field(i)
		name := regexp.MustCompile(`([ (])` + field.Name + `\b`)
		key := w.of(of.PkgPath()).key(of.Name(), field)
		text = strings.TrimSpace(name.ReplaceAllString(text, "$1`"+key+"`"))
	}
	return byEmpty.Replace(text)
}

// key returns the key of a field in JSON.
func (c *commented) key(of string, field reflect.StructField) string {
	for _, key := range c.coded[of] {
		if c.keys[of+"."+key] == field.Name {
			return key
		}
	}
	if key, _, _ := strings.Cut(field.Tag.Get("json"), ","); key != "" {
		return key
	}
	return strings.ToLower(field.Name[:1]) + field.Name[1:]
}
