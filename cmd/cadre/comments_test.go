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
	fields map[string]string // by "Type.Field"
	keys   map[string]string // the field behind "Type.key", for types of package team with their own encoding
	coded  map[string][]string
}

// derived describes fields that no field of a type has.
var derived = map[string]string{
	"Task.state":     "pending, blocked, in_progress, failed, completed or deleted",
	"Task.blocked[]": "ids of the open tasks that it waits for now",
}

// of reads the comments of a package.
func (w *comments) of(path string) *commented {
	w.t.Helper()
	if found := w.packages[path]; found != nil {
		return found
	}
	found := &commented{map[string]string{}, map[string]string{}, map[string][]string{}}
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

// describe adds to all what comments say of the fields of a type, by the paths of a [shape].
func (w *comments) describe(all map[string]string, of reflect.Type, path string) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || !strings.HasPrefix(of.PkgPath(), "cadre/") {
		return
	}
	says := w.of(of.PkgPath())
	name := of.Name()
	for key, text := range derived {
		if rest, is := strings.CutPrefix(key, name+"."); is {
			all[joined(path, rest)] = text
		}
	}
	if keys := says.coded[name]; keys != nil {
		for _, key := range keys {
			if field, is := of.FieldByName(says.keys[name+"."+key]); is {
				w.field(all, says, name, field, joined(path, key))
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
			if key == "" {
				key = strings.ToLower(field.Name[:1]) + field.Name[1:]
			}
			w.field(all, says, name, field, joined(path, key))
		}
	}
}

// field adds what is said of a field, and of the fields of its value.
func (w *comments) field(all map[string]string, says *commented, name string, field reflect.StructField, path string) {
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
	text := says.fields[name+"."+field.Name]
	for _, verb := range []string{" is ", " says that "} { // a comment above a field begins with its name
		text = strings.TrimPrefix(text, field.Name+verb)
	}
	all[path] = w.plainly(text)
	w.describe(all, of, path)
}

func joined(path, key string) string { return strings.TrimPrefix(path+"."+key, ".") }

var (
	links   = regexp.MustCompile(`\[([A-Za-z.]+)\]`)
	byEmpty = strings.NewReplacer(`""`, "empty", "nil for", "left out for", "|", `\|`)
)

// constants are the values of constants that comments link to.
var constants = map[string]string{"ForUser": team.ForUser, "InMerged": team.InMerged, "Always": team.Always,
	"DefaultHandoverAt": fmt.Sprint(team.DefaultHandoverAt), "DefaultPatience": fmt.Sprint(team.DefaultPatience),
	"DefaultMaxTeammates": fmt.Sprint(team.DefaultMaxTeammates)}

// plainly returns a comment of Go code as a text for people who do not read the code. A comment must not
// name anything else of the code than constants.
func (w *comments) plainly(comment string) string {
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
	return byEmpty.Replace(text)
}
