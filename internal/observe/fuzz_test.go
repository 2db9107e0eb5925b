package observe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"cadre/internal/claude/teamfiles/teamfilestest"
	"cadre/internal/observe/present"
	"cadre/internal/observe/protocol"
	"cadre/internal/team"
)

// seeds adds lines of every kind from the recordings.
func seeds(f *testing.F) {
	had := map[string]bool{}
	for _, inputs := range recordings {
		for _, in := range inputs {
			for _, line := range recorded(f, in.file) {
				if m, err := protocol.Decode(line); err == nil && len(line) < 4000 {
					kind := fmt.Sprint(m.Type, m.Subtype, len(m.Uses), len(m.Results), m.Sub, m.Side)
					for _, u := range m.Uses {
						kind += u.Name
					}
					if !had[kind] {
						had[kind] = true
						f.Add(line)
					}
				}
			}
		}
	}
	for _, version := range teamfilestest.Versions {
		for i, note := range filesOfRun(f, version) {
			if i%5 == 0 && len(note) < 4000 {
				f.Add(ofTeam.ReplaceAll(note, []byte(`"team":"fx"`)))
			}
		}
	}
	f.Add(
		[]byte(
			`{"type":"claude-team-files","team":"fx","at":1,"n":1,"whole":{"tasks":["2"],"waiting":{"team-lead":[7]}}}`))
	f.Add(
		[]byte(
			`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":7}]}]},"tool_use_result":[1]}`))
	f.Add(
		[]byte(
			"{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"TaskCreate\",\"input\":{\"subject\":\"\xff\"}}]}}"))
}

var ofTeam = regexp.MustCompile(`"team":"[^"]*"`)

// FuzzLine checks that no line is fatal. The result can be saved, journaled and shown, and
// repeating the line changes nothing.
func FuzzLine(f *testing.F) {
	seeds(f)
	setup := [][]byte{
		[]byte(
			`{"type":"assistant","session_id":"11112222","message":{"id":"m","content":[{"type":"tool_use","id":"c","name":"TeamCreate","input":{"team_name":"fx"}}]}}`),
		[]byte(
			`{"type":"user","session_id":"11112222","message":{"content":[{"type":"tool_result","tool_use_id":"c","content":"x"}]},"tool_use_result":{"team_name":"fx"}}`),
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o := New(Options{})
		var s *team.State
		see := func(source string, line []byte) {
			for _, r := range o.Line(source, line, 5).Records {
				if r.Seq == 1 {
					s = &team.State{}
				}
				again, err := team.DecodeRecord(r.Seq, string(team.AppendRecord(nil, r)))
				if err != nil {
					t.Fatalf("%v", err)
				}
				s.Apply(again)
			}
		}
		for _, line := range setup {
			see("lead", line)
		}
		for line := range bytes.Lines(data) {
			see("lead", line)
			see("other", line)
			before := o.State()
			see("lead", line)
			if a, b := shown(t, before), shown(t, o.State()); a != b &&
				!bytes.Contains(line, []byte("turn_duration")) && !bytes.Contains(line, []byte("task_notification")) {
				t.Fatalf("again, it is\n%s\nnot\n%s", b, a)
			}
		}
		if s == nil || shown(t, present.StateOf(s)) != shown(t, o.State()) {
			t.Errorf("the journal shows\n%s\nobserved is\n%s", shown(t, present.StateOf(s)), shown(t, o.State()))
		}
		if s := o.State(); s != nil && len(s.Tasks) > 400 {
			return // large states are slow to save and add nothing
		}
		saved, err := o.Save()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Restore(Options{}, saved, nil)
		if err != nil {
			t.Fatal(err)
		}
		if twice, err := again.Save(); err != nil || !bytes.Equal(twice, saved) {
			t.Errorf("saved as\n%s\nand again as\n%s %v", saved, twice, err)
		}
	})
}

func shown(t *testing.T, s *present.TeamState) string {
	t.Helper()
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// FuzzFilter checks that a skipped line does not concern a team when it is decoded all the same.
func FuzzFilter(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, line []byte) {
		line = bytes.TrimSpace(line)
		if len(line) < 2 || line[0] != '{' || line[len(line)-1] != '}' || bytes.IndexByte(line, '\\') >= 0 ||
			bytes.IndexByte(line, '\n') >= 0 {
			return // no program escapes a tool's name or a key
		}
		s := protocol.NewFilter(func(string) bool { return false })
		if s.Worth(line, false) {
			return
		}
		m, err := protocol.Decode(line)
		if kind, _ := protocol.Head(line); err != nil || len(kind) > 0 && string(kind) != m.Type {
			return // not JSON, or two types
		}
		for _, u := range m.Uses {
			if is, why := protocol.Recognise(u, true); is || why != "" {
				t.Errorf("%s is passed over in %s", u.Name, line)
			}
		}
		for _, r := range m.Results {
			if !s.Ignores(protocol.Hash(r.ID)) {
				t.Errorf("the result of %s is passed over in %s", r.ID, line)
			}
		}
	})
}

// FuzzOutcome checks that any text and any structured result of any tool can be read.
func FuzzOutcome(f *testing.F) {
	for _, file := range []string{"2.1.47/stream.jsonl", "2.1.329/tmux/transcript-lead.jsonl"} {
		for _, line := range recorded(f, file) {
			if m, err := protocol.Decode(line); err == nil {
				for _, r := range m.Results {
					f.Add([]byte(r.S), r.R)
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, structured []byte, text string) {
		for _, tool := range []string{"TeamCreate", "TeamDelete", "Task", "Agent", "TaskCreate",
			"TaskUpdate", "TaskList",
			"TaskGet", "SendMessage", "ExitPlanMode"} {
			out := protocol.OutcomeOf(tool, &protocol.Result{ID: "t", S: structured, R: text},
				func(string) bool { return true })
			for _, task := range out.Tasks {
				if tool == "TaskList" && !out.Structured && protocol.TaskNumber(task.ID) == 0 && len(task.ID) <= 7 &&
					task.ID[0] != '0' {
					t.Errorf("%q has a task %q", text, task.ID)
				}
			}
		}
		for _, l := range protocol.MailOf(text) {
			if !strings.Contains(text, l.Text) || !strings.Contains(text, l.From) {
				t.Errorf("a message of %q that is not in %q", l.From, text)
			}
		}
	})
}

// FuzzRestore checks that any saved observation that Restore accepts is complete enough to
// continue.
func FuzzRestore(f *testing.F) {
	for _, name := range []string{"2.1.47 stream", "2.1.329 lead in tmux"} {
		o := New(Options{})
		for i, line := range recorded(f, recordings[name][0].file) {
			// small ones, because large inputs are mutated slowly
			if o.Line("lead", line, epochMillis+team.Time(i)); i == 34 {
				saved, err := o.Save()
				if err != nil {
					f.Fatal(err)
				}
				f.Add(saved)
			}
		}
	}
	f.Add(
		[]byte(
			`{"v":1,"board":{"tasks":{"1":null}},"roster":null,"sides":{"a":null},"sideOrder":["a","b"],"order":["x"]}`))
	f.Add([]byte(`{"v":2}`))
	line := []byte(
		`{"type":"assistant","session_id":"11112222","message":{"id":"m","content":[{"type":"tool_use","id":"c","name":"TaskList","input":{}}]}}`)
	answer := []byte(
		`{"type":"user","session_id":"11112222","message":{"content":[{"type":"tool_result","tool_use_id":"c","content":"No tasks found"}]}}`)
	f.Fuzz(func(t *testing.T, saved []byte) {
		o, err := Restore(Options{}, saved, nil)
		if err != nil {
			return
		}
		o.Line("lead", line, 1<<40)
		o.Line("lead", answer, 1<<40)
		o.State()
		o.Agents()
		if _, err := o.Save(); err != nil {
			t.Error(err)
		}
	})
}

// FuzzTeamState checks that a persisted state that is accepted makes a team with the same members
// and tasks.
func FuzzTeamState(f *testing.F) {
	f.Add(
		[]byte(
			`{"name":"t","role":"lead","members":[{"name":"a","agentId":"x","agentType":"y","status":"idle"}],"tasks":[{"id":"3","subject":"A","status":"pending","blockedBy":["1"],"blocks":[]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := present.ReadTeamState(data)
		if err != nil {
			return
		}
		o, _ := FromTeamState(Options{}, s, 1)
		if got := o.State(); got == nil || got.Name != s.Name || len(got.Members) > len(s.Members) ||
			len(got.Tasks) > len(s.Tasks) {
			t.Errorf("%s became %s", data, shown(t, got))
		}
	})
}

// FuzzSplitter checks that the lines do not depend on how the bytes arrive.
func FuzzSplitter(f *testing.F) {
	f.Add([]byte("a\nbb\n\nccc"), 2)
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		cut := func(step int) []string {
			var s protocol.Splitter
			var lines []string
			each := func(line []byte) { lines = append(lines, string(line)) }
			for at := 0; at < len(data); at += step {
				s.Write(data[at:min(at+step, len(data))], each)
			}
			s.End(each)
			return lines
		}
		want := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
		if len(data) == 0 {
			want = nil
		}
		if got := cut(max(1, size%64)); strings.Join(got, "|") != strings.Join(want, "|") || len(got) != len(want) {
			t.Errorf("%q in steps of %d: %q", data, max(1, size%64), got)
		}
	})
}
