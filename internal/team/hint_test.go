package team_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cadre/internal/team"
)

// TestNoLiteralNamesACommand checks the core, and the packages whose refusals and notes have the
// core's typed hints. Texts for git may contain options there.
func TestNoLiteralNamesACommand(t *testing.T) {
	ofCadre := regexp.MustCompile(`\bcadre (attention|cleanup|consolidate|lead|log|pull|push|resume|run|show|status|task)\b`)
	for dir, command := range map[string]*regexp.Regexp{".": regexp.MustCompile(`\bcadre |(^|[\s('"])--[a-z]`),
		"../consolidate": ofCadre, "../engine/transfer": ofCadre, "../host": ofCadre, "../liveness/detector": ofCadre} {
		for _, planted := range []string{"resume it: cadre resume demo", "remove it: cadre pull ",
			"cadre task show %s"} {
			if !command.MatchString(planted) {
				t.Fatalf("%s: %q would not be found", dir, planted)
			}
		}
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: got the files %v (%v), want at least one", dir, files, err)
		}
		for _, path := range files {
			if !strings.HasSuffix(path, "_test.go") {
				lookForCommands(t, path, command)
			}
		}
	}
}

func lookForCommands(t *testing.T, path string, command *regexp.Regexp) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, 0)
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

// TestActions checks that every constant of the type is in the list, and each has a purpose.
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
		{"each once", errors.Join(one, fmt.Errorf("x: %w", two)),
			[]team.Hint{resume, without, {Action: team.ActShowLog}}},
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
