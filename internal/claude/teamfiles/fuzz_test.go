package teamfiles

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"cadre/internal/claude/teamfiles/teamfilestest"
)

// FuzzFiles writes arbitrary bytes into the files of a team. Nothing panics, an invalid file is not
// changed, and a valid one keeps its meaning when a change is made and undone.
func FuzzFiles(f *testing.F) {
	for _, version := range teamfilestest.Versions {
		for _, s := range teamfilestest.Recording(f, version) {
			if len(s.Content) > 0 && len(s.Content) < 2000 {
				f.Add(s.Content)
			}
		}
	}
	for _, seed := range []string{"", "null", "[]", "{}", "[null]", `{"members":[null]}`, `{"id":7}`, `{"a":1,"a":2}`,
		"\xff", `[{"from":"x","read":true},{"from":"x"}]`} {
		f.Add(seed)
	}
	root := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		dir, err := os.MkdirTemp(root, "")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		tm, err := teamAt(dir, "demo")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // so that an invalid file is not read repeatedly
		for _, path := range []string{tm.config(), tm.inbox("ann"), tm.task("1")} {
			write(t, path, text)
		}
		same := func(what, path string, err error) {
			got := content(t, path)
			switch {
			case err != nil && got != text:
				t.Errorf("%s: %v, and it is %q", what, err, got)
			case err == nil && !alike(got, text):
				t.Errorf("%s: it is %q", what, got)
			}
		}
		joined := tm.Join(ctx, Member{Name: "zoe"})
		if joined == nil {
			joined = tm.Leave(ctx, "zoe")
		}
		same("join and leave", tm.config(), joined)
		changed := tm.ChangeTask(ctx, "1", func(task *Task) error { task.Subject += "!"; return nil })
		if changed == nil {
			changed = tm.ChangeTask(ctx, "1", func(task *Task) error {
				task.Subject = task.Subject[:len(task.Subject)-1]
				return nil
			})
		}
		if changed != nil || bytes.Contains([]byte(text), []byte(`"subject"`)) { // otherwise the change has added one
			same("change a task", tm.task("1"), changed)
		}
		waiting, err := tm.Waiting(ctx, "ann")
		for _, e := range waiting {
			Parse(e.Text)
		}
		same("mark nothing that is there", tm.inbox("ann"), errors.Join(err,
			tm.MarkDelivered(ctx, "ann", "nobody's key")))
		fo := newFollower(tm)
		fo.look(nil, true)
		if left, _ := filepath.Glob(filepath.Join(dir, "*", "demo", "*.lock")); len(left) > 0 {
			t.Errorf("left are %v", left)
		}
	})
}

// alike reports whether two files have the same meaning.
func alike(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

// FuzzMessages checks that no text of an entry makes Parse panic, and that a parsed message
// survives encoding and parsing.
func FuzzMessages(f *testing.F) {
	for _, version := range teamfilestest.Versions {
		for _, s := range teamfilestest.Recording(f, version) {
			var entries []Entry
			json.Unmarshal([]byte(s.Content), &entries)
			for _, e := range entries {
				f.Add(e.Text)
			}
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		m := Parse(text)
		if m == nil {
			return
		}
		again := Parse(Text(m))
		if _, unknown := m.(*Unknown); unknown {
			return
		}
		if p, ok := m.(*PermissionRequest); ok && (len(p.Input) == 0 || len(p.Suggestions) == 0) {
			return // missing fields are encoded as null
		}
		if !alike(Text(again), Text(m)) {
			t.Errorf("%q is read as %q", Text(m), Text(again))
		}
	})
}
