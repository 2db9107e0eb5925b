package tools_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"cadre/internal/agent"
	"cadre/internal/agent/tools"
	"cadre/internal/team"
	"cadre/internal/testkit/golden"
)

// manual is the document of the tools, which is generated from them.
const manual = "../../../docs/tools.md"

// TestManual checks that the manual describes each tool as agents see it.
func TestManual(t *testing.T) {
	b := newBench(t, &team.SpawnMember{Name: "ann", Agent: "claude"})
	of := map[string][]string{}
	var all []agent.Tool
	for _, member := range []string{"lead", "ann"} {
		o := b.options(member)
		// the manual has what every machine and session can offer
		o.Agents, o.Wait = nil, b.Wait
		for _, tool := range tools.New(o).List() {
			if of[tool.Name] = append(of[tool.Name], member); len(of[tool.Name]) == 1 {
				all = append(all, tool)
			}
		}
	}
	var doc strings.Builder
	doc.WriteString(`# Tools of the team

<!-- made by: go test ./internal/agent/tools -run TestManual -update -->

Every session of an agent gets these tools, from its driver or from ` + "`cadre mcp`" +
		` as the MCP server ` + "`" + agent.ToolServerName + "`" + `. The texts are what agents read.
A tool acts as the session's member. A refusal says what to do instead.

- The input ` + "`agent`" + ` of SpawnTeammate takes the agents that are installed on the machine, and ` + "`external`" + `. Each session gets its own list.
- The input ` + "`wait_seconds`" + ` of TeamStatus is for sessions that cadre cannot wake, such as your own session with ` + "`cadre mcp`" + `. Other sessions do
  not get it. The call returns with the first news, or when the seconds have passed.
`)
	for _, tool := range all {
		who := "for every member"
		if !slices.Contains(of[tool.Name], "ann") {
			who = "for the lead"
		} else if !slices.Contains(of[tool.Name], "lead") {
			who = "for teammates"
		}
		fmt.Fprintf(&doc, "\n## %s\n\nThis tool is %s.\n\n%s\n", tool.Name, who, quote(tool.Description))
		doc.WriteString(inputs(t, tool))
	}
	golden.File(t, manual, doc.String())
}

// quote wraps a text as a quotation.
func quote(text string) string {
	var lines []string
	line := ">"
	for word := range strings.FieldsSeq(text) {
		if len(line)+1+len(word) > 120 {
			lines, line = append(lines, line), ">"
		}
		line += " " + word
	}
	return strings.Join(append(lines, line), "\n")
}

// inputs returns the table of a tool's fields; "" for a tool without fields.
func inputs(t *testing.T, tool agent.Tool) string {
	t.Helper()
	var schema struct {
		Required   []string
		Properties json.RawMessage
	}
	if err := json.Unmarshal(tool.Schema, &schema); err != nil {
		t.Fatalf("%s: %v", tool.Name, err)
	}
	var rows strings.Builder
	d := json.NewDecoder(strings.NewReader(string(schema.Properties)))
	if _, err := d.Token(); err != nil {
		return ""
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		var p struct {
			Type        any
			Description string
			Enum        []string
		}
		if err := d.Decode(&p); err != nil {
			t.Fatalf("%s: %s: %v", tool.Name, name, err)
		}
		kind := fmt.Sprint(p.Type)
		if len(p.Enum) > 0 {
			kind = "`" + strings.Join(p.Enum, "`, `") + "`"
		}
		needed := ""
		if slices.Contains(schema.Required, name.(string)) {
			needed = "yes"
		}
		fmt.Fprintf(&rows, "| `%s` | %s | %s | %s |\n", name, kind, needed,
			strings.ReplaceAll(p.Description, "|", `\|`))
	}
	if rows.Len() == 0 {
		return ""
	}
	return "\n| input | type | required | what it is |\n| --- | --- | --- | --- |\n" + rows.String()
}
