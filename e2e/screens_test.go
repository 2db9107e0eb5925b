package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"cadre/internal/render"
	"cadre/internal/testkit/golden"
)

// screensSetup creates a team with an example of everything. It does not depend on the speed of the
// machine: the members are external, and act one after the other.
const screensSetup = `
{ set -e
git init -q -b main
git add -A
git commit -q -m Begin
cadre create demo --goal "Port the parser to the new grammar and keep every test of the old one" --check 'test: make test'
cadre spawn demo ann --agent external --role developer
cadre spawn demo bob --agent external --plan-approval
cadre task add demo --file tasks.yaml
cadre task claim demo design --as ann
cadre task done demo design --as ann --result "three layers"
cadre task claim demo lexer --as ann
cadre task claim demo broken --as ann
cadre task fail demo broken --as ann --reason "the fixture is missing"
cadre send demo --as ann --to lead --intent question "Which grammar is the new one, the draft of May or the one that was published in June?"
cadre send demo --to ann "The one that was published in June."
cadre plan submit demo --as bob "Read the old tests, list what they cover, then write one test for each rule of the grammar."
cadre budget demo --tokens 2000000 --usd 25
cadre budget demo --member ann --tokens 500000
cd ../other
git init -q -b main
git add -A
git commit -q -m Begin
cadre run audit.yaml
cadre run audit.yaml
cadre create website --goal "Move the site"
cd ../repo
} >setup.txt 2>&1
set +e
`

// screens lists the commands whose output is compared.
var screens = []string{"cadre", "cadre status demo", "cadre task list demo", "cadre task show demo design",
	"cadre log demo -n 12", "cadre inbox demo lead --peek", "cadre inbox demo ann --all", "cadre attention demo",
	"cadre budget demo", "cadre hooks demo", "cadre plan list demo", "cadre permit list demo", "cadre probe demo",
	"cadre task done demo nosuch", "cadre statsu", "cadre task done demo lexer --as ann --result done",
	"cadre run release.yaml", "cadre status release", "cadre ls", "cadre ls --all"}

// TestScreens runs commands in terminals of several widths and in a pipe, and compares the output
// with transcripts. No line is wider than the terminal.
func TestScreens(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds; not with -short")
	}
	if runtime.GOOS != "linux" {
		t.Skip("folder names have another length on this system, so lines break elsewhere")
	}
	for _, width := range []int{60, 80, 200, 0} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			t.Parallel()
			file := filepath.Join("testdata", "screens", fmt.Sprintf("%d.txt", width))
			if width == 0 {
				file = filepath.Join("testdata", "screens", "pipe.txt")
			}
			var got string
			for day := 0; day != time.Now().YearDay(); { // a time that is not today has a date
				day = time.Now().YearDay()
				got = screensAt(t, width)
			}
			if _, list, _ := strings.Cut(got, "$ cadre task list demo\n"); strings.Index(list, "\n\n") < 0 ||
				strings.Count(list[:strings.Index(list, "\n\n")], "\n") > 44 {
				t.Errorf("40 tasks take more than 45 lines:\n%s", list)
			}
			golden.File(t, file, got)
		})
	}
}

// screensAt returns what the commands show in a terminal of that width; 0 stands for a pipe.
func screensAt(t *testing.T, width int) string {
	t.Helper()
	// The output shows the name of the folder, so its length must not vary.
	root := filepath.Join("/tmp", fmt.Sprintf("cs-%08x", rand.Uint32()))
	w := &world{t: t, root: root, home: filepath.Join(root, "cadre"), dir: filepath.Join(root, "repo")}
	for _, dir := range []string{root, w.dir, filepath.Join(root, "user"), filepath.Join(root, "claude"),
		filepath.Join(root, "other")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	w.env = append(os.Environ(), environment(root)...)
	w.env = append(w.env, "PATH="+filepath.Dir(cadre)+":"+os.Getenv("PATH"), "TZ=UTC")
	w.cleanUpAfter()
	w.write("tasks.yaml", screensTasks())
	w.write("../cadre/settings.json", `{"screen": "never"}`)
	w.write("release.yaml", `name: release
goal: Build, check and publish the release
members: [{name: worker}]
tasks:
  - {id: build, run: echo built}
  - {id: test, subject: Run all tests of the project, run: 'echo "1 of 12 tests failed: TestNumbers" >&2; exit 1', blockedBy: [build]}
  - {id: publish, subject: Publish what was built and tested, run: echo published, blockedBy: [test]}
`)
	w.write("../other/audit.yaml",
		"name: audit\ngoal: Look for secrets\nmembers: [{name: worker}]\nconsolidate: true\n"+
			"tasks: [{id: look, run: echo none}]\n")
	w.write("../claude/settings.json",
		`{"hooks": {"TaskCompleted": [{"hooks": [{"type": "command", "command": "test $CADRE_TASK_NAME != lexer || { echo the review is missing >&2; exit 2; }"}]}]}}`)
	script := screensSetup
	for _, line := range screens {
		script += "echo '$ " + line + "' >$TO; " + line + " >$TO 2>&1 || echo \"[exit status $?]\" >$TO; echo >$TO\n"
	}
	w.write("script.sh", script)
	var text string
	if width == 0 {
		c := exec.Command("sh", "-c", "exec 3>&1; TO=/dev/fd/3; export TO; . ./script.sh")
		c.Dir, c.Env = w.dir, w.env
		text = finish(t, c).out
	} else {
		p := w.terminalOf(width, 100, "env", "-u", "TMUX", "sh", "-c", "TO=$(tty); export TO; . ./script.sh")
		if code := p.ended(); code != 0 {
			setup, _ := os.ReadFile(filepath.Join(w.dir, "setup.txt"))
			t.Fatalf("exit status %d\n%s%s", code, setup, p.screen())
		}
		text = p.screen()
		text = text[:strings.LastIndex(text, "Pane is dead")]
		for line := range strings.Lines(text) { // tmux has joined the lines that it wrapped
			if columns := render.Width(strings.TrimRight(line, "\n")); columns > width {
				t.Errorf("at %d columns a line has %d: %s", width, columns, line)
			}
		}
		text = strings.TrimRight(text, "\n ") + "\n"
	}
	return steady(strings.ReplaceAll(text, root, "/tmp/cs-DIRECTOR"))
}

// screensTasks returns forty tasks with names, owners, dependencies and subjects of all lengths.
func screensTasks() string {
	var b strings.Builder
	b.WriteString("- {id: design, subject: Design the layers, owner: ann, priority: high}\n" +
		"- {id: lexer, subject: Write the lexer, blockedBy: [design], owner: ann}\n" +
		"- {id: broken, subject: Convert the fixtures, owner: ann}\n")
	for i := range 37 {
		fmt.Fprintf(&b, "- {id: rule-%d, subject: 'Port rule %d%s', blockedBy: [%s]}\n", i+1, i+1,
			[]string{"", " with its error messages", " of the old grammar, its three variants and the messages that " +
				"they print"}[i%3], []string{"lexer", "lexer, design, broken", "rule-1"}[min(i, i%3)])
	}
	return b.String()
}

// steady replaces what differs from run to run. Each replacement has the same length or is at the
// end of a line, so that columns stay in their places.
func steady(text string) string {
	for _, r := range []struct{ pattern, by string }{
		{`\d\d:\d\d:\d\d`, "HH:MM:SS"},
		{`(demo|release|audit)-[a-z2-7]{26}`, "$1-IDENTIFIER-WITH-26-LETTERS"},
		{`(just now|\d\d s ago)`, "just now"},
		{`\d+ ms\b|\d+(\.\d)? s\b`, "TIME"},
		{`\b(run|mcp)-[a-z2-7]{26}`, "$1-IDENTIFIER-WITH-26-LETTERS"},
		{`(host|session) [a-z0-9]{8}\b`, "$1 IDENTITY"},
		{`(?m) +$`, ""},
		{`(?m)^.*HH:MM:SS  ▸ .*\n`, ""}, // the start of a slow task
	} {
		text = regexp.MustCompile(r.pattern).ReplaceAllString(text, r.by)
	}
	// The age of the team changes the width of a column of the budget.
	budget := regexp.MustCompile(`(?m)^WHOSE(.|\n)*?\n\n`)
	return budget.ReplaceAllStringFunc(text, func(table string) string {
		return regexp.MustCompile(`  +`).ReplaceAllString(table, "  ")
	})
}
