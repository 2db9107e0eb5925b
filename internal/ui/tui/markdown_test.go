package tui

import (
	"slices"
	"strings"
	"testing"
	"time"

	"cadre/internal/render"
	"cadre/internal/render/sanitize"
)

// plan is a plan with everything that agents write in plans.
const plan = "# Port the parser\n\n" +
	"We port it in **three** steps, with *care*, and run `go test ./...` after each one, so that nothing is lost.\n" +
	"Second line.\n\n" +
	"## Steps\n\n" +
	"1. Read the old tests.\n" +
	"2. Write one test for each rule:\n" +
	"   - numbers\n" +
	"   - 文字列 and other texts that are long enough to be broken into two lines\n" +
	"3. Port it.\n\n" +
	"```go\nfunc main() {\n\tprintln(\"*no emphasis*\")\n}\n```\n\n" +
	"> Mind the tabs. See [the notes](https://example.com/notes).\n\n" +
	"| rule | owner | lines |\n| --- | --- | ---: |\n| number | ann | 12 |\n| string `a\\|b` | bob | 340 |\n\n" +
	"---\n\n" +
	"<b>raw</b> &lt;i&gt; \\*kept\\* snake_case_name 2 * 3 * 4\n"

// TestMarkdown compares the layout of a plan with a golden file, in a usual and in a narrow width.
func TestMarkdown(t *testing.T) {
	for width, name := range map[int]string{76: "markdown-76", 30: "markdown-30"} {
		lines := markdown(plan, width)
		for _, l := range lines {
			if w := render.Widest(stripped(l)); w > width {
				t.Errorf("a line has %d columns, and not %d: %q", w, width, l)
			}
		}
		compare(t, name, stripped(strings.Join(lines, "\n")))
		compare(t, name+"-colors", strings.ReplaceAll(strings.Join(lines, "\n"), "\x1b", "␛"))
	}
}

// TestMarkdownIsHarmless: Markdown cannot say what the text itself may not.
func TestMarkdownIsHarmless(t *testing.T) {
	for _, evil := range []string{"&#27;[2J", "&#x202e;x", "[a](<\x1b[2J>)", "`\x1b[31m`",
		"    \x1b]0;x\x07", "<\x1b[2J>",
		"| a\x9b | b |\n| - | - |\n| \u200b\x1b[2J | c |", "e**\u0301**\u202e**x**", "![\x1b[2J](\x1b[3J)", "- \x1b[2J",
		"<http://\x1b[2J>"} {
		for _, l := range markdown(sanitize.Lines(evil), 40) {
			if text := stripped(l); text != sanitize.Line(text) {
				t.Errorf("%q is shown as %q", evil, l)
			}
		}
	}
}

// TestMarkdownHasAll: no word is lost, and a text that is no Markdown stays line by line.
func TestMarkdownHasAll(t *testing.T) {
	got := stripped(strings.Join(markdown(plan, 40), " "))
	for _, word := range strings.FieldsFunc(plan, func(r rune) bool { return strings.ContainsRune(" \n\t*`#>|[]()-:\\", r) }) {
		if !strings.Contains(got, word) {
			t.Errorf("the word %q is lost:\n%s", word, got)
		}
	}
	for _, hides := range []string{"| a | b |\n| - | - |\n| 1 | 2 | rm -rf / |",
		"[a]: http://hidden.example (and its title)",
		"```sh and more\nls\n```", "text\n<!--\nhidden\n-->\n", "[x](http://a.example \"a title\")"} {
		got := stripped(strings.Join(markdown(hides, 60), " "))
		for _, word := range []string{"rm -rf", "hidden", "title", "and more"} {
			if strings.Contains(hides, word) && !strings.Contains(got, word) {
				t.Errorf("%q is shown as %q", hides, got)
			}
		}
	}
	const lines = "First do this.\nThen do that.\n\nAt last rest."
	if got := strings.Join(markdown(lines, 40), "\n"); got != lines {
		t.Errorf("%q", got)
	}
	if got := markdown("", 40); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

// TestCommandsCanBeCopied: a command that takes several lines is still one command for a shell.
func TestCommandsCanBeCopied(t *testing.T) {
	const command = "git worktree add /home/kim/.cadre/teams/demo/worktrees/bob cadre/demo@bob"
	lines := strings.Split(stripped(strings.Join(markdown("Merge them:\n\n    "+command, 50), "\n")), "\n")[2:]
	if len(lines) < 2 {
		t.Fatalf("it is not broken: %q", lines)
	}
	var whole []string
	for i, l := range lines {
		text, continues := strings.CutSuffix(strings.TrimSpace(l), " \\")
		if continues != (i < len(lines)-1) || render.Widest(l) > 50 {
			t.Errorf("line %d is %q", i, l)
		}
		whole = append(whole, text)
	}
	if got := strings.Join(whole, " "); got != command {
		t.Errorf("the command is %q", got)
	}
}

// TestOnlyWordsAreContinued: a mark that a line continues stands only between two words. Within a
// word, a quoted path or a comment, it would change the command.
func TestOnlyWordsAreContinued(t *testing.T) {
	long := strings.Repeat("x", 60)
	for command, want := range map[string][]string{
		"git add " + long + " b":     {`git add \`, long[:38], long[38:] + ` \`, "b"},
		"git add 'one path' " + long: {`git add 'one path' \`, long[:40], long[40:]},
		`git add "a \" path with many long words in a quote" b`: {`git add \`,
			`"a \" path with many long words in a`, `quote" \`, "b"},
		`git add one\ path/that\ has/some\ spaces b c`:  {`git add \`, `one\ path/that\ has/some\ spaces b c`},
		"git fetch origin # and then look at all of it": {`git fetch \`, "origin # and then look at all of it"},
		"git add 'not closed, and long enough to break": {`git add \`, "'not closed, and long enough to break"},
	} {
		if got := wrapCommand(command, 40); !slices.Equal(got, want) {
			t.Errorf("%s:\n%q, want\n%q", command, got, want)
		}
	}
	if got := stripped(strings.Join(markdown("    git add 'one path of many words'", 30), "\n")); strings.Contains(got, `of \`) {
		t.Errorf("the path is changed:\n%s", got)
	}
}

// TestMarkdownTime: a text that is made to be slow is laid out in time.
func TestMarkdownTime(t *testing.T) {
	for _, one := range []string{"[", "*", "> ", "- ", "`", "![", "*a_", "<a", "|", "&", "\\", "a**b", "[a](",
		"1. ", "\n- "} {
		text := strings.Repeat(one, (64<<10)/len(one))
		began := time.Now()
		markdown(text, 40)
		if took := time.Since(began); took > time.Second {
			t.Errorf("%q takes %v", one, took)
		} else if took > 200*time.Millisecond {
			t.Logf("%q takes %v", one, took)
		}
	}
}

// FuzzMarkdown: no text ends the program or becomes harmful, and no line is too wide but for what
// cannot be broken.
func FuzzMarkdown(f *testing.F) {
	f.Add(plan, 40)
	f.Fuzz(func(t *testing.T, text string, width int) {
		width = 20 + max(0, width)%100
		for _, l := range markdown(sanitize.Lines(text), width) {
			if text := stripped(l); text != sanitize.Line(text) || render.Widest(text) > width+20 {
				t.Errorf("%d columns: %q", width, l)
			}
		}
	})
}
