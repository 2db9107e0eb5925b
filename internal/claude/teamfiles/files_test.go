package teamfiles

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cadre/internal/claude/projection"
	"cadre/internal/claude/teamfiles/teamfilestest"
	"cadre/internal/team"
)

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func content(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestDamagedFiles checks that an invalid file is reported by every read or change, and that no
// byte of it is changed.
func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"half": `[{"from":"a","text":"b`, "empty": "", "another kind": `{"a":1}`,
		"garbage": "\x00\xff", "null": "null", "an empty object": "{}", "an entry of another kind": `[1]`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tm, _ := newTeam(t, "ann")
			ctx := soon(t)
			task := strings.NewReplacer("[", "", `{"a":1}`, `[1]`).Replace(text)
			write(t, tm.inbox("ann"), text)
			write(t, tm.task("1"), task)
			write(t, tm.task("2"),
				`{"id":"2","subject":"fine","description":"","status":"pending","blocks":[],"blockedBy":["1"]}`)
			_, read := tm.Waiting(ctx, "ann")
			_, list := tm.Tasks(ctx)
			damage := map[string]error{"read the inbox": read, "read the tasks": list,
				"change the task": tm.ChangeTask(ctx, "1", func(*Task) error { return nil }),
				"mark delivered":  tm.MarkDelivered(ctx, "ann", "x")}
			if name != "an entry of another kind" { // an entry can still be appended to that one
				damage["send"] = tm.Send(ctx, "ann", Entry{From: Lead, Text: "hello"})
			}
			for what, err := range damage {
				if _, is := errors.AsType[*DamagedError](err); !is {
					t.Errorf("%s: %v", what, err)
				}
			}
			if tasks, _ := tm.Tasks(ctx); len(tasks) != 1 || tasks[0].ID != "2" {
				t.Errorf("the others are %v", tasks)
			}
			if name != "an entry of another kind" && content(t, tm.inbox("ann")) != text ||
				content(t, tm.task("1")) != task {
				t.Error("it was changed")
			}
			write(t, tm.config(), text)
			_, roster := tm.Config(ctx)
			for what, err := range map[string]error{"read the roster": roster, "change the roster": tm.SetActive(ctx,
				"ann", true)} {
				if _, is := errors.AsType[*DamagedError](err); !is || content(t, tm.config()) != text {
					t.Errorf("%s: %v, %s", what, err, content(t, tm.config()))
				}
			}
		})
	}
}

// TestUnknownStays checks that unknown fields are kept, and that unchanged fields stay the same
// byte for byte.
func TestUnknownStays(t *testing.T) {
	t.Parallel()
	tm, _ := newTeam(t)
	ctx := soon(t)
	config := "{\n  \"name\": \"demo\",\n  \"zeta\": [\n    1\n  ],\n  \"members\": [\n    {\n      \"name\": \"team-lead\",\n      \"future\": \"a < b\"\n    },\n    {\n      \"name\": \"ann\",\n      \"isActive\": true,\n      \"x\": null\n    }\n  ],\n  \"alpha\": {}\n}"
	write(t, tm.config(), config)
	if err := tm.SetActive(ctx, "ann", false); err != nil {
		t.Fatal(err)
	}
	if got, want := content(t, tm.config()), strings.Replace(config, `"isActive": true`, `"isActive": false`,
		1); got != want {
		t.Errorf("it is\n%s", got)
	}
	if err := errors.Join(tm.Join(ctx, Member{Name: "bob"}), tm.Leave(ctx, "bob"), tm.SetActive(ctx, "ann", true),
		tm.Leave(ctx, "nobody")); err != nil {
		t.Fatal(err)
	}
	if got := content(t, tm.config()); got != config {
		t.Errorf("it is\n%s", got)
	}
	if err := tm.Join(ctx, Member{Name: "ann"}); team.CodeOf(err) != team.Taken {
		t.Errorf("a second ann: %v", err)
	}
	task := "{\n  \"id\": \"1\",\n  \"later\": [],\n  \"subject\": \"s\",\n  \"status\": \"pending\",\n  \"description\": \"d\",\n  \"blocks\": [],\n  \"blockedBy\": []\n}"
	write(t, tm.task("1"), task)
	if err := tm.ChangeTask(ctx, "1", func(t *Task) error { t.Owner = "ann"; return nil }); err != nil {
		t.Fatal(err)
	}
	if got, want := content(t, tm.task("1")), strings.Replace(task, "[]\n}", "[],\n  \"owner\": \"ann\"\n}",
		1); got != want {
		t.Errorf("it is\n%s", got)
	}
	if err := tm.ChangeTask(ctx, "1", func(t *Task) error { t.Owner = ""; return nil }); err != nil ||
		content(t, tm.task("1")) != task {
		t.Errorf("it is, %v,\n%s", err, content(t, tm.task("1")))
	}
}

// TestBothAges checks that settled entries are removed or stay with read:true, like the others in
// the inbox, and that equal entries are settled one at a time.
func TestBothAges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, before, after string }{
		{"new",
			`[{"from":"a","text":"1","timestamp":"t","read":false,"msg_id":"k1"},{"from":"a","text":"2","timestamp":"t","read":false,"lead_sig":"s"}]`,
			`[{"from":"a","text":"2","timestamp":"t","read":false,"lead_sig":"s"}]`},
		{"old",
			`[{"from":"a","text":"0","timestamp":"t","read":true},{"from":"a","text":"1","timestamp":"t","read":false,"msg_id":"k1","x":1},{"from":"a","text":"2","timestamp":"t","read":false}]`,
			`[{"from":"a","text":"0","timestamp":"t","read":true},{"from":"a","text":"1","timestamp":"t","read":true,"msg_id":"k1","x":1},{"from":"a","text":"2","timestamp":"t","read":false}]`},
	} {
		tm, _ := newTeam(t, "ann")
		ctx := soon(t)
		write(t, tm.inbox("ann"), c.before)
		if err := tm.MarkDelivered(ctx, "ann", "k1", "k1", "k2"); err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if err := json.Compact(&got, []byte(content(t, tm.inbox("ann")))); err != nil || got.String() != c.after {
			t.Errorf("%s: %s, %v", c.name, got.String(), err)
		}
	}
	tm, _ := newTeam(t, "ann")
	ctx := soon(t)
	same := `{"from":"a","text":"1","timestamp":"t","read":false}`
	write(t, tm.inbox("ann"), "["+same+","+same+"]")
	waiting, err := tm.Waiting(ctx, "ann")
	if err != nil || len(waiting) != 2 {
		t.Fatal(waiting, err)
	}
	for left := 1; left >= 0; left-- {
		if err := tm.MarkDelivered(ctx, "ann", waiting[0].Key()); err != nil {
			t.Fatal(err)
		}
		if rest, _ := tm.Waiting(ctx, "ann"); len(rest) != left {
			t.Errorf("%d are left, not %d", len(rest), left)
		}
	}
}

// TestRecordedMessages decodes and encodes every structured message that Claude Code wrote in the
// recordings, without a change.
func TestRecordedMessages(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for _, version := range teamfilestest.Versions {
		for _, c := range teamfilestest.Recording(t, version) {
			var entries []Entry
			if !strings.Contains(c.Path, "/inboxes/") || json.Unmarshal([]byte(c.Content), &entries) != nil {
				continue
			}
			for _, e := range entries {
				m := Parse(e.Text)
				if m == nil {
					continue
				}
				if _, unknown := m.(*Unknown); unknown {
					t.Errorf("%s: unknown is %s", version, e.Text)
				}
				seen[m.kind()]++
				var want, got map[string]any
				if err := errors.Join(json.Unmarshal([]byte(e.Text), &want), json.Unmarshal([]byte(Text(m)),
					&got)); err != nil {
					t.Fatal(err)
				}
				for key := range want {
					if _, there := got[key]; !there && !strings.HasSuffix(key, "Digest") {
						t.Errorf("%s of %s lacks %s: %s", m.kind(), version, key, e.Text)
					}
				}
			}
		}
	}
	for _, kind := range []string{"idle_notification", "task_assignment", "shutdown_request", "shutdown_approved",
		"shutdown_rejected", "plan_approval_response"} {
		if seen[kind] == 0 {
			t.Errorf("no %s was seen: %v", kind, seen)
		}
	}
	for _, text := range []string{"hello", "{", `{"a":1}`, `{"type":7}`, "{\"type\":\"x\",\n\"of\":\"a program\"}"} {
		if m := Parse(text); m != nil {
			t.Errorf("%q is a %T", text, m)
		}
	}
}

// TestTaskIDs checks that an id is never used again, not even that of the last task, and that no
// task refers to a deleted one.
func TestTaskIDs(t *testing.T) {
	t.Parallel()
	tm, _ := newTeam(t)
	ctx := soon(t)
	for want := range 3 {
		if id, err := tm.CreateTask(ctx, Task{Subject: "s", Status: "pending"}); err != nil || number(id) != want+1 {
			t.Fatal(id, err)
		}
	}
	if err := errors.Join(tm.Block(ctx, "1", "3"), tm.Block(ctx, "3", "2"), tm.Block(ctx, "1", "2"),
		tm.Unblock(ctx, "1", "2"), tm.DeleteTask(ctx, "3")); err != nil {
		t.Fatal(err)
	}
	tasks, err := tm.Tasks(ctx)
	if err != nil || len(tasks) != 2 || len(tasks[0].Blocks)+len(tasks[0].BlockedBy)+len(tasks[1].BlockedBy) != 0 {
		t.Errorf("left are %+v, %v", tasks, err)
	}
	giving, err := lockFile(ctx, filepath.Join(tm.tasks, ".lock"))
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	if err := tm.DeleteTask(short, "2"); err == nil || content(t, tm.task("2")) == "" {
		t.Errorf("while an id is assigned another one is recorded as the highest: %v", err)
	}
	cancel()
	giving.unlock()
	if id, err := tm.CreateTask(ctx, Task{Subject: "s", Status: "pending"}); err != nil || id != "4" {
		t.Errorf("the next is %s, %v", id, err)
	}
	for _, id := range []string{"3", "0", "01", "../1", ""} {
		err := errors.Join(tm.ChangeTask(ctx, id, func(*Task) error { return nil }), tm.DeleteTask(ctx, id))
		if team.CodeOf(err) != team.NotFound {
			t.Errorf("task %q: %v", id, err)
		}
	}
}

// TestWhoGetsMail checks that only members on the roster get mail, and that no name leads out of
// the folder.
func TestWhoGetsMail(t *testing.T) {
	t.Parallel()
	tm, claude := newTeam(t, "ann")
	ctx := soon(t)
	for _, to := range []string{"bob", "../config", ""} {
		if err := tm.Send(ctx, to, Entry{From: "ann", Text: "x"}); team.CodeOf(err) != team.NotFound {
			t.Errorf("to %q: %v", to, err)
		}
	}
	for _, name := range []string{"..", "a/b", ""} {
		if _, err := Open(claude, name); team.CodeOf(err) != team.Invalid {
			t.Errorf("team %q: %v", name, err)
		}
	}
	if _, err := Open(claude, "other"); team.CodeOf(err) != team.NotFound {
		t.Error(err)
	}
	if _, err := Found(claude, projection.Config{Name: "demo"}); team.CodeOf(err) != team.Taken {
		t.Error(err)
	}
	if err := tm.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := tm.Config(ctx); team.CodeOf(err) != team.Finished {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(claude, "*", "*")); len(left) != 0 {
		t.Errorf("left are %v", slices.Clone(left))
	}
}
