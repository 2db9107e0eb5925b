package team_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cadre/internal/team"
)

// The core names no command line and no flag: which front end shows its words is not known here.
func TestNoLiteralNamesACommand(t *testing.T) {
	command := regexp.MustCompile(`\bcadre |(^|[\s('"])--[a-z]`)
	for _, planted := range []string{"resume it: cadre resume demo", "remove it: cadre ", "everything with --force"} {
		if !command.MatchString(planted) {
			t.Fatalf("%q would not be found", planted)
		}
	}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, f.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			l, ok := n.(*ast.BasicLit)
			if !ok || l.Kind != token.STRING {
				return true
			}
			if s, err := strconv.Unquote(l.Value); err != nil || command.MatchString(s) {
				t.Errorf("%s: %s names a command line: say what would help with a hint", set.Position(l.Pos()), l.Value)
			}
			return true
		})
	}
}

// Every constant of the type is in the list, and each says what it is good for.
func TestActions(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "hint.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var declared []team.Action
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && fmt.Sprint(v.Type) == "Action" {
			s, _ := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			declared = append(declared, team.Action(s))
		}
		return true
	})
	listed := team.Actions()
	slices.Sort(declared)
	slices.Sort(listed)
	if len(declared) == 0 || !slices.Equal(declared, listed) {
		t.Errorf("declared %q,\nlisted   %q", declared, listed)
	}
	for _, a := range listed {
		h := team.Hint{Action: a, Member: "ann", Task: "3", Paths: []string{"a.txt"}}
		if p := h.Purpose(); p == "" || strings.HasPrefix(p, "to ") || strings.HasSuffix(p, ".") {
			t.Errorf("%s is good for %q", a, p)
		}
	}
}

func TestHintsOf(t *testing.T) {
	resume := team.Hint{Action: team.ActResume, Team: "demo"}
	without := team.Hint{Action: team.ActGoWithout, Team: "demo", Tasks: []string{"1", "2"}}
	one := team.Refuse(team.NotReady, "one").With(resume, without)
	two := team.Refuse(team.NotReady, "two").With(without, team.Hint{Action: team.ActShowLog})
	for _, c := range []struct {
		name string
		err  error
		want []team.Hint
	}{
		{"nil", nil, nil},
		{"no refusal", errors.New("no"), nil},
		{"itself", one, []team.Hint{resume, without}},
		{"wrapped", fmt.Errorf("more: %w", one), []team.Hint{resume, without}},
		{"each once", errors.Join(one, fmt.Errorf("x: %w", two)), []team.Hint{resume, without, {Action: team.ActShowLog}}},
		{"below two", fmt.Errorf("%w, %w", errors.New("no"), two), []team.Hint{without, {Action: team.ActShowLog}}},
	} {
		if got := team.HintsOf(c.err); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	if team.CodeOf(fmt.Errorf("x: %w", one)) != team.NotReady {
		t.Error("a refusal with hints lost its code")
	}
}
