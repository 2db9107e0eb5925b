package tui

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestManual checks that the keys in docs/watch.md are those of the keymap.
func TestManual(t *testing.T) {
	file := filepath.Join("..", "..", "..", "docs", "watch.md")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const begins, ends = "<!-- keys -->\n", "<!-- end -->\n"
	before, rest, _ := strings.Cut(string(text), begins)
	_, after, is := strings.Cut(rest, ends)
	if !is {
		t.Fatal("docs/watch.md has no place for the keys")
	}
	if want := before + begins + "\n" + keyTable() + "\n" + ends + after; *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) {
		t.Error("docs/watch.md has other keys; run go test ./internal/ui/tui -run Manual -update")
	}
}

// keyTable lists the keys in Markdown.
func keyTable() string {
	places := []struct {
		in   scope
		name string
	}{{inTeams, "teams"}, {inTeam, "a team"}, {inMember, "a member"}, {inTask, "a task"}, {inLine, "the line"}, {inAttention, "what waits"},
		{inPager, "a text"}, {inMenu, "a menu"}, {inPrompt, "an answer"}}
	var b strings.Builder
	b.WriteString("| key | or | where | does |\n| --- | --- | --- | --- |\n")
	for _, k := range keymap() {
		var where []string
		for _, p := range places {
			if k.in&p.in != 0 {
				where = append(where, p.name)
			}
		}
		if k.in&everywhere == everywhere {
			where = []string{"everywhere"}
		}
		var others []string
		for _, name := range k.names[1:] {
			others = append(others, "`"+shown(name)+"`")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", shown(k.names[0]), strings.Join(others, ", "), strings.Join(where, ", "),
			k.help)
	}
	return b.String()
}
