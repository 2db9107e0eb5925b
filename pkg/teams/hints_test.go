package teams

import (
	_ "embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"cadre/internal/team"
)

//go:embed hints.go
var hintsSource string

// TestActions checks that every action of the core has a constant here.
func TestActions(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "hints.go", hintsSource, 0)
	if err != nil {
		t.Fatal(err)
	}
	var here []team.Action
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && fmt.Sprint(v.Type) == "Action" {
			s, _ := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			here = append(here, team.Action(s))
		}
		return true
	})
	if want := team.Actions(); !slices.Equal(here, want) {
		t.Errorf("got %q, want the core's %q", here, want)
	}
}

// TestHintsAreWhole checks that no field of a hint is lost on the way out or back.
func TestHintsAreWhole(t *testing.T) {
	var full team.Hint
	v := reflect.ValueOf(&full).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.String:
			f.SetString("field " + strconv.Itoa(i))
		case reflect.Slice:
			f.Set(reflect.ValueOf([]string{"field", strconv.Itoa(i)}))
		default:
			t.Fatalf("the test cannot fill %s", v.Type().Field(i).Name)
		}
	}
	out := hint(full)
	if back := out.core(); !reflect.DeepEqual(back, full) {
		t.Errorf("%+v came back as %+v", full, back)
	}
	o := reflect.ValueOf(out)
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; fmt.Sprint(o.FieldByName(name)) != fmt.Sprint(v.Field(i)) {
			t.Errorf("%s became %v", name, o.FieldByName(name))
		}
	}
}

// TestRefusalsHaveHints checks that a refusal is data: its code, its sentence, and the hints.
func TestRefusalsHaveHints(t *testing.T) {
	for _, a := range team.Actions() {
		refused := team.Refuse(team.NotReady, "no").With(team.Hint{Action: a, Team: "demo", Member: "ann", Task: "3",
			Paths: []string{"a.txt"}})
		e, ok := public(fmt.Errorf("so: %w", refused)).(*Error)
		if !ok || e.Code != ErrNotReady || e.Text != "so: no" || len(e.Hints) != 1 || e.Hints[0].Action != Action(a) ||
			e.Hints[0].Team != "demo" || e.Hints[0].Purpose() == "" {
			t.Errorf("%s: %+v", a, e)
		}
	}
}
