package codex

import (
	"bytes"
	"encoding/json"
	"flag"
	"slices"
	"testing"

	"cadre/internal/agent"
	"cadre/internal/agent/agenttest"
	"cadre/internal/testkit/golden"
)

var record = flag.Bool("record", false, "record the streams again, with the real program")

// unread lists long keys of the stream that the decoder does not read.
var unread = []string{"environments", "codexHome", "userAgent", "commandActions", "gitInfo", "collaborationMode",
	"proposedExecpolicyAmendment", "availableDecisions", "processId", "sandbox",
	"sandboxPolicy", "runtimeWorkspaceRoots", "instructionSources", "installationId", "serverName",
	"platformOs", "platformFamily", "details"}

func TestRecordings(t *testing.T) {
	t.Parallel()
	if *record {
		var r *relay
		tap := func(b *agenttest.Bench, p agenttest.Program) func() [][]byte {
			r = throughRelay(b, p)
			return func() [][]byte { return r.said }
		}
		agenttest.Record(t, driver, tap, unread, append(agenttest.Scenes(driver),
			scenes(func() *relay { return r })...)...)
	}
	agenttest.Replay(t, golden.File, func(string) func([]byte) []any { return (&stream{}).line })
}

// stream decodes a stream of the app-server, with its answers and requests, as a session does.
type stream struct {
	decoder
	started bool
}

func (s *stream) line(line []byte) []any {
	var m rpc
	if json.Unmarshal(line, &m) != nil {
		return nil
	}
	switch {
	case m.Method != "" && m.ID != nil:
		if asked := s.request(m.Method, m.Params); asked != nil {
			return []any{asked}
		}
		return nil
	case m.Method != "":
		return s.decode(m.Method, m.Params)
	}
	var got struct {
		Thread thread `json:"thread"`
	}
	if agent.Parse(m.Result, &got); got.Thread.ID == "" {
		return nil
	}
	if s.started {
		return s.missed(&got.Thread)
	}
	s.started = true
	s.resume(&got.Thread)
	return []any{agent.Started{Session: got.Thread.ID}}
}

// TestOtherShapes checks that an unneeded item with an unknown shape does not hide other items of
// its thread.
func TestOtherShapes(t *testing.T) {
	t.Parallel()
	var got thread
	err := agent.Parse([]byte(`{"id":"x","turns":[{"id":"t","status":"completed","items":[{"type":"reasoning","id":"r","content":["I think"],"summary":["it thinks"]},
		{"type":"userMessage","id":"u","content":[{"type":"text","text":"hello"}]},{"type":"later","tool":{},"status":7,"exitCode":"none"},{"type":"dynamicToolCall","id":"d","contentItems":[{"text":"well"}]}]}]}`), &got)
	if told := got.contextTexts(); err != nil || !slices.Equal(told, []string{"hello", "well"}) {
		t.Errorf("told was %q: %v", told, err)
	}
}

// TestOutputOfACommand decodes the parts of an output. Parts for a command that is not running show
// nothing.
func TestOutputOfACommand(t *testing.T) {
	t.Parallel()
	const (
		begins = `{"method":"item/started","params":{"item":{"type":"commandExecution","id":"toolu_0001","command":"make","status":"inProgress"},"threadId":"t","turnId":"u"}}`
		part   = `{"method":"item/commandExecution/outputDelta","params":{"threadId":"t","turnId":"u","itemId":"toolu_0001","delta":"it prints 2\n"},"emittedAtMs":1}`
		ends   = `{"method":"item/completed","params":{"item":{"type":"commandExecution","id":"toolu_0001","command":"make","status":"completed","exitCode":0,"aggregatedOutput":"it prints 2\n"},"threadId":"t","turnId":"u"}}`
	)
	var s stream
	var got []any
	for _, line := range []string{part, begins, part, ends, part} {
		got = append(got, s.line([]byte(line))...)
	}
	if want := []any{agent.ToolStarted{ID: "toolu_0001", Tool: "Bash", Input: `{"command":"make"}`},
		agent.ToolOutput{ID: "toolu_0001", Text: "it prints 2\n"},
		agent.ToolFinished{ID: "toolu_0001", Output: "it prints 2\n"}}; !slices.Equal(got, want) {
		t.Errorf("got %+v", got)
	}
}

// TestPlanAsItComes decodes a message with a plan in it: the plan's text comes in parts, on lines
// of its own.
func TestPlanAsItComes(t *testing.T) {
	t.Parallel()
	part := func(kind, item, text string) string {
		return `{"method":"item/` + kind + `/delta","params":{"threadId":"t","turnId":"u","itemId":"` + item + `","delta":"` + text + `"}}`
	}
	done := func(kind, item, text string) string {
		return `{"method":"item/completed","params":{"item":{"type":"` + kind + `","id":"` + item + `","text":"` + text + `"},"threadId":"t","turnId":"u"}}`
	}
	var s stream
	var got []any
	for _, line := range []string{part("agentMessage", "m", "I propose:"), part("plan", "p", "1. Read"),
		part("plan", "p", " it."),
		done("plan", "p", "1. Read it."), done("agentMessage", "m", "I propose:"),
		part("agentMessage", "n", "That is all.")} {
		got = append(got, s.line([]byte(line))...)
	}
	if want := []any{agent.TextPart{Text: "I propose:"}, agent.TextPart{Text: "\n1. Read"},
		agent.TextPart{Text: " it."},
		planned{"1. Read it."}, agent.Text{Text: "I propose:"},
		agent.TextPart{Text: "That is all."}}; !slices.Equal(got, want) {
		t.Errorf("got %+v", got)
	}
}

// TestEditOfSeveralFiles checks that a change of several files is not named after one of them, for
// which a permission may exist.
func TestEditOfSeveralFiles(t *testing.T) {
	t.Parallel()
	for changes, want := range map[string]string{
		`[{"path":"a"}]`:                                  `{"changes":[{"path":"a"}],"file_path":"a"}`,
		`[{"path":"a"},{"path":"b"}]`:                     `{"changes":[{"path":"a"},{"path":"b"}]}`,
		`[{"path":"a","kind":{"move_path":"b"}}]`:         `{"changes":[{"path":"a","kind":{"move_path":"b"}}]}`,
		`[{"path":"a","kind":{"move_path":null}},{}]`:     `{"changes":[{"path":"a","kind":{"move_path":null}},{}]}`,
		`[{"path":"a","kind":{"type":"add"},"diff":"+"}]`: `{"changes":[{"path":"a","kind":{"type":"add"},"diff":"+"}],"file_path":"a"}`,
	} {
		if got := editOf(json.RawMessage(changes)); got != want {
			t.Errorf("%s is %s", changes, got)
		}
	}
}

// scenes are the scenes that only this program can play.
func scenes(r func() *relay) []agenttest.Scene {
	all := agent.Access{Mode: "bypassPermissions", Writes: true}
	patch := shell("apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: new.txt\n+hello\n*** End Patch\nEOF")
	return []agenttest.Scene{
		{Name: "edit", Access: agent.Access{Mode: "default", Writes: true}, Script: agenttest.Sequence(patch,
			agenttest.Say("Done.")), Play: func(run *agenttest.Run) {
			run.Tell("p", "do one")
			agenttest.Next[agent.PermissionAsked](run).Answer(true, "")
			agenttest.Next[agent.TurnEnded](run)
		}},
		{Name: "compaction", Access: all, Script: func(r *agenttest.Request) agenttest.Turn {
			if r.N == 1 {
				return agenttest.Turn{Text: "Yes.", In: 250_000, CacheRead: 200_000}
			}
			return agenttest.Say("Yes.")
		}, Play: func(run *agenttest.Run) {
			run.Turn("do one")
			run.Turn("do two")
		}},
		{Name: "cut", Access: all, Script: agenttest.Sequence(agenttest.Turn{Text: "I begin.",
			Calls: shell(slow).Calls}, agenttest.Say("Done.")), Play: func(run *agenttest.Run) {
			thread := agenttest.Next[agent.Started](run).Session
			run.Tell("p", "do one")
			run.WaitFile("began")
			r().hold()
			r().cut()
			run.Touch("go")
			r().idle(thread)
			r().release()
			agenttest.Next[agent.TurnEnded](run)
			spent(run, 220)
		}},
	}
}

// FuzzDecode checks that the decoder continues after any message. It ignores messages that it does
// not know, and still reports the end of a turn once.
func FuzzDecode(f *testing.F) {
	agenttest.Seeds(f, `{"method":"turn/completed","params":{"turn":{"id":"t","status":"failed","error":{}}}}`,
		`{"method":"error","params":{"willRetry":true}}`,
		`{"method":"item/completed","params":{"item":{"type":"reasoning","content":["x"]}}}`,
		`{"result":{"thread":{"id":"x","turns":[{"id":"t","status":"inProgress","items":[{"type":"reasoning","content":["x"]},{"type":"fileChange","id":"7","changes":5}]}]}}}`)
	known := map[string]bool{"": true, "turn/started": true, "turn/completed": true, "item/started": true,
		"item/completed": true, "item/agentMessage/delta": true, "item/plan/delta": true,
		"thread/tokenUsage/updated": true, "thread/compacted": true,
		"serverRequest/resolved": true, "error": true, "item/commandExecution/requestApproval": true,
		"item/fileChange/requestApproval": true, "item/tool/call": true, "item/tool/requestUserInput": true,
		"mcpServer/elicitation/request": true}
	f.Fuzz(func(t *testing.T, said []byte) {
		s := &stream{}
		for line := range bytes.Lines(said) {
			var m rpc
			json.Unmarshal(line, &m)
			all := s.line(line)
			if len(all) > 0 && !known[m.Method] {
				t.Errorf("%q says %v", line, all)
			}
			for _, one := range all {
				if end, ok := one.(turnEnded); ok {
					agenttest.Sound(t, []any{end.end})
				}
			}
			agenttest.Sound(t, all)
		}
		s.line([]byte(`{"method":"turn/started","params":{"turn":{"id":"the last one"}}}`))
		over := []byte(`{"method":"turn/completed","params":{"turn":{"id":"the last one","status":"completed"}}}`)
		all := append(s.line(over), s.line(over)...)
		if len(all) != 1 || all[0] != (turnEnded{"the last one", agent.TurnEnded{}}) {
			t.Errorf("the turn ends with %+v", all)
		}
	})
}
