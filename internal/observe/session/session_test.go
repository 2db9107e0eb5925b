package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"cadre/internal/agent"
	"cadre/internal/agent/drivers"
	"cadre/internal/observe"
	"cadre/internal/observe/present"
	"cadre/internal/team"
)

// recordings returns the recordings of the real programs, which are beside their drivers.
func recordings(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{"../../agent/acp/testdata/gemini.jsonl": team.Gemini,
		"../../agent/acp/testdata/opencode.jsonl": team.OpenCode}
	files, err := filepath.Glob("../../agent/codex/testdata/*/*.jsonl")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		all[file] = team.Codex
	}
	for _, name := range []string{team.Codex, team.Gemini, team.OpenCode} {
		files, err := filepath.Glob("../../agent/headless/testdata/" + name + "-*/*.jsonl")
		if err != nil || len(files) < 5 {
			t.Fatal(files, err)
		}
		for _, file := range files {
			all[file] = name
		}
	}
	return all
}

func linesOf(t *testing.T, file string) [][]byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Split(bytes.TrimSpace(data), []byte("\n"))
}

// shown is the expected result of a recording, read without the decoders: the last total usage, the
// description of the last tool, and how the last turn ended.
type shown struct {
	input, output int64
	tools         int
	end           string
}

func dig(v any, path ...string) any {
	for _, key := range path {
		m, _ := v.(map[string]any)
		v = m[key]
	}
	return v
}

func number(v any) int64 { n, _ := v.(float64); return int64(n) }

func show(t *testing.T, lines [][]byte) (s shown) {
	t.Helper()
	tools, started, threads := map[any]bool{}, map[any]bool{}, 0
	isTool := func(kind any) bool {
		return kind == "commandExecution" || kind == "fileChange" || kind == "mcpToolCall" || kind == "dynamicToolCall"
	}
	for _, line := range lines {
		var m map[string]any
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatal(err)
		}
		switch method, _ := m["method"].(string); method {
		case "thread/tokenUsage/updated":
			total := dig(m, "params", "tokenUsage", "total")
			s.input, s.output = number(dig(total, "inputTokens")), number(dig(total, "outputTokens"))
		case "item/started":
			if isTool(dig(m, "params", "item", "type")) {
				s.tools++
				started[dig(m, "params", "item", "id")] = true
			}
		case "turn/completed":
			s.end, _ = dig(m, "params", "turn", "status").(string)
		case "session/update":
			if u := dig(m, "params", "update"); dig(u, "sessionUpdate") == "tool_call" ||
				dig(u, "sessionUpdate") == "tool_call_update" {
				tools[dig(u, "toolCallId")] = true
			}
		}
		if dig(m, "result", "thread", "id") != nil { // the first is the beginning; another one was not observed
			turns, _ := dig(m, "result", "thread", "turns").([]any)
			for _, turn := range turns {
				items, _ := dig(turn, "items").([]any)
				for _, item := range items {
					if id := dig(item, "id"); threads > 0 && isTool(dig(item, "type")) && !started[id] {
						started[id] = true
						s.tools++
					}
				}
			}
			threads++
		}
		if dig(m, "result", "stopReason") == "end_turn" {
			s.end = "completed"
			s.input += number(dig(m, "result", "usage", "inputTokens")) + number(dig(m, "result", "_meta", "quota",
				"token_count", "input_tokens"))
			s.output += number(dig(m, "result", "usage", "outputTokens")) + number(dig(m, "result", "_meta", "quota",
				"token_count", "output_tokens"))
		}
		if kind, _ := m["type"].(string); kind != "" {
			s.printed(kind, m)
		} else if m["error"] != nil {
			s.end = "failed"
		}
	}
	s.tools += len(tools)
	return s
}

// printed reads a line that an agent prints when it runs without a driver.
func (s *shown) printed(kind string, m map[string]any) {
	switch kind {
	case "item.started", "tool_use":
		s.tools++
	case "turn.completed":
		s.end, s.input, s.output = "completed", number(dig(m, "usage", "input_tokens")),
			number(dig(m, "usage", "output_tokens"))
	case "result":
		s.end = map[any]string{"success": "completed", "error": "failed"}[m["status"]]
		s.input += number(dig(m, "stats", "input_tokens"))
		s.output += number(dig(m, "stats", "output_tokens"))
	case "step_finish":
		tokens := dig(m, "part", "tokens")
		s.input += number(dig(tokens, "input")) + number(dig(tokens, "cache", "read"))
		s.output += number(dig(tokens, "output"))
		if dig(m, "part", "reason") == "stop" {
			s.end = "completed"
		}
	case "turn.failed", "error":
		s.end = "failed"
	}
}

// counting counts the tools that a reader reports.
type counting struct {
	agent.Reader
	tools int
}

func (c *counting) Line(line []byte) []agent.Update {
	said := c.Reader.Line(line)
	for _, u := range said {
		if _, ok := u.(agent.ToolStarted); ok {
			c.tools++
		}
	}
	return said
}

// TestRecordings checks that each recording makes one member with the activity, tools and usage
// that the recording shows. The records are valid for any team: written, read and applied by
// package team alone, they give the same state.
func TestRecordings(t *testing.T) {
	for file, name := range recordings(t) {
		t.Run(strings.TrimPrefix(file, "../../agent/"), func(t *testing.T) {
			lines := linesOf(t, file)
			want := show(t, lines)
			reader := &counting{Reader: drivers.Reader(name)}
			o := New(Options{Agent: name, Reader: reader})
			var journal team.State
			doing := 0
			for i, line := range lines {
				for _, r := range o.Line("s", line, team.Time(1000+i)).Records {
					again, err := team.DecodeRecord(r.Seq, string(team.AppendRecord(nil, r)))
					if err != nil || !reflect.DeepEqual(r, again) {
						t.Fatalf("record %d is read back as another: %v", r.Seq, err)
					}
					journal.Apply(again)
					for _, e := range again.Events {
						if e, ok := e.(*team.MemberStatusChanged); ok && e.Status == team.Active {
							doing++
						}
					}
				}
			}
			m := o.member()
			u := m.Usage
			if got := u.InputTokens + u.CacheReadTokens + u.CacheWriteTokens; got != want.input ||
				u.OutputTokens != want.output {
				t.Errorf("it used %d and %d tokens, and the program says %d and %d", got, u.OutputTokens,
					want.input, want.output)
			}
			if reader.tools != want.tools || reader.tools > doing {
				t.Errorf("%d tools, %d things that it did; the recording has %d tools", reader.tools, doing, want.tools)
			}
			if status := map[string]team.MemberStatus{"completed": team.Idle, "interrupted": team.Idle,
				"failed": team.Blocked}[want.end]; status != "" && m.Status != status {
				t.Errorf("in the end the turn is %s, and the member %s: %s", want.end, m.Status, m.Summary)
			}
			if got := present.StateOf(o.Team()); len(got.Members) != 1 || len(got.Tasks) != 0 ||
				got.Members[0].Name != name || got.Members[0].AgentID != m.Session || m.Session == "" ||
				got.Role != present.RoleTeammate {
				t.Errorf("it is shown as %+v", got)
			}
			if c := o.Counts(); c.Garbage+c.Gaps+c.Truncated != 0 || c.Lines != int64(len(lines)) {
				t.Errorf("%+v", c)
			}
			if got, want := team.AppendSnapshot(nil, &journal),
				team.AppendSnapshot(nil, o.Team()); !bytes.Equal(got, want) {
				t.Errorf("the journal gives\n%s\nand not\n%s", got, want)
			}
		})
	}
}

// TestGarbage checks that meaningless lines are counted and change nothing else.
func TestGarbage(t *testing.T) {
	for file, name := range recordings(t) {
		clean, noisy := New(Options{Agent: name, Reader: drivers.Reader(name)}),
			New(Options{Agent: name, Reader: drivers.Reader(name), MaxLine: 1 << 16})
		for i, line := range linesOf(t, file) {
			clean.Line("s", line, team.Time(i))
			for _, bad := range []string{"", "garbage", `{"method":`, `{"method":5}`, "{\"method\":\"\xff\"}",
				`{"method":"item/started","params":[]}`, `{"x":"` + strings.Repeat("x", 1<<16) + `"}`} {
				noisy.Line("s", []byte(bad), team.Time(i))
			}
			noisy.Line("s", line, team.Time(i))
		}
		if got, want := fmt.Sprintf("%+v", present.StateOf(noisy.Team())),
			fmt.Sprintf("%+v", present.StateOf(clean.Team())); got != want {
			t.Errorf("%s: %s and not %s", file, got, want)
		}
		n := int64(len(linesOf(t, file)))
		if c := noisy.Counts(); c.Garbage != n || c.Truncated != n || c.Huge != n || c.InvalidUTF < n || c.Gaps != 2*n {
			t.Errorf("%s: %+v", file, c)
		}
	}
}

// TestUpdates checks the effect of each update.
func TestUpdates(t *testing.T) {
	o := New(Options{Agent: "codex", Name: "watched"})
	at := team.Time(0)
	for _, step := range []struct {
		u       agent.Update
		status  team.MemberStatus
		summary string
		notices string
	}{
		{agent.Started{Session: "s1"}, team.Active, "", "team:created team:member:joined"},
		{agent.TurnStarted{}, team.Active, "", ""},
		{agent.Text{Text: "I look\n\tat it. \x1b[31m"}, team.Active, "I look at it. [31m", ""},
		{agent.ToolStarted{ID: "1", Tool: "Bash", Input: `{"command":"go test ./..."}`}, team.Active,
			"Bash: go test ./...", ""},
		{agent.ToolFinished{ID: "1"}, team.Active, "Bash: go test ./...", ""},
		{agent.ToolStarted{ID: "2", Tool: "Edit", Input: `{"file_path":"a.go"}`}, team.Active, "Edit: a.go", ""},
		{agent.PermissionAsked{Tool: "Edit", Input: `{"file_path":"a.go"}`}, team.Blocked,
			"asks for permission: Edit: a.go", ""},
		{agent.ToolFinished{ID: "2"}, team.Active, "Edit: a.go", ""},
		{agent.ToolStarted{ID: "3", Tool: "odd", Input: "no JSON"}, team.Active, "odd", ""},
		{agent.ToolFinished{ID: "3", Failed: true}, team.Active, "failed: odd", ""},
		{agent.Used{Usage: team.Usage{InputTokens: 5}, Context: 7}, team.Active, "failed: odd", ""},
		{agent.PlanProposed{Plan: "first this"}, team.Blocked, "submitted a plan: first this", ""},
		{agent.Retrying{Problem: agent.Problem{Text: "slow down"}}, team.Active, "retries: slow down", ""},
		{agent.TurnEnded{Text: "half", Continues: true}, team.Active, "retries: slow down", ""},
		{agent.TurnEnded{Text: strings.Repeat("é", 200)}, team.Idle, strings.Repeat("é", 119) + "…",
			"team:member:idle"},
		{agent.TurnEnded{Text: strings.Repeat("é", 200)}, team.Idle, strings.Repeat("é", 119) + "…", ""},
		{agent.TurnStarted{}, team.Active, "", ""}, // there is no text in this turn yet
		{agent.TurnStarted{Summary: "again"}, team.Active, "again", ""},
		{agent.TurnEnded{Problem: &agent.Problem{Kind: agent.ProblemLimit, Text: "too many"}}, team.Blocked,
			"too many", ""},
		{agent.Text{Text: "on"}, team.Active, "on", ""},
		{agent.TurnEnded{Interrupted: true}, team.Idle, "interrupted", "team:member:idle"},
		{agent.Ended{Err: errors.New("killed")}, team.Failed, "killed", "team:member:failed"},
		{agent.Started{Session: "s2"}, team.Active, "", "team:member:joined"},
		{agent.Ended{}, team.Stopped, "its session ended", "team:member:shutdown"},
	} {
		at++
		var notices []string
		for _, n := range o.Update(step.u, at).Notices {
			notices = append(notices, n.Type)
		}
		m := o.member()
		if m.Status != step.status || m.Summary != step.summary || strings.Join(notices, " ") != step.notices {
			t.Errorf("after %T %+v the member is %s, %q; notices: %q", step.u, step.u, m.Status, m.Summary, notices)
		}
	}
	m := o.member()
	if m.Session != "s2" || m.Usage.InputTokens != 5 || m.Context != 7 || o.Team().Team().Name != "watched" ||
		o.Team().Team().Observed != "codex" {
		t.Errorf("%+v of %+v, shown as %+v", m, o.Team().Team(), present.StateOf(o.Team()))
	}
	if seen := o.Gap("s", "the connection was down", at); len(seen.Records) != 1 ||
		seen.Notices[0].Type != present.Gap {
		t.Errorf("%+v", seen)
	}
	if present.Adapters["codex"].Teams || present.Adapters["acp"].Teams {
		t.Error("an agent whose sessions are single members has no teams")
	}
}

// TestEnd checks the end of a stream whose program has exited. In the middle of a turn the session
// failed, which none of these programs reports. A session that waited may be continued, and a later
// program continues the same member.
func TestEnd(t *testing.T) {
	for _, c := range []struct {
		name, file string
		status     team.MemberStatus
		summary    string
	}{
		{team.Codex, "headless/testdata/codex-0.169.0/interrupted.jsonl", team.Failed,
			"the session ended in the middle of a turn"},
		{team.Gemini, "headless/testdata/gemini-0.61.0/interrupted.jsonl", team.Failed,
			"the session ended in the middle of a turn"},
		{team.OpenCode, "headless/testdata/opencode-1.18.33/interrupted.jsonl", team.Failed,
			"the session ended in the middle of a turn"},
		{team.Codex, "headless/testdata/codex-0.169.0/turn.jsonl", team.Idle, "Again."},
		{team.Gemini, "headless/testdata/gemini-0.61.0/401.jsonl", team.Blocked, "the key is unknown here"},
		{team.Codex, "", team.Stopped, "its session ended"}, // before any turn
	} {
		options := func() Options { return Options{Agent: c.name, Reader: drivers.Reader(c.name)} }
		o := New(options())
		if seen := o.End("s", 0); len(seen.Records) > 0 {
			t.Errorf("%s: the end of nothing is %+v", c.file, seen)
		}
		lines := [][]byte{[]byte(`{"type":"thread.started","thread_id":"t"}`)}
		if c.file != "" {
			lines = linesOf(t, "../../agent/"+c.file)
		}
		for _, line := range lines {
			o.Line("s", line, 1)
		}
		saved, err := o.Save()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Restore(options(), saved, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := again.End("s", 2), o.End("s", 2); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: read back it ends with %+v, and not %+v", c.file, got, want)
		}
		if m := o.member(); m.Status != c.status || m.Summary != c.summary {
			t.Errorf("%s: in the end it is %s: %s", c.file, m.Status, m.Summary)
		}
		if seen := o.End("s", 3); len(seen.Records) > 0 {
			t.Errorf("%s ends twice: %+v", c.file, seen)
		}
		before := o.member().Incarnation
		for _, line := range linesOf(t, "../../agent/headless/testdata/"+map[string]string{team.Codex: "codex-0.169.0",
			team.Gemini: "gemini-0.61.0", team.OpenCode: "opencode-1.18.33"}[c.name]+"/turn.jsonl") {
			o.Line("s", line, 4)
		}
		if m := o.member(); m.Status != team.Idle || m.Summary != "Again." ||
			(m.Incarnation != before) != (c.status == team.Failed || c.status == team.Stopped) {
			t.Errorf("%s: the program after it leaves %+v", c.file, m)
		}
	}
}

// TestRestored checks that an observer saved and restored after any line continues as if nothing
// had happened, with the same record numbers and ids.
func TestRestored(t *testing.T) {
	for file, name := range recordings(t) {
		t.Run(strings.TrimPrefix(file, "../../agent/"), func(t *testing.T) {
			lines := linesOf(t, file)
			options := func() Options { return Options{Agent: name, Name: "watched", Reader: drivers.Reader(name)} }
			whole, o := New(options()), New(options())
			for i, line := range lines {
				want, got := whole.Line("s", line, team.Time(i)), o.Line("s", line, team.Time(i))
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("line %d says %+v, and not %+v", i+1, got, want)
				}
				saved, err := o.Save()
				if err != nil {
					t.Fatal(err)
				}
				if o, err = Restore(options(), saved, nil); err != nil {
					t.Fatal(err)
				}
			}
			if got, want := o.Counts(), whole.Counts(); got != want {
				t.Errorf("counted is %+v, and not %+v", got, want)
			}
		})
	}
}

// TestRestoreRefuses checks that the saved data of one observation is not accepted for another.
func TestRestoreRefuses(t *testing.T) {
	whose := func(name string) Options { return Options{Agent: name, Reader: drivers.Reader(name)} }
	codex := New(whose(team.Codex))
	codex.Update(agent.Started{Session: "s1"}, 1)
	saved, err := codex.Save()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(whose(team.Gemini), saved, nil); !errors.Is(err, observe.ErrOther) {
		t.Errorf("codex is gone on with as gemini: %v", err)
	}
	if _, err := Restore(whose(team.Gemini), nil, codex.Team()); !errors.Is(err, observe.ErrOther) {
		t.Errorf("the journal of codex is gone on with as gemini's: %v", err)
	}
	if _, err := observe.Restore(observe.Options{}, saved, nil); !errors.Is(err, observe.ErrOther) {
		t.Errorf("a session is gone on with as a team: %v", err)
	}
	claude, err := observe.New(observe.Options{}).Save()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(whose(team.Codex), claude, nil); !errors.Is(err, observe.ErrOther) {
		t.Errorf("a team is gone on with as a session: %v", err)
	}
	newer := bytes.Replace(saved, []byte(`{"v":1`), []byte(`{"v":2`), 1)
	if _, err := Restore(whose(team.Codex), newer, nil); !errors.Is(err, observe.ErrNewer) {
		t.Errorf("what a newer version saved is read: %v", err)
	}
	for _, damaged := range []string{"{", `{"v":1,"agent":"codex","reader":5}`, `{"v":1,"agent":"codex","state":{"x":`,
		`{"v":1,"agent":"codex","state":5}`} {
		if _, err := Restore(whose(team.Codex), []byte(damaged), nil); err == nil {
			t.Errorf("%s is read", damaged)
		}
	}
	journaled, err := Restore(whose(team.Codex), nil, codex.Team())
	if err != nil || journaled.Team().Seq() != 1 {
		t.Fatalf("the journal is not gone on with: %v", err)
	}
	if seen := journaled.Update(agent.TurnStarted{Summary: "again"}, 2); len(seen.Records) != 1 ||
		seen.Records[0].Seq != 2 {
		t.Errorf("behind the journal comes %+v", seen)
	}
}

// TestNextSession checks that a program that introduces itself again is another session of the same
// member, even if the first one did not end. A repeated introduction of the same session is not
// another one.
func TestNextSession(t *testing.T) {
	for name, of := range map[string]func(session string) []string{
		team.Codex: func(session string) []string {
			return []string{
				`{"id":1,"result":{"userAgent":"codex/1"}}`,
				fmt.Sprintf(`{"id":2,"result":{"thread":{"id":%q,"turns":[]}}}`, session),
				fmt.Sprintf(`{"method":"turn/started","params":{"threadId":%q,"turn":{"id":"turn of %s"}}}`,
					session, session),
				fmt.Sprintf(
					`{"method":"thread/tokenUsage/updated","params":{"threadId":%q,"tokenUsage":{"total":{"totalTokens":12,"inputTokens":10,"outputTokens":2}}}}`, session),
				`{"method":"turn/started","params":{"threadId":"another","turn":{"id":"aside"}}}`,
				`{"method":"turn/completed","params":{"threadId":"another","turn":{"id":"aside","status":"completed"}}}`,
			}
		},
		team.Gemini: func(session string) []string {
			return []string{
				`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{}}}`,
				fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"result":{"sessionId":%q}}`, session),
				fmt.Sprintf(
					`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%q,"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"I look."}}}}`, session),
				`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"another","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Aside."}}}}`,
				`{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn","usage":{"inputTokens":10,"outputTokens":2,"totalTokens":12}}}`,
			}
		},
	} {
		o := New(Options{Agent: name, Reader: drivers.Reader(name)})
		for n, session := range []string{"s1", "s2", "s2"} {
			for _, line := range of(session) {
				o.Line("s", []byte(line), team.Time(n))
			}
			used := int64(10 * (n + 1))
			if name == team.Codex { // its total says that nothing was used
				used = int64(10 * min(n+1, 2))
			}
			if m := o.member(); m.Session != session || m.Usage.InputTokens != used || m.Incarnation != 1 {
				t.Errorf("%s: in session %d, %s, the member is %+v", name, n+1, session, m)
			}
		}
		if status := map[string]team.MemberStatus{team.Codex: team.Active,
			team.Gemini: team.Idle}[name]; o.member().Status != status {
			t.Errorf("%s: in the end the member is %+v", name, o.member())
		}
	}
}
