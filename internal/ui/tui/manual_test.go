package tui

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/testkit/golden"
)

// TestManual checks that the keys in docs/watch.md are those of the keymap.
func TestManual(t *testing.T) {
	golden.Part(t, filepath.Join("..", "..", "..", "docs", "watch.md"), "<!-- keys -->\n", "<!-- end -->\n",
		"\n"+keyTable()+"\n")
}

// keyTable lists the keys in Markdown.
func keyTable() string {
	places := []struct {
		in   scope
		name string
	}{{inTeams, "teams"}, {inTeam, "a team"}, {inMember, "a member"}, {inTask, "a task"}, {inLine, "the line"},
		{inAttention, "what waits"}, {inPager, "a text"}, {inStaging, "a consolidation"},
		{inRunning, "a running command"}, {inMenu, "a menu"}, {inPrompt, "an answer"}}
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
