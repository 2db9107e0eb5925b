package report_test

import (
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"pgregory.net/rapid"

	"cadre/internal/render/report"
	"cadre/internal/testkit/golden"
)

func render(t testing.TB, r report.Report) string {
	var b strings.Builder
	if err := report.Markdown(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestGolden(t *testing.T) {
	start := time.Date(2026, 3, 1, 9, 30, 0, 0, time.FixedZone("CET", 3600))
	full := report.Report{
		Title: "Health of this repository", Goal: "Find what a maintainer\nshould look at first.\n",
		Team: "health", TeamID: "health-7f3a", Lead: "lead", Dir: "/home/ada/src/engine", Commit: "1f2e3d4",
		Started: start, Finished: start.Add(2*time.Minute + 3400*time.Millisecond),
		Members: []report.Member{{"historian", "shell", "reader"}, {"builder", "shell", ""}, {"ada", "external", ""}},
		Tasks: []report.Task{
			{ID: "hotspots", Subject: "Hot spots in the history", Member: "historian", Outcome: report.Done,
				Duration: 1234 * time.Millisecond, Attempts: 1,
				Result: "**3 files** take half of all changes.\n\n# Files\n\n| file | changes |\n| :--- | ---: |\n| " +
					"`a.go` | 12 |\n\nAuthors\n-------\n\nAda.\n"},
			{ID: "build", Subject: "Build and test", Member: "builder", Outcome: report.Failed,
				Duration: 61 * time.Second, Attempts: 3,
				Reason: "the command failed", ExitCode: 2, Output: "cc -c main.c\n```\nmain.c:1: error\n```\nmake: " +
					"*** [all] Error 1\n"},
			{ID: "secrets", Subject: "Likely secrets", Member: "historian", Outcome: report.Done,
				Duration: 80 * time.Millisecond, Attempts: 2, Result: "Nothing found.\n",
				Files: "a_b.go, c.go and 3 more (maybe also by ada)", Checked: "its check \"make *x*\" passed; accepted by ada",
				Verdicts: []report.Verdict{{"ada rejected it (task 8)", "One file\nis missing."}, {"ada accepted it (task 9)", ""}}},
			{ID: "lint", Subject: "Lint", Member: "builder", Outcome: report.Unfinished, Attempts: 1},
			{ID: "summary", Subject: "What to do first", Outcome: report.NotRun, BlockedBy: []string{"build", "lint"}},
			{ID: "spare", Subject: "Spare", Outcome: report.NotRun},
			{ID: "mourn", Subject: "Say what failed", Outcome: report.Skipped, Reason: "nothing that it waits for failed"},
			{ID: "quiet", Subject: "Quiet", Member: "ada", Outcome: report.Done, Words: true, Result: "All is quiet."},
		},
		Sections: []string{"secrets", "hotspots", "build", "summary", "quiet"},
		Usage:    report.Usage{Tokens: 1234567, USD: 2.5},
	}
	hostile := report.Report{
		Title: "A | b\n# c <script>", Goal: "*bold* [link](x) \x1b[31mred\x1b[0m", Dir: "/tmp/a`b``c", Team: "t|`x",
		Tasks: []report.Task{
			{ID: "a|b`c", Subject: "pipes | and\nlines # <b>", Member: "m|`", Outcome: report.Done,
				Result: "# One\r\n\r\nTwo\r\n===\r\n\r\nthree\x00\x07 \u202egnirts\n---\n```go\n# not a " +
					"heading\n~~~\n````\n# not any more\n~~~~ open\n# code\n<!-- not a comment in code\n"},
			{ID: "html", Subject: "HTML", Outcome: report.Done,
				Result: "A <b>verdict</b> with `<code>` and <https://example.org/?a=b.\n\n<!-- swallow\n<details>\n  " +
					" <pre>\n- item\n---\n- ```sh\n  # in a list\n  ```\n1. step\n   ```sh\n   make <x>\n     " +
					"deeper\n   ```\n"},
			{ID: "fail", Subject: "Fails", Outcome: report.Failed, Reason: "timed out | `after` <b>5s</b>",
				Output: "\x1b[1;31mred\x1b[0m `````` \xff\xfe ~~~\r\nlast"},
			{ID: "silent", Subject: "Silent", Outcome: report.Failed, ExitCode: 137},
			{ID: "long", Subject: strings.Repeat("long ", 100), Outcome: report.NotRun, BlockedBy: []string{"gone"}},
			{ID: "", Subject: "", Outcome: "strange"},
		},
	}
	for _, c := range []struct {
		name string
		r    report.Report
	}{{"full", full}, {"hostile", hostile}, {"empty", report.Report{}}} {
		t.Run(c.name, func(t *testing.T) {
			golden.File(t, "testdata/"+c.name+".md", render(t, c.r))
		})
	}
}

func TestHugeTexts(t *testing.T) {
	line := strings.Repeat("é", 50) + "\n"
	got := render(t, report.Report{Tasks: []report.Task{
		{ID: "one", Subject: "One", Outcome: report.Done, Result: "```\n" + strings.Repeat(line, 100_000)},
		{ID: "two", Subject: "Two", Outcome: report.Failed, Output: strings.Repeat(line, 100_000) + "the end"},
		{ID: "three", Subject: "Three", Outcome: report.Done, Result: strings.Repeat("`", 1<<20)},
		{ID: "four", Subject: "Four", Outcome: report.Done, Result: strings.Repeat("`<a ``", 1<<18)},
	}})
	if len(got) > 6*report.MaxText {
		t.Errorf("the report has %d bytes", len(got))
	}
	for _, want := range []string{"bytes before this are left out", "the end\n```", "more bytes of this result are " +
		"left out.*", "\n## Three\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in the report", want)
		}
	}
}

// TestOutlineProperty: whatever tasks print, the outline of levels 1 and 2 is the report's own, and
// nothing in it controls a terminal.
func TestOutlineProperty(t *testing.T) {
	pieces := []string{"# h", "## h", "text", "===", "---", "", "```", "````", "~~~", "  ```sh", "    ```", "- item",
		"- ```", "1. one", "   more",
		"> quote", "> ```", "<!--", "<pre>", "<details>", "| a | b |", "`", "``", "\ttab", "\x1b[2J", "\r", "\x00",
		"\xff", "[a]: b", "#", "\\"}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 12).Draw(t, "lines"), "\n")
		r := report.Report{Title: text, Goal: text, Dir: text, Team: text, Tasks: []report.Task{
			{ID: text, Subject: "One " + text, Outcome: report.Done, Result: text, Files: text, Checked: text,
				Verdicts: []report.Verdict{{text, text}}},
			{ID: "2", Subject: "Two", Outcome: report.Failed, Reason: text, Output: text, Result: text},
			{ID: "3", Subject: "Three", Outcome: report.Done, Result: "the last words"},
		}}
		var b strings.Builder
		if err := report.Markdown(&b, r); err != nil {
			t.Fatal(err)
		}
		if i := strings.IndexFunc(b.String(), func(r rune) bool {
			return unicode.IsControl(r) && r != '\n' &&
				r != '\t'
		}); i >= 0 {
			t.Fatalf("control character at %d", i)
		}
		var outline []string
		for _, line := range outside(b.String()) {
			if strings.HasPrefix(line, "# ") || strings.HasPrefix(line, "## ") {
				outline = append(outline, strings.Fields(line)[0]+strings.Fields(line + " -")[1])
			}
		}
		got := strings.Join(outline[1:], " ")
		if outline[0][:1] != "#" || got != "##At ##Failed ##Tasks ##One ##Three" {
			t.Fatalf("outline %q of\n%s", outline, b.String())
		}
	})
}

// outside gives the lines of a Markdown text that are not in a fence.
func outside(text string) (lines []string) {
	fence := regexp.MustCompile("^ {0,3}(`{3,}|~{3,})([^`]*)$")
	open := ""
	for line := range strings.SplitSeq(text, "\n") {
		m := fence.FindStringSubmatch(line)
		switch {
		case open == "" && m != nil:
			open = m[1]
		case open == "":
			lines = append(lines, line)
		case m != nil && strings.HasPrefix(m[1], open) && strings.TrimSpace(m[2]) == "":
			open = ""
		}
	}
	return lines
}
