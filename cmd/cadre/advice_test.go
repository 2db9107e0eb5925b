package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/testkit/soak"
)

// TestAdvice checks what errors, notes and the end of a run say, in one dormant team with a failed
// task.
func TestAdvice(t *testing.T) {
	soak.Long(t)
	root := t.TempDir()
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + root, "CADRE_HOME=" + filepath.Join(root, "home"),
		"CLAUDE_CONFIG_DIR=" + filepath.Join(root, "claude")}
	do := func(args ...string) string {
		t.Helper()
		r := call{args: args, dir: root, env: env}.run(t)
		return string(r.out) + string(r.err)
	}
	const file = "name: demo\nmembers: [{name: ann}, {name: bob}]\n" +
		"tasks: [{id: a, run: echo 1}, {id: b, run: exit 3, blockedBy: [a]}]\n"
	if err := os.WriteFile(filepath.Join(root, "demo.yaml"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	does := func(want string, args ...string) {
		t.Helper()
		if out := do(args...); !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("%q: not with %s:\n%s", args, want, out)
		}
	}
	ended := `✗ (ann|bob)  b: exit status 3\n` + // a run that ends offers no retry
		`1 of 2 tasks done in [^\n]*\n✗ task b failed by [a-z0-9-]+: exit status 3\n(note: [^\n]*\n)*` +
		`cadre: not finished: 1 task could not be done; the same command continues where this one stopped\n$`
	does(ended, "run", "demo.yaml")
	does(`not finished: 1 task could not be done[^\n]*"hints":\[\{"purpose":"[^"]+","command":"cadre [a-z]+ demo"`, "run",
		"demo.yaml", "--json")
	does(`(?m)^! No process of the team is running; 1 task is not done.\n! Task b failed: exit status 3 \(.*\)\n`+
		`    cadre resume demo\n$`, "attention", "demo")
	does(`^cadre: team demo is dormant, not at its end`, "review", "demo")
	does(`✓ it is dormant\n(?s:.*)1 of 2 tasks done; this run took [0-9]`, "resume", "demo")
	does(`(?m)^note: ann runs commands and reads no messages; a message only lets it continue after an interrupt\n`,
		"send", "demo", "--to", "ann", "hello", "--json")
	does(`Team files there: demo.yaml. To run one: cadre run demo.yaml\n$`, "run", "entirely-else.yaml")
	does(`To see which requests wait: cadre attention demo\n$`, "plan", "demo")
	does(`To see which requests wait: cadre attention demo\n$`, "permit", "demo")
	does(`To read the mail of the lead: cadre inbox demo lead\n$`, "inbox", "demo")
	does(`"task lst" is not a command, did you mean task list\?`, "task", "lst", "demo")
	does(`^cadre: team nobody does not exist; the teams are: demo\. To see the teams: cadre ls\n$`, "resume", "nobody")
	does(`^cadre: ann is paused: no command runs that could be interrupted\n$`, "interrupt", "demo", "ann")
	does(`^cadre: no member named "anm" in team demo, did you mean ann\? Valid names: lead, ann, bob`, "send", "demo",
		"--to", "anm", "hello")
	does(`ann\s+shell, paused`, "__complete", "attach", "demo", "")
	if out := do("status", "demo"); !strings.Contains(out, "1 task is not done.\n") {
		t.Errorf("the item that no process runs has an age:\n%s", out)
	}
}

// TestChangedValues checks that the old and the new value of a key show where they differ.
func TestChangedValues(t *testing.T) {
	long := strings.Repeat("for i in 1 2 3; do echo step; done; ", 4)
	for _, c := range []struct{ from, to, oldShown, newShown string }{
		{"make", "make all", "make", "make all"},
		{"", "make", "(left out)", "make"},
		{long + "sleep 2", long + "sleep 3", "…o step; done; sleep 2", "…o step; done; sleep 3"},
		{"a" + long, "b", "a" + long[:58] + "…", "b"},
		{"a\nb", "a b", "a b", "a b (other line breaks or spaces)"},
	} {
		if from, to := valuesOf(c.from, c.to); from != c.oldShown || to != c.newShown {
			t.Errorf("%q and %q are shown as %q and %q, want %q and %q", c.from, c.to, from, to, c.oldShown, c.newShown)
		}
	}
}

// TestLogNumbers checks that only the first line of a record has its number.
func TestLogNumbers(t *testing.T) {
	var out strings.Builder
	if err := writeLines(sanitize.NewWriter(&out), []render.Entry{{Seq: 18, Text: "one"}, {Seq: 18, Text: "two"},
		{Seq: 19, Text: "three"}}); err != nil {
		t.Fatal(err)
	}
	if got := regexp.MustCompile(`(?m)^ *[0-9]* `).FindAllString(out.String(), -1); !slices.Equal(got,
		[]string{"    18 ", "        ", "    19 "}) {
		t.Errorf("the lines begin with %q:\n%s", got, out.String())
	}
}

// TestUnmarked checks that a table shows the text of a Markdown line.
func TestUnmarked(t *testing.T) {
	for line, want := range map[string]string{"## **Two** of `main.go`": "Two of main.go", "2 * 3 * 4": "2 * 3 * 4",
		"": ""} {
		if got := unmarked(line); got != want {
			t.Errorf("%q is shown as %q, want %q", line, got, want)
		}
	}
}
