// Package typedoc reads in the source what comments say of types, of their fields and of constants.
// Tests make documents of it, so that what a document says of a field is beside the field.
//
// # Authority
//
// It knows how a type is written as JSON: by the tags of its fields, or by the method fields of the
// types of package team, which have an encoding of their own. It reports a comment that a reader of
// a document would not understand as an error of the test.
//
// # Guarantees
//
//   - It reads only files of this repository, and writes none.
//   - The fields of a type come in the order in which they are written.
package typedoc

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

// Comments has what the comments in the code say of types. It belongs to one test.
type Comments struct {
	t        testing.TB
	top      string
	packages map[string]*commented
}

// New returns the comments of the repository in the directory top.
func New(t testing.TB, top string) *Comments {
	return &Comments{t, top, map[string]*commented{}}
}

// commented is what one package says of its types.
type commented struct {
	path   string
	types  map[string]string // by their names
	fields map[string]string // by "Type.Field"
	keys   map[string]string // the field behind "Type.key", for types of package team with their own encoding
	units  map[string]string // the unit of the length of time behind "Type.key", as in "milliseconds"
	coded  map[string][]string
	values []constant
}

// constant is a text that a field can have.
type constant struct{ name, of, value, about string }

// derived describes fields that no field of a type has.
var derived = map[string]string{
	"Task.state":      "pending, blocked, in_progress, verifying, failed, skipped, completed or deleted",
	"Task.blocked[]":  "ids of the open tasks that it waits for now",
	"Base.dirty":      "number of files that differed from that commit",
	"Record.v":        "version of the format",
	"Record.events[]": "what changed, in order",
}

// of reads the comments of a package.
func (w *Comments) of(path string) *commented {
	w.t.Helper()
	if found := w.packages[path]; found != nil {
		return found
	}
	found := &commented{path: path, types: map[string]string{}, fields: map[string]string{}, keys: map[string]string{},
		units: map[string]string{}, coded: map[string][]string{}}
	w.packages[path] = found
	dir := filepath.Join(w.top, strings.TrimPrefix(path, "cadre/"))
	entries, err := os.ReadDir(dir)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := goparser.ParseFile(token.NewFileSet(), filepath.Join(dir, entry.Name()), nil,
			goparser.ParseComments)
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
			if one, is := spec.(*ast.ValueSpec); is && d.Tok == token.CONST && len(one.Names) == 1 &&
				len(one.Values) == 1 {
				c.constant(one)
			}
			one, is := spec.(*ast.TypeSpec)
			if !is {
				continue
			}
			c.types[one.Name.Name] = strings.TrimSpace(one.Doc.Text())
			if !d.Lparen.IsValid() {
				c.types[one.Name.Name] = strings.TrimSpace(d.Doc.Text())
			}
			of, is := one.Type.(*ast.StructType)
			if !is {
				continue
			}
			for _, field := range of.Fields.List {
				for _, name := range field.Names {
					c.fields[one.Name.Name+"."+name.Name] = strings.TrimSpace(field.Doc.Text() + " " +
						field.Comment.Text())
				}
			}
		}
	case *ast.FuncDecl:
		if !strings.HasPrefix(d.Name.Name, "fields") || d.Recv == nil {
			return
		}
		pointer, is := d.Recv.List[0].Type.(*ast.StarExpr)
		if !is {
			return
		}
		of := pointer.X.(*ast.Ident).Name
		ast.Inspect(d.Body, func(n ast.Node) bool {
			if call, is := n.(*ast.CallExpr); is {
				if key, field, unit := coded(call); key != "" && field != "" {
					c.keys[of+"."+key], c.units[of+"."+key] = field, unit
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

// List returns a table of the values that the field with that key can have: the constants of a
// type, or those whose names begin with a prefix.
func (w *Comments) List(of reflect.Type, typeOrPrefix, key string) string {
	w.t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "| `%s` | what it means |\n| --- | --- |\n", key)
	for _, c := range w.of(of.PkgPath()).values {
		if c.of != typeOrPrefix && (c.of != "" || !strings.HasPrefix(c.name, typeOrPrefix)) {
			continue
		}
		about := w.plainly(of, c.about)
		if about == "" {
			w.t.Errorf("the constant %s has no comment that a document could show", c.name)
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", c.value, about)
	}
	return b.String()
}

// coded returns the key and the field of a call that encodes one, such as c.str("id", &t.ID). For a
// length of time it also returns the unit.
func coded(call *ast.CallExpr) (key, field, unit string) {
	for _, arg := range call.Args {
		if text, is := arg.(*ast.BasicLit); is && text.Kind == token.STRING {
			key = strings.Trim(text.Value, `"`)
		}
		if of, is := arg.(*ast.SelectorExpr); is && strings.HasSuffix(of.Sel.Name, "econd") { // time.Millisecond
			unit = strings.ToLower(of.Sel.Name) + "s"
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
	return key, field, unit
}

// Description is what a comment says of a field.
type Description struct {
	Text  string
	Field string // where the comment is, as in "cadre/internal/team Task.ID"
}

// Describe adds to all what comments say of the fields of a type, and of the fields of their
// values, by their paths: a.b for the field b of a, a[] for an element of a list, a{} for a value
// of a mapping.
func (w *Comments) Describe(all map[string]Description, of reflect.Type, path string) {
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
				all[joined(path, rest)] = Description{Text: text}
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
			w.Describe(all, field.Type, path)
		default:
			w.field(all, says, of, field, joined(path, says.key(name, field)))
		}
	}
}

// field adds what is said of a field, and of the fields of its value.
func (w *Comments) field(all map[string]Description, says *commented, in reflect.Type, field reflect.StructField,
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
	all[path] = Description{w.plainly(in, text), says.path + " " + declared}
	w.Describe(all, of, path)
}

// Field is a field of a type, as it is written in JSON.
type Field struct {
	reflect.StructField
	Key   string
	Text  string // what its comment says, and the unit of a length of time
	Coded bool   // it is written by a method fields, which leaves it out where it is zero
}

// Fields returns the fields of a struct that its JSON may have, without those of the values in
// them. Those of an embedded struct are among them.
func (w *Comments) Fields(of reflect.Type) (all []Field) {
	says := w.of(of.PkgPath())
	text := func(field reflect.StructField, key string) string {
		found, unit := map[string]Description{}, says.unit(of.Name(), key, field.Type)
		field.Type = reflect.TypeFor[int]() // what is below it is not asked for
		w.field(found, says, of, field, "")
		return in(unit, found[""].Text)
	}
	if keys := says.coded[of.Name()]; keys != nil {
		for _, key := range keys {
			if field, is := of.FieldByName(says.keys[of.Name()+"."+key]); is && field.IsExported() {
				all = append(all, Field{field, key, text(field, key), true})
			}
		}
		return all
	}
	for i := range of.NumField() {
		field := of.Field(i)
		key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		inner := field.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case key == "-" || !field.IsExported():
		case field.Anonymous && key == "" && inner.Kind() == reflect.Struct:
			all = append(all, w.Fields(inner)...)
		default:
			key := says.key(of.Name(), field)
			all = append(all, Field{field, key, text(field, key), false})
		}
	}
	return all
}

// in adds the unit of a length of time to what is said of it, if that lacks it.
func in(unit, text string) string {
	what, more, _ := strings.Cut(text, "; ") // such as: 0 for the default
	switch {
	case unit == "" || strings.Contains(text, unit):
		return text
	case text == "":
		return "in " + unit
	case more != "":
		more = "; " + more
	}
	return what + ", in " + unit + more
}

// unit returns the unit in which JSON has a length of time; "" for another field.
func (c *commented) unit(of, key string, t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == reflect.TypeFor[team.Duration]() {
		return "milliseconds"
	}
	return c.units[of+"."+key]
}

// Type returns the comment of a type.
func (w *Comments) Type(of reflect.Type) string {
	return strings.Join(strings.Fields(w.of(of.PkgPath()).types[of.Name()]), " ")
}

// Derived returns what is said of the fields that no field of the type has, by their keys.
func (w *Comments) Derived(of reflect.Type) map[string]string {
	all := map[string]string{}
	for key, text := range derived {
		if rest, is := strings.CutPrefix(key, of.Name()+"."); is && of.PkgPath() == "cadre/internal/team" {
			all[strings.TrimSuffix(rest, "[]")] = text
		}
	}
	return all
}

func joined(path, key string) string { return strings.TrimPrefix(path+"."+key, ".") }

var (
	links   = regexp.MustCompile(`\[([A-Za-z.]+)\]`)
	byEmpty = strings.NewReplacer(`""`, "empty", "nil for", "left out for", "|", `\|`)
)

// constants are the values of constants that comments link to.
var constants = map[string]string{"ForUser": team.ForUser, "InMerged": team.InMerged, "Always": team.Always,
	"OnFailure": team.OnFailure, "ByResult": team.ByResult, "ByCheck": team.ByCheck,
	"DefaultHandoverAt": fmt.Sprint(team.DefaultHandoverAt), "DefaultPatience": team.Span(team.DefaultPatience),
	"DefaultMaxTeammates": fmt.Sprint(team.DefaultMaxTeammates)}

// plainly returns a comment in the type of, as a text for people who do not read the code. The
// comment may name constants and other fields of the type, and nothing else of the code.
func (w *Comments) plainly(of reflect.Type, comment string) string {
	w.t.Helper()
	text := strings.Join(strings.Fields(comment), " ")
	if text, _, _ = strings.Cut(text, "; see ["); strings.HasPrefix(text, "see [") {
		return ""
	}
	text = links.ReplaceAllStringFunc(text, func(link string) string {
		value := constants[strings.Trim(link, "[]")]
		if value == "" {
			w.t.Errorf("the comment %q of a printed field names %s, which a reader of a document does not know", text,
				link)
		}
		return value
	})
	for i := range of.NumField() { // the first word may be capitalised for another reason
		field := of.Field(i)
		if !strings.Contains(text, field.Name) { // most often, and an expression takes long to make
			continue
		}
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
