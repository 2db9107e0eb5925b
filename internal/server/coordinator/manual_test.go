package coordinator

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/testkit/golden"
)

// TestManual: the tables of the document are those of the code.
func TestManual(t *testing.T) {
	path := filepath.Join("..", "..", "..", "docs", "websocket.md")
	var requestTable, rightTable, eventTable, codeTable strings.Builder
	requestTable.WriteString("| request | payload | answer |\n| --- | --- | --- |\n")
	rightTable.WriteString("| request | role of a token | command |\n| --- | --- | --- |\n")
	for _, r := range requests() {
		var fields []string
		for f := range r.Payload.Fields() {
			name, optional := nameOf(f)
			if optional {
				name += "?"
			}
			if value, ok := f.Tag.Lookup("default"); ok {
				name += "=" + value
			}
			fields = append(fields, "`"+name+"`")
		}
		fmt.Fprintf(&requestTable, "| `%s` | %s | `%s` |\n", r.Type, strings.Join(fields, " "), r.Answer)
		fmt.Fprintf(&rightTable, "| `%s` | %s | `cadre %s` |\n", r.Type, r.Role, r.Command)
	}
	eventTable.WriteString("| event | payload | when |\n| --- | --- | --- |\n")
	for _, e := range sentByUs() {
		var fields []string
		for f := range e.payload.Fields() {
			name, _ := nameOf(f)
			fields = append(fields, "`"+name+"`")
		}
		if strings.HasPrefix(e.kind, "team") {
			fmt.Fprintf(&eventTable, "| `%s` | %s | %s |\n", e.kind, strings.Join(fields, " "), e.about)
		}
	}
	codeTable.WriteString("| code | when |\n| --- | --- |\n")
	seen := map[string]bool{}
	for _, one := range translations() {
		if seen[one.Is] {
			continue
		}
		seen[one.Is] = true
		var when []string
		for _, other := range translations() {
			if other.Is == one.Is {
				when = append(when, other.When)
			}
		}
		fmt.Fprintf(&codeTable, "| `%s` | %s |\n", one.Is, strings.Join(when, "; "))
	}
	fmt.Fprintf(&codeTable, "| `%s` | the session leads another team that has not ended |\n| `%s` | the frame is not "+
		"a request |\n| `%s` | the cursor is after the last record |\n| `%s` | the records of the cursor cannot be "+
		"read any more |\n", oneTeamPerSession, codeUsage, codeAhead, codeGone)
	for mark, table := range map[string]string{"requests": requestTable.String(), "rights": rightTable.String(),
		"events": eventTable.String(), "codes": codeTable.String()} {
		golden.Part(t, path, "<!-- "+mark+" -->\n", "<!-- end -->", table)
	}
}
