package filter

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"cadre/internal/team"

	"pgregory.net/rapid"
)

var items = map[string]Item{
	"lint": {Team: "core", Members: []string{"ann"}, States: []string{"in_progress"}, Number: "1", Name: "lint",
		Words: []string{"Run the linter", "lint", "core"}},
	"tests": {Team: "core", Members: []string{"anna"}, States: []string{"blocked", "pending"}, Number: "12",
		Words: []string{"Write unit tests", "core"}},
	"docs": {Team: "Web", States: []string{"completed"}, Number: "2", Name: "docs", Words: []string{"Écrire 文書", "web"}},
}

func TestMatch(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "docs lint tests",
		"   ":                        "docs lint tests",
		"m:ann":                      "lint tests",
		`m:"ann"`:                    "lint",
		"owner:ANNA":                 "tests",
		"-m:ann":                     "docs",
		"s:blocked":                  "tests",
		"s:in":                       "lint",
		"status:blocked state:compl": "docs tests",
		"s:blocked m:ann":            "tests",
		"s:blocked -m:ann":           "",
		"#12":                        "tests",
		"#1":                         "lint",
		"#DOCS":                      "docs",
		"#1 #2":                      "docs lint",
		"-#1":                        "docs tests",
		"t:core":                     "lint tests",
		"team:web":                   "docs",
		"run":                        "lint",
		"run unit":                   "",
		`"unit tests"`:               "tests",
		`-"unit tests"`:              "docs lint",
		"écrire":                     "docs",
		"文":                          "docs",
		"run t:core s:in_progress":   "lint",
	} {
		f, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var got []string
		for name, item := range items {
			if f.Match(item) {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("%s selects %v, not %s", text, got, want)
		}
		if f.Empty() != (strings.TrimSpace(text) == "") {
			t.Errorf("%q is empty: %t", text, f.Empty())
		}
	}
}

func TestErrorsSayWhatToType(t *testing.T) {
	for text, want := range map[string]struct {
		at   int
		part string
	}{
		`lint "unit`: {5, `write "unit"`},
		"m:":         {0, "such as m:ann"},
		"x s:":       {2, "such as s:blocked"},
		"#":          {0, "such as #12"},
		"-":          {0, "such as -s:completed"},
		`""`:         {0, "empty"},
		"x:y":        {0, `quote it: "x:y"`},
		":y":         {0, "is not a key"},
		"a s:foo":    {2, "the states are aborted, active, blocked"},
	} {
		_, err := Parse(text)
		var wrong *Error
		if !errors.As(err, &wrong) || wrong.At != want.at || !strings.Contains(wrong.Text, want.part) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestComplete(t *testing.T) {
	known := Known{Members: []string{"ann", "bob"}, Teams: []string{"core", "two words"}, Tasks: []string{"lint", "12"}}
	for text, want := range map[string]struct {
		from  int
		terms string
	}{
		"":          {0, "m: s: t:"},
		"lint ":     {5, "m: s: t:"},
		"-":         {0, "-m: -s: -t:"},
		"m":         {0, "m:"},
		"m:":        {0, "m:ann m:bob"},
		"x -m:B":    {2, "-m:bob"},
		"m:bob":     {0, ""},
		"s:bl":      {0, "s:blocked"},
		"team:tw":   {0, `team:"two words"`},
		`t:"two wo`: {0, `t:"two words"`},
		"#l":        {0, "#lint"},
		"x:":        {0, ""},
		"word":      {0, ""},
	} {
		from, terms := Complete(text, len(text), known)
		if from != want.from || strings.Join(terms, " ") != want.terms {
			t.Errorf("%q: %d %q", text, from, terms)
		}
	}
	if from, terms := Complete("m: s:x", 2, known); from != 0 || len(terms) != 2 {
		t.Errorf("in the middle: %d %q", from, terms)
	}
	if from, _ := Complete("m:", 99, known); from != 0 {
		t.Errorf("beyond the end: %d", from)
	}
}

// TestCompletionsAreFilters checks that whatever is offered for whatever is typed can be read, unless
// it ends with a key.
func TestCompletionsAreFilters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune(`m:s t#-"annébo文 x`))).Draw(t, "text")
		cursor := rapid.IntRange(0, len(text)).Draw(t, "cursor")
		Parse(text)
		from, terms := Complete(text, cursor, Known{Members: []string{"ann", "bob", `o"d d`}, Tasks: []string{"文"}})
		if from > cursor {
			t.Fatalf("%q from %d to %d", text, from, cursor)
		}
		for _, term := range terms {
			if _, err := Parse(term); err != nil && !strings.HasSuffix(term, ":") {
				t.Fatalf("%q: %v", term, err)
			}
		}
	})
}

func TestItems(t *testing.T) {
	f, err := Parse("m:ann s:active core")
	if err != nil {
		t.Fatal(err)
	}
	if !f.Match(Member("core", team.Member{Name: "ann", Status: team.Active}, team.Zombie)) ||
		f.Match(Member("web", team.Member{Name: "ann", Status: team.Active}, team.Phase(team.Active))) {
		t.Error("a member")
	}
	if !f.Match(Team(team.Team{Name: "core", Status: team.TeamActive}, "dormant", []string{"bob", "ann"})) {
		t.Error("a team")
	}
	f, err = Parse("s:failed #3")
	if err != nil {
		t.Fatal(err)
	}
	if !f.Match(Task("core", team.Task{ID: "3", Status: team.Pending, Failure: "exit 1", Failures: 1})) {
		t.Error("a task that failed")
	}
}
