package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"cadre/internal/journal"
	"cadre/internal/run"
	"cadre/internal/team"
)

// top is the folder of the project, which contains the documents.
const top = "../.."

// documents returns the documents for users and contributors, by their paths.
func documents(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		files, err := filepath.Glob(filepath.Join(top, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			name, err := filepath.Rel(top, file)
			if err != nil {
				t.Fatal(err)
			}
			found[filepath.ToSlash(name)] = string(text)
		}
	}
	if len(found) < 15 {
		t.Fatalf("found only %d documents", len(found))
	}
	return found
}

var (
	shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")
	anyBlock   = regexp.MustCompile("(?sm)^( *)```([a-z]*)\n(.*?)^ *```") // indentation, kind, lines
	comment    = regexp.MustCompile(`\s+#.*$`)
	reference  = regexp.MustCompile(`\]\(([^)#\s]+)(?:#[^)]*)?\)`)
)

// TestDocumentsCommands checks that each cadre command in a document exists, with its flags and
// arguments.
func TestDocumentsCommands(t *testing.T) {
	tried := 0
	for name, text := range documents(t) {
		for _, block := range shellBlock.FindAllStringSubmatch(text, -1) {
			for line := range strings.Lines(block[1]) {
				for _, line := range commandsOf(comment.ReplaceAllString(strings.TrimSpace(line), "")) {
					tried++
					if _, err := parsed(line); err != nil {
						t.Errorf("%s: %s: %v", name, line, err)
					}
				}
			}
		}
	}
	if tried < 40 {
		t.Errorf("found only %d commands", tried)
	}
}

// TestDocumentsBlocks checks that commands of cadre are in blocks of sh, or behind "$ " in blocks
// of text: tests run these. The reference pages are made from the commands.
func TestDocumentsBlocks(t *testing.T) {
	for name, text := range documents(t) {
		if strings.HasPrefix(name, "docs/reference/") {
			continue
		}
		for _, block := range anyBlock.FindAllStringSubmatch(text, -1) {
			for line := range strings.Lines(block[3]) {
				if block[2] != "sh" && strings.HasPrefix(line, block[1]+"cadre ") {
					t.Errorf("%s: %q is in a block of %q, which no test runs: use sh", name, line, block[2])
				}
			}
		}
	}
}

// TestDocumentsInline checks that each command in a sentence exists, with its flags.
func TestDocumentsInline(t *testing.T) {
	span := regexp.MustCompile("`cadre ([a-z][^`\n]*)`")
	tried := 0
	for name, text := range documents(t) {
		if strings.HasPrefix(name, "docs/reference/") {
			continue // the reference pages are made from the commands
		}
		for _, found := range span.FindAllStringSubmatch(text, -1) {
			words := strings.Fields(found[1])
			root := newApp().root(nil)
			c, _, err := root.Find(words[:1])
			if err == nil && c.HasSubCommands() && len(words) > 1 && !strings.HasPrefix(words[1], "-") {
				c, _, err = root.Find(words[:2])
			}
			if err != nil || c == root {
				t.Errorf("%s: the command `cadre %s` does not exist", name, found[1])
				continue
			}
			tried++
			for _, word := range words {
				flag, is := strings.CutPrefix(word, "--")
				flag, _, _ = strings.Cut(flag, "=")
				if is && flag != "help" && c.Flags().Lookup(flag) == nil && root.PersistentFlags().Lookup(flag) == nil {
					t.Errorf("%s: cadre %s has no flag --%s", name, c.Name(), flag)
				}
			}
		}
	}
	if tried < 50 {
		t.Errorf("found only %d commands in sentences", tried)
	}
}

// commandsOf returns the cadre commands in a line of shell.
func commandsOf(line string) (found []string) {
	for _, part := range regexp.MustCompile(`\s*(?:&&|\||;)\s*`).Split(line, -1) {
		part, _, _ = strings.Cut(part, " >")
		part = strings.ReplaceAll(strings.ReplaceAll(part, "go run ./cmd/cadre", "cadre"), `"`, `'`)
		if rest, is := strings.CutPrefix(part, "cadre "); is {
			found = append(found, "cadre "+strings.TrimSpace(rest))
		}
	}
	return found
}

// TestDocumentsLinks checks that links into the project lead to existing files.
func TestDocumentsLinks(t *testing.T) {
	for name, text := range documents(t) {
		for _, link := range reference.FindAllStringSubmatch(text, -1) {
			if strings.Contains(link[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(top, filepath.Dir(name), link[1])); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestDocumentsTeamFiles checks that complete team files in documents have no mistakes.
func TestDocumentsTeamFiles(t *testing.T) {
	tried := 0
	for name, text := range documents(t) {
		for _, block := range regexp.MustCompile("(?s)```yaml\n(name:.*?)```").FindAllStringSubmatch(text, -1) {
			tried++
			if _, err := run.ParseFile(name, []byte(block[1])); err != nil {
				t.Errorf("%v", err)
			}
		}
	}
	if tried < 3 {
		t.Errorf("found only %d team files", tried)
	}
}

// TestReadmeIsShort checks that a new reader can read README.md to its end.
func TestReadmeIsShort(t *testing.T) {
	const most = 1200
	if words := len(strings.Fields(documents(t)["README.md"])); words > most {
		t.Errorf("README.md has %d words, the limit is %d", words, most)
	}
}

// TestDocumentsWidth checks that no line of a document is wider than a wide terminal, in tables
// too.
func TestDocumentsWidth(t *testing.T) {
	const most = 160
	for name, text := range documents(t) {
		number := 0
		for line := range strings.Lines(text) {
			number++
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > most {
				t.Errorf("%s:%d: the line has %d characters, the limit is %d", name, number, n, most)
			}
		}
	}
}

// codes lists the codes of the core's refusals.
var codes = []team.Code{team.Invalid, team.NotFound, team.Taken, team.Denied, team.Conflict, team.NotReady,
	team.Nothing,
	team.TooLarge, team.Exhausted, team.Finished, team.Rejected, team.MaxTeammatesReached,
	team.NestedTeamsNotAllowed}

// TestDocumentsCodes checks that docs/exit-statuses.md has each code with its status.
func TestDocumentsCodes(t *testing.T) {
	row := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\d) \\|")
	rows := row.FindAllStringSubmatch(documents(t)["docs/exit-statuses.md"], -1)
	said := map[string]string{}
	for _, row := range rows {
		said[row[1]] = row[2]
	}
	all := []error{usage{errors.New("no such flag")}, journal.ErrNewer}
	for _, code := range codes {
		all = append(all, team.Refuse(code, "no"))
	}
	for _, err := range all {
		f := failureOf(err)
		if got, want := said[f.Code], fmt.Sprint(f.Status); got != want {
			t.Errorf("%s: the document says %q, but the status is %s", f.Code, got, want)
		}
	}
	if len(said) != len(all) {
		t.Errorf("the document has %d codes, want %d", len(said), len(all))
	}
}

// internalVariables lists variables that cadre sets for its own processes, with the reason. Users
// never set them.
var internalVariables = map[string]string{
	"CADRE_SOAK":   "it is for tests",
	"CADRE_GUARD":  "cadre host tells itself that its guard is above it",
	"CADRE_WORKER": "a command tells its worker the descriptor of their socket",
}

// TestDocumentsVariables checks that docs/environment.md has exactly the variables of the program.
func TestDocumentsVariables(t *testing.T) {
	inSource, said := map[string]bool{}, map[string]bool{}
	variable := regexp.MustCompile(`"(CADRE_[A-Z_]+)[="]`)
	for _, dir := range []string{"internal", "cmd", "pkg"} {
		err := filepath.WalkDir(filepath.Join(top, dir), func(path string, e fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
				strings.Contains(filepath.ToSlash(path), "/testkit/") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, v := range variable.FindAllSubmatch(text, -1) {
				inSource[string(v[1])] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	family := func(v string) string { // the beginning of variables that end in a name of the user
		for beginning := range inSource {
			if strings.HasSuffix(beginning, "_") && strings.HasPrefix(v, beginning) {
				return beginning
			}
		}
		return v
	}
	for _, v := range regexp.MustCompile("CADRE_[A-Z_]+").FindAllString(documents(t)["docs/environment.md"], -1) {
		said[v], said[family(v)] = true, true
		if !inSource[family(v)] {
			t.Errorf("the variable %s does not exist", v)
		}
	}
	for v := range inSource {
		if _, ours := internalVariables[v]; !ours && !said[v] && !strings.HasPrefix(v, "CADRE_TEST_") {
			t.Errorf("docs/environment.md lacks %s", v)
		}
	}
	if len(inSource) < 20 {
		t.Errorf("found only %d variables", len(inSource))
	}
}
