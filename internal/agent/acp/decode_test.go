package acp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"

	"cadre/internal/agent"
	"cadre/internal/testkit/golden"
)

// message is a message as an agent wrote it.
type message struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
}

// told returns the decoded updates of a recording, one per line.
func told(d *decoder, lines []byte) string {
	var out strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	say := func(said []agent.Update) {
		for _, u := range said {
			text, _ := json.Marshal(u)
			line("%s %s", strings.TrimPrefix(fmt.Sprintf("%T", u), "agent."), text)
		}
	}
	for _, text := range bytes.Split(lines, []byte("\n")) {
		var m message
		if json.Unmarshal(text, &m) != nil {
			continue
		}
		switch {
		case m.Method == "session/update":
			var n sdk.SessionNotification
			if json.Unmarshal(m.Params, &n) != nil {
				continue
			}
			said, shows := d.decode(n.Update)
			say(said)
			if shows != noSign {
				line("  %s", map[sign]string{spoke: "spoke", acted: "acted"}[shows])
			}
		case m.Method == "session/request_permission":
			var r sdk.RequestPermissionRequest
			if json.Unmarshal(m.Params, &r) != nil {
				continue
			}
			name, input, _ := d.permission(r)
			say(d.flush())
			line("asks for %s %s", name, input)
		case len(m.Result) > 0:
			var r sdk.PromptResponse
			if json.Unmarshal(m.Result, &r) != nil {
				continue
			}
			say(d.flush())
			used, counted := usageOf(r)
			line("answered: %s, %t %+v", r.StopReason, counted, used)
		}
	}
	return out.String()
}

var recorded = map[string]facts{"gemini": gemini, "opencode": openCode}

// TestRecordings checks the updates of recorded sessions: text, a command, a tool of the team, a
// tool of another server, a file written and read, and a command that fails.
func TestRecordings(t *testing.T) {
	t.Parallel()
	for name, f := range recorded {
		t.Run(name, func(t *testing.T) {
			lines, err := os.ReadFile(filepath.Join("testdata", name+".jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			golden.File(t, filepath.Join("testdata", name+".golden"), told(newDecoder(f), lines))
		})
	}
}

// FuzzDecode checks that for any input tools begin before they end, and end once. No other tool
// passes for one of the team's, or for one that only reads.
func FuzzDecode(f *testing.F) {
	for name := range recorded {
		lines, err := os.ReadFile(filepath.Join("testdata", name+".jsonl"))
		if err != nil {
			f.Fatal(err)
		}
		for _, line := range bytes.Split(lines, []byte("\n")) {
			f.Add(line)
		}
	}
	f.Fuzz(func(t *testing.T, lines []byte) {
		for _, facts := range recorded {
			d := newDecoder(facts)
			runs := map[string]bool{}
			for _, text := range bytes.Split(lines, []byte("\n")) {
				var m message
				var n sdk.SessionNotification
				if json.Unmarshal(text, &m) != nil || m.Method != "session/update" ||
					json.Unmarshal(m.Params, &n) != nil {
					continue
				}
				said, _ := d.decode(n.Update)
				for _, u := range said {
					switch u := u.(type) {
					case agent.ToolStarted:
						if runs[u.ID] || !json.Valid([]byte(u.Input)) {
							t.Errorf("it began twice, or with %q: %s", u.Input, u.ID)
						}
						runs[u.ID] = true
					case agent.ToolFinished:
						if !runs[u.ID] {
							t.Errorf("%s ended and did not run", u.ID)
						}
						delete(runs, u.ID)
					case agent.Text:
						if strings.TrimSpace(u.Text) == "" {
							t.Error("it said nothing")
						}
					}
				}
			}
		}
	})
}

// TestFileOfAnEdit checks that the file of an edit is found under any name that agents use for it.
// A change of several files names none of them.
func TestFileOfAnEdit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ told, asked, want string }{
		{``, `"kind":"edit","rawInput":{"filePath":"a","x":1}`, `{"file_path":"a","x":1}`},
		{``, `"kind":"edit","rawInput":{"filepath":"a"},"locations":[{"path":"/p/a"}]`, `{"file_path":"a"}`},
		{``, `"kind":"edit","locations":[{"path":"/p/a"}],"content":[{"type":"diff","path":"/p/a","newText":"x"}]`,
			`{"file_path":"/p/a"}`},
		{``,
			`"kind":"edit","content":[{"type":"diff","path":"a","newText":""},{"type":"diff","path":"b","newText":"x"}]`, `{"files":["a","b"]}`},
		{``, `"kind":"edit","rawInput":{"path":"a"},"locations":[{"path":"a"},{"path":"b"}]`, `{"files":["a","b"]}`},
		{``, `"kind":"edit","rawInput":{"filepath":"a, b","files":[{"path":"a"},{"path":"b"}]}`,
			`{"files":[{"path":"a"},{"path":"b"}]}`},
		{``, `"kind":"move","rawInput":{"path":"a","to":"b"},"locations":[{"path":"a"}]`, `{"files":["a"],"to":"b"}`},
		{``, `"kind":"edit","rawInput":[]`, `{}`},
		{`"kind":"edit","rawInput":{"path":"a"}`, `"rawInput":[]`, `{"file_path":"a"}`},
		{`"kind":"edit","rawInput":{"path":"a"}`, `"locations":[{"path":"/p/a"}]`, `{"file_path":"a"}`},
		{`"kind":"edit","rawInput":{"path":"a"}`, `"locations":[{"path":"/p/ba"}]`, `{"files":["/p/ba"]}`},
		{`"kind":"edit","locations":[{"path":"a"}]`, `"rawInput":{"path":"b"},"locations":[{"path":"b"}]`,
			`{"file_path":"b"}`},
	} {
		d := newDecoder(anyAgent)
		var u sdk.SessionUpdate
		var r sdk.RequestPermissionRequest
		for text, v := range map[string]any{
			`{"sessionUpdate":"tool_call","toolCallId":"t","title":"write","status":"pending",` + cmp.Or(c.told,
				`"content":[]`) + `}`: &u,
			`{"sessionId":"s","options":[],"toolCall":{"toolCallId":"t","title":"write",` + c.asked +
				`}}`: &r,
		} {
			if err := json.Unmarshal([]byte(text), v); err != nil {
				t.Fatal(text, err)
			}
		}
		d.decode(u)
		if name, got, _ := d.permission(r); name != "Edit" || got != c.want {
			t.Errorf("%s, %s is %s %s, not %s", c.told, c.asked, name, got, c.want)
		}
	}
}

// TestNamesOfTools checks that neither the text of a command nor a server's name for a tool can
// make it look like another tool.
func TestNamesOfTools(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		facts facts
		kind  sdk.ToolKind
		title string
		want  string
	}{
		{gemini, sdk.ToolKindOther, "TaskList (cadre MCP Server)", "TaskList"},
		{gemini, sdk.ToolKindOther, "write_down (notes MCP Server)", "mcp__notes__write_down"},
		{gemini, sdk.ToolKindExecute, "rm x # (cadre MCP Server)", "Bash"},
		{gemini, sdk.ToolKindExecute, "TaskList (cadre MCP Server)", "Bash"},
		{gemini, sdk.ToolKindOther, "rm (x) (cadre MCP Server)", "rm (x) (cadre MCP Server)"},
		{gemini, sdk.ToolKindOther, "Read", "tool Read"},
		{gemini, sdk.ToolKindOther, "SendMessage", "tool SendMessage"},
		{openCode, sdk.ToolKindOther, "cadre_TaskList", "TaskList"},
		{openCode, sdk.ToolKindOther, "cadre_Other", "mcp__cadre__Other"},
		{openCode, sdk.ToolKindOther, "notes_write_down", "mcp__notes__write_down"},
		{openCode, sdk.ToolKindThink, "task", "Task"},
		{openCode, sdk.ToolKindThink, "cadre_TaskList", "Task"},
		{openCode, sdk.ToolKindOther, "todowrite", "TodoWrite"},
		{openCode, sdk.ToolKindExecute, "cadre_TaskList", "Bash"},
		{anyAgent, sdk.ToolKindOther, "mcp__cadre__TaskList", "TaskList"},
		{anyAgent, sdk.ToolKindOther, "cadre_TaskList", "TaskList"},
		{anyAgent, sdk.ToolKindOther, "echo cadre_TaskList", "echo cadre_TaskList"},
		{anyAgent, sdk.ToolKindExecute, "cadre_TaskList", "Bash"},
		{anyAgent, sdk.ToolKindOther, "TaskList", "tool TaskList"},
	} {
		if name, _ := newDecoder(c.facts).name(tool{Kind: c.kind, Title: c.title}); name != c.want {
			t.Errorf("%s %q is %q, not %q", c.kind, c.title, name, c.want)
		}
	}
}

// TestCostOfASession checks that each cent is counted once, although a session reports its total
// cost, also to the next program that loads it. The same holds for a reader that is saved between
// two lines.
func TestCostOfASession(t *testing.T) {
	t.Parallel()
	begins := func(session string) []string {
		return []string{`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"sessionId":"` + session + `"}}`}
	}
	costs := func(session, amount string) string {
		return `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"` + session +
			`","update":{"sessionUpdate":"usage_update","used":0,"size":0,"cost":` + amount + `}}}`
	}
	lines := slices.Concat(begins("a"), []string{costs("a", `{"amount":0.0105,"currency":"USD"}`),
		costs("a", `{"amount":0.0105,"currency":"USD"}`), costs("a", `{"amount":9,"currency":"EUR"}`)},
		begins("a"), []string{costs("a", `{"amount":0.02625,"currency":"USD"}`)}, begins("b"),
		[]string{costs("b", `{"amount":0.001,"currency":"USD"}`), costs("b", `null`)})
	for saved := range len(lines) + 1 {
		r := Agent{facts: openCode}.Reader()
		var said []int64
		for i, line := range lines {
			if i == saved {
				text, err := json.Marshal(r)
				r = Agent{facts: openCode}.Reader()
				if err = errors.Join(err, json.Unmarshal(text, r)); err != nil {
					t.Fatal(err)
				}
			}
			for _, u := range r.Line([]byte(line)) {
				if u, ok := u.(agent.Used); ok {
					said = append(said, u.Usage.CostMicroUSD)
				}
			}
		}
		if want := []int64{10500, 15750, 1000}; !slices.Equal(said, want) {
			t.Errorf("saved before line %d: said are %v, not %v", saved, said, want)
		}
	}
}
