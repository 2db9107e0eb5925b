package render_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"cadre/internal/render"
	"cadre/internal/render/sanitize"
)

// onTerminal returns what is written to a terminal of that width.
func onTerminal(t *testing.T, width int, colors bool, write func(w io.Writer) error) string {
	t.Helper()
	var out strings.Builder
	w := sanitize.NewWriter(&out)
	w.Columns, w.Colors = func() int { return width }, colors
	if err := write(w); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// tasks is a table as hostile as a task list can be.
func tasks() *render.Table {
	t := render.NewTable(9, "TASK", "STATUS", "OWNER", "PRIORITY", "SUBJECT")
	t.Texts, t.Spare = []string{"SUBJECT", "STATUS"}, []string{"PRIORITY", "OWNER"}
	t.Row("lint", "failed", "ann", "high", "Lint the billing service and everything that depends on it")
	t.Row("design", "in_progress", "", "medium", strings.Repeat("設計を見直して", 12))
	t.Row("ship", "blocked by lint,design", "bob", "medium", "👩‍💻🚀 "+strings.Repeat("word ", 40))
	t.Row("a-name-that-somebody-made-up-and-that-is-long", "pending", "ann", "low", strings.Repeat("x", 200))
	return t
}

// TestTableFits: on a terminal no line is longer than the screen is wide, no word is cut, and a
// command to type is whole.
func TestTableFits(t *testing.T) {
	for _, width := range []int{60, 80, 200} {
		out := onTerminal(t, width, false, tasks().Write)
		for line := range strings.Lines(out) {
			if columns := render.Width(strings.TrimSuffix(line, "\n")); columns > width {
				t.Errorf("at %d columns a line has %d: %s", width, columns, line)
			}
			kept, cut, _ := strings.Cut(strings.TrimRight(line, "\n"), "…")
			if words := strings.Fields(kept); cut == "" && strings.Contains(line, "…") {
				last := words[len(words)-1]
				if utf8.RuneCountInString(last) == len(last) && !strings.HasPrefix(last, "xxx") &&
					!strings.Contains(" Lint the billing service and everything that depends word ", " "+last+" ") {
					t.Errorf("at %d columns a word is cut: %s", width, line)
				}
			}
		}
		for _, id := range []string{"lint", "design", "ship", "a-name-that-somebody-made-up-and-that-is-long",
			"failed", "in_progress", "pending"} {
			if !strings.Contains(out, id) {
				t.Errorf("at %d columns %s is missing:\n%s", width, id, out)
			}
		}
		if has := strings.Contains(out, "PRIORITY"); has != (width > 60) {
			t.Errorf("at %d columns the priority is there: %v\n%s", width, has, out)
		}
	}
	var whole strings.Builder
	if err := tasks().Write(sanitize.NewWriter(&whole)); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(whole.String(), "…") || strings.Count(whole.String(), "\n") != 5 {
		t.Errorf("in a pipe something is cut:\n%s", whole.String())
	}
}

// TestLongNamesOnTerminal checks a list of tasks with names of thirty letters: a state of which no
// name fits is the word alone.
func TestLongNamesOnTerminal(t *testing.T) {
	const parser, tests = "port-the-parser-to-new-grammar", "write-the-tests-of-the-grammar"
	write := func(w io.Writer) error {
		table := render.Table{Texts: []string{"SUBJECT", "STATUS"}, Spare: []string{"OWNER"}}
		table.Row("TASK", "STATUS", "OWNER", "SUBJECT")
		table.Row(parser, "failed", "ann", "Port the parser to the new grammar, with all of its tests")
		table.Row(tests, "blocked by "+parser, "", "Write tests")
		return table.Write(w)
	}
	for width, want := range map[int]string{
		80: "TASK                            STATUS   SUBJECT\n" +
			parser + "  failed   Port the parser to the new…\n" +
			tests + "  blocked  Write tests\n",
		100: "TASK                            STATUS             OWNER  SUBJECT\n" +
			parser + "  failed             ann    Port the parser to the new grammar,…\n" +
			tests + "  blocked by port-…         Write tests\n",
	} {
		if got := onTerminal(t, width, false, write); got != want {
			t.Errorf("at %d columns it is\n%s\nand not\n%s", width, got, want)
		}
	}
}

// TestTableGroups checks that groups of rows share their columns, and that numbers end in one
// column.
func TestTableGroups(t *testing.T) {
	table := &render.Table{Numbers: []string{"WAITING"}}
	table.Row("NAME", "WAITING", "EMPTY", "DIRECTORY")
	table.Group("Here")
	table.Row("demo", "3", "", "/repo")
	table.Group("Elsewhere")
	table.Row("a-long-name", "12", "", "/other")
	table.Row("b", "", "", "/other")
	table.Compact()
	want := `Here:
NAME         WAITING  DIRECTORY
demo               3  /repo

Elsewhere:
a-long-name       12  /other
b                     /other
`
	if got := onTerminal(t, 80, false, table.Write); got != want {
		t.Errorf("it is\n%s\nand not\n%s", got, want)
	}
}

// TestTableColors checks that a terminal with colors shows the same text, with the head and the
// states in their colors.
func TestTableColors(t *testing.T) {
	colored := onTerminal(t, 80, true, tasks().Write)
	bare := onTerminal(t, 80, false, tasks().Write)
	for _, want := range []string{"\x1b[2mTASK\x1b[0m", "\x1b[31mfailed\x1b[0m", "\x1b[36min_progress\x1b[0m",
		"  pending  "} {
		if !strings.Contains(colored, want) {
			t.Errorf("it lacks %q:\n%q", want, colored)
		}
	}
	for _, look := range []string{"\x1b[0m", "\x1b[2m", "\x1b[31m", "\x1b[33m", "\x1b[36m"} {
		colored = strings.ReplaceAll(colored, look, "")
	}
	if colored != bare {
		t.Errorf("with colors it is\n%s\nand without\n%s", colored, bare)
	}
}

func TestList(t *testing.T) {
	write := func(w io.Writer) error {
		l := render.NewList()
		l.Row("ok", "git", "git version 2")
		l.Row("missing", "claude", "not installed; install Claude Code, and log in once: claude auth login")
		return l.Write(w)
	}
	if got, want := onTerminal(t, 50, false, write), "ok       git     git version 2\n"+
		"missing  claude  not installed; install Claude\n"+
		"                 Code, and log in once: claude\n"+
		"                 auth login\n"; got != want {
		t.Errorf("it is\n%s", got)
	}
	if got := onTerminal(t, 50, true, write); !strings.Contains(got, "\x1b[33mmissing\x1b[0m") {
		t.Errorf("the state has no color: %q", got)
	}
}

func TestReflow(t *testing.T) {
	text := "One sentence that is rather long\nand goes on here.\n\nFlags:\n" +
		"  -a, --all string   what is meant by all of it\n  very-long-name-ofx Something that is long too\n" +
		"  cadre run a-long-file.yaml --with-a-flag --and-another\n\nOne call that a line of the source ends with:\n" +
		"it is no heading, and nor is the line\nbefore these two:\n  ls   all of them\n"
	want := "One sentence that is rather long and goes on\nhere.\n\n*Flags:\n" +
		"  -a, --all string   what is meant by all of\n                     it\n" +
		"  very-long-name-ofx Something that is long\n                     too\n" +
		"  cadre run a-long-file.yaml --with-a-flag --and-another\n\nOne call that a line of the source ends\n" +
		"with: it is no heading, and nor is the line\nbefore these two:\n  ls   all of them\n"
	got := ""
	for _, line := range render.Reflow(text, 44) {
		if line.Heading {
			got += "*"
		}
		got += line.Text + "\n"
	}
	if got != want {
		t.Errorf("it is\n%s", got)
	}
}

func TestCutWords(t *testing.T) {
	for _, c := range []struct {
		text    string
		columns int
		want    string
	}{
		{"short", 10, "short"},
		{"some words more", 11, "some words…"},
		{"some words more", 10, "some…"},
		{"blocked by lint,design", 18, "blocked by lint,…"},
		{"blocked by port-the-parser", 20, "blocked by port-…"},
		{"blocked by port-the-parser", 18, "blocked by port-…"},
		{"unbreakable", 6, "unbre…"},
		{"漢字漢字", 6, "漢字…"},
	} {
		if got := render.CutWords(c.text, c.columns); got != c.want {
			t.Errorf("%q at %d is %q, not %q", c.text, c.columns, got, c.want)
		}
	}
}

func TestSymbols(t *testing.T) {
	for line, want := range map[string]string{"✓ ann  look": "✓| ann  look", "ann": "|ann", "": "|",
		"! bob FAILED": "!| bob FAILED", "✉ a → b": "|✉ a → b"} {
		symbol, rest := render.Symbol(line)
		if got := fmt.Sprint(symbol.Text) + "|" + rest; got != want {
			t.Errorf("%q is %q, not %q", line, got, want)
		}
	}
}
