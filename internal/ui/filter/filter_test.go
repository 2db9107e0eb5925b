package filter

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"cadre/internal/team"

	"pgregory.net/rapid"
)

// cases are what filters select from some items, and the mistakes in others. The board, which has
// the language a second time, reads the same file.
type cases struct {
	Items    map[string]Item
	Selects  map[string][]string // by the text of the filter
	Mistakes map[string]struct {
		At   int
		Says string
	}
}

func readCases(t *testing.T) (c cases) {
	t.Helper()
	data, err := os.ReadFile("testdata/cases.json")
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestMatch(t *testing.T) {
	c := readCases(t)
	for text, want := range c.Selects {
		f, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got := []string{}
		for name, item := range c.Items {
			if f.Match(item) {
				got = append(got, name)
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s selects %v, not %s", text, got, want)
		}
		if f.Empty() != (strings.TrimSpace(text) == "") {
			t.Errorf("%q is empty: %t", text, f.Empty())
		}
	}
}

func TestErrorsSayWhatToType(t *testing.T) {
	for text, want := range readCases(t).Mistakes {
		_, err := Parse(text)
		var wrong *Error
		if !errors.As(err, &wrong) || wrong.At != want.At || wrong.Text != want.Says {
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

// TestCompletionsAreFilters checks that whatever is offered for whatever is typed can be read,
// unless it ends with a key.
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
