package headless

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cadre/internal/agent"
	"cadre/internal/agent/agenttest"
	"cadre/internal/testkit/golden"
)

var record = flag.Bool("record", false, "record the streams again, with the real programs")

// program describes a program that prints its output, and how to run it.
type program struct {
	name    string
	run     []string                               // its arguments before a prompt
	again   []string                               // those with which it continues with its last session
	shell   func(command string) agenttest.Turn    // the model runs a command,
	write   func(file, text string) agenttest.Turn // writes a file,
	look    func(file string) agenttest.Turn       // and reads one
	started string                                 // what is printed when it is at work
	patient []string                               // errors of the model after which it tries again for minutes
	drop    []string                               // keys that no test needs
	reader  func() agent.Reader
}

var programs = []program{
	{
		name: "codex", run: []string{"exec", "--json", "--dangerously-bypass-approvals-and-sandbox"},
		again: []string{"exec", "--json", "--dangerously-bypass-approvals-and-sandbox", "resume", "--last"},
		shell: func(command string) agenttest.Turn {
			return agenttest.Use("exec_command", map[string]any{"cmd": command})
		},
		write: func(file, text string) agenttest.Turn {
			return agenttest.Use("exec_command", map[string]any{"cmd": "apply_patch <<'EOF'\n*** Begin Patch\n*** " +
				"Add File: " + file + "\n+" + text + "\n*** End Patch\nEOF"})
		},
		look: func(file string) agenttest.Turn {
			return agenttest.Use("exec_command", map[string]any{"cmd": "cat " + file})
		},
		started: "item.started", reader: func() agent.Reader { return new(Codex) },
	},
	{
		name: "gemini", run: []string{"--yolo", "--output-format", "stream-json", "-p"},
		again: []string{"--yolo", "--output-format", "stream-json", "--resume", "latest", "-p"},
		shell: func(command string) agenttest.Turn {
			return agenttest.Use("run_shell_command", map[string]any{"command": command, "description": "run it"})
		},
		write: func(file, text string) agenttest.Turn {
			return agenttest.Use("write_file", map[string]any{"file_path": file, "content": text})
		},
		look: func(file string) agenttest.Turn {
			return agenttest.Use("read_file", map[string]any{"file_path": file})
		},
		started: "tool_use", patient: []string{"429", "500"}, drop: []string{"models"},
		reader: func() agent.Reader { return new(Gemini) },
	},
	{
		name: "opencode", run: []string{"run", "--format", "json"}, again: []string{"run", "--format", "json",
			"--continue"},
		shell: func(command string) agenttest.Turn {
			return agenttest.Use("bash", map[string]any{"command": command, "description": "run it"})
		},
		write: func(file, text string) agenttest.Turn {
			return agenttest.Use("write", map[string]any{"filePath": file, "content": text})
		},
		look: func(file string) agenttest.Turn {
			return agenttest.Use("read", map[string]any{"filePath": file})
		},
		started: "step_start", patient: []string{"400", "429"}, drop: []string{"id", "messageID", "snapshot",
			"responseBody", "responseHeaders", "time"}, reader: func() agent.Reader { return new(OpenCode) },
	},
}

// readers returns new readers by the names of their programs.
func readers(name string) agent.Reader {
	for _, p := range programs {
		if p.name == name {
			return p.reader()
		}
	}
	return nil
}

func TestRecordings(t *testing.T) {
	for _, p := range programs {
		if *record {
			agenttest.RecordPrints(t, p.name, p.drop, p.prints()...)
		}
	}
	agenttest.Replay(t, golden.File, func(program string) func([]byte) []any {
		r := readers(program)
		return func(line []byte) (said []any) {
			for _, u := range r.Line(line) {
				said = append(said, u)
			}
			return said
		}
	})
}

// prints returns the runs to record: two in one session, with tools that fail, an interrupted one,
// and turns that fail.
func (p program) prints() []agenttest.Print {
	prompt := func(args []string, text string) []string { return append(slices.Clone(args), text) }
	fails := p.shell("echo from the shell; exit 3")
	fails.Text, fails.CacheRead = "I look.", 60
	all := []agenttest.Print{
		{Name: "turn", Script: agenttest.Sequence(fails, p.write("new.txt", "hello"), p.look("missing.txt"),
			agenttest.Say("It said so."), agenttest.Say("Again.")),
			Runs: [][]string{prompt(p.run, "do one"), prompt(p.again, "do two")}},
		{Name: "interrupted", Script: agenttest.Sequence(p.shell("sleep 20")),
			Runs: [][]string{prompt(p.run, "do one")}, Until: p.started},
	}
	for _, e := range []struct {
		name string
		turn agenttest.Turn
	}{
		{"400", agenttest.Fail(400, "prompt is too long: 300000 tokens > 200000 maximum")},
		{"401", agenttest.Fail(401, "the key is unknown here")}, {"429", agenttest.Fail(429, "slow down a little")},
		{"500", agenttest.Fail(500, "the house is on fire")},
		{"a-cut-stream", agenttest.Turn{Text: "half of a word", Cut: true}},
	} {
		if !slices.Contains(p.patient, e.name) {
			all = append(all, agenttest.Print{Name: e.name, Script: agenttest.Sequence(e.turn),
				Runs: [][]string{prompt(p.run, "try")}})
		}
	}
	return all
}

// said returns the updates for a stream as text. If fresh is not nil, the reader is saved after
// each line and loaded into another one.
func said(t *testing.T, r agent.Reader, stream []byte, fresh func() agent.Reader) (words []string) {
	t.Helper()
	for line := range bytes.Lines(stream) {
		for _, u := range r.Line(line) {
			words = append(words, agenttest.Words(u))
		}
		if fresh == nil {
			continue
		}
		saved, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if r = fresh(); json.Unmarshal(saved, r) != nil {
			t.Fatalf("%s is not read back", saved)
		}
	}
	return words
}

// recordings returns the streams of a program by their names.
func recordings(t testing.TB, program string) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", program+"-*", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatal("there are no recordings of "+program, err)
	}
	all := map[string][]byte{}
	for _, file := range files {
		if all[file], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// TestRestored checks that a reader that is saved and loaded after every line gives the same
// updates as one that continues, and that meaningless lines change nothing.
func TestRestored(t *testing.T) {
	for _, p := range programs {
		fresh := func() agent.Reader { return Or(new(deaf), p.reader()) }
		for name, stream := range recordings(t, p.name) {
			want := said(t, p.reader(), stream, nil)
			if got := said(t, fresh(), stream, fresh); len(want) == 0 || !slices.Equal(got, want) {
				t.Errorf("%s says, read back,\n%q\nand not\n%q", name, got, want)
			}
			var noisy []byte
			for line := range bytes.Lines(stream) {
				noisy = append(noisy,
					"garbage\n{\n[1,2]\n{\"type\":5}\n{\"type\":\"later\"}\n{\"method\":\"error\",\"type\":\"turn.failed\"}\n{\"id\":1,\"result\":{}}\n"...)
				noisy = append(noisy, line...)
			}
			if got := said(t, fresh(), noisy, nil); !slices.Equal(got, want) {
				t.Errorf("%s says, amid garbage,\n%q\nand not\n%q", name, got, want)
			}
		}
	}
	if err := json.Unmarshal([]byte(`{"driven":{},"printed":5}`), Or(new(deaf), new(Codex))); err == nil {
		t.Error("what is damaged is read back")
	}
}

// deaf is a reader for lines of a driver, which no recording has.
type deaf struct{ lines int }

func (d *deaf) Line(line []byte) []agent.Update {
	if bytes.HasPrefix(line, []byte(`{"type":"`)) && !bytes.Contains(line, []byte("method")) {
		return []agent.Update{agent.Compacted{}}
	}
	d.lines++
	return nil
}
func (d *deaf) MarshalJSON() ([]byte, error)    { return json.Marshal(d.lines) }
func (d *deaf) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, &d.lines) }

// TestCodexSums checks that codex's running totals become usage. Of a resumed thread only the
// increase counts, and of another thread all.
func TestCodexSums(t *testing.T) {
	turn := func(thread string, in, cached, out int) string {
		return fmt.Sprintf(`{"type":"thread.started","thread_id":%q}
{"type":"turn.started"}
{"type":"turn.completed","usage":{"input_tokens":%d,"cached_input_tokens":%d,"output_tokens":%d}}
`, thread, in, cached, out)
	}
	r := new(Codex)
	for _, c := range []struct{ stream, want string }{
		{turn("a", 100, 60, 10), "{InputTokens=40 OutputTokens=10 CacheReadTokens=60}"},
		{turn("a", 300, 60, 30), "{InputTokens=200 OutputTokens=20}"},
		{turn("b", 50, 0, 5), "{InputTokens=50 OutputTokens=5}"},
		{turn("b", 20, 0, 2), "{InputTokens=20 OutputTokens=2}"},
		{turn("b", 20, 0, 2), ""},
	} {
		var used string
		for _, words := range said(t, r, []byte(c.stream), nil) {
			if rest, ok := strings.CutPrefix(words, "Used Usage="); ok {
				used = rest
			}
		}
		if used != c.want {
			t.Errorf("%s uses %s, and not %s", c.stream, used, c.want)
		}
	}
}

// TestOtherLines checks cases that no recording has: limits of the model, an error before any turn,
// tools of servers.
func TestOtherLines(t *testing.T) {
	for _, c := range []struct {
		r            agent.Reader
		stream, want string
	}{
		{new(Codex), `{"type":"error","message":"too early"}`, ""},
		{new(Codex),
			"{\"type\":\"thread.started\",\"thread_id\":\"a\"}\n{\"type\":\"error\",\"message\":\"no thread\"}",
			`Started Session="a"|TurnStarted|TurnEnded Problem={Kind="model" Text="no thread"}`},
		{new(Codex),
			`{"type":"item.completed","item":{"type":"mcp_tool_call","id":"1","server":"notes","tool":"write","arguments":{"a":1},"status":"failed"}}`,
			`TurnStarted|ToolStarted ID="1" Tool="mcp__notes__write" Input="{\"a\":1}"|ToolFinished ID="1" Failed=true`},
		{new(Codex), `{"type":"item.started","item":{"type":"web_search","id":"1","query":"go"}}`,
			`TurnStarted|ToolStarted ID="1" Tool="WebSearch" Input="{\"query\":\"go\"}"`},
		{new(Codex),
			`{"type":"item.started","item":{"type":"file_change","id":"1","changes":[{"path":"a"},{"path":"b"}]}}`,
			`TurnStarted|ToolStarted ID="1" Tool="Edit" Input="{\"changes\":[{\"path\":\"a\",\"kind\":\"\"},{\"path\":\"b\",\"kind\":\"\"}]}"`},
		{new(Codex), `{"type":"error","message":"Reconnecting... 1/5"}`,
			`TurnStarted|Retrying Problem={Kind="model" Text="Reconnecting... 1/5"}`},
		{new(Codex), `{"type":"turn.failed"}`, `TurnStarted|TurnEnded Problem={Kind="model" Text="the turn failed"}`},
		{new(Gemini), `{"type":"tool_use","tool_name":"mcp_notes_write","tool_id":"1"}`,
			`TurnStarted|ToolStarted ID="1" Tool="mcp__notes__write" Input="{}"`},
		{new(Gemini),
			`{"type":"result","status":"error","error":{"message":"[API Error: {\"error\":{\"code\":429,\"message\":\"well\"}}]"}}`, `TurnStarted|TurnEnded Problem={Kind="limit" Text="well"}`},
		{new(OpenCode), `{"type":"step_finish","sessionID":"s","part":{"reason":"length"}}`,
			`Started Session="s"|TurnStarted|TurnEnded Problem={Kind="context" Text="the model has no tokens left"}`},
		{new(OpenCode), `{"type":"step_finish","sessionID":"s","part":{"reason":"content-filter"}}`,
			`Started Session="s"|TurnStarted|TurnEnded Problem={Kind="model" Text="the model refused to continue"}`},
		{new(OpenCode), `{"type":"error","sessionID":"s","error":{"name":"MessageAbortedError"}}`,
			`Started Session="s"|TurnStarted|TurnEnded Problem={Kind="model" Text="MessageAbortedError"}`},
		{new(OpenCode), `{"type":"error","sessionID":"s","error":{"data":{"message":"wait","statusCode":429}}}`,
			`Started Session="s"|TurnStarted|TurnEnded Problem={Kind="limit" Text="wait"}`},
		{new(OpenCode), `{"type":"text","part":{"text":"of nobody"}}`, ""},
	} {
		if got := strings.Join(said(t, c.r, []byte(c.stream), nil), "|"); got != c.want {
			t.Errorf("%s says\n%s\nand not\n%s", c.stream, got, c.want)
		}
	}
}

func FuzzCodex(f *testing.F)    { fuzz(f, func() agent.Reader { return new(Codex) }) }
func FuzzGemini(f *testing.F)   { fuzz(f, func() agent.Reader { return new(Gemini) }) }
func FuzzOpenCode(f *testing.F) { fuzz(f, func() agent.Reader { return new(OpenCode) }) }

// fuzz checks that for any stream tools begin before they end, end once, and belong to a turn,
// which ends once. A reader that is saved and loaded after each line gives the same.
func fuzz(f *testing.F, fresh func() agent.Reader) {
	agenttest.Seeds(f)
	for _, p := range programs {
		for _, stream := range recordings(f, p.name) {
			f.Add(stream)
		}
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		r, turn, tools := fresh(), false, map[string]bool{}
		for line := range bytes.Lines(stream) {
			for _, u := range r.Line(line) {
				agenttest.Sound(t, []any{u})
				switch u := u.(type) {
				case agent.Started:
					turn = false
					clear(tools)
					continue
				case agent.TurnStarted:
					if turn {
						t.Error("a turn begins in a turn")
					}
					turn = true
					clear(tools)
				case agent.ToolStarted:
					if tools[u.ID] {
						t.Errorf("%q begins twice", u.ID)
					}
					tools[u.ID] = true
				case agent.ToolFinished:
					if !tools[u.ID] {
						t.Errorf("%q ends and did not begin", u.ID)
					}
					delete(tools, u.ID)
				}
				if _, spent := u.(agent.Used); !turn && !spent {
					t.Errorf("%s is in no turn", agenttest.Words(u))
				}
				if _, ended := u.(agent.TurnEnded); ended {
					turn = false
				}
			}
		}
		if got, want := said(t, fresh(), stream, fresh), said(t, fresh(), stream, nil); !slices.Equal(got, want) {
			t.Errorf("read back it says\n%q\nand not\n%q", got, want)
		}
	})
}
