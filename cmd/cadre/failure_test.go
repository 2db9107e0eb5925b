package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	goparser "go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cadre/internal/claude/sdkrelay"
	"cadre/internal/journal"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

// TestFailures checks that each kind of error has its code, its status and what to type, at any
// depth of wrapping.
func TestFailures(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{usage{errors.New("no such flag")}, `{"code":"usage","message":"no such flag","status":2}`},
		{fmt.Errorf("read: %w", journal.ErrNewer), `{"code":"damaged","message":"read: ` + journal.ErrNewer.Error() +
			`","status":2}`},
		{os.ErrNotExist, `{"code":"failed","message":"file does not exist","status":2}`},
		{errors.New("no space"), `{"code":"failed","message":"no space","status":1}`},
		{fmt.Errorf("it is so: %w", team.Refuse(team.NotReady, "task 1 waits").With(team.Hint{Action: team.ActClaimTask,
			Team: "demo", Task: "1", Member: "ann"})),
			`{"code":"not_ready","message":"it is so: task 1 waits","status":1,` +
				`"hints":[{"action":"claim_task","team":"demo","member":"ann","task":"1","purpose":"claim it",` +
				`"command":"cadre task claim demo 1 --as ann"}]}`},
	} {
		if got, err := json.Marshal(failureOf(c.err)); err != nil || string(got) != c.want {
			t.Errorf("got\n%s (%v), want\n%s", got, err, c.want)
		}
	}
	var b strings.Builder
	for _, code := range codes { // every refusal has its own code
		fmt.Fprint(&b, failureOf(team.Refuse(code, "no")).Code, " ")
		if failureOf(team.Refuse(code, "no")).Code != string(code) {
			t.Errorf("%s has code %s", code, b.String())
		}
	}
}

// TestUsageHasAHint checks that a program gets a command to type for each error in a command line,
// also where the text for people says only which flags to change.
func TestUsageHasAHint(t *testing.T) {
	t.Setenv("CADRE_HOME", t.TempDir())
	t.Chdir(t.TempDir())
	run := func(args ...string) (failed string, err error) {
		var out, said bytes.Buffer
		a := newApp()
		defer a.close()
		a.out.Writer, a.err.Writer = sanitize.NewWriter(&out), sanitize.NewWriter(&said)
		c, err := a.root(args).ExecuteContextC(t.Context())
		if err != nil {
			a.report(c, err, status(err), args)
		}
		return said.String(), err
	}
	if said, err := run("create", "demo"); err != nil {
		t.Fatal(said)
	}
	for line, want := range map[string]string{
		"inbox demo lead --follow --wait --json": "cadre inbox --help",
		"inbox demo --json --lines 3":            "cadre inbox demo lead",
		"log demo --json --since yesterdayish":   "cadre log --help",
		"task list demo --json --status odd":     "cadre task list --help",
		"task list demo --json --nosuch":         "cadre task list --help",
		"run --json":                             "cadre run --help",
	} {
		said, err := run(strings.Fields(line)...)
		if err == nil {
			t.Errorf("%s: got no error", line)
			continue
		}
		var f failed
		if err := json.Unmarshal([]byte(said), &f); err != nil {
			t.Fatalf("%s: %v in %q", line, err, said)
		}
		if f.Error.Code != codeUsage || len(f.Error.Hints) == 0 || f.Error.Hints[0].Command != want {
			t.Errorf("%s: got %q, want the hint %s", line, said, want)
		}
	}
}

// TestRemediesAreHints checks that no error of this package names a command in its text. A program
// that reads --json could not find it there: commands belong in hints, or in [withWays].
func TestRemediesAreHints(t *testing.T) {
	var names []string
	for _, c := range newApp().root(nil).Commands() {
		names = append(names, c.Name())
	}
	command := regexp.MustCompile(`\bcadre (` + strings.Join(names, "|") + `)\b|--help`)
	errorful := []string{"fmt.Errorf", "errors.New", "team.Refuse", "team.Error"}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := goparser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			var of ast.Expr
			switch n := n.(type) {
			case *ast.CallExpr:
				of = n.Fun
			case *ast.CompositeLit:
				of = n.Type
			}
			selector, is := of.(*ast.SelectorExpr)
			if !is || !slices.Contains(errorful, fmt.Sprintf("%s.%s", selector.X, selector.Sel.Name)) {
				return true
			}
			checked++
			ast.Inspect(n, func(inner ast.Node) bool {
				text, is := inner.(*ast.BasicLit)
				if is && text.Kind == token.STRING && command.MatchString(text.Value) {
					t.Errorf("%s: an error names a command in its text: %s", set.Position(text.Pos()), text.Value)
				}
				return true
			})
			return false
		})
	}
	if checked < 100 {
		t.Errorf("the test found %d errors", checked)
	}
}

// TestRefusedRelay checks that the error of a program that refuses a relay keeps its status, and
// says as hints how else to observe the program.
func TestRefusedRelay(t *testing.T) {
	f := failureOf(otherWays(fmt.Errorf("observe: %w", &sdkrelay.RefusedError{Words: "--sdk-url rejected"})))
	var lines []string
	for _, h := range f.Hints {
		lines = append(lines, h.Command)
	}
	want := []string{"claude -p --output-format stream-json --verbose PROMPT | cadre observe -",
		"cadre observe --transcripts DIR"}
	if f.Status != hopeless || !slices.Equal(lines, want) {
		t.Errorf("got status %d and the hints %q, want %d and %q", f.Status, lines, hopeless, want)
	}
}

// tellsCommands are the packages and files of internal whose texts may name commands, with the
// reason.
var tellsCommands = map[string]string{
	"ui":      "it is a front end, on which a person types commands",
	"agent":   "it tells agents what they can type in their shell",
	"access":  "it says which commands a caller may use",
	"testkit": "it has no errors for users",

	"git/checkpoint/readme.go": "it is a page for people, who read it on a forge",
	"render/command.go":        "it has the commands of hints",
}

// TestRemediesBelowAreHints checks that no text below this package names a command: Go programs and
// agents cannot type it. What helps is a hint of the core, or a way that this package adds.
func TestRemediesBelowAreHints(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	var names []string
	for _, c := range newApp().root(nil).Commands() {
		names = append(names, c.Name())
	}
	command := regexp.MustCompile(`\bcadre (` + strings.Join(names, "|") +
		`)\b|--help|\| git\b|\bgit (-C %|(branch -[A-Za-z]|checkout|diff|fetch|merge|push|remote|revert|show|stash|` +
		`switch|worktree (add|lock|move|prune|remove|repair|unlock))\b)`)
	for _, planted := range []string{"see: cadre hooks --help", "then run `cadre trust` in %s",
		"set it: cadre task update ", "by its transcripts (cadre observe --transcripts DIR)",
		"resume it with cadre resume", "git diff %s | git apply", "git diff in %s shows it",
		"add one: git remote add origin URL",
		"repair it: git -C %s worktree repair", "the team's version: git show %s"} {
		if !command.MatchString(planted) {
			t.Fatalf("%q would not be found", planted)
		}
	}
	flag := regexp.MustCompile(`\s--(` + strings.Join(flagNames(newApp().root(nil)), "|") + `)\b`)
	others := regexp.MustCompile(`\bgit |Claude Code`) // their flags may be named
	for planted, is := range map[string]bool{"finish it with --dir %s": true, "git worktree remove --force": false} {
		if found := flag.MatchString(planted) && !others.MatchString(planted); found != is {
			t.Fatalf("%q: found %t, want %t", planted, found, is)
		}
	}
	checked, unmet := 0, maps.Clone(tellsCommands)
	look := func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		room, _ := filepath.Rel("../../internal", path)
		switch {
		case entry.IsDir() && (tellsCommands[room] != "" || entry.Name() == "testdata"):
			delete(unmet, room)
			return filepath.SkipDir
		case entry.IsDir(), !strings.HasSuffix(path, ".go"), strings.HasSuffix(path, "_test.go"):
			return nil
		case tellsCommands[room] != "":
			delete(unmet, room)
			return nil
		}
		set := token.NewFileSet()
		file, err := goparser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if text, is := n.(*ast.BasicLit); is && text.Kind == token.STRING {
				checked++
				if command.MatchString(text.Value) {
					t.Errorf("%s: a text names a command: %s", set.Position(text.Pos()), text.Value)
				}
				if flag.MatchString(text.Value) && !others.MatchString(text.Value) {
					t.Errorf("%s: a text names a flag: %s", set.Position(text.Pos()), text.Value)
				}
			}
			return true
		})
		return nil
	}
	for _, root := range []string{"../../internal", "../../pkg"} {
		if err := filepath.WalkDir(root, look); err != nil {
			t.Fatal(err)
		}
	}
	for room := range unmet {
		t.Errorf("%s may name commands, and is not there", room)
	}
	if checked < 5000 {
		t.Errorf("checked %d texts, want at least 5000", checked)
	}
}

// flagNames returns the names of the flags of a command and of all below it.
func flagNames(c *cobra.Command) (names []string) {
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	for _, sub := range c.Commands() {
		names = append(names, flagNames(sub)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// TestWays checks that what to type after an error of the command line is a hint in JSON, and
// stands behind the text for people.
func TestWays(t *testing.T) {
	err := fmt.Errorf("it is so: %w", withWays(usage{errors.New("there is nothing to run")},
		way{seeHelp, "cadre run --help"}, way{"run a team file", "cadre run FILE"}))
	const text = "it is so: there is nothing to run; see: cadre run --help. To run a team file: cadre run FILE"
	if got := explain(err); got != text {
		t.Errorf("got %q, want %q", got, text)
	}
	const want = `{"code":"usage","message":"it is so: there is nothing to run","status":2,"hints":[` +
		`{"purpose":"see how it is called","command":"cadre run --help"},` +
		`{"purpose":"run a team file","command":"cadre run FILE"}]}`
	if got, err := json.Marshal(failureOf(err)); err != nil || string(got) != want {
		t.Errorf("got\n%s (%v), want\n%s", got, err, want)
	}
}
