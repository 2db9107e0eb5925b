package observe

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cadre/internal/observe/present"
	"cadre/internal/team"
)

// The recordings are the output of the real programs, by version in testdata/claude. They test the
// decoder: the expected state at each point comes from the agent's own later TaskList and TaskGet,
// and from copies of its files. The readers of these share no code with the decoder.

const epochMillis = 1795219500000 // when they were recorded, about; a line without a time gets one from here

type input struct{ source, file string }

// recordings are sets of inputs that belong together.
var recordings = map[string][]input{
	"2.1.47 stream":           {{"lead", "2.1.47/stream.jsonl"}},
	"2.1.47 partial messages": {{"lead", "2.1.47/stream-partial.jsonl"}},
	"2.1.47 transcript":       {{"lead", "2.1.47/transcript-lead.jsonl"}},
	"2.1.177 stream":          {{"lead", "2.1.177/stream.jsonl"}},
	"2.1.329 lead in tmux":    {{"lead", "2.1.329/tmux/transcript-lead.jsonl"}},
	"2.1.329 team in tmux": {{"lead", "2.1.329/tmux/transcript-lead.jsonl"},
		{"alice", "2.1.329/tmux/transcript-alice.jsonl"}, {"bob", "2.1.329/tmux/transcript-bob.jsonl"}},
	"2.1.47 teammate alone":    {{"alice", "2.1.47/transcript-alice.jsonl"}},
	"2.1.329 teammate alone":   {{"bob", "2.1.329/tmux/transcript-bob.jsonl"}},
	"2.1.47 lead and teammate": {{"lead", "2.1.47/transcript-lead.jsonl"}, {"alice", "2.1.47/transcript-alice.jsonl"}},
	"2.1.329 team in tmux and its files": {{"lead", "2.1.329/tmux/transcript-lead.jsonl"},
		{"alice", "2.1.329/tmux/transcript-alice.jsonl"},
		{"bob", "2.1.329/tmux/transcript-bob.jsonl"}, {"files", "2.1.329/files"}},
	"2.1.47 lead and its files": {{"lead", "2.1.47/transcript-lead.jsonl"}, {"files", "2.1.47/files"}},
}

func recorded(t testing.TB, file string) [][]byte {
	t.Helper()
	if version, files := strings.CutSuffix(file, "/files"); files {
		return filesOfRun(t, version)
	}
	data, err := os.ReadFile(filepath.Join("testdata", "claude", filepath.FromSlash(file)))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))
}

// reader reads a lead's lines and reconstructs its team only from the results of the agent's tools.
type reader struct {
	explicit bool // a team begins with TeamCreate
	there    bool
	shown    int // number of comparisons
}

type anyMap = map[string]any

func dig(v any, path ...string) any {
	for _, key := range path {
		m, _ := v.(anyMap)
		v = m[key]
	}
	return v
}

func list(v any) []string {
	all := []string{}
	items, _ := v.([]any)
	for _, item := range items {
		all = append(all, fmt.Sprint(item))
	}
	slices.SortFunc(all, func(a, b string) int { x, _ := strconv.Atoi(a); y, _ := strconv.Atoi(b); return x - y })
	return all
}

// compare compares the observed state with the tasks that the line shows, if any.
func (r *reader) compare(t *testing.T, where string, line []byte, state *present.TeamState) {
	t.Helper()
	var v anyMap
	if json.Unmarshal(line, &v) != nil || v["type"] != "user" || dig(v, "parent_tool_use_id") != nil ||
		v["isSidechain"] == true {
		return
	}
	s, _ := v["tool_use_result"].(anyMap)
	if s == nil {
		s, _ = v["toolUseResult"].(anyMap)
	}
	switch {
	case s == nil:
		return
	case s["team_file_path"] != nil || s["status"] == "teammate_spawned":
		r.there = true
	case strings.HasPrefix(fmt.Sprint(s["message"]), "Cleaned up directories") ||
		strings.HasPrefix(fmt.Sprint(s["message"]), "No team name found"):
		r.there = false
	}
	if !r.there {
		if state != nil {
			t.Errorf("%s: there is no team, and %s is shown", where, state.Name)
		}
		r.shown++
		return
	}
	if state == nil {
		t.Fatalf("%s: there is a team, and none is shown", where)
	}
	if tasks, ok := s["tasks"].([]any); ok {
		r.shown++
		var want, got []string
		for _, task := range tasks {
			want = append(want, fmt.Sprint(dig(task, "id"), dig(task, "subject"), dig(task, "status"),
				cmp.Or(fmt.Sprint(dig(task, "owner"))), list(dig(task, "blockedBy"))))
		}
		done := map[string]bool{}
		for _, task := range state.Tasks {
			done[task.ID] = task.Status == "completed"
		}
		for _, task := range state.Tasks {
			owner := task.Owner
			if owner == "" {
				owner = "<nil>"
			}
			open := slices.DeleteFunc(slices.Clone(task.BlockedBy), func(id string) bool { return done[id] })
			got = append(got, fmt.Sprint(task.ID, task.Subject, task.Status, owner, open))
		}
		if !slices.Equal(want, got) {
			t.Errorf("%s: TaskList shows\n%s\nobserved is\n%s", where, strings.Join(want, "\n"),
				strings.Join(got, "\n"))
		}
	}
	if task, ok := s["task"].(anyMap); ok && task["status"] != nil {
		r.shown++
		want := fmt.Sprint(task["id"], task["subject"], task["description"], task["status"], list(task["blocks"]),
			list(task["blockedBy"]))
		for _, one := range state.Tasks {
			if one.ID == task["id"] {
				if got := fmt.Sprint(one.ID, one.Subject, one.Description, one.Status, one.Blocks,
					one.BlockedBy); got != want {
					t.Errorf("%s: TaskGet shows %s\nobserved is %s", where, want, got)
				}
				return
			}
		}
		t.Errorf("%s: TaskGet shows task %s, which is not observed", where, task["id"])
	}
}

// TestRecordings observes each lead's recording alone, and compares at every point where the agent
// shows its tasks.
func TestRecordings(t *testing.T) {
	for name, final := range map[string]string{
		"2.1.47 stream":           "null",
		"2.1.47 partial messages": "null",
		"2.1.47 transcript":       "null",
		"2.1.177 stream":          "null",
		"2.1.329 lead in tmux":    "alice:shutdown bob:shutdown carol:shutdown dave:shutdown",
	} {
		t.Run(name, func(t *testing.T) {
			in := recordings[name][0]
			o, r := New(Options{}), &reader{}
			for i, line := range recorded(t, in.file) {
				o.Line(in.source, line, epochMillis+team.Time(i))
				r.compare(t, fmt.Sprintf("%s:%d", in.file, i+1), line, o.State())
			}
			t.Logf("%d points were compared", r.shown)
			if r.shown < 4 {
				t.Errorf("only %d points were compared", r.shown)
			}
			if got := roll(o.State()); got != final {
				t.Errorf("in the end the team is %s, not %s", got, final)
			}
			c := o.Counts()
			if c.Pending+c.Discarded+c.Orphaned+c.Garbage+c.Gaps+c.Unknown != 0 {
				t.Errorf("not everything found its other half: %+v", c)
			}
		})
	}
}

func roll(s *present.TeamState) string {
	if s == nil {
		return "null"
	}
	var names []string
	for _, m := range s.Members {
		names = append(names, m.Name+":"+m.Status)
	}
	return strings.Join(names, " ")
}

// fileTask is a task in the program's own file.
type fileTask struct {
	ID, Subject, Description, ActiveForm, Status, Owner string
	Blocks, BlockedBy                                   []string
	Metadata                                            map[string]json.RawMessage
}

func (f fileTask) String() string {
	meta, _ := json.Marshal(f.Metadata)
	return fmt.Sprintf("%s %q %q %q %s %s %v %v %s", f.ID, f.Subject, f.Description, f.ActiveForm, f.Status, f.Owner,
		f.Blocks, f.BlockedBy, meta)
}

// filesOf returns the tasks in a copy of the program's files, without hidden ones.
func filesOf(t *testing.T, snap string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "claude", snap, "tasks", "*", "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatal(snap, paths, err)
	}
	var all []string
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f := fileTask{Blocks: []string{}, BlockedBy: []string{}}
		if err := json.Unmarshal(data, &f); err != nil {
			t.Fatal(path, err)
		}
		if string(f.Metadata["_internal"]) == "true" {
			continue
		}
		for key, v := range f.Metadata {
			var one bytes.Buffer
			if err := json.Compact(&one, v); err != nil {
				t.Fatal(err)
			}
			f.Metadata[key] = one.Bytes()
		}
		all = append(all, f.String())
	}
	return all
}

// shownTasks returns the observed tasks in the format of the files.
func shownTasks(o *Observer) []string {
	var all []string
	for _, task := range o.State().Tasks {
		full, _ := o.Team().Task(task.ID)
		all = append(all, fileTask{task.ID, task.Subject, task.Description, task.ActiveForm, task.Status, task.Owner,
			task.Blocks, task.BlockedBy, full.Metadata}.String())
	}
	return all
}

// TestFiles compares the observed state with copies of the program's own files, taken at the same
// points.
func TestFiles(t *testing.T) {
	for _, at := range []struct {
		name, recording, snap string
		until                 string // the lead's last line before the copy was made
	}{
		{"tasks are created", "2.1.47 stream", "2.1.47/snap/02-tasks-created", "tasks ready"},
		{"tasks were changed", "2.1.47 stream", "2.1.47/snap/11-task-ops", "ops done"},
		{"tasks were changed, in partial messages", "2.1.47 partial messages", "2.1.47/snap/11-task-ops", "ops done"},
		{"tasks were changed, in the transcript", "2.1.47 transcript", "2.1.47/snap/11-task-ops", "ops done"},
		{"subagents worked", "2.1.329 team in tmux", "2.1.329/tmux/snap/10-subagents", "sub done"},
		{"the end", "2.1.329 lead in tmux", "2.1.329/tmux/snap/final", ""},
		{"the end, with the teammates' own transcripts", "2.1.329 team in tmux", "2.1.329/tmux/snap/final", ""},
	} {
		t.Run(at.name, func(t *testing.T) {
			o := New(Options{})
			inputs := recordings[at.recording]
			for i, in := range inputs {
				for n, line := range recorded(t, in.file) {
					o.Line(in.source, line, epochMillis+team.Time(n))
					if i == 0 && at.until != "" && bytes.Contains(line, []byte(`"text":"`+at.until+`"`)) {
						break
					}
				}
				if at.until != "" {
					break // the copy does not have the later work of the teammates
				}
			}
			if want, got := filesOf(t, at.snap), shownTasks(o); !slices.Equal(want, got) {
				t.Errorf("the files have\n%s\nobserved is\n%s", strings.Join(want, "\n"), strings.Join(got, "\n"))
			}
			checkConfig(t, at.snap, o.State())
		})
	}
}

// TestFilesOfTeammatesWork checks that the teammates' own transcripts add what the files had before
// any TaskList showed it.
func TestFilesOfTeammatesWork(t *testing.T) {
	const copied = "2026-11-20T23:49:20" // between the end of the teammates' work and the lead's next word
	o := New(Options{})
	for _, in := range recordings["2.1.329 team in tmux"] {
		for n, line := range recorded(t, in.file) {
			if at := timestamps.FindSubmatch(line); at != nil && string(at[1]) > copied {
				break
			}
			o.Line(in.source, line, epochMillis+team.Time(n))
		}
	}
	const snap = "2.1.329/tmux/snap/04-work-done"
	if want, got := filesOf(t, snap), shownTasks(o); !slices.Equal(want, got) {
		t.Errorf("the files have\n%s\nobserved is\n%s", strings.Join(want, "\n"), strings.Join(got, "\n"))
	}
	checkConfig(t, snap, o.State())
}

// checkConfig compares the members with the program's config.json, if the copy has one.
func checkConfig(t *testing.T, snap string, state *present.TeamState) {
	t.Helper()
	paths, _ := filepath.Glob(filepath.Join("testdata", "claude", snap, "teams", "*", "config.json"))
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var config struct {
			Name    string
			Members []struct{ AgentID, Name, AgentType, Model, Color string }
		}
		if err := json.Unmarshal(data, &config); err != nil {
			t.Fatal(err)
		}
		want, got := []string{}, []string{}
		for _, m := range config.Members {
			if m.Name != "team-lead" {
				want = append(want, fmt.Sprint(m.AgentID, m.Name, m.AgentType, m.Model, m.Color))
			}
		}
		for _, m := range state.Members {
			got = append(got, fmt.Sprint(m.AgentID, m.Name, m.AgentType, m.Model, m.Color))
		}
		if state.Name != config.Name || !slices.Equal(want, got) {
			t.Errorf("%s has %s\n%s\nobserved is %s\n%s", path, config.Name, strings.Join(want, "\n"), state.Name,
				strings.Join(got, "\n"))
		}
	}
}

// TestTeammatesOwnLines checks that a teammate's changes to its tasks, which are not on the lead's
// stream, are known once its transcript is read, before any TaskList.
func TestTeammatesOwnLines(t *testing.T) {
	for _, version := range []struct{ name, lead, alice, until string }{
		{"in-process, without its name", "2.1.47/transcript-lead.jsonl", "2.1.47/transcript-alice.jsonl", "spawned"},
		{"in tmux", "2.1.329/tmux/transcript-lead.jsonl", "2.1.329/tmux/transcript-alice.jsonl", "spawned"},
	} {
		for _, order := range []string{"lead first", "teammate first"} {
			t.Run(version.name+", "+order, func(t *testing.T) {
				o := New(Options{})
				alice := func() {
					for i, line := range recorded(t, version.alice) {
						o.Line("alice", line, epochMillis+team.Time(i))
						if bytes.Contains(line, []byte("alice idle 5")) {
							return
						}
					}
				}
				lead := func() {
					for i, line := range recorded(t, version.lead) {
						o.Line("lead", line, epochMillis+team.Time(i))
						if bytes.Contains(line, []byte(`"text":"`+version.until+`"`)) {
							return
						}
					}
				}
				if order == "lead first" {
					lead()
					alice()
				} else {
					alice()
					lead()
				}
				task, _ := o.Team().Task("1")
				if task.Status != team.Completed || task.Owner != "alice" {
					t.Errorf("task 1 is %s of %s; alice completed it", task.Status, task.Owner)
				}
				if roll(o.State()) != "alice:active bob:active" && roll(o.State()) != "alice:idle bob:active" {
					t.Errorf("members: %s", roll(o.State()))
				}
			})
		}
	}
}

// TestChain has an in-process teammate of 2.1.47, which begins a nameless file for every prompt.
// Its answer to the second shutdown request is in the last one.
func TestChain(t *testing.T) {
	o := New(Options{})
	for _, in := range recordings["2.1.47 lead and teammate"] {
		lines := clip(recorded(t, in.file), `"text":"asked all"`)
		for i, line := range lines {
			o.Line(in.source, line, epochMillis+team.Time(i))
			o.Line(in.source, lines[max(0, i-1)], epochMillis+team.Time(i)) // the previous line is repeated
		}
	}
	if got := roll(o.State()); !strings.HasPrefix(got, "alice:shutdown ") {
		t.Errorf("members: %s", got)
	}
	if c := o.Counts(); c.Held != 0 || saves(t, o, "sides") != 7 {
		t.Errorf("%d files, %+v", saves(t, o, "sides"), c)
	}
}

// TestMessagesCountOnce checks that a message seen at its sender and at its recipient counts once.
func TestMessagesCountOnce(t *testing.T) {
	want := []string{
		"alice→bob: Task 1 is done, task 2 is unblocked",
		"alice→team-lead: Finished task 1",
		"team-lead→alice: Hello alice from lead",
	}
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {1, 2, 0}} {
		o := New(Options{})
		var got []string
		for _, i := range order {
			in := recordings["2.1.329 team in tmux"][i]
			for n, line := range recorded(t, in.file) {
				for _, notice := range o.Line(in.source, line, epochMillis+team.Time(n)).Notices {
					if notice.Type == present.MessageReceived {
						got = append(got, fmt.Sprintf("%s→%s: %s", notice.From, notice.To, *notice.Content))
					}
				}
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("read in the order %v, the messages are\n%s\nwant\n%s", order, strings.Join(got, "\n"),
				strings.Join(want, "\n"))
		}
	}
}

// TestUsageOfRecordings checks that the usage is the sum of the sessions' own last totals, even if
// a session is seen in two sources.
func TestUsageOfRecordings(t *testing.T) {
	o := New(Options{})
	for _, in := range recordings["2.1.329 team in tmux"] {
		for range 2 {
			for n, line := range recorded(t, in.file) {
				o.Line(in.source, line, epochMillis+team.Time(n))
			}
		}
		for n, line := range recorded(t, in.file) {
			o.Line("copy of "+in.source, line, epochMillis+team.Time(n))
		}
	}
	if got := o.Team().Team().Usage; got.CostMicroUSD != 30360+4840+1760 {
		t.Errorf("the team used %+v", got)
	}
	alice, _ := o.Team().Member("alice")
	if alice.Usage.CostMicroUSD != 4840 || alice.Usage.InputTokens == 0 {
		t.Errorf("alice used %+v", alice.Usage)
	}
	stream := New(Options{})
	var last anyMap
	for n, line := range recorded(t, "2.1.177/stream.jsonl") {
		stream.Line("lead", line, epochMillis+team.Time(n))
		var v anyMap
		if json.Unmarshal(line, &v) == nil && v["type"] == "result" && stream.State() != nil {
			last = v
		}
	}
	want := int64(last["total_cost_usd"].(float64)*1e6 + 0.5)
	if got := stream.Team().Team().Usage.CostMicroUSD; got != want {
		t.Errorf("the stream's team used %d, its last result says %d", got, want)
	}
}

// TestNothingIsWanted checks that an observed team is left alone: no host starts a session for it,
// and no deadline of cadre ends anything in it.
func TestNothingIsWanted(t *testing.T) {
	for name, inputs := range recordings {
		o := New(Options{})
		for _, in := range inputs {
			for n, line := range recorded(t, in.file) {
				now := epochMillis + team.Time(n)
				if o.Line(in.source, line, now); o.Team() == nil {
					continue
				}
				now += 24 * 60 * 60 * 1000
				if wants, _ := o.Team().Wants(now); len(wants) > 0 {
					t.Fatalf("%s, line %d: %s wants %+v", name, n+1, in.source, wants)
				}
				if due, _ := o.Team().Overdue(now); len(due) > 0 {
					t.Fatalf("%s, line %d: overdue is %+v", name, n+1, due[0])
				}
			}
		}
	}
}

// TestJournalOfRecordings checks that the records of each recording, written and read, give the
// same state with package team alone.
func TestJournalOfRecordings(t *testing.T) {
	for name, inputs := range recordings {
		t.Run(name, func(t *testing.T) {
			o := New(Options{})
			var s *team.State
			for _, in := range inputs {
				for n, line := range recorded(t, in.file) {
					for _, r := range o.Line(in.source, line, epochMillis+team.Time(n)).Records {
						if r.Seq == 1 {
							s = &team.State{}
						}
						again, err := team.DecodeRecord(r.Seq, string(team.AppendRecord(nil, r)))
						if err != nil {
							t.Fatal(err)
						}
						if !reflect.DeepEqual(again, r) {
							t.Errorf("record %d is read back as another", r.Seq)
						}
						s.Apply(again)
					}
				}
			}
			if got, want := team.AppendSnapshot(nil, s), team.AppendSnapshot(nil, o.Team()); !bytes.Equal(got, want) {
				t.Errorf("the journal gives\n%s\nobserved is\n%s", got, want)
			}
			if !reflect.DeepEqual(present.StateOf(s), o.State()) {
				t.Error("the journal's state is shown in another way")
			}
			for _, m := range s.Members() {
				if len(s.Inbox(m.Name)) > 0 {
					t.Errorf("mail waits for %s, and no host delivers it", m.Name)
				}
			}
		})
	}
}

// saves returns how many elements of a kind an observer saves.
func saves(t *testing.T, o *Observer, kind string) int {
	t.Helper()
	saved, err := o.Save()
	var all map[string]json.RawMessage
	if err := errors.Join(err, json.Unmarshal(saved, &all)); err != nil {
		t.Fatal(err)
	}
	var some map[string]json.RawMessage
	_ = json.Unmarshal(all[kind], &some)
	return len(some)
}
